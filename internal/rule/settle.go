package rule

import "github.com/reprisehq/reprise/internal/job"

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
	j.Losses, j.Isolated = 0, false
	switch c.Verb {
	case SettleOK:
		hold(v, c.Hold, &e)
		return complete(v, j, c.Result, e), nil
	case SettleRelease:
		hold(v, c.Hold, &e)
		j.Evictions++
		return giveBack(v, j, back{place: evictedTo(v, c.Place), after: releaseWait(v, &c)}, e), nil
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
	if v.Queue.RequireToken || j.Copies > 1 || j.CopiesWanted > 1 || j.Order == job.OrderStrict && j.Group != "" {
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

// releaseWait is how long a job that is given back waits: as long as is asked. A target that
// names no time gets it no sooner than after an error inside the grace: it cannot take it now.
func releaseWait(v View, c *Command) job.Millis {
	if c.After == 0 && c.ByTarget {
		return graceDelay(v)
	}
	return c.After
}

// giveBack returns the job to its line without blame; while another copy
// lives it stays leased.
func giveBack(v View, j *job.Job, b back, e Effect) Effect {
	if len(j.Leases) > 0 {
		if v.Queue.Grid != nil { // the copy that it was is not wanted again
			j.CopiesWanted = uint8(max(int(j.Copies), int(j.CopiesWanted)-len(e.Ended), len(j.Leases)))
		}
		e.Job = j
		return e
	}
	why := fate(v, j, &lastRun{lost: b.lost})
	if why != job.Lost { // one that is lost keeps how many copies of it were wanted
		j.CopiesWanted = j.Copies
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
