package rule

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

func isSettle(v Verb) bool { return v >= SettleOK && v <= SettleDead }

// endingOf is how a lease ends that is settled with the verb.
func endingOf(v Verb) job.Ending {
	return [...]job.Ending{job.ByOK, job.ByRetry, job.ByRelease, job.ByDead}[v-SettleOK]
}

// settle ends one attempt. The token rules are core.md section 4.
func settle(v View, c Command) (Effect, error) {
	i, err := leaseFor(v, c)
	if err != nil {
		return Effect{}, err
	}
	if i < 0 {
		return late(v, c)
	}
	if c.Verb == SettleOK && v.Behind {
		return Effect{}, errBehind(v.Job)
	}
	j, e := v.Job.Clone(), Effect{}
	if c.Verb == SettleOK || c.Verb == SettleDead { // the others first: who spoke is remembered longest
		i = endOthers(j, i, &e)
	}
	l := end(j, i, endingOf(c.Verb), &e, false)
	if c.RunStart > 0 {
		l.Started = c.RunStart
	}
	j.Losses, j.Alone = 0, false
	switch c.Verb {
	case SettleOK:
		hold(v, c.Hold, &e)
		return complete(v, j, c.Result, e), nil
	case SettleRelease:
		hold(v, c.Hold, &e)
		j.Evictions++
		return giveBack(v, j, evictedTo(v, c.Place), c.After, e), nil
	case SettleDead:
		j.Attempts++
		j.FailedAt = v.Now
		record(v, j, c.Failure, l, &e)
		hold(v, max(c.After, c.Hold), &e)
		return die(v, j, job.Killed, e), nil
	default:
		return fail(v, j, c, l, e)
	}
}

// leaseFor finds the live lease a settle speaks of; -1 means it is not live.
func leaseFor(v View, c Command) (int, error) {
	j := v.Job
	if !c.Token.IsZero() {
		return j.LeaseOf(c.Token), nil
	}
	if v.Queue.Grid != nil {
		return -1, job.Errorf(job.TokenNeeded, "tasks of session %q are settled with the lease token of their run", j.Queue)
	}
	if v.Queue.RequireToken || j.Copies > 1 || j.Wanted > 1 || j.Order == job.OrderStrict && j.Group != "" {
		return -1, job.Errorf(job.TokenNeeded,
			"jobs of queue %q with copies, strict order or require_token are settled with their lease token: take with Worker-Id and lease=token", j.Queue)
	}
	if len(j.Leases) == 1 {
		if j.Leases[0].Kind != job.Anonymous {
			return -1, job.Errorf(job.TokenNeeded, "job %s is held under a lease token; settle it with that token", j.ID)
		}
		return 0, nil
	}
	return -1, nil
}

// late handles a settle whose lease is not live any more, while the job is
// still open: the one exception of I2.
func late(v View, c Command) (Effect, error) {
	j := v.Job
	if c.Token.IsZero() {
		if n := len(j.Ended); c.Verb == SettleOK && n > 0 && streamEnd(j.Ended[n-1].How) && !v.Queue.LateOKNever {
			return lateOK(v, c, j.Ended[n-1])
		}
		return Effect{}, job.Errorf(job.NotFound, "job not found in in-flight set")
	}
	ended, known := endedOf(j, c.Token)
	if known && saysAgain(c.Verb, ended.How) {
		return Effect{Job: j, Repeat: true}, nil
	}
	if j.Committed() { // by another run, whose effects count
		return Effect{}, superseded(j)
	}
	if !known && c.Token.Start() < v.Start && j.Order != job.OrderStrict && !overForGood(j, c.Token) {
		ended, known = job.Ended{Hash: c.Token.Hash(), How: job.ByRestart}, true // its unsynced take was forgotten by a crash
	}
	newerTurn := v.Gate != nil && j.Order == job.OrderStrict && (v.Gate.Turn != ended.Turn || !v.Head)
	if c.Verb == SettleOK && known && ended.How.Forgives() && !v.Queue.LateOKNever && !newerTurn {
		return lateOK(v, c, ended)
	}
	return Effect{}, superseded(j)
}

// streamEnd: a settle without a token may only speak for an anonymous stream,
// whose leases end by disconnect or restart.
func streamEnd(how job.Ending) bool { return how == job.ByDisconnect || how == job.ByRestart }

// lateOK completes the job for a token that ended, and remembers that it said
// OK, so that saying it again is a repeat.
func lateOK(v View, c Command, ended job.Ended) (Effect, error) {
	j, e := v.Job.Clone(), Effect{Late: true}
	hold(v, c.Hold, &e)
	endAll(j, job.BySupersede, &e, true)
	j.Ended = slices.DeleteFunc(j.Ended, func(d job.Ended) bool { return d.Hash == ended.Hash })
	ended.How = job.ByOK
	remember(j, ended)
	j.Losses = 0
	return complete(v, j, c.Result, e), nil
}

// refuseSettle answers a settle on a job that is not leased.
func refuseSettle(v View, c Command) (Effect, error) {
	if v.Job == nil {
		return Effect{}, job.Errorf(job.NotFound, "job not found in in-flight set")
	}
	if ended, known := endedOf(v.Job, c.Token); known && !c.Token.IsZero() && saysAgain(c.Verb, ended.How) {
		return Effect{Job: v.Job, Repeat: true}, nil
	}
	if c.Token.IsZero() {
		return Effect{}, job.Errorf(job.NotFound, "job not found in in-flight set")
	}
	return Effect{}, superseded(v.Job)
}

func superseded(j *job.Job) *job.Error {
	if n := len(j.Ended); n > 0 && j.Ended[n-1].How == job.ByTurn && len(j.Leases) == 0 {
		return job.Errorf(job.Superseded, "job %s went back with its turn: it, its group or its queue was paused or held, it expired, or one before it failed", j.ID)
	}
	return job.Errorf(job.Superseded, "the token for job %s is not live any more; the job is %s", j.ID, j.State)
}

func endedOf(j *job.Job, t job.Token) (job.Ended, bool) {
	h := t.Hash()
	for i := len(j.Ended) - 1; i >= 0; i-- {
		if j.Ended[i].Hash == h {
			return j.Ended[i], true
		}
	}
	return job.Ended{}, false
}

// end takes lease i off the job and remembers its token.
func end(j *job.Job, i int, how job.Ending, e *Effect, voided bool) job.Lease {
	l := j.Leases[i]
	if len(j.Leases) == 1 && e.Ended == nil { // as mostly: the list moves over
		j.Leases, e.Ended = nil, j.Leases
	} else {
		j.Leases = append(j.Leases[:i], j.Leases[i+1:]...)
		e.Ended = append(e.Ended, l)
	}
	remember(j, job.Ended{Hash: l.Token.Hash(), How: how, Turn: l.Turn})
	if voided {
		e.Voided = append(e.Voided, Void{l, how})
	}
	return l
}

// remember keeps the last EndedMax tokens that ended.
func remember(j *job.Job, ended job.Ended) {
	j.Ended = append(j.Ended, ended)
	if n := len(j.Ended) - job.EndedMax; n > 0 {
		j.Ended = append(j.Ended[:0:0], j.Ended[n:]...)
	}
}

// endOthers supersedes every lease but i, and returns where that stands now.
func endOthers(j *job.Job, i int, e *Effect) int {
	for n := len(j.Leases) - 1; n >= 0; n-- {
		if n != i {
			end(j, n, job.BySupersede, e, true)
		}
	}
	return 0
}

func endAll(j *job.Job, how job.Ending, e *Effect, voided bool) {
	for len(j.Leases) > 0 {
		end(j, 0, how, e, voided)
	}
}

// complete finishes the job: the first OK wins (I3). Its result stays as long
// as the job: with one that leaves at once it is gone.
func complete(v View, j *job.Job, result *job.Result, e Effect) Effect {
	endAll(j, job.BySupersede, &e, true)
	j.State, j.CompletedAt, j.Park = job.Done, v.Now, ""
	finish(v, j)
	keep := given(j.RetainDone, v.Queue.RetainDone, v.Server.RetainDone)
	if keep == RetainRecent {
		keep = recent(v, j, result)
	}
	e = retain(v, j, keep, e)
	e.result = result
	return e
}

func given(values ...job.Millis) job.Millis {
	for _, m := range values[:len(values)-1] {
		if m != job.Unset {
			return m
		}
	}
	return values[len(values)-1]
}

func retain(v View, j *job.Job, keep job.Millis, e Effect) Effect {
	if keep == 0 {
		e.Gone, e.Left = j.State, j
		return e
	}
	j.PurgeAt = v.Now.Add(keep)
	e.Job = j
	return e
}

// giveBack returns the job to its line without blame; while another copy
// lives it stays leased.
func giveBack(v View, j *job.Job, p job.Place, after job.Millis, e Effect) Effect {
	if len(j.Leases) > 0 {
		if v.Queue.Grid != nil { // the copy that it was is not wanted again
			j.Wanted = uint8(max(int(j.Copies), int(j.Wanted)-len(e.Ended), len(j.Leases)))
		}
		e.Job = j
		return e
	}
	if j.Wanted = j.Copies; failedBeside(v, j) {
		return die(v, j, job.Exhausted, e)
	}
	j.State = job.Ready
	if after > 0 {
		j.ReadyAt = v.Now.Add(after)
	}
	if j.ReadyAt > v.Now && (after > 0 || j.ReadyAt > j.DequeuedAt) { // not what was due before the date was set back
		j.State = job.Scheduled
	}
	place(v, j, p)
	e.Job = j
	return e
}

// lapse ends leases whose holder vanished or whose own time is over.
func lapse(v View, c Command) (Effect, error) {
	j, e := v.Job.Clone(), Effect{}
	var failed []failedRun
	lost, overran, evicted := false, false, false
	for i := 0; i < len(j.Leases); {
		l := j.Leases[i]
		switch {
		case c.Holder != "" && l.Holder == c.Holder:
			end(j, i, c.Ending, &e, true)
			if c.Ending.Evicts() {
				j.Evictions++
				evicted = true
			}
			lost = lost || c.Ending == job.ByLapse || c.Ending == job.ByDisconnect
			failed = lose(v, j, l, c.Ending, failed, &e)
		case c.Holder != "":
			i++
		case l.RunEnd > 0 && l.RunEnd <= v.Steady && v.Queue.Grid != nil && v.Queue.Grid.OnTimeout == job.TimeoutReschedule:
			j.Leases[i].RunEnd = 0 // once for each attempt
			overran = true
			switch NoCopy(j, v.Queue, v.Server) {
			case CopyAllowed:
				oneMore(v, j, job.PlaceUnset)
			case CopyLimit:
				e.AtLimit = true
			case CopiesLive, CopyUnsafe, CopyCommitted, CopySpent:
			}
			i++
		case l.RunEnd > 0 && l.RunEnd <= v.Steady:
			failed = append(failed, timedOut(v, j, l))
			end(j, i, job.ByTimeout, &e, true)
		case l.StartBy > 0 && l.StartBy <= v.Steady:
			j.Evictions++
			end(j, i, job.ByRelease, &e, true)
		case l.Until > 0 && l.Until <= v.Steady && c.Ending != job.ByTimeout:
			lost = true
			end(j, i, job.ByLapse, &e, true)
			failed = lose(v, j, l, job.ByLapse, failed, &e)
		default:
			i++
		}
	}
	switch {
	case len(e.Ended) == 0 && overran:
		e.Job = j
		return e, nil
	case len(e.Ended) == 0: // I6, or a holder that holds nothing here
		return Effect{}, job.Errorf(job.WrongState, "no lease of job %s is over", j.ID)
	case failed != nil:
		return failRuns(v, j, failed, e)
	case lost && len(j.Leases) == 0 && overLossLimit(v, j):
		return die(v, j, job.Lost, e), nil
	case evicted:
		return giveBack(v, j, evictedTo(v, c.Place), 0, e), nil
	case lost && v.Queue.Grid != nil:
		return giveBack(v, j, job.PlaceFront, 0, e), nil
	}
	return giveBack(v, j, job.PlaceKeep, 0, e), nil
}

func timedOut(v View, j *job.Job, l job.Lease) failedRun {
	return failedRun{l, job.Failure{
		Type: "Timeout", Timeout: true,
		Message: "the run took longer than its run timeout of " + either(j.RunTimeout, v.Queue.RunTimeout).String(),
	}}
}

// failRuns ends runs that the clock ended as failures. Each is one of its own;
// the last one decides.
func failRuns(v View, j *job.Job, runs []failedRun, e Effect) (Effect, error) {
	last := len(runs) - 1
	for i, run := range runs {
		c := Command{Verb: SettleRetry, Match: noMessage, Failure: run.what}
		if i == last {
			return fail(v, j, c, run.lease, e)
		}
		p := policy(v, j)
		do, _, err := decide(v, j, &p, &c)
		if err != nil {
			return Effect{}, err
		}
		charge(v, j, do, run.what, run.lease, &e)
	}
	return e, nil
}

// lose counts a vanished holder (core.md section 5): from half of the limit
// on only losses of a lease that its holder held alone count, and each is kept
// as a record: this job may be what kills its holders.
// Where losses are charged, it is a failed attempt instead.
func lose(v View, j *job.Job, l job.Lease, how job.Ending, failed []failedRun, e *Effect) []failedRun {
	if chargesLoss(v, how) {
		return append(failed, lostRun(l))
	}
	if how != job.ByLapse && how != job.ByDisconnect || j.Alone && !l.Alone || v.Behind {
		return failed
	}
	j.Losses++
	if j.Alone = j.Losses >= (lossLimit(v, j)+1)/2; j.Alone {
		record(v, j, job.Failure{Type: "Lost", Message: "its worker vanished without an answer"}, l, e)
	}
	return failed
}

func overLossLimit(v View, j *job.Job) bool { return j.Losses >= lossLimit(v, j) }
