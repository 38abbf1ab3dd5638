package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/store"
)

// preempt ends runs of sessions above their share where urgent ones are below
// theirs, a task of theirs may run in its place, and no slot is free for it
// (grid.md 9). What it ends is given back without blame, and its engine is told.
// It costs nothing without an urgent session.
func (g *shares) preempt(tx *engine.Tx) error {
	if t := g.shares.known; t != nil && t.urgent == 0 {
		return nil // and nobody waits for a run to be protected no more
	}
	if at := g.shares.preemptAt; !g.stirred && (at == 0 || at > tx.Steady()) {
		g.shares.nextAt = at
		return nil
	}
	t, err := g.shares.roster(tx)
	if err != nil {
		return err
	}
	need := 0
	if t.urgent > 0 {
		need = t.rota.Short()
	}
	if need == 0 {
		return nil
	}
	p := preemption{Grid: g.Grid, tx: tx, t: t, suit: map[string]bool{}, placed: map[job.ID]bool{}, gets: map[*plan.Share]int{}, drawn: map[string]bool{}}
	if err := p.look(); err != nil || p.ending || len(p.list) == 0 {
		return err
	}
	free, err := p.free()
	if err != nil {
		return err
	}
	victims, again := plan.Victims(p.list, need-free, tx.Steady(), func(i int) bool {
		if err != nil || len(p.placed)-free == preemptMost {
			return false
		}
		var served bool
		served, err = p.place(p.runs[i].holder)
		return served
	})
	if err != nil {
		return err
	}
	if g.shares.nextAt = again; len(victims) == preemptMost { // the rest in the next run
		g.shares.nextAt = tx.Steady()
	}
	for _, i := range victims {
		if err := tx.EndLeases(p.runs[i].holder, []job.ID{p.runs[i].id}, job.ByPreempt); err != nil {
			return err
		}
		tx.ServeAll() // the slot is for another one
	}
	return nil
}

// preemptMost is how many runs one transaction ends for urgent sessions.
const preemptMost = 64

// preemption is one look at what may be ended for urgent sessions.
type preemption struct {
	*Grid
	tx     *engine.Tx
	t      *roster
	suit   map[string]bool     // what suits says of engines
	placed map[job.ID]bool     // urgent tasks for which there is a slot, or will be
	gets   map[*plan.Share]int // how many of each session
	list   []plan.Preemptible
	runs   []victim
	drawn  map[string]bool // budgets of which a placed task takes
	ending bool            // some end by themselves in the next transaction, which looks again: their session is cancelled
}

// victim is a run that may be ended.
type victim struct {
	holder string
	id     job.ID
}

// look finds the runs that may be ended.
func (p *preemption) look() error {
	for _, share := range p.t.rota.Targets() {
		if share.Urgent || share.Running <= share.Target {
			continue
		}
		s, err := p.sessions.find(p.tx, share.Name)
		if err != nil {
			return err
		}
		jobs, err := p.tx.Store().List(store.Filter{Queues: []string{share.Name}, States: []job.State{job.Leased}}, share.Running)
		if err != nil {
			return err
		}
		expected := job.Millis(0)
		if s := p.copies.paces.of[share.Name]; s != nil {
			expected = s.own.Quantile(0.5)
		}
		for _, j := range jobs {
			for _, l := range j.Leases {
				suits, err := p.suits(l.Holder)
				switch {
				case err != nil:
					return err
				case !suits:
				case s.State >= job.SessionCancelling:
					p.ending = true
				default:
					p.list = append(p.list, plan.Preemptible{
						Share: share, Since: p.tx.Steady() - max(0, p.tx.Now()-l.Since), Expected: expected, Preempted: j.Evictions,
					})
					p.runs = append(p.runs, victim{l.Holder, j.ID})
				}
			}
		}
	}
	return nil
}

// suits reports whether an engine waits for tasks, or asks for them call by call,
// and may run one of an urgent session that is below its share.
func (p *preemption) suits(name string) (bool, error) {
	suits, known := p.suit[name]
	if known {
		return suits, nil
	}
	h, err := p.fleet.row(p.tx, name)
	if err == nil {
		suits, err = p.mayServe(h)
	}
	p.suit[name] = suits
	return suits, err
}

func (p *preemption) mayServe(h *job.Holder) (bool, error) {
	if h == nil {
		return false, nil
	}
	if room, err := p.sight.room(p.tx, h); room < 0 || err != nil {
		return false, err
	}
	share, _, err := p.next(h)
	return share != nil, err
}

// place gives an urgent task a place on an engine, if one may run there that has
// none yet.
func (p *preemption) place(name string) (bool, error) {
	h, err := p.fleet.row(p.tx, name)
	if err != nil {
		return false, err
	}
	share, j, err := p.next(h)
	if share == nil || err != nil {
		return false, err
	}
	p.placed[j.ID] = true
	p.gets[share]++
	for _, u := range j.Budgets() {
		p.drawn[u.Key] = true
	}
	return true, nil
}

// next is the urgent task without a place that an engine would be given; share is
// its session, nil = there is none.
func (p *preemption) next(h *job.Holder) (of *plan.Share, j *job.Job, err error) {
	for _, share := range p.t.rota.Targets() {
		if !share.Urgent || share.Running+p.gets[share] >= share.Target {
			continue
		}
		s, err := p.sessions.find(p.tx, share.Name)
		if err != nil {
			return nil, nil, err
		}
		if is, err := p.sight.of(p.tx, h, s); is > busy || err != nil {
			if err != nil {
				return nil, nil, err
			}
			continue
		}
		list, err := p.tx.Store().Ready([]string{share.Name}, seeker(h), len(p.placed)+1)
		if err != nil {
			return nil, nil, err
		}
		for _, j := range list {
			if p.placed[j.ID] {
				continue
			}
			if lets, err := p.lets(j); lets || err != nil {
				return share, j, err
			}
		}
	}
	return nil, nil, nil
}

// lets reports whether the budgets of an urgent task have units for it, as far as one
// look can tell: of each only one task gets a place, and the next look sees what is left.
func (p *preemption) lets(j *job.Job) (bool, error) {
	for _, u := range j.Budgets() {
		if p.drawn[u.Key] {
			return false, nil
		}
	}
	return p.tx.Lets(j)
}

// free is how many urgent tasks have a place in slots that are free: they were not
// asked for yet.
func (p *preemption) free() (n int, err error) {
	err = p.fleet.each(p.tx, func(h *job.Holder) error {
		suits, err := p.suits(h.Name)
		if !suits || err != nil {
			return err
		}
		room, err := p.sight.room(p.tx, h)
		for served := true; room > 0 && served && err == nil; room-- {
			served, err = p.place(h.Name)
			n += oneIf(served)
		}
		return err
	})
	return n, err
}
