package sim_test

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
	"github.com/reprisehq/reprise/internal/rule"
)

const gridLaw = "grid.md 1 to 3, A42"

// task holds one write of a task against what was asked for, what was due, and
// the second account of tasks, account.Tally. It reports whether the job is one.
func (x *judge) task(c *commit, ch *change) bool {
	if x.w.grid == nil {
		return false
	}
	t := &taskScene{judge: x, commit: c, old: ch.old, new: ch.new}
	x.blurred = true // what the engine counts is held against writes in other worlds
	switch {
	case ch.old == nil:
		t.submitted(ch)
		return true
	case ch.new == nil:
		broken("I1", "%s is gone", x.name(ch.old.ID))
	}
	t.q = x.book.queue(ch.old.Queue)
	if apart(plain(x.book.jobs[t.old.ID]), plain(t.old)) != "" {
		broken("I1", "%s was written over", x.name(t.old.ID))
	}
	happened := t.happened()
	t.remembered(x.name(t.old.ID), t.runs)
	if t.new.Wait.By == job.WaitFence && t.old.Wait.By != job.WaitFence {
		x.coverage.feature("a task behind a fence")
	}
	tally, want := tallyOf(t.old), tallyOf(t.new)
	limits := rulesOf(t.q)
	if t.new.Overrides > 0 && want.Reason != job.Exhausted { // an engine that chooses the time of the retry passes the limit (core.md 6)
		limits.MaxRetries = 1 << 30
	}
	for _, what := range happened {
		if err := tally.Add(what, limits); err != nil {
			broken(gridLaw, "%s, %v: %v", x.name(t.old.ID), happened, err)
		}
	}
	if t.died { // given up by its engine: a failure, and the end
		tally.State, tally.Reason, tally.Live, tally.InLine, tally.Asked, tally.Retries = job.Dead, job.Killed, 0, false, 0, tally.Retries+1
		tally.Losses = 0
	}
	if tally.Reason == job.ReasonCancelled && want.Reason == job.Killed { // what it needs failed, and it with that
		tally.Reason = job.Killed
	}
	if t.commits { // no copy is wanted beside it
		tally.InLine, tally.Asked = false, 0
	}
	if tally != want {
		broken(gridLaw, "%s, %v: its history makes it %+v, it is %+v", x.name(t.old.ID), happened, tally, want)
	}
	if apart(plain(t.old), plain(t.new)) != "" {
		x.touched[t.old.ID] = c.number
	}
	return true
}

func rulesOf(q *job.Queue) account.Rules {
	limit, _ := q.Retry.LimitValue()
	return account.Rules{
		MaxRetries: uint32(limit), MaxReschedules: q.Grid.MaxReschedules, MaxCopies: int(q.Grid.MaxCopies),
		LossesCharged: q.Grid.LossesCharged, LossLimit: q.Retry.LossLimitValue(),
	}
}

func tallyOf(j *job.Job) account.Tally {
	t := account.Tally{
		State: j.State, Reason: j.Reason, Live: len(j.Leases), InLine: j.State == job.Leased && len(j.Leases) < int(j.CopiesWanted),
		Retries: j.Attempts, Reschedules: j.Reschedules, Evictions: j.Evictions, Losses: j.Losses, Runs: j.Deliveries,
	}
	if j.State.Open() {
		t.Asked = max(0, int(j.CopiesWanted)-max(1, len(j.Leases)))
	}
	if j.State == job.Scheduled || j.State == job.Ready { // aside or in line, it waits
		t.State, t.InLine = job.Ready, true
	}
	if j.State == job.Done {
		t.Results = 1
	}
	return t
}

// taskScene is one write of a task.
type taskScene struct {
	*judge
	*commit
	old, new *job.Job
	q        *job.Queue
	died     bool
	commits  bool // a run got the word that its effects count
	lost     uint32
	runs     []endedRun
}

// submitted is a task that comes in.
func (t *taskScene) submitted(ch *change) {
	for _, r := range t.asked {
		if r.kind == askPut && r.commit == 0 && !r.lost && r.label == string(ch.body) {
			if s := t.session(t.new.Queue); s != nil && s.State != job.SessionOpen {
				broken("grid.md 11", "%s came into a session that is %s", r.label, s.State)
			}
			r.commit, r.state = t.number, t.new.State
			t.labels[t.new.ID], t.born[t.new.ID], t.touched[t.new.ID] = r.label, t.number, t.number
			t.coverage.feature("a task submitted")
			return
		}
	}
	broken("I1", "a task %q came in and nobody submitted it", ch.body)
}

func (x *judge) session(name string) *job.Session {
	s, _ := x.book.rows[rowKey{job.Sessions, name}].(*job.Session)
	return s
}

// happened is what the write means, and holds it against its cause.
func (t *taskScene) happened() (list []account.Happening) {
	name := t.name(t.old.ID)
	t.clocks(name)
	if len(t.new.Leases) > len(t.old.Leases) {
		t.given(name)
		return []account.Happening{account.RunBegan}
	}
	t.commits = t.new.Committed() && !t.old.Committed()
	var over []job.Ending
	for _, l := range t.old.Leases {
		if t.new.LeaseOf(l.Token) >= 0 {
			continue
		}
		at := slices.IndexFunc(t.new.Ended, func(e job.Ended) bool { return e.Hash == l.Token.Hash() })
		if at < 0 {
			broken("I2", "the end of a run of %s was forgotten at once", name)
		}
		how := t.new.Ended[at].How
		over = append(over, how)
		if what, counts := t.ended(name, l, how); counts {
			list = append(list, what)
		}
	}
	for range int64(t.new.Reschedules) - int64(t.old.Reschedules) {
		list = append(list, account.CopyAsked)
		t.asksFor(rule.Offer)
		t.coverage.feature("a copy of a task")
	}
	switch {
	case t.new.State == t.old.State && t.new.State.Terminal():
		broken("A42 I1", "%s was %s and was written again", name, t.old.State)
	case t.new.State == job.Done && !slices.Contains(over, job.ByOK):
		t.late(name)
		list = append(list, account.LateSucceeded)
	case t.new.State == job.Dead && (t.new.Reason == job.ReasonCancelled || t.new.Reason == job.Killed && !t.died):
		t.cancelled(name, over)
		list = append(list, account.TaskCancelledBy)
	case len(over) == 0 && t.old.State == job.Scheduled && t.new.State == job.Ready && t.old.ReadyAt > t.now:
		broken("I6", "%s is ready at %d and was due at %d", name, t.now, t.old.ReadyAt)
	case len(over) == 0 && t.old.Park != t.new.Park:
		t.aside(name)
	case len(over) == 0 && len(list) > 0:
	case len(over) == 0 || t.commits: // nothing ended: its engine says something
		if r := t.settles(askExtend, t.old, func(r *request) bool { return t.old.LeaseOf(r.extension.Token) >= 0 }); r != nil {
			r.commit, r.state = t.number, t.new.State
		}
	}
	return list
}

// given is a run that an engine got.
func (t *taskScene) given(name string) {
	l := t.new.Leases[len(t.new.Leases)-1]
	row, _ := t.book.rows[rowKey{job.Holders, l.Holder}].(*job.Holder)
	held := 0
	for _, j := range t.book.jobs {
		if j.HeldBy(l.Holder) {
			held++
		}
	}
	s := t.session(t.old.Queue)
	switch {
	case row == nil || row.Engine == nil || row.Engine.Lost || row.Engine.Draining || len(row.Engine.Stopping) > 0:
		broken("grid.md 8", "%s was given to %s: %+v", name, l.Holder, row)
	case held >= row.Engine.Slots:
		broken("A42 I7", "%s was given to %s, which runs %d in %d slots", name, l.Holder, held, row.Engine.Slots)
	case t.token(l.Token) || l.Token.IsZero() || l.Token.Start() != t.start:
		broken("I2", "the token of %s is not a fresh one", name)
	case !t.q.Grid.Served() || s == nil || s.State >= job.SessionCancelling:
		broken("grid.md 9", "%s was given out, and its session is not served", name)
	case t.old.Park != "" || t.old.ReadyAt > t.now && t.old.State != job.Leased:
		broken("I6", "%s was given out, is due at %d and aside under %q", name, t.old.ReadyAt, t.old.Park)
	case t.old.HeldBy(l.Holder) || !t.q.Grid.AnyHost && t.old.RunsOn(row.Engine.Host):
		broken("A42 I4", "%s runs twice on %s", name, l.Holder)
	case t.old.Attempts > rulesOf(t.q).MaxRetries && t.old.Overrides == 0:
		broken("A42 I2", "%s has %d retries and was given out", name, t.old.Attempts)
	}
	t.givenBy(name, l, row)
	t.elsewhere(name, l, row)
	t.tokens[l.Token] = grant{t.epoch, t.number, t.q.NonIdempotent}
	t.coverage.feature("a task given to an engine")
	if len(t.new.Leases) > 1 {
		t.coverage.feature("a task on two engines")
	}
}

// settles finds an open request of a kind about the task.
func (t *taskScene) settles(kind ask, j *job.Job, is func(*request) bool) *request {
	var first *request
	for _, r := range t.asked {
		switch {
		case r.kind != kind || r.id != j.ID || r.commit > 0 || r.lost || !is(r):
		case first == nil:
			first = r
		default: // nobody can tell which of them it was
			if first.rivals == nil {
				first.rivals = map[*request]job.State{}
			}
			first.rivals[r] = t.new.State
		}
	}
	return first
}

func (t *taskScene) asksFor(v rule.Verb) bool {
	r := t.settles(askOperate, t.old, func(r *request) bool { return r.command.Verb == v })
	if r != nil {
		r.commit, r.state = t.number, t.new.State
	}
	return r != nil
}

// said finds who settled a run with an outcome.
func (t *taskScene) said(token job.Token, o job.Outcome) bool {
	r := t.settles(askSettle, t.old, func(r *request) bool { return r.settle.Token == token && r.settle.Outcome == o })
	if r != nil {
		r.commit, r.state = t.number, t.new.State
		t.runs[len(t.runs)-1].by = r
	}
	return r != nil
}

// ended is what the end of a run means; counts is false for one that means
// nothing: its task has a result, or is cancelled.
func (t *taskScene) ended(name string, l job.Lease, how job.Ending) (what account.Happening, counts bool) {
	t.coverage.feature("a run ended by " + how.String())
	t.runs = append(t.runs, endedRun{l, how, nil})
	past := func(at job.Millis) bool { return at > 0 && at <= t.steady }
	row, _ := t.book.rows[rowKey{job.Holders, l.Holder}].(*job.Holder)
	ok := true
	switch how {
	case job.ByOK:
		what, ok = account.RunSucceeded, t.said(l.Token, job.OK)
	case job.ByRetry:
		what, ok = account.RunFailed, t.said(l.Token, job.Retried)
	case job.ByDead:
		t.died, ok = true, t.said(l.Token, job.Died)
		return 0, t.must(ok, name, how)
	case job.ByRelease:
		if what = account.RunGivenBack; !t.said(l.Token, job.Released) {
			what, ok = account.RunEvicted, past(l.StartBy)
		}
	case job.ByTimeout:
		t.overran(name, &l)
		what, ok = account.RunTimedOut, past(l.RunEnd)
	case job.ByLapse: // silent for too long, or it came back without the run
		if what = account.RunVanished; t.notAlone(&l) {
			return account.RunUncharged, true
		}
	case job.ByRestart:
		what = account.RunUncharged
	case job.ByUndelivered: // its engine did not name it, at its login or by a heartbeat
		what, ok = account.RunUncharged, l.Started == 0 && t.loggedIn(l.Holder)
	case job.BySupersede:
		if t.commits && len(t.new.Leases) == 1 { // another run has the word
			return account.RunUncharged, true
		}
		return 0, t.must(t.new.State != job.Ready && len(t.new.Leases) == 0, name, how)
	case job.ByCancel:
		return 0, t.must(t.new.State == job.Dead, name, how)
	default:
		what, ok = account.RunEvicted, how.Evicts()
	}
	if what == account.RunVanished && row != nil && row.Engine != nil && !row.Engine.Lost && row.Until > t.steady && !t.loggedIn(l.Holder) {
		broken("A5", "%s is lost with %s, which may be silent until %d, at %d", name, l.Holder, row.Until, t.steady)
	}
	t.must(ok, name, how)
	return what, true
}

func (t *taskScene) must(ok bool, name string, how job.Ending) bool {
	if !ok {
		broken(gridLaw, "a run of %s ended by %s, and nothing led to it", name, how)
	}
	return false
}

// loggedIn reports whether an engine may have logged in anew in this commit.
func (t *taskScene) loggedIn(holder string) bool {
	return slices.ContainsFunc(t.changes, func(c change) bool { return c.table == job.Holders && c.key == holder })
}

// late is the result of a run that was given up before.
func (t *taskScene) late(name string) {
	said := func(tokenless bool) *request {
		return t.settles(askSettle, t.old, func(r *request) bool {
			return r.settle.Outcome == job.OK && r.settle.Token.IsZero() == tokenless &&
				(t.token(r.settle.Token) || r.settle.Token.Start() < t.start) &&
				t.old.LeaseOf(r.settle.Token) < 0 && !overForGood(t.old, r.settle.Token)
		})
	}
	r := said(false)
	if r == nil {
		r = said(true)
	}
	if r == nil {
		broken("A42 I1", "%s is done, and nobody said so who may", name)
	}
	r.commit, r.state = t.number, job.Done
	t.lateTold(name, r.settle.Token)
	t.coverage.feature("a late result")
}

// cancelled is a task that was given up, by a person, with its session, or for
// one that it needs.
func (t *taskScene) cancelled(name string, over []job.Ending) {
	s := t.session(t.old.Queue)
	needs := t.old.Needs()
	failed := needs != nil && slices.ContainsFunc(needs.Tasks, func(id job.ID) bool {
		j := t.book.jobs[id]
		return j != nil && j.State == job.Dead
	})
	switch {
	case slices.ContainsFunc(over, func(how job.Ending) bool { return how != job.ByCancel }):
		broken(gridLaw, "%s was cancelled, and its runs ended by %v", name, over)
	case t.asksFor(rule.Cancel):
	case failed && needs.OnFail == job.DepFail:
		t.coverage.feature("a task failed for one that it needs")
	case s != nil && (s.State == job.SessionCancelling || t.cancels(s.Name)):
		t.coverage.feature("a task cancelled with its session")
	default:
		broken(gridLaw, "%s was cancelled and nobody asked for it", name)
	}
}

// cancels reports whether the commit gives up a session: it may be written behind
// its tasks.
func (t *taskScene) cancels(session string) bool {
	return slices.ContainsFunc(t.changes, func(c change) bool {
		s, _ := c.row.(*job.Session)
		return s != nil && s.Name == session && (s.State == job.SessionCancelling || s.State == job.SessionCancelled)
	})
}

// aside is a task that waits for others, or need not any more.
func (t *taskScene) aside(name string) {
	id, waits := rule.NeededBy(t.new.Park)
	switch needed := t.book.jobs[id]; {
	case waits && (needed == nil || !needed.State.Open()):
		broken("grid.md 9", "%s waits for %s, which is over", name, t.name(id))
	case !waits && t.old.Needs() != nil && slices.ContainsFunc(t.old.Needs().Tasks, func(id job.ID) bool { return t.book.jobs[id] != nil && t.book.jobs[id].State.Open() }):
		broken("grid.md 9", "%s is in line, and what it needs is not over", name)
	}
	switch behind := rule.AffinityPark(t.old.Queue, "x"); {
	case t.new.Park == behind:
		t.coverage.feature("a task behind the next of its tag")
	case waits || t.old.Park != behind:
		t.coverage.feature("a task that needs others")
	}
}

// engineRow notes that a connection is over: its engine is lost, logged off, or
// logged in anew.
func (x *judge) engineRow(old *job.Holder, ch *change) {
	row, _ := ch.row.(*job.Holder)
	if x.w.grid == nil || old == nil || old.Engine == nil {
		return
	}
	if row == nil || row.Engine.Lost || row.Engine.Epoch != old.Engine.Epoch {
		if h := x.w.holders[ch.key]; h != nil {
			h.gone = true
		}
	}
	if row != nil && row.Engine.Health.State != old.Engine.Health.State {
		x.coverage.feature("an engine " + row.Engine.Health.State.String())
	}
	if row != nil && row.Engine.Lost && !old.Engine.Lost {
		x.coverage.feature("an engine lost")
	}
	x.stopping(old, row)
}

// sessionCounts holds the counts of every session against its tasks: they are a
// partition of what was submitted.
func (w *world) sessionCounts() {
	if w.grid == nil {
		return
	}
	running := map[string]int{}
	for _, name := range w.grid.sessions {
		s := w.judge.session(name)
		if s == nil {
			continue // it was not opened, or a power cut took it back
		}
		var got job.Session
		for _, j := range w.judge.book.jobs {
			if j.Queue != name {
				continue
			}
			got.Submitted++
			if j.State == job.Done {
				got.Done++
			}
			if j.State == job.Dead {
				got.Failed++
			}
			for _, l := range j.Leases {
				running[l.Holder]++
			}
			w.waits(j)
		}
		w.judge.strikes(s)
		if s.Submitted != got.Submitted || s.Done != got.Done || s.Failed+s.Cancelled != got.Failed {
			broken("grid.md 10", "session %s counts %+v, its tasks are %d, %d of them done and %d given up", name, *s, got.Submitted, got.Done, got.Failed)
		}
		if s.State.Ended() && s.Open() > 0 || w.up() && s.State > job.SessionOpen && !s.State.Ended() && s.Open() == 0 {
			broken("grid.md 10", "session %s is %s with %d open tasks", name, s.State, s.Open())
		}
	}
	for holder, n := range running {
		row, _ := w.judge.book.rows[rowKey{job.Holders, holder}].(*job.Holder)
		if w.up() && (row == nil || row.Engine.Lost) {
			broken("A42 I7", "%d tasks run on %s, which is lost", n, holder)
		}
	}
}

// waits is A42 I6 and I8 of a task at rest: what waits for others waits for one
// that is open.
func (w *world) waits(j *job.Job) {
	id, aside := rule.NeededBy(j.Park)
	if needed := w.judge.book.jobs[id]; aside && j.State.Open() && w.up() && (needed == nil || !needed.State.Open()) {
		broken("A42 I6", "%s waits for %s, which is over: %s", w.judge.name(j.ID), w.judge.name(id), fmt.Sprint(needed != nil))
	}
}

// idleEngines looks for a task that waits for its first run beside a connected
// engine with a free slot.
func (w *world) idleEngines() {
	running, held := map[string]int{}, map[string]int{}
	for _, j := range w.judge.book.jobs {
		running[j.Queue] += len(j.Leases)
		for _, l := range j.Leases {
			held[l.Holder]++
		}
	}
	if limit := w.setup.inFlight; limit > 0 {
		return
	}
	for _, h := range w.streams {
		row, _ := w.judge.book.rows[rowKey{job.Holders, h.name}].(*job.Holder)
		if h.gone || h.closing || w.holders[h.name] != h || row == nil || row.Engine == nil {
			continue
		}
		if m := row.Engine; m.Lost || m.Draining || len(m.Stopping) > 0 || held[h.name] >= min(m.Slots, h.prefetch) {
			continue
		}
		for _, j := range w.judge.book.jobs {
			q, s := w.judge.book.queue(j.Queue), w.judge.session(j.Queue)
			free := q.Grid.Served() && q.HoldUntil <= w.now() && (q.Grid.MaxEngines == 0 || running[j.Queue] < q.Grid.MaxEngines)
			if free = free && w.mayRun(j, q, row.Engine); j.State == job.Ready && j.Park == "" && free && s.State < job.SessionCancelling && !j.Isolated {
				broken("A42 I8", "%s waits and %s has a free slot (%d held)", w.judge.name(j.ID), h.name, held[h.name])
			}
		}
	}
}

// heldLonger reports whether a settle of a task holds its session longer.
func (x *judge) heldLonger(old, row *job.Queue) bool {
	return x.w.grid != nil && row.HoldUntil > old.HoldUntil &&
		slices.ContainsFunc(x.asked, func(r *request) bool {
			return r.kind == askSettle && (r.settle.Outcome != job.Released || r.settle.Hold > 0)
		})
}
