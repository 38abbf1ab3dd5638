package grid

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// shares is the room that says which session is next.
type shares struct {
	*Grid
	known     *roster    // nil = to be made
	used      bool       // by a transaction that is not committed yet
	preemptAt job.Millis // when runs that are protected now may be pre-empted; 0 = nobody waits for that
	nextAt    job.Millis // the same, as the transaction has it
}

func (g *shares) begin() {
	g.nextAt = 0
	if g.used {
		g.known, g.used = nil, false
	}
}

// roster says which session is next: the rota of the rules, and what it is
// told. It follows from sessions, lines, leases and engines, and is made again
// from them when a transaction that changed it did not commit.
type roster struct {
	rota   *plan.Rota
	shares map[string]*plan.Share
	slots  int
	urgent int             // urgent sessions
	tagged map[string]bool // sessions with affinity: what is in line for one engine is not for another

	excluding map[string]bool // sessions with engines that failed too often there
	fleet     headcount
}

// headcount is how many engines there are.
type headcount struct {
	known int // not lost
	out   int // taken for black holes, or probed
	fit   int // may be given tasks
}

func (f *headcount) count(h *job.Holder, by int) {
	if h != nil && h.Engine != nil {
		f.known += by * oneIf(!h.Engine.Lost)
		f.out += by * oneIf(h.Engine.Health.State != job.HealthWell)
		f.fit += by * oneIf(fit(h))
	}
}

// roster returns what is known, to be changed.
func (g *shares) roster(tx *engine.Tx) (*roster, error) {
	if t := g.shares.known; t != nil {
		g.shares.used = true
		return t, nil
	}
	t := &roster{rota: plan.NewRota(1), shares: map[string]*plan.Share{}}
	g.shares.known, g.shares.used = t, true
	list, err := g.shares.all(tx)
	if err != nil {
		return nil, err
	}
	for _, s := range list {
		if err := g.shares.joinAsItIs(tx, t, s); err != nil {
			return nil, err
		}
	}
	return t, g.shares.countSlots(tx, t)
}

// all are the sessions as they are now, oldest first.
func (g *shares) all(tx *engine.Tx) (list []*job.Session, err error) {
	seen := map[string]bool{}
	err = store.EachRow(tx.Store(), "", func(s *job.Session) error {
		if changed := g.sessions.changed[s.Name]; changed != nil {
			s = changed
		}
		list, seen[s.Name] = append(list, s), true
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(g.sessions.changed) {
		if !seen[name] { // it is new
			list = append(list, g.sessions.changed[name])
		}
	}
	slices.SortStableFunc(list, func(a, b *job.Session) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

func (g *shares) joinAsItIs(tx *engine.Tx, t *roster, s *job.Session) error {
	q, err := tx.Queue(s.Name)
	if err != nil {
		return err
	}
	d := tx.Store().Depth(s.Name)
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

func (g *shares) countSlots(tx *engine.Tx, t *roster) error {
	err := g.fleet.each(tx, func(h *job.Holder) error {
		t.slots += slotsOf(h)
		t.fleet.count(h, 1)
		return nil
	})
	t.rota.SetSlots(t.slots)
	return err
}

// claimOf is what a session asks for by its settings.
func claimOf(s *job.Session, q *job.Queue) plan.Claim {
	c := plan.Claim{Weight: int(q.Grid.Weight), Max: q.Grid.MaxEngines, Urgent: q.Grid.Urgent}
	if q.Grid.Suspended || q.Paused || s.State >= job.SessionCancelling {
		c.Weight = 0
	}
	return c
}

// join lets a new session take part.
func (g *shares) join(tx *engine.Tx, s *job.Session, q *job.Queue) error {
	had := g.shares.known != nil
	t, err := g.shares.roster(tx)
	if err != nil || !had { // it was made with the session
		return err
	}
	t.shares[s.Name] = t.rota.Join(s.Name, claimOf(s, q))
	t.urgent += oneIf(t.shares[s.Name].Urgent)
	return nil
}

// change follows new settings of a session.
func (g *shares) change(tx *engine.Tx, s *job.Session, q *job.Queue) error {
	t, err := g.shares.roster(tx)
	if err == nil && t.shares[s.Name] != nil {
		g.stirred = true
		share := t.shares[s.Name]
		t.urgent -= oneIf(share.Urgent)
		t.rota.Change(share, claimOf(s, q))
		t.urgent += oneIf(share.Urgent)
	}
	return err
}

func (g *shares) leave(tx *engine.Tx, name string) error {
	t, err := g.shares.roster(tx)
	if err == nil && t.shares[name] != nil {
		t.urgent -= oneIf(t.shares[name].Urgent)
		t.rota.Leave(t.shares[name])
		delete(t.shares, name)
		delete(t.excluding, name)
	}
	return err
}

// changeFleet follows engines that come, go and change.
func (g *shares) changeFleet(tx *engine.Tx, old, row *job.Holder) {
	by := slotsOf(row) - slotsOf(old)
	g.stirred = g.stirred || by != 0
	t := g.shares.known
	if t == nil {
		return
	}
	g.shares.used = true
	t.fleet.count(old, -1)
	t.fleet.count(row, 1)
	if by != 0 {
		t.slots += by
		t.rota.SetSlots(t.slots)
	}
}

// of is how many slots a session should have now: its part of all, as far as engines may
// run its tasks.
func (g *shares) of(tx *engine.Tx, s *job.Session) (int, error) {
	t, err := g.shares.roster(tx)
	if err != nil || t.shares[s.Name] == nil {
		return 0, err
	}
	t.rota.Targets()
	return g.sight.slots(tx, s, t.shares[s.Name].Target)
}

// wrote follows a task that changes: who waits, and what runs.
func (g *shares) wrote(old, j *job.Job) {
	g.stirred = true
	t := g.shares.known
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
	g.shares.used = true
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

// roomBelowMax lets other engines look again at a session with max_engines when
// a run of it ended: they may have waited for that.
func (g *shares) roomBelowMax(tx *engine.Tx, old, j *job.Job) error {
	if leasesOf(j) >= leasesOf(old) {
		return nil
	}
	q, err := tx.Queue(old.Queue)
	if err == nil && q.Grid != nil && q.Grid.MaxEngines > 0 {
		tx.Wake(old.Queue)
	}
	return err
}
