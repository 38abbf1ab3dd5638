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
		return giveBack(v, j, back{place: evictedTo(v, c.Place), after: c.After}, e), nil
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
		return lateOfStream(v, c)
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

// lateOfStream is late for a settle without a token.
func lateOfStream(v View, c Command) (Effect, error) {
	ended := v.Job.Ended
	if n := len(ended); c.Verb == SettleOK && n > 0 && streamEnd(ended[n-1].How) && !v.Queue.LateOKNever {
		return lateOK(v, c, ended[n-1])
	}
	return Effect{}, job.Errorf(job.NotFound, "job not found in in-flight set")
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

// back is how a job goes back to its line.
type back struct {
	place job.Place
	after job.Millis // not before so long from now
	lost  bool       // its holder vanished
}

// giveBack returns the job to its line without blame; while another copy
// lives it stays leased.
func giveBack(v View, j *job.Job, b back, e Effect) Effect {
	if len(j.Leases) > 0 {
		if v.Queue.Grid != nil { // the copy that it was is not wanted again
			j.Wanted = uint8(max(int(j.Copies), int(j.Wanted)-len(e.Ended), len(j.Leases)))
		}
		e.Job = j
		return e
	}
	why := fate(v, j, &ended{lost: b.lost})
	if why != job.Lost { // one that is lost keeps how many copies of it were wanted
		j.Wanted = j.Copies
	}
	if why != job.Alive {
		return die(v, j, why, e)
	}
	j.State, j.Wait = job.Ready, job.Wait{}
	if b.after > 0 {
		j.ReadyAt = v.Now.Add(b.after)
	}
	if j.ReadyAt > v.Now && (b.after > 0 || j.ReadyAt > j.DequeuedAt) { // not what was due before the date was set back
		j.State = job.Scheduled
	}
	place(v, j, b.place)
	e.Job = j
	return e
}
