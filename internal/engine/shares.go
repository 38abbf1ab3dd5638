package engine

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// roster says which session is next: the rota of the rules, and what it is
// told. It follows from sessions, lines, leases and machines, and is made again
// from them when a transaction that changed it did not commit.
type roster struct {
	rota   *rule.Rota
	shares map[string]*rule.Share
	slots  int
	urgent int             // urgent sessions
	tagged map[string]bool // sessions with affinity: what is in line for one engine is not for another

	excluding map[string]bool // sessions with engines that failed too often there
	fleet     fleet
}

// fleet is how many machines there are.
type fleet struct {
	known int // not lost
	out   int // taken for black holes, or probed
	fit   int // may be given tasks
}

func (f *fleet) count(h *job.Holder, by int) {
	if h != nil && h.Machine != nil {
		f.known += by * oneIf(!h.Machine.Lost)
		f.out += by * oneIf(h.Machine.Health.State != job.HealthWell)
		f.fit += by * oneIf(fit(h))
	}
}

// roster returns what is known, to be changed.
func (r *Tx) roster() (*roster, error) {
	if t := r.c.roster; t != nil {
		r.c.rosterUsed = true
		return t, nil
	}
	t := &roster{rota: rule.NewRota(1), shares: map[string]*rule.Share{}}
	r.c.roster, r.c.rosterUsed = t, true
	list, err := r.allSessions()
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if err := r.joinAsItIs(t, s); err != nil {
			return nil, err
		}
	}
	return t, r.countSlots(t)
}

// allSessions are the sessions as they are now, oldest first.
func (r *Tx) allSessions() (list []*job.Session, err error) {
	seen := map[string]bool{}
	for after := ""; ; {
		rows, err := r.tx.Rows(job.Sessions, after, tickMax)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			after = row.Key()
			s := r.sessions[after]
			if s == nil {
				s = row.(*job.Session)
			}
			list, seen[after] = append(list, s), true
		}
		if len(rows) < tickMax {
			break
		}
	}
	for _, name := range sortedKeys(r.sessions) {
		if !seen[name] { // it is new
			list = append(list, r.sessions[name])
		}
	}
	slices.SortStableFunc(list, func(a, b *job.Session) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func (r *Tx) joinAsItIs(t *roster, s *job.Session) error {
	q, err := r.Queue(s.Name)
	if err != nil {
		return err
	}
	d := r.tx.Depth(s.Name)
	share := t.rota.Join(s.Name, claimOf(s, q))
	t.shares[s.Name] = share
	if s.Tags > 0 {
		t.tag(s.Name)
	}
	t.excludes(s)
	t.urgent += oneIf(share.Urgent)
	t.rota.Wait(share, int(d.Wanting+d.Leases))
	for range d.Leases {
		t.rota.Start(share)
	}
	return nil
}

// excludes notes that a session excludes engines, so that those which come and go
// are told apart.
func (t *roster) excludes(s *job.Session) {
	if !slices.ContainsFunc(s.Strikes, func(k job.Strike) bool { return k.Until > 0 }) {
		return
	}
	if t.excluding == nil {
		t.excluding = map[string]bool{}
	}
	t.excluding[s.Name] = true
}

func (r *Tx) countSlots(t *roster) error {
	for after := machinePrefix; ; {
		rows, err := r.tx.Rows(job.Holders, after, tickMax)
		if err != nil {
			return err
		}
		for _, row := range rows {
			after = row.Key()
			h := r.asItIs(row)
			t.slots += slotsOf(h)
			t.fleet.count(h, 1)
		}
		if len(rows) < tickMax {
			t.rota.SetSlots(t.slots)
			return nil
		}
	}
}

// claimOf is what a session asks for by its settings.
func claimOf(s *job.Session, q *job.Queue) rule.Claim {
	c := rule.Claim{Weight: int(q.Grid.Weight), Max: q.Grid.MaxEngines, Urgent: q.Grid.Urgent}
	if q.Grid.Suspended || q.Paused || s.State >= job.SessionCancelling {
		c.Weight = 0
	}
	return c
}

// joinShares lets a new session take part.
func (r *Tx) joinShares(s *job.Session, q *job.Queue) error {
	had := r.c.roster != nil
	t, err := r.roster()
	if err != nil || !had { // it was made with the session
		return err
	}
	t.shares[s.Name] = t.rota.Join(s.Name, claimOf(s, q))
	t.urgent += oneIf(t.shares[s.Name].Urgent)
	return nil
}

// changeShare follows new settings of a session.
func (r *Tx) changeShare(s *job.Session, q *job.Queue) error {
	t, err := r.roster()
	if err == nil && t.shares[s.Name] != nil {
		r.stirred = true
		share := t.shares[s.Name]
		t.urgent -= oneIf(share.Urgent)
		t.rota.Change(share, claimOf(s, q))
		t.urgent += oneIf(share.Urgent)
	}
	return err
}

func (r *Tx) leaveShares(name string) error {
	t, err := r.roster()
	if err == nil && t.shares[name] != nil {
		t.urgent -= oneIf(t.shares[name].Urgent)
		t.rota.Leave(t.shares[name])
		delete(t.shares, name)
		delete(t.excluding, name)
	}
	return err
}

// changeFleet follows machines that come, go and change.
func (r *Tx) changeFleet(old, row *job.Holder) {
	by := slotsOf(row) - slotsOf(old)
	r.stirred = r.stirred || by != 0
	t := r.c.roster
	if t == nil {
		return
	}
	r.c.rosterUsed = true
	t.fleet.count(old, -1)
	t.fleet.count(row, 1)
	if by != 0 {
		t.slots += by
		t.rota.SetSlots(t.slots)
	}
}

// shareOf is how many slots a session should have now.
func (r *Tx) shareOf(name string) int {
	t, err := r.roster()
	if err != nil || t.shares[name] == nil {
		return 0
	}
	t.rota.Targets()
	return t.shares[name].Target
}

// shared follows a task that changes: who waits, and what runs.
func (r *Tx) shared(old, j *job.Job) {
	r.stirred = true
	t := r.c.roster
	if t == nil {
		return
	}
	queue := ""
	switch {
	case j != nil:
		queue = j.Queue
	case old != nil:
		queue = old.Queue
	}
	share := t.shares[queue]
	if share == nil {
		return
	}
	r.c.rosterUsed = true
	waits := oneIf(wants(j)) - oneIf(wants(old))
	runs := leasesOf(j) - leasesOf(old)
	for ; runs > 0; runs-- {
		t.rota.Start(share)
		waits++
	}
	for ; runs < 0; runs++ {
		t.rota.End(share)
	}
	if waits != 0 {
		t.rota.Wait(share, waits)
	}
}

func wants(j *job.Job) bool { return j != nil && rule.EntriesOf(j).Wants }

// feedMachine gives a machine up to n tasks: for each of its slots one of the
// session that is furthest below its share.
func (r *Tx) feedMachine(h *holder, n int) (took int, dry bool, err error) {
	t, err := r.roster()
	if err != nil {
		return 0, false, err
	}
	s := rule.Seeker{Holder: h.name, Properties: h.opts.Properties, Engine: true, Host: h.host} // each slot is alone
	var found *job.Job
	fits := func(share *rule.Share) bool {
		if err != nil || !serves(h.opts.Queues, share.Name) {
			return false
		}
		var out bool
		if out, err = r.excluded(share.Name, h.name); err != nil || out {
			return false
		}
		found, err = r.nextTask(share.Name, h, s)
		return found != nil
	}
	for took < n && !r.full(h) {
		found = nil
		if t.rota.Pick(fits) == nil || err != nil {
			return took, err == nil && t.rota.Pick(nil) == nil, err
		}
		to := h
		if found.Attempts > 0 || found.Deliveries > 0 && rule.Undelivered(found) {
			if to, err = r.elsewhere(h, found); err != nil {
				return took, false, err
			}
			r.moved = r.moved || to != h // h was not filled with what it handed on: once more around
		}
		if err := r.grant(to, found, 0); err != nil {
			return took, false, err
		}
		r.grants++
		r.granted[found.ID] = r.grants
		took++
	}
	return took, false, nil
}

// offer is what a session has in line for machines that ask alike. It is read
// ahead, a few tasks and then more: one read of many costs less than many reads.
// It is valid while machines are served, when lines change by grants only.
type offer struct {
	list []*job.Job
	n    int // as many were asked for
	at   int // after so many grants
}

// offerKey says whom an offer is for.
type offerKey struct {
	session, asks string
	machine       string // "" = all that ask alike, on whichever host
}

// offerMax is the most tasks that are read ahead.
const offerMax = 64

// nextTask is the foremost task of a session that a machine may run; nil = none.
// Machines with the same properties look at the same offer, until what is foremost
// there runs on this one or on its host: then it asks for itself, as it does where
// some tasks are for some machines only.
func (r *Tx) nextTask(session string, h *holder, s rule.Seeker) (*job.Job, error) {
	key := offerKey{session: session, asks: h.asks}
	if !r.c.roster.tagged[session] {
		anyone := rule.Seeker{Properties: s.Properties, Engine: true}
		j, err := r.foremost(key, anyone)
		if err != nil || j == nil || !j.HeldBy(h.name) && !j.RunsOn(h.host) {
			return j, err
		}
	}
	key.machine = h.name
	return r.foremost(key, s)
}

// foremost is the first task of an offer, which is read anew when it is empty.
func (r *Tx) foremost(key offerKey, s rule.Seeker) (*job.Job, error) {
	o := r.offers[key]
	if o == nil {
		o = &offer{n: 1}
		r.offers[key] = o
	}
	for {
		for len(o.list) > 0 && r.granted[o.list[0].ID] > o.at {
			o.list = o.list[1:]
		}
		if len(o.list) == 0 {
			list, err := r.tx.Ready([]string{key.session}, s, o.n)
			if err != nil || len(list) == 0 {
				return nil, err
			}
			o.list, o.n, o.at = list, min(2*o.n, offerMax), r.grants
		}
		j := o.list[0]
		switch aside, err := r.putAside(j); {
		case err != nil:
			return nil, err
		case !aside:
			return j, nil
		}
		r.grants++ // what was read ahead of its line knows it as given out
		r.granted[j.ID] = r.grants
		if r.fed = r.fed || r.aside >= asideMax; r.fed { // the rest in the next run
			return nil, nil
		}
	}
}

func serves(sessions []string, name string) bool {
	for _, s := range sessions {
		if s == name {
			return true
		}
	}
	return len(sessions) == 0
}

// roomBelowMax lets other engines look again at a session with max_engines when
// a run of it ended: they may have waited for that.
func (r *Tx) roomBelowMax(old, j *job.Job) error {
	if leasesOf(j) >= leasesOf(old) {
		return nil
	}
	q, err := r.Queue(old.Queue)
	if err == nil && q.Grid != nil && q.Grid.MaxEngines > 0 {
		r.woken[old.Queue] = true
	}
	return err
}

func leasesOf(j *job.Job) int {
	if j == nil {
		return 0
	}
	return len(j.Leases)
}
