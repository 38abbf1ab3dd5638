package mem

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Ready looks at every job that wants a holder. A member of a group stands in
// line only if its gate stands, and stands there for it.
func (r reader) Ready(queues []string, s rule.Seeker, n int) ([]*job.Job, error) {
	gates := r.gates()
	list := r.those(func(j *job.Job) bool {
		e := rule.EntriesOf(j)
		switch {
		case !e.Wants, !among(queues, j.Queue), !rule.Serves(r.queue(j.Queue), s), len(queues) == 0 && (s.Turns || s.Engine || !rule.ForAll(r.queue(j.Queue))), s.Before > 0 && r.stand(j).Seq >= s.Before:
			return false
		case e.Member && !gates[job.GateKey(j.Queue, j.Group)].standsFor(e):
			return false
		}
		return !j.HeldBy(s.Holder) && !j.RunsOn(s.Host) && rule.Fits(e.Class, j.Requires, s)
	})
	slices.SortFunc(list, func(a, b *job.Job) int {
		return cmp.Or(byPlace(r.stand(a), r.stand(b)), byPlace(rule.EntriesOf(a).Pos, rule.EntriesOf(b).Pos))
	})
	return copies(first(r.turns(list, s), n)), nil
}

// stand is where a job stands in line, itself or its gate for it.
func (r reader) stand(j *job.Job) rule.Pos {
	return rule.Stand(r.queue(j.Queue), r.gate(j.Queue, j.Group), rule.EntriesOf(j).Pos)
}

// turns leaves out what its queue has no room for, and of a fair queue all but
// the first of each class without a group: they have a turn together.
func (r reader) turns(list []*job.Job, s rule.Seeker) (out []*job.Job) {
	type class struct {
		queue string
		rule.Class
	}
	had, rooms := map[class]bool{}, map[string]*rule.Room{}
	for _, j := range list {
		of := class{j.Queue, rule.EntriesOf(j).Class}
		if !of.Member && r.queue(j.Queue).Protection.Fair != nil {
			if had[of] {
				continue
			}
			had[of] = true
		}
		if s.Room != nil {
			if rooms[j.Queue] == nil {
				rooms[j.Queue] = new(s.Room(j.Queue))
			}
			if !rooms[j.Queue].Take(of.Class) {
				continue
			}
		}
		out = append(out, j)
	}
	return out
}

// gate is a group as its members make it.
type gate struct{ rule.Group }

func (g *gate) standsFor(e rule.Entries) bool { return rule.Stands(g.Group) && *g.Wanting == e.Inner }

// gates returns all groups by job.GateKey.
func (r reader) gates() map[string]*gate {
	all := map[string]*gate{}
	for _, j := range r.state.jobs {
		e := rule.EntriesOf(j)
		if !e.Member {
			continue
		}
		key := job.GateKey(j.Queue, j.Group)
		g := all[key]
		if g == nil {
			q := r.queue(j.Queue)
			g = &gate{rule.Group{Gate: r.gate(j.Queue, j.Group), Throttle: r.throttle(j.Queue, j.Group), Order: q.Order, Turns: q.Turns, Limit: q.Concurrency}}
			all[key] = g
		}
		g.Live += len(j.Leases)
		if !j.State.Open() {
			g.Blockers++
		}
		g.First = lowest(g.First, e.Inner)
		if e.Wants {
			g.Wanting = lowest(g.Wanting, e.Inner)
		}
	}
	return all
}

func lowest(p *rule.Pos, q rule.Pos) *rule.Pos {
	if p == nil || q.Before(*p) {
		return &q
	}
	return p
}

// queue returns the settings of a queue: without a row all are default.
func (r reader) queue(name string) *job.Queue {
	if q, ok := r.state.rows[rowKey{job.Queues, name}].(*job.Queue); ok {
		return q
	}
	return job.NewQueue(name)
}

func (r reader) gate(queue, group string) *job.Gate {
	if g, ok := r.state.rows[rowKey{job.Gates, job.GateKey(queue, group)}].(*job.Gate); ok {
		return g
	}
	return &job.Gate{Queue: queue, Group: group}
}

func (r reader) throttle(queue, group string) *job.Throttle {
	t, _ := r.state.rows[rowKey{job.Throttles, job.GateKey(queue, group)}].(*job.Throttle)
	return t
}

func byPlace(a, b rule.Pos) int {
	switch {
	case rule.Pick(a, b):
		return -1
	case rule.Pick(b, a):
		return 1
	}
	return 0
}

// listed returns the jobs of one of the lists of Slice, in its order.
func (r reader) listed(list job.State) []*job.Job {
	gates := r.gates()
	at := func(j *job.Job) rule.Pos {
		p := rule.EntriesOf(j).Pos
		if rule.EntriesOf(j).Member {
			p.Seq = r.stand(j).Seq
		}
		return p
	}
	all := r.those(func(j *job.Job) bool {
		switch e := rule.EntriesOf(j); {
		case list == job.Scheduled:
			return e.Timer[rule.HandDue] > 0
		case list != job.Ready:
			return j.State == list
		case e.Park != "":
			return true
		default:
			return e.Wants && !e.Class.Copy && (!e.Member || gates[job.GateKey(j.Queue, j.Group)].standsFor(e))
		}
	})
	slices.SortStableFunc(all, func(a, b *job.Job) int {
		switch list {
		case job.Ready:
			return byPlace(at(a), at(b))
		case job.Scheduled:
			return cmp.Compare(rule.EntriesOf(a).Timer[rule.HandDue], rule.EntriesOf(b).Timer[rule.HandDue])
		default:
			return 0
		}
	})
	return all
}

func (r reader) Slice(list job.State, from int64, n int) ([]*job.Job, int64, error) {
	all := r.listed(list)
	if total := int64(len(all)); from < 0 || from >= total {
		return nil, total, nil
	}
	return copies(first(all[from:], n)), int64(len(all)), nil
}

func (r reader) Place(list job.State, id job.ID) (int64, bool, error) {
	at := slices.IndexFunc(r.listed(list), func(j *job.Job) bool { return j.ID == id })
	return int64(max(at, 0)), at >= 0, nil
}
