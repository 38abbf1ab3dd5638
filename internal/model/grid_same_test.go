package model

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/query"
)

// What the engine tells of the grid, held against the model and, for the
// invariants of A42, against itself.

func (w *gridWorld) compared() {
	w.settle()
	g := w.grid
	known := 0
	claims := g.claims()
	for _, name := range w.names {
		s := g.sessions[name]
		got, err := w.Grid.Session(w.Context(), name)
		if s == nil {
			w.refused("read a session that is gone", err, job.NotFound)
			continue
		}
		w.must(err)
		w.sameSession(got, claims[slices.IndexFunc(claims, func(c *claim) bool { return c.session == s })])
		list, err := w.List(w.Context(), engine.Filter{Queues: []string{name}}, len(g.tasks)+1)
		w.must(err)
		w.sameTasks(s, list)
		w.results(s, 0, len(list)+1)
		known++
	}
	if all, err := w.Grid.Sessions(w.Context(), "", 100); err != nil || len(all) != known {
		w.Fatalf("%d sessions are listed, want %d: %v", len(all), known, err)
	}
	w.sameMachines()
}

// sameSession compares a session and its counts, which are a partition of what was
// submitted.
func (w *gridWorld) sameSession(got gridpart.SessionState, want *claim) {
	type shown struct {
		State                              job.SessionState
		Created, Ended, ClientUntil        job.Millis
		Submitted, Done, Failed, Cancelled int64
		Collected                          int64
		Open, Waiting, Running             int64
		Share                              int
		Stalled                            bool
	}
	n := w.grid.counts(want.session)
	a := shown{
		got.State, got.Created, got.Ended, got.ClientUntil, got.Submitted, got.Done, got.Failed, got.Cancelled, got.Collected,
		got.Depth.Open(), got.Depth.Wanting, got.Depth.Leases, got.Share, got.Stalled,
	}
	b := shown{
		want.state, want.created, want.ended, want.clientUntil(), n[open] + n[done] + n[failed] + n[cancelled], n[done], n[failed], n[cancelled], want.collected,
		n[open], int64(want.waiting), int64(want.running), min(want.target, w.reached(want)), want.stuck || w.stalled(want),
	}
	if a != b {
		w.Fatalf("session %s is\n%+v, want\n%+v", want.name, a, b)
	}
	w.sameStrikes(got.Strikes, want.session)
}

// reached are the slots of engines that may run tasks of a session.
func (w *gridWorld) reached(c *claim) (n int) {
	for name, m := range w.grid.machines {
		if m.able() && w.serves(name, c.name) && !c.excludes(m) {
			n += m.slots
		}
	}
	return n
}

// stalled reports whether a session has tasks in line that no engine may run.
func (w *gridWorld) stalled(c *claim) bool {
	if c.weight == 0 || c.waiting == 0 || c.running > 0 || c.state.Ended() {
		return false
	}
	for name, m := range w.grid.machines {
		if !w.serves(name, c.name) {
			continue
		}
		for _, t := range w.grid.ofSession(c.session) {
			if !m.lost && !m.draining && !c.excludes(m) && t.inLine() && t.fits(m) {
				return false
			}
		}
	}
	return true
}

// sameTasks compares the tasks of a session: each, and the order of those in line
// and of those that are finished.
func (w *gridWorld) sameTasks(s *session, list []query.Listed) {
	want := w.grid.ofSession(s)
	if len(list) != len(want) {
		w.Fatalf("session %s has %d tasks, want %d", s.name, len(list), len(want))
	}
	var line, ended []*task
	at := map[*task]*job.Job{}
	for i, t := range want {
		j := list[i].Job
		if at[t] = j; j.ID != t.id {
			w.Fatalf("session %s: %s is not where it was submitted", s.name, w.call(t))
		}
		w.sameTask(j, t)
		w.lawful(j, t)
		if t.number = j.Finished; t.inLine() {
			line = append(line, t)
		}
		if !t.state.Open() {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(line, foremost)
	if !slices.IsSortedFunc(line, func(a, b *task) int {
		x, y := at[a], at[b]
		return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.Band, y.Band), cmp.Compare(x.Seq, y.Seq), x.ID.Compare(y.ID))
	}) {
		for _, t := range line {
			w.Logf("%s, in band %d", w.call(t), at[t].Band)
		}
		w.Fatalf("the tasks of session %s do not stand in this line", s.name)
	}
	slices.SortFunc(ended, func(a, b *task) int { return cmp.Compare(a.number, b.number) })
	if !slices.IsSortedFunc(ended, func(a, b *task) int { return cmp.Compare(a.end, b.end) }) || len(ended) > 0 && ended[0].number == 0 {
		w.Fatalf("the finished tasks of session %s are not in the order in which they finished", s.name)
	}
}

// sameTask compares what is told of a task.
func (w *gridWorld) sameTask(j *job.Job, t *task) {
	type shown struct {
		State                                                            job.State
		Reason                                                           job.Reason
		Due                                                              job.Millis
		Retries, Losses, Evictions, Reschedules, Given, Wanted, Finished uint32
		Aside, Alone                                                     bool
	}
	a := shown{j.State, j.Reason, 0, j.Attempts, j.Losses, j.Evictions, j.Reschedules, j.Deliveries, uint32(j.CopiesWanted), 0, j.Park != "", j.Isolated}
	b := shown{t.state, t.reason, 0, t.retries, t.losses, t.evictions, t.reschedules, t.given, uint32(t.want), 0, t.aside != nil, t.alone}
	if j.State == job.Scheduled {
		a.Due, b.Due = j.ReadyAt, t.due
	}
	if !j.State.Open() {
		a.Wanted, b.Wanted, a.Finished, b.Finished = 0, 0, uint32(min(j.Finished, 1)), 1
	}
	if a != b {
		w.Fatalf("%s is\n%+v, want\n%+v", w.call(t), a, b)
	}
	leases := make([]job.Lease, 0, len(t.runs))
	for _, r := range t.runs {
		leases = append(leases, job.Lease{
			Token: r.token, Holder: "e/" + r.machine, Kind: job.Named, AnyHost: t.session.set.Grid.AnyHost, Copy: r.copy, Commits: r.commits,
			Number: r.number, Since: r.since, Started: r.started, RunEnd: r.runEnd, StartBy: r.startBy, Exclusive: r.alone, Host: r.host,
		})
	}
	if !slices.Equal(j.Leases, leases) {
		w.Fatalf("%s runs\n%+v, want\n%+v", w.call(t), j.Leases, leases)
	}
	w.sameHistory(j, t)
}

func (w *gridWorld) sameHistory(j *job.Job, t *task) {
	var got, want []job.Attempt
	for _, a := range j.History() {
		a.Failure = 0
		got = append(got, a)
	}
	for _, r := range t.past {
		a := job.Attempt{
			Number: r.number, Token: r.token.Hash(), Copy: r.copy, Committed: r.commits, Host: r.host,
			Since: r.since, Started: r.started, Ended: r.ended, Why: r.why, Charged: r.charged,
		}
		if r.machine != "" {
			a.Holder = "e/" + r.machine
		}
		want = append(want, a)
	}
	order := func(a, b job.Attempt) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Token, b.Token))
	}
	slices.SortFunc(got, order)
	slices.SortFunc(want, order)
	if !slices.Equal(got, want) {
		w.Fatalf("the attempts at %s are\n%+v, want\n%+v", w.call(t), got, want)
	}
}

// lawful holds a task to the invariants I1 to I5 of A42, by what the engine tells
// and nothing else.
func (w *gridWorld) lawful(j *job.Job, t *task) {
	set := t.session.set
	limit, _ := set.Retry.LimitValue()
	won, charged, free := 0, uint32(0), 0
	for _, a := range j.History() {
		switch a.Why {
		case job.AttemptOK, job.AttemptLate:
			won++
		case job.AttemptError, job.AttemptTimeout, job.AttemptLost:
		default:
			if a.Charged == job.ChargedRetry {
				free++
			}
		}
		if a.Charged == job.ChargedRetry {
			charged++
		}
	}
	engines, hosts := map[string]bool{}, map[string]bool{}
	for _, l := range j.Leases {
		engines[l.Holder], hosts[l.Host] = true, true
	}
	switch {
	case won > 1 || (won == 1) != (j.State == job.Done):
		w.Fatalf("I1: %s is %s with %d results", w.call(t), j.State, won)
	case int64(j.Attempts) > limit+int64(set.Grid.MaxCopies):
		w.Fatalf("I2: %s was retried %d times", w.call(t), j.Attempts)
	case j.Reschedules > set.Grid.MaxReschedules:
		w.Fatalf("I3: %s was rescheduled %d times", w.call(t), j.Reschedules)
	case len(j.Leases) > int(set.Grid.MaxCopies) || len(engines) < len(j.Leases) || !set.Grid.AnyHost && len(hosts) < len(j.Leases):
		w.Fatalf("I4: %s runs %+v", w.call(t), j.Leases)
	case free > 0 || charged != j.Attempts:
		w.Fatalf("I5: %s has %d retries, its attempts %+v", w.call(t), j.Attempts, j.History())
	}
}

// shown is the finished tasks that a session hands out, nil if it does not yet.
func (w *gridWorld) shown(s *session) []*task {
	if s.set.Grid.Collection == job.CollectAfterSubmit && s.state == job.SessionOpen {
		return nil
	}
	list := slices.DeleteFunc(w.grid.ofSession(s), func(t *task) bool { return t.state.Open() })
	slices.SortFunc(list, func(a, b *task) int { return cmp.Compare(a.number, b.number) })
	return list
}

// results compares a page of results.
func (w *gridWorld) results(s *session, after int64, n int) {
	list, _, _, err := w.Grid.Collect(w.Context(), s.name, after, n, func(int) error { return nil })
	w.must(err)
	want := slices.DeleteFunc(w.shown(s), func(t *task) bool { return t.number <= after })
	want = want[:min(n, len(want))]
	if len(list) != len(want) {
		w.Fatalf("session %s has %d results behind %d, want %d", s.name, len(list), after, len(want))
	}
	for i, t := range want {
		if r := list[i]; r.Job.ID != t.id || r.Number != t.number || !bytes.Equal(r.Payload, t.result) {
			w.Fatalf("the result of %s is %d %q, want %d %q", w.call(t), r.Number, r.Payload, t.number, t.result)
		}
	}
}

// sameMachines compares the engines, and looks for one that waits beside a task.
func (w *gridWorld) sameMachines() {
	list, err := w.Grid.Engines(w.Context(), "", 100)
	w.must(err)
	if len(list) != len(w.grid.machines) {
		w.Fatalf("%d engines are listed, want %d", len(list), len(w.grid.machines))
	}
	for _, got := range list {
		m := w.grid.machines[got.Name]
		if m == nil {
			w.Fatalf("engine %s is listed", got.Name)
		}
		type shown struct {
			Host, State         string
			Slots, Running      int
			Epoch               int64
			Lost, Draining, Off bool
			Stopping            int
		}
		a := shown{got.Host, got.State, got.Slots, got.Running, got.Epoch, got.Lost, got.Draining, got.Awaited, len(got.Stopping)}
		b := shown{m.host, w.stateOf(m), m.slots, w.grid.running(m), m.epoch, m.lost, m.draining, m.awaited, len(m.stopping)}
		if !reflect.DeepEqual(a, b) {
			w.Fatalf("engine %s is\n%+v, want\n%+v", m.name, a, b)
		}
		c := w.conns[m.name]
		if c == nil {
			continue
		}
		if t := w.grid.pick(m, c.serves); t != nil && w.grid.room(m) > 0 {
			w.Fatalf("engine %s waits, although it has room and %s is in line", m.name, w.call(t))
		}
	}
}

func (w *gridWorld) stateOf(m *machine) string {
	switch {
	case m.lost:
		return "lost"
	case w.conns[m.name] == nil && !m.polls:
		return "suspect"
	case m.draining:
		return "draining"
	case len(m.stopping) > 0:
		return "stopping"
	case w.grid.running(m) > 0:
		return "busy"
	}
	return "idle"
}
