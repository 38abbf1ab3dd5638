package storetest

import (
	"cmp"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// pageMax is how much is asked for at a time where everything is wanted.
const pageMax = 256

// model is a store's content as List tells it, and what follows from it.
type model struct {
	jobs    []*job.Job // by id
	entries map[job.ID]rule.Entries
	groups  map[string][]*job.Job // members by job.GateKey, in the order of the group
	queues  map[string]*job.Queue
	gates   map[string]*job.Gate // of all jobs, by job.GateKey

	throttles map[string]*job.Throttle
}

func newModel(r store.Reader) (*model, error) {
	m := &model{
		entries: map[job.ID]rule.Entries{}, groups: map[string][]*job.Job{},
		queues: map[string]*job.Queue{}, gates: map[string]*job.Gate{}, throttles: map[string]*job.Throttle{},
	}
	var err error
	if m.jobs, err = listAll(r, store.Filter{}); err != nil {
		return nil, err
	}
	for _, j := range m.jobs {
		e := rule.EntriesOf(j)
		m.entries[j.ID] = e
		if m.queues[j.Queue], err = queueOf(r, j.Queue); err != nil {
			return nil, err
		}
		key := job.GateKey(j.Queue, j.Group)
		if m.gates[key], err = gateOf(r, j.Queue, j.Group); err != nil {
			return nil, err
		}
		if !e.Member {
			continue
		}
		m.groups[key] = append(m.groups[key], j)
		row, err := r.Row(job.Throttles, key)
		if err != nil {
			return nil, err
		}
		m.throttles[key], _ = row.(*job.Throttle)
	}
	for _, members := range m.groups {
		slices.SortFunc(members, func(a, b *job.Job) int {
			return order(m.entries[a.ID].Inner, m.entries[b.ID].Inner)
		})
	}
	return m, nil
}

// listAll pages through everything a filter selects.
func listAll(r store.Reader, f store.Filter) ([]*job.Job, error) {
	var all []*job.Job
	for {
		page, err := r.List(f, pageMax)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		from := page[len(page)-1].ID
		if !f.From.IsZero() && from.Before(f.From) != f.Desc || from == f.From {
			return all, broken("List from %s goes to %s", f.From, from)
		}
		f.From = from
	}
}

func order(a, b rule.Pos) int {
	switch {
	case a.Before(b):
		return -1
	case b.Before(a):
		return 1
	}
	return 0
}

// ready is what Ready must answer, of all there is.
func (m *model) ready(queues []string, s rule.Seeker) []job.ID {
	turn := map[job.ID]bool{} // members whose gate stands for them
	for key, members := range m.groups {
		if j, _ := m.standsFor(key, members); j != nil {
			turn[j.ID] = true
		}
	}
	var list []*job.Job
	for _, j := range m.jobs {
		e := m.entries[j.ID]
		named := len(queues) == 0 && !s.Turns && !s.Engine && rule.ForAll(m.queues[j.Queue]) || slices.Contains(queues, j.Queue)
		inLine := e.Wants && named && rule.Serves(m.queues[j.Queue], s) && (!e.Member || turn[j.ID])
		if inLine && s.Before > 0 {
			inLine = m.stand(j).Seq < s.Before
		}
		if inLine && !j.HeldBy(s.Holder) && !j.RunsOn(s.Host) && rule.Fits(e.Class, j.Requires, s) {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job.Job) int {
		return cmp.Or(order(m.stand(a), m.stand(b)), order(m.entries[a.ID].Pos, m.entries[b.ID].Pos))
	})
	return m.turns(list, s)
}

// stand is where a job stands in line, itself or its gate for it.
func (m *model) stand(j *job.Job) rule.Pos {
	return rule.Stand(m.queues[j.Queue], m.gates[job.GateKey(j.Queue, j.Group)], m.entries[j.ID].Pos)
}

// turns leaves out what there is no room for, and all but the first of those
// that have a turn together.
func (m *model) turns(list []*job.Job, s rule.Seeker) (ids []job.ID) {
	type class struct {
		queue string
		rule.Class
	}
	had, rooms := map[class]bool{}, map[string]rule.Room{}
	for _, j := range list {
		c := class{j.Queue, m.entries[j.ID].Class}
		if had[c] && !c.Member && m.queues[j.Queue].Protection.Fair != nil {
			continue
		}
		had[c] = true
		if s.Room != nil {
			room, asked := rooms[j.Queue]
			if !asked {
				room = s.Room(j.Queue)
			}
			fits := room.Take(c.Class)
			if rooms[j.Queue] = room; !fits {
				continue
			}
		}
		ids = append(ids, j.ID)
	}
	return ids
}

// standsFor returns the member a gate stands for, nil if it does not stand, and what
// is known of the group.
func (m *model) standsFor(key string, members []*job.Job) (*job.Job, rule.Group) {
	q, first := m.queues[members[0].Queue], m.entries[members[0].ID].Inner
	g := rule.Group{Gate: m.gates[key], Throttle: m.throttles[key], Order: q.Order, Turns: q.Turns, Limit: q.Concurrency, First: &first}
	var head *job.Job
	for _, j := range members {
		g.Live += len(j.Leases)
		if j.State.Terminal() {
			g.Blockers++
		}
		if e := m.entries[j.ID]; e.Wants && head == nil {
			head, g.Wanting = j, &e.Inner
		}
	}
	if !rule.Stands(g) {
		return nil, g
	}
	return head, g
}

// due is what Due must answer, of all there is.
func (m *model) due(h rule.Hand, until job.Millis) []job.ID {
	at := func(j *job.Job) job.Millis { return m.entries[j.ID].Timer[h] }
	var list []*job.Job
	for _, j := range m.jobs {
		if at(j) > 0 && at(j) <= until {
			list = append(list, j)
		}
	}
	slices.SortStableFunc(list, func(a, b *job.Job) int { return cmp.Compare(at(a), at(b)) })
	return idsOf(list)
}

// count is what Count must answer.
func (m *model) count(match func(*job.Job) bool) (n int64) {
	for _, j := range m.jobs {
		if match(j) {
			n++
		}
	}
	return n
}

func (m *model) depth(queue string) (d store.Depth) {
	for _, j := range m.jobs {
		if j.Queue != queue {
			continue
		}
		d.States[j.State]++
		d.Leases += int64(len(j.Leases))
		if m.entries[j.ID].Wants {
			d.Wanting++
		}
		if j.State.Open() {
			d.Bytes += int64(j.PayloadSize)
		}
		if j.State.Open() && j.Group != "" {
			d.Grouped++
		}
		d.Status[rule.StatusOf(j)]++
	}
	for _, g := range m.standing(queue) {
		d.Groups[g.Is]++
	}
	return d
}

// held returns the jobs of every holder that has a live lease.
func (m *model) held() map[string][]job.ID {
	held := map[string][]job.ID{}
	for _, j := range m.jobs {
		for _, l := range j.Leases {
			if ids := held[l.Holder]; len(ids) == 0 || ids[len(ids)-1] != j.ID {
				held[l.Holder] = append(ids, j.ID)
			}
		}
	}
	return held
}

// names returns the distinct values of a property, sorted.
func (m *model) names(of func(*job.Job) string) []string {
	set := map[string]bool{}
	for _, j := range m.jobs {
		set[of(j)] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// seekers are holders of every sort: some fit every class there is.
func (m *model) seekers() []rule.Seeker {
	list := []rule.Seeker{{Holder: "nobody"}, {Holder: "busy", Held: 1}, {Holder: "alone", Held: 1, HasIsolated: true}}
	all := map[string]string{}
	for _, j := range m.jobs {
		for _, req := range j.Requires {
			all[req.Property] = req.Value
		}
	}
	for holder := range m.held() {
		list = append(list, rule.Seeker{Holder: holder})
	}
	list = append(list, rule.Seeker{Holder: "able", Properties: all})
	for _, before := range []int64{0, 100, 300} {
		list = append(list, rule.Seeker{Holder: "in turns", Properties: all, Turns: true, Before: before})
	}
	for _, j := range m.jobs {
		for _, l := range j.Leases {
			if l.Host != "" { // also where that does not matter
				list = append(list, rule.Seeker{Holder: "neighbour", Properties: all, Engine: true, Host: l.Host})
			}
		}
	}
	list = append(list, rule.Seeker{Holder: "engine", Properties: all, Engine: true})
	for all := range 4 {
		list = append(list, rule.Seeker{Holder: "bounded", Properties: list[len(list)-1].Properties, Room: rooms(all)})
	}
	return list
}

// rooms leaves another room in each queue.
func rooms(all int) func(string) rule.Room {
	return func(queue string) rule.Room {
		return rule.Room{All: (all + len(queue)) % 5, Retried: (all + len(queue)) % 3}
	}
}

func idsOf(list []*job.Job) []job.ID {
	var ids []job.ID
	for _, j := range list {
		ids = append(ids, j.ID)
	}
	return ids
}
