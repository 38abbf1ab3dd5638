package sim_test

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// The times of a run and what is remembered of it (grid.md 6, reference section 5,
// A3, A9 to A11, A37), written without package rule. The clock of a run starts when
// its engine says so. Where overruns are retried, its engine ends it by itself at
// task_max_time and says so, and the server does it timeout_slack later; where they
// are looked for at a period, at the first sweep that is not before; where they are
// rescheduled, it runs on, and once for each run one more copy is wanted.

// gridBook is what is known of the commit at hand.
type gridBook struct {
	stops []stop // what engines are to stop
}

// stop is a run that the server ended because it took too long.
type stop struct {
	holder string
	token  uint64
}

// most is how long a run of the task may take; 0 = as long as it likes.
func (t *taskScene) most() job.Millis {
	if t.old.RunTimeout > 0 {
		return t.old.RunTimeout
	}
	return t.q.RunTimeout
}

// endOf is when the server ends a run that begins now, or looks at it; 0 = never.
func (t *taskScene) endOf() job.Millis {
	most, g := t.most(), t.q.Grid
	switch end := t.steady + most; {
	case most == 0:
		return 0
	case g.PollPeriod > 0:
		return (end + g.PollPeriod - 1) / g.PollPeriod * g.PollPeriod
	case g.OnTimeout == job.TimeoutRetry:
		return end + g.TimeoutSlack
	default:
		return end
	}
}

// startBy is by when a run must begin that is given out now; 0 = some time.
func (t *taskScene) startBy() job.Millis {
	most := t.old.StartTimeout
	if most == 0 {
		most = t.q.StartTimeout
	}
	if most == 0 {
		return 0
	}
	return t.steady + most
}

// clocks holds the times of runs against what may move them: the word that one
// began, its end where it runs on, and a recovery.
func (t *taskScene) clocks(name string) {
	seen := 0
	for i := range t.new.Leases {
		l := &t.new.Leases[i]
		at := t.old.LeaseOf(l.Token)
		if at < 0 {
			mute := t.startBy() == 0 && l.RunEnd == t.endOf() // it may never say that it began
			if l.RunEnd != 0 && !mute || l.Started != 0 || l.StartBy != t.startBy() {
				broken("grid.md 6", "%s was given to %s at %d with %+v; its clock starts with its run, and it must begin by %d", name, l.Holder, t.steady, *l, t.startBy())
			}
			continue
		}
		was, carried := t.old.Leases[at], t.tokens[l.Token].epoch != t.epoch
		s := scene{judge: t.judge, commit: t.commit}
		switch {
		case l.RunEnd == was.RunEnd && l.StartBy == was.StartBy && l.Started == was.Started:
		case was.Started == 0 && l.Started != 0:
			if l.Started != t.now || l.StartBy != 0 || l.RunEnd != t.endOf() {
				broken("grid.md 6, A10", "%s began on %s at %d (steady %d): %+v, and the server must end it at %d", name, l.Holder, t.now, t.steady, *l, t.endOf())
			}
		case l.Started != was.Started:
			broken("grid.md 6", "%s began on %s at %d, and again at %d", name, l.Holder, was.Started, l.Started)
		case was.RunEnd > 0 && l.RunEnd == 0 && l.StartBy == was.StartBy:
			if seen++; t.q.Grid.OnTimeout != job.TimeoutReschedule || was.RunEnd > t.steady {
				broken("A11", "%s may run on for ever on %s since %d, and its time was up at %d (%s)", name, l.Holder, t.steady, was.RunEnd, t.q.Grid.OnTimeout)
			}
		case l.Started == was.Started && l.StartBy == was.StartBy && l.RunEnd < was.RunEnd && l.RunEnd >= t.steady+job.Second:
			t.coverage.feature("the clock of a run that goes on after a recovery")
		case !carried || l.RunEnd != s.carry(was.RunEnd, l.RunEnd, t.endOf()) || l.StartBy != s.carry(was.StartBy, l.StartBy, t.startBy()):
			broken("docs/adr/0003", "the times of %s on %s went at %d from %+v to %+v", name, l.Holder, t.steady, was, *l)
		default:
			t.coverage.feature("the times of a run after a recovery")
		}
	}
	if seen > 0 && len(t.new.Leases) == len(t.old.Leases) {
		t.runsOn(name, seen)
	}
}

// runsOn: of a task that took too long, and may, so many copies are wanted as its
// limits allow, and nothing is charged.
func (t *taskScene) runsOn(name string, seen int) {
	limit, _ := t.q.Retry.LimitValue()
	asked, wanted := t.old.Reschedules, int(t.old.CopiesWanted)
	spent := int64(t.old.Attempts) > limit && t.old.Overrides == 0
	for range seen {
		if wanted < int(t.q.Grid.MaxCopies) && asked < t.q.Grid.MaxReschedules && !t.q.NonIdempotent && !spent && !t.old.Committed() {
			asked, wanted = asked+1, wanted+1
		}
	}
	if t.new.Reschedules != asked || int(t.new.CopiesWanted) != wanted || t.new.Attempts != t.old.Attempts {
		broken("A11", "%s took too long and runs on: %d copies were asked for, %d are wanted, %d attempts; must be %d, %d and %d",
			name, t.new.Reschedules, t.new.CopiesWanted, t.new.Attempts, asked, wanted, t.old.Attempts)
	}
	if asked > t.old.Reschedules {
		t.coverage.feature("an overrun that got a copy")
	} else {
		t.coverage.feature("an overrun that runs on alone")
	}
}

// overran is a run that the server ended because it took too long: its engine is
// told to stop it.
func (t *taskScene) overran(name string, l *job.Lease) {
	switch g := t.q.Grid; {
	case g.OnTimeout != job.TimeoutRetry:
		broken("A11", "%s was ended on %s, where it was to run on", name, l.Holder)
	case g.PollPeriod > 0:
		t.coverage.feature("an overrun seen by a sweep")
	case g.TimeoutSlack > 0:
		t.coverage.feature("a mute run ended after the slack")
	default:
		t.coverage.feature("an overrun ended at once")
	}
	t.stops = append(t.stops, stop{l.Holder, l.Token.Hash()})
}

// stopping holds what engines are told to stop against that. What they were told
// before they say themselves.
func (x *judge) stopping(old, row *job.Holder) {
	if row == nil || row.Engine.Epoch != old.Engine.Epoch {
		return
	}
	for _, hash := range row.Engine.Stopping {
		if !slices.Contains(old.Engine.Stopping, hash) && !slices.Contains(x.stops, stop{row.Name, hash}) {
			broken("grid.md 1", "%s is to stop a run that did not take too long", row.Name)
		}
	}
}

// stopped is the end of a commit: an engine that ran what took too long gets nothing
// before it says that it stopped that.
func (x *judge) stopped() {
	for _, s := range x.stops {
		row, _ := x.book.rows[rowKey{job.Holders, s.holder}].(*job.Holder)
		if row != nil && !row.Engine.Lost && !slices.Contains(row.Engine.Stopping, s.token) {
			broken("grid.md 1, A10", "a run of %s took too long, and it is not told to stop it: %+v", s.holder, *row.Engine)
		}
	}
	x.stops = nil
}

// endedRun is a run that ended: its lease, how, and who said so.
type endedRun struct {
	l   job.Lease
	how job.Ending
	by  *request
}

// remembered holds the history of a task against the runs that ended: each is there
// with its reason, and with the counter that it raised (A3).
func (t *taskScene) remembered(name string, list []endedRun) {
	history := t.new.History()
	for _, o := range list {
		at := slices.IndexFunc(history, func(a job.Attempt) bool { return a.Token == o.l.Token.Hash() })
		if at < 0 {
			broken("A3", "the history of %s says nothing of its run on %s", name, o.l.Holder)
		}
		a := history[at]
		why, charge := t.reason(o, &a)
		said := o.by != nil && o.by.settle.Started > 0
		same := a.Number == o.l.Number && a.Holder == o.l.Holder && a.Host == o.l.Host && a.Copy == o.l.Copy && a.Since == o.l.Since && a.Ended == t.now &&
			(a.Started == o.l.Started || said)
		if !same || a.Why != why || a.Charged != charge {
			broken("A3, A37", "the run %+v of %s, which ended by %s, must be remembered as %s, charged %s, and is as %+v", o.l, name, o.how, why, charge, a)
		}
	}
}

// reason is why a run ended, in the words of tasks, and what it was charged as.
func (t *taskScene) reason(o endedRun, a *job.Attempt) (job.AttemptEnd, job.Charge) {
	switch o.how {
	case job.ByOK:
		return job.AttemptOK, job.ChargedNothing
	case job.ByRetry, job.ByDead:
		why := job.AttemptError
		switch {
		case o.by.rivals != nil: // either of them may have said so
			why = a.Why
		case o.by.settle.Failure.Timeout:
			why = job.AttemptTimeout
		}
		if why == job.AttemptTimeout && o.how == job.ByRetry && o.l.RunEnd > t.steady {
			t.coverage.feature("a run that its engine ended in time")
		}
		return why, job.ChargedRetry
	case job.ByTimeout:
		return job.AttemptTimeout, job.ChargedRetry
	case job.ByRelease:
		if o.by != nil {
			return job.AttemptReleased, job.ChargedEviction
		}
		t.coverage.feature("a task that its engine did not begin")
		return job.AttemptUndelivered, job.ChargedEviction
	case job.ByLapse:
		switch {
		case t.q.Grid.LossesCharged:
			return job.AttemptLost, job.ChargedRetry
		case t.new.Losses > t.old.Losses:
			return job.AttemptLost, job.ChargedLoss
		}
		return job.AttemptLost, job.ChargedNothing
	case job.ByEvict:
		return job.AttemptEvicted, job.ChargedEviction
	case job.ByPreempt:
		return job.AttemptPreempted, job.ChargedEviction
	case job.ByWithdraw:
		return job.AttemptWithdrawn, job.ChargedEviction
	case job.BySupersede:
		return job.AttemptSuperseded, job.ChargedNothing
	case job.ByCancel:
		return job.AttemptCancelled, job.ChargedNothing
	case job.ByRestart:
		return job.AttemptRestarted, job.ChargedNothing
	case job.ByUndelivered:
		return job.AttemptUndelivered, job.ChargedNothing
	default:
		return a.Why, a.Charged
	}
}

// lateTold holds the history of a task against a late result: of the run that made
// it, it says so.
func (t *taskScene) lateTold(name string, token job.Token) {
	at := slices.IndexFunc(t.new.History(), func(a job.Attempt) bool { return a.Token == token.Hash() })
	if at < 0 || t.new.History()[at].Why != job.AttemptLate || t.new.History()[at].Ended != t.now {
		broken("A6", "%s is done by the late word of %x, and its history is %+v", name, token[:6], t.new.History())
	}
}
