package rule

import (
	"cmp"

	"github.com/reprisehq/reprise/internal/job"
)

// What happens when a lease ends and its holder did not say so:
//
//	it ends by          because                              it costs             a task then stands
//	------------------  -----------------------------------  -------------------  ------------------
//	timeout             its run took too long                a failed attempt     as after a failure
//	  (a task may run   the same, with on_timeout:           a reschedule         where copies stand
//	  on beside a copy) reschedule (overran, task.go)
//	release             it was not started in time           an eviction          where it stood
//	lapse, disconnect   its holder was not heard of          a loss, or where     as lost_place says
//	                                                         losses are charged
//	                                                         a failed attempt
//	evict, preempt,     the server took it back              an eviction          as evicted_place says
//	  withdraw
//	any other           a start of the server, a turn        nothing              where it stood
//	                    that was cut, a lost answer
//
// Several may end at once; a failure goes before a loss, a loss before an eviction. A
// job of a queue always stands where it stood. Dead or retry is fate's to say.

// lapsed is what the leases that end in one step come to.
type lapsed struct {
	failed  []failedRun
	lost    bool
	evicted bool
	overran bool // a run took too long and goes on
}

func lapse(v View, c Command) (Effect, error) {
	j, e, x := v.Job.Clone(), Effect{}, lapsed{}
	for i := 0; i < len(j.Leases); {
		switch how, over := lapses(v, c, &j.Leases[i]); {
		case !over:
			i++
		case how == job.ByTimeout && c.Holder == "" && runsOn(v):
			overran(v, j, &j.Leases[i], &e)
			x.overran = true
			i++
		default:
			x.count(v, j, end(j, i, how, &e, true), how, c.Holder == "", &e)
		}
	}
	switch {
	case len(e.Ended) == 0 && x.overran:
		e.Job = j
		return e, nil
	case len(e.Ended) == 0: // I6, or a holder that holds nothing here
		return Effect{}, job.Errorf(job.WrongState, "no lease of job %s is over", j.ID)
	case x.failed != nil:
		return failRuns(v, j, x.failed, e)
	}
	return giveBack(v, j, back{place: x.place(v, c), lost: x.lost}, e), nil
}

// lapses says how a lease ends now, if it does.
func lapses(v View, c Command, l *job.Lease) (how job.Ending, over bool) {
	passed := func(at job.Millis) bool { return at > 0 && at <= v.Steady }
	switch {
	case c.Holder != "":
		return c.Ending, l.Holder == c.Holder
	case passed(l.RunEnd):
		return job.ByTimeout, true
	case passed(l.StartBy):
		return job.ByRelease, true
	case passed(l.Until) && c.Ending != job.ByTimeout:
		return job.ByLapse, true
	}
	return 0, false
}

// count adds what the end of a lease costs. clock: its own time was over.
func (x *lapsed) count(v View, j *job.Job, l job.Lease, how job.Ending, clock bool, e *Effect) {
	switch {
	case clock && how == job.ByTimeout:
		x.failed = append(x.failed, timedOut(v, j, l))
	case clock && how == job.ByRelease:
		j.Evictions++
	case how.Evicts():
		j.Evictions++
		x.evicted = true
	case how == job.ByLapse || how == job.ByDisconnect:
		x.lost = true
		x.failed = lose(v, j, l, how, x.failed, e)
	}
}

// place is where the job stands when it goes back without a failure.
func (x *lapsed) place(v View, c Command) job.Place {
	switch {
	case x.evicted:
		return evictedTo(v, c.Place)
	case x.lost:
		return lostTo(v)
	}
	return job.PlaceKeep
}

func timedOut(v View, j *job.Job, l job.Lease) failedRun {
	return failedRun{lease: l, what: job.Failure{
		Type: "Timeout", Timeout: true,
		Message: "the run took longer than its run timeout of " + cmp.Or(j.RunTimeout, v.Queue.RunTimeout).String(),
	}}
}

// failRuns ends runs that the clock ended as failures. Each is one of its own;
// the last one decides.
func failRuns(v View, j *job.Job, runs []failedRun, e Effect) (Effect, error) {
	last := len(runs) - 1
	for i, run := range runs {
		c := Command{Verb: SettleRetry, Match: noMessage, Failure: run.what, Place: run.place}
		if i == last {
			return fail(v, j, c, run.lease, e)
		}
		p := policy(v, j)
		do, number, err := decide(v, j, &p, &c)
		if err != nil {
			return Effect{}, err
		}
		charge(v, j, do, number, run.what, run.lease, &e)
	}
	return e, nil
}

// lose counts a vanished holder (core.md section 5): from half of the limit
// on only losses of a lease that its holder held alone count, and each is kept
// as a record: this job may be what kills its holders.
// Where losses are charged, it is a failed attempt instead.
func lose(v View, j *job.Job, l job.Lease, how job.Ending, failed []failedRun, e *Effect) []failedRun {
	if chargesLoss(v, how) {
		return append(failed, lostRun(v, l))
	}
	if j.Isolated && !l.Exclusive || v.Behind {
		return failed
	}
	j.Losses++
	if j.Isolated = j.Losses >= (lossLimit(v, j)+1)/2; j.Isolated {
		record(v, j, job.Failure{Type: "Lost", Message: "its worker vanished without an answer"}, l, e)
	}
	return failed
}
