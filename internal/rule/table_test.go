package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// inState returns a world in which the job "a" is in a state, and the command
// of each verb that fits it best.
func inState(t testing.TB, s job.State) (*world, job.Token) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.ExpiresAt = dawn + job.Hour })
	var token job.Token
	switch s {
	case job.Scheduled:
		w.take("a", "u/1")
		w.fail("a", w.jobs["a"].Leases[0].Token)
	case job.Leased:
		token = w.take("a", "u/1", of(job.Unary), func(l *job.Lease) { l.Until = dawn + job.Minute })
	case job.Done:
		w.ok("a", w.take("a", "u/1"))
	case job.Dead:
		w.do("a", Command{Verb: SettleDead, Token: w.take("a", "u/1")})
	case job.None, job.Ready, job.States:
	}
	if s == job.None {
		delete(w.jobs, "a")
	} else if w.jobs["a"].State != s {
		t.Fatalf("made a job that is %s, want %s", w.jobs["a"].State, s)
	}
	return w, token
}

// try one verb on a job in a state, late enough for every timer to be over.
func tryPair(t *testing.T, v Verb, s job.State) (*world, error) {
	w, token := inState(t, s)
	c := Command{Verb: v, Token: token, Edit: func(j *job.Job) { j.Priority++ }}
	switch v {
	case Put:
		c.New = &job.Job{ID: w.ids.Next(w.now), Queue: "q"}
	case Take:
		c.Lease = w.lease("u/2")
	case Offer, Extend, SettleOK, SettleRetry, SettleRelease, SettleDead:
	default:
		w.tick(2 * job.Hour)
	}
	if s == job.Leased && v == Take {
		w.do("a", Command{Verb: Offer})
	}
	if s != job.None {
		return w, w.try("a", c)
	}
	e, err := Step(w.view(nil), c)
	if err != nil && (e.Job != nil || e.Gate != nil || e.Ended != nil) {
		t.Errorf("%s from none was refused with an effect", v)
	}
	return w, err
}

func TestEveryStateAndVerbIsAllowedOrANamedErrorWithoutEffect(t *testing.T) { // DESIGN section 2, Transitions
	for v := Put; v < Verbs; v++ {
		for s := job.None; s < job.States; s++ {
			t.Run(v.String()+" "+s.String(), func(t *testing.T) {
				_, err := tryPair(t, v, s)
				kind := job.KindOf(err)
				late := v == SettleOK && (s == job.Ready || s == job.Scheduled) // only as a late OK
				switch {
				case late:
					if err == nil || kind != job.NotFound {
						t.Errorf("an OK without any lease: %v", err)
					}
				case Allowed(v, s) != (err == nil):
					t.Errorf("allowed %v, answered %v", Allowed(v, s), err)
				case err != nil && isSettle(v):
					if kind != job.NotFound {
						t.Errorf("a settle of a job that is %s: kind %d, %v", s, kind, err)
					}
				case err != nil && v == Extend && s != job.None: // whoever had it is told that it is over
					if kind != job.Superseded {
						t.Errorf("a heartbeat for a job that is %s: kind %d, %v", s, kind, err)
					}
				case err != nil && kind != job.WrongState:
					t.Errorf("kind %d: %v", kind, err)
				}
			})
		}
	}
}

func TestTheTableSaysWhatTheDesignSays(t *testing.T) { // DESIGN section 2, Transitions
	for v, want := range map[Verb]string{
		Put:           "none -> scheduled, ready",
		Take:          "ready, leased -> leased",
		Extend:        "leased -> leased",
		SettleOK:      "scheduled, ready, leased -> none, done",
		SettleRetry:   "leased -> none, scheduled, ready, leased, dead",
		SettleRelease: "leased -> none, scheduled, ready, leased, dead", // dead: a task past its limit, core.md 5
		SettleDead:    "leased -> none, dead",
		Lapse:         "leased -> none, scheduled, ready, leased, dead",
		Promote:       "scheduled -> ready",
		Expire:        "scheduled, ready -> none, dead",
		Offer:         "leased -> leased",
		Revive:        "scheduled, dead -> ready",
		Cancel:        "scheduled, ready, leased -> none, dead",
		Patch:         "scheduled, ready, leased -> scheduled, ready, leased",
		Purge:         "done, dead -> none",
	} {
		r := transitions[v]
		if got := r.from.String() + " -> " + r.to.String(); got != want || r.verb != v {
			t.Errorf("%s (%s): %s, want %s", v, r.verb, got, want)
		}
	}
}

func TestAllowedAndLeadsReadTheTable(t *testing.T) {
	if !Allowed(Take, job.Ready) || Allowed(Take, job.Done) {
		t.Error("Allowed is wrong")
	}
	if !Leads(Promote, job.Scheduled, job.Ready) || Leads(Promote, job.Scheduled, job.Dead) || Leads(Promote, job.Ready, job.Ready) {
		t.Error("Leads is wrong")
	}
}

func TestEveryTargetOfTheTableIsReached(t *testing.T) {
	seen := map[Verb]states{}
	for seed := range uint64(3000) {
		w := newWorld(t)
		for _, m := range history(w, noise(seed, 300)) {
			seen[m.verb] |= set(m.to)
		}
	}
	for _, keep := range []job.Millis{0, job.Hour} { // the histories have no sessions
		w := pastItsLimit(t, keep)
		w.do("a", Command{Verb: SettleRelease, Token: w.jobs["a"].Leases[0].Token})
		seen[SettleRelease] |= set(w.stateOf("a"))
	}
	for v := Put; v < Verbs; v++ {
		if missing := transitions[v].to &^ seen[v]; missing != 0 {
			t.Errorf("%s never led to: %s", v, missing)
		}
	}
}

// pastItsLimit is a world with a task "a" of a session whose first copy failed
// past the limit, and whose second one runs. keep is how long the dead stay.
func pastItsLimit(t testing.TB, keep job.Millis) *world {
	w := newWorld(t, func(q *job.Queue) { q.Grid, q.Retry.Limit = &job.Grid{MaxCopies: 2}, job.LimitOf(0) })
	w.server.RetainDead = keep
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	first := w.take("a", "u/1")
	w.take("a", "u/2")
	w.fail("a", first)
	return w
}

func (w *world) stateOf(name string) job.State {
	if j := w.jobs[name]; j != nil {
		return j.State
	}
	return job.None
}

// No copy is asked for of a task past its limit: it would be a run above
// max_retries (A42 I2).
func TestATaskPastItsLimitGetsNoCopy(t *testing.T) {
	w := pastItsLimit(t, job.Hour)
	w.queue.Grid.MaxCopies, w.queue.Grid.MaxReschedules = 9, 9
	w.refused(job.OverLimit, "a", Command{Verb: Offer})
	w.queue.Retry.Limit = job.LimitOf(1)
	w.do("a", Command{Verb: Offer})
}

// However the last copy ends, a job past its limit does not run again (core.md
// 5, A42 I2), be it a task or not, unless its worker lets it pass the limit.
func TestTheEndOfTheLastCopyDecidesAboutAJobPastItsLimit(t *testing.T) {
	for name, c := range map[string]Command{
		"release": {Verb: SettleRelease}, "eviction": {Verb: Lapse, Holder: "u/2", Ending: job.ByEvict},
		"loss": {Verb: Lapse, Holder: "u/2", Ending: job.ByLapse}, "restart": {Verb: Lapse, Holder: "u/2", Ending: job.ByRestart},
	} {
		for _, who := range []string{"session", "queue", "own time"} {
			w, dies := pastItsLimit(t, job.Hour), who != "own time"
			switch who {
			case "queue":
				w.queue.Grid, w.jobs["a"].Extras = nil, nil
			case "own time":
				w.jobs["a"].Overrides = 1
			}
			if c.Token = (job.Token{}); c.Verb == SettleRelease {
				c.Token = w.jobs["a"].Leases[0].Token
			}
			w.do("a", c)
			if j := w.jobs["a"]; (j.State == job.Dead) != dies || dies && (j.Reason != job.Exhausted || j.Attempts != 1) {
				t.Errorf("%s, %s: %s %s", name, who, j.State, j.Reason)
			}
		}
	}
}

// Who runs past its limit because an operator wants that is given back as any
// other: nothing failed beside it, though that was in the same millisecond.
func TestAJobThatBeganPastItsLimitIsGivenBack(t *testing.T) {
	for name, past := range map[string]func(w *world){
		"brought back with what is left": func(w *world) {
			w.fail("a", w.take("a", "x"))
			w.expect("a", "dead exhausted attempts 1")
			w.do("a", Command{Verb: Revive, Remaining: true})
		},
		"its limit was lowered": func(w *world) {
			w.queue.Retry.Limit = job.LimitOf(1)
			w.fail("a", w.take("a", "x"))
			w.tick(job.Hour)
			w.do("a", Command{Verb: Promote})
			w.queue.Retry.Limit = job.LimitOf(0)
		},
	} {
		w := newWorld(t, func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
		w.put("a")
		w.jobs["a"].Copies, w.jobs["a"].CopiesWanted = 2, 2
		past(w)
		w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x")})
		if j := w.jobs["a"]; j.State != job.Ready || j.Evictions != 1 {
			t.Errorf("%s: %s %s", name, j.State, j.Reason)
		}
	}
}

// The limit that a failure beside another run is judged by is that of the rule
// which matched it, if that has one; rules that did not match have no say.
func TestTheLimitOfTheRuleThatMatchedDecidesAboutAJobWithALastCopy(t *testing.T) {
	for name, c := range map[string]struct {
		limit uint32 // of the queue
		rules job.Rules
		dies  bool
	}{
		"another rule has a limit":        {0, job.Rules{{When: job.When{ErrorTypes: []string{"other"}}, Do: job.DoRetry, Limit: job.LimitOf(9)}}, true},
		"the rule allows more":            {0, job.Rules{{Do: job.DoRetry, Limit: job.LimitOf(9)}}, false},
		"the rule allows less":            {9, job.Rules{{Do: job.DoRetry, Limit: job.LimitOf(0)}}, true},
		"the rule leaves it to the queue": {0, job.Rules{{Do: job.DoRetry}, {Do: job.DoRetry, Limit: job.LimitOf(9)}}, true},
	} {
		for _, further := range []bool{false, true} { // one more copy begins in between
			w := newWorld(t, func(q *job.Queue) {
				q.Grid, q.Retry.Limit, q.Retry.Rules = &job.Grid{MaxCopies: 3, MaxReschedules: 9}, job.LimitOf(c.limit), &c.rules
			})
			w.put("a", func(j *job.Job) { j.Copies = 2 })
			first, last := w.take("a", "u/1"), w.take("a", "u/2")
			w.fail("a", first)
			if c.dies {
				w.refused(job.OverLimit, "a", Command{Verb: Offer})
			} else if further {
				w.do("a", Command{Verb: Offer})
				third := w.take("a", "u/3")
				w.do("a", Command{Verb: SettleRelease, Token: third})
			}
			w.do("a", Command{Verb: SettleRelease, Token: last})
			if j := w.jobs["a"]; (j.State == job.Dead) != c.dies || c.dies && j.Reason != job.Exhausted || j.Wait != (job.Wait{}) {
				t.Errorf("%s: %s %s, %+v", name, j.State, j.Reason, j.Wait)
			}
		}
	}
}
