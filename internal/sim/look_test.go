package sim_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/storetest"
)

// look compares everything after a step: the store with the books, counters
// with a full scan, and what is with what must have happened by now. What costs
// more than that is done when the dice of the step say so.
func (w *world) look(dice uint64) {
	w.left()
	held, err := scan(w.ctx, w.mem)
	if err != nil {
		if w.troubled || w.doomed > 0 {
			return // the store is down; what it kept is seen when it is open again
		}
		broken("answers", "the store cannot be read: %v", err)
	}
	if differs := w.judge.book.differs(held); differs != "" {
		broken("I1", "the store holds something else than was written: %s", differs)
	}
	w.judge.instant = w.clock.Steady()
	w.invariants()
	w.heldByNobody()
	w.sessionCounts()
	w.budgets()
	if w.up() {
		w.overdue()
		w.idle()
		w.handed()
	}
	w.counters()
	if dice%4 == 0 && w.sure() && w.doomed == 0 {
		w.statistics()
	}
	if dice%8 == 0 && w.setup.inboxes && w.sure() && w.doomed == 0 {
		w.standings()
	}
	if dice%16 == 0 && w.doomed == 0 {
		if err := w.mem.Check(); err != nil {
			broken("I8", "%v", err)
		}
		w.results()
	}
	if dice == 0 && w.seed%16 == 0 && w.doomed == 0 {
		if err := storetest.Check(w.ctx, w.mem); err != nil {
			broken("I1, I8", "%v", err)
		}
	}
}

// invariants checks what every job must be, and every strict group.
func (w *world) invariants() {
	turns := map[string]*job.Job{}
	w.keys()
	for _, j := range w.judge.book.jobs {
		name := w.judge.name(j.ID)
		key := job.GateKey(j.Queue, j.Group)
		switch {
		case j.State == job.None || j.State >= job.States:
			broken("I1", "%s is in state %d", name, j.State)
		case (j.State == job.Leased) != (len(j.Leases) > 0), len(j.Leases) > int(j.CopiesWanted):
			broken("I3", "%s is %s with %d leases of %d wanted", name, j.State, len(j.Leases), j.CopiesWanted)
		case (j.State == job.Dead) != (j.Reason != job.Alive):
			broken("I1", "%s is %s for the reason %q", name, j.State, j.Reason)
		case j.Group != "" && len(j.Leases) > 0 && turns[key] != nil && turns[key].Leases[0].Turn != j.Leases[0].Turn:
			broken("I7", "%s and %s of one group are out in two turns", name, w.judge.name(turns[key].ID))
		}
		if j.Group != "" && len(j.Leases) > 0 && j.Leases[0].Turn != 0 {
			turns[key] = j
		}
		for _, l := range j.Leases {
			if h := w.holders[l.Holder]; l.Kind == job.Anonymous && w.up() && (h == nil || h.gone) {
				broken("I1", "%s is leased by %s, who has gone", name, l.Holder)
			}
		}
	}
}

// overdue looks for what its clock should have done by now.
func (w *world) overdue() {
	date, steady := w.now(), w.clock.Steady()
	if date <= w.behind {
		return
	}
	calm := steady >= w.excused
	past := func(at, now job.Millis) bool { return at > 0 && at <= now }
	for _, j := range w.judge.book.jobs {
		waiting := j.State == job.Scheduled || j.State == job.Ready
		switch {
		case j.State == job.Scheduled && past(j.ReadyAt, date):
			broken("I1", "%s was due at %d and is scheduled at %d", w.judge.name(j.ID), j.ReadyAt, date)
		case calm && waiting && past(j.ExpiresAt, date):
			broken("I1", "%s expired at %d and is %s at %d", w.judge.name(j.ID), j.ExpiresAt, j.State, date)
		case calm && past(j.PurgeAt, date):
			broken("I1", "%s was to be purged at %d and is there at %d", w.judge.name(j.ID), j.PurgeAt, date)
		}
		for _, l := range j.Leases {
			if calm && (past(l.RunEnd, steady) || past(l.StartBy, steady) || past(l.Until, steady)) {
				broken("I1", "the lease of %s is over and live at %d: %+v", w.judge.name(j.ID), steady, l)
			}
		}
	}
	if !w.folds.shut() {
		w.unfolded(date)
	}
	for _, row := range w.judge.book.rows {
		now := date
		if row.Table() == job.Throttles {
			now = steady
		}
		if row.Table() == job.Holders {
			if now = steady; !calm {
				continue
			}
		}
		if row.Table() == job.Replays || row.Table() == job.Affinities {
			now = steady
		}
		if past(row.Due(), now) {
			broken("I1", "the row %q of table %d was due at %d and is there at %d", row.Key(), row.Table(), row.Due(), now)
		}
	}
}

// idle looks for work that waits beside a holder with room. Only one that is
// emptied for a job that must be alone goes without, and for each queue only one is.
func (w *world) idle() {
	if w.grid != nil {
		w.idleEngines()
		return
	}
	leases, held := 0, map[string]int{}
	for _, j := range w.judge.book.jobs {
		leases += len(j.Leases)
		for _, l := range j.Leases {
			held[l.Holder]++
		}
	}
	if limit := w.setup.inFlight; limit > 0 && leases >= limit {
		return
	}
	emptied := map[string]*holder{} // by queue
	waiting := w.streams[:len(w.streams):len(w.streams)]
	for _, c := range w.calls {
		if c.polls != nil && c.polls.name != "" {
			waiting = append(waiting, c.polls)
		}
	}
	for _, h := range waiting {
		if h.gone || h.closing || w.holders[h.name] != h || h.kind != job.Unary && h.prefetch > 0 && held[h.name] >= h.prefetch {
			continue
		}
		for _, j := range w.judge.book.jobs {
			if !h.asks(j.Queue) || w.judge.unfit(h, h.name, j) != "" {
				continue
			}
			p := w.judge.aloneBefore(h, j)
			if p == nil {
				broken("I1", "%s waits and %s has room (%d of %d held)", w.judge.name(j.ID), h.name, held[h.name], h.prefetch)
			}
			if other := emptied[p.Queue]; other != nil && other != h {
				broken("core.md 5", "%s and %s both go without for the sake of %s", h.name, other.name, w.judge.name(p.ID))
			}
			emptied[p.Queue] = h
			w.judge.coverage.feature("a holder emptied")
		}
	}
}

// handed looks for leases whose holder never heard of them.
func (w *world) handed() {
	for _, j := range w.judge.book.jobs {
		for _, l := range j.Leases {
			h := w.holders[l.Holder]
			if h != nil && h.kind != job.Unary && !h.gone && !h.slow && !h.got[l.Token] {
				broken("I1", "%s is leased by %s, who was never told", w.judge.name(j.ID), l.Holder)
			}
		}
	}
}

// counters compares what the store counts with the books.
func (w *world) counters() {
	depths, names := map[string]store.Depth{}, []string(nil)
	var next [rule.Hands]job.Millis
	var highest job.ID
	for _, j := range w.judge.book.jobs {
		d := depths[j.Queue]
		d.States[j.State]++
		d.Status[rule.StatusOf(j)]++
		d.Leases += int64(len(j.Leases))
		if rule.EntriesOf(j).Wants {
			d.Wanting++
		}
		if j.State.Open() {
			d.Bytes += int64(j.PayloadSize)
		}
		if j.State.Open() && j.Group != "" {
			d.Grouped++
		}
		depths[j.Queue] = d // but for groups, see below
		if highest.Before(j.ID) {
			highest = j.ID
		}
		for h, at := range rule.EntriesOf(j).Timer {
			if at > 0 && (next[h] == 0 || at < next[h]) {
				next[h] = at
			}
		}
	}
	for name := range depths {
		names = append(names, name)
	}
	slices.Sort(names)
	for name, groups := range w.judge.groups() {
		d := depths[name]
		for _, g := range groups {
			d.Groups[g.is]++
		}
		depths[name] = d
	}
	err := w.mem.View(w.ctx, func(r store.Reader) error {
		for name, want := range depths {
			if got := r.Depth(name); got != want {
				broken("I1", "queue %s is counted as %+v and holds %+v", name, got, want)
			}
		}
		if got, err := r.Names(); err != nil || !reflect.DeepEqual(got, names) {
			broken("I1", "the queues are counted as %v and are %v (%v)", got, names, err)
		}
		for h := range rule.Hands {
			if got := r.Next(h); got != next[h] {
				broken("I1", "the hand %s points at %d and should at %d", h, got, next[h])
			}
		}
		if got, err := store.MaxID(r); err != nil || got != highest {
			broken("I1", "the highest id is said to be %s and is %s (%v)", got, highest, err)
		}
		return nil
	})
	if err != nil {
		broken("answers", "the store cannot be read: %v", err)
	}
}

// statistics compares the engine's counters of this life with the writes (I9).
func (w *world) statistics() {
	var got figures
	var err error
	w.start(&call{finish: func() string { return "the counters were read" }}, func() { got.Stats, err = enginetest.Stats(w.ctx, w.e) })
	w.settle()
	got.Crons, got.Folded, got.Opened = w.e.Crons.Counts(), w.e.Folds.Folded(), w.e.Guard.Opened()
	if err != nil {
		w.refusal("stats", err)
		return
	}
	want := w.judge.stats
	got.Batches, got.ClockSteps = 0, 0
	if w.judge.unsure {
		got.Duplicates, want.Duplicates = 0, 0
	}
	if got != want && !w.judge.blurred {
		broken("I9", "the engine counts %s; written was %s", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
	}
}
