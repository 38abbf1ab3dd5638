package sim_test

import (
	"math"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// scene is one write of a job and all that bears on it.
type scene struct {
	*judge
	*commit
	old, new *job.Job
	later    []change // in the same commit
	q        *job.Queue
	g        job.Gate
}

// outcome is what one reason makes of the job.
type outcome struct {
	why     string
	verb    rule.Verb
	want    *job.Job   // nil = gone
	state   job.State  // in which it ends, also when it leaves at once
	gate    *job.Gate  // to be set with it
	queue   *job.Queue // the same
	req     *request
	run     job.ID  // that did it
	recalls bool    // it went back with its turn
	keys    bool    // nothing but its key, or its payload, is other
	body    string  // of the new payload that it was given by an edit
	draws   []int64 // fresh numbers it uses
	stats   figures
	seen    []string // for the table of what occurred
}

func (o *outcome) note(what string) { o.seen = append(o.seen, what) }

// end takes lease i off a job.
func end(j *job.Job, i int, how job.Ending) {
	l := j.Leases[i]
	j.Leases = append(j.Leases[:i:i], j.Leases[i+1:]...)
	remember(j, job.Ended{Hash: l.Token.Hash(), How: how, Turn: l.Turn})
}

func remember(j *job.Job, e job.Ended) {
	j.Ended = append(j.Ended[:len(j.Ended):len(j.Ended)], e)
	j.Ended = j.Ended[max(0, len(j.Ended)-job.EndedMax):]
}

func endRest(j *job.Job, how job.Ending) {
	for len(j.Leases) > 0 {
		end(j, 0, how)
	}
}

// place is core.md 1: where a job stands that goes back.
func (s *scene) place(o *outcome, j *job.Job, p job.Place) {
	if j.Order == job.OrderStrict || s.new == nil {
		return
	}
	switch p {
	case job.PlaceFront:
		j.Band = job.BandFront
		if s.q.FrontOrder == job.FrontLIFO {
			j.Seq = s.new.Seq
			o.draws = append(o.draws, -j.Seq)
		}
	case job.PlaceBack:
		j.Band, j.Seq = job.BandNormal, s.new.Seq
		o.draws = append(o.draws, j.Seq)
	case job.PlaceKeep, job.PlaceUnset:
	}
}

// recorded is n failures, the last of which is f; nil = the job itself must say
// which one it was.
func (s *scene) recorded(j *job.Job, n uint32, f *job.Failure) {
	j.Failures += n
	switch {
	case f != nil && f.Timeout && f.Message == "": // its message is the engine's, and no rule looks at it
		j.Print = rule.Fingerprint(&job.Failure{Type: f.Type, Message: "the run took longer than its run timeout of 9s"})
	case f != nil:
		j.Print = rule.Fingerprint(f)
	case s.new != nil && s.new.Print != 0:
		j.Print = s.new.Print
	}
}

// finish makes a job done or dead and keeps it as long as is asked for.
func (s *scene) finish(o *outcome, j *job.Job, own, queue, server job.Millis) *outcome {
	o.state = j.State
	keep := server
	if queue != job.Unset {
		keep = queue
	}
	if own != job.Unset {
		keep = own
	}
	if keep == rule.RetainRecent {
		keep = s.recent(j)
	}
	if keep > 0 {
		j.PurgeAt = s.now + keep
		o.want = j
	} else {
		o.note("gone at once")
	}
	return o
}

// recent is docs/jobs.md, "How long a finished job is kept".
func (s *scene) recent(j *job.Job) job.Millis {
	if x := j.Extras; x != nil && x.Unique != nil && x.Unique.While == job.WhileExists {
		return 0
	}
	kept := 0
	for _, other := range s.book.jobs {
		if other.Queue == j.Queue && other.State == job.Done {
			kept++
		}
	}
	switch {
	case kept < 50:
		return job.Hour
	case kept < 100:
		return job.Minute
	}
	return 0
}

func (s *scene) done(o *outcome, j *job.Job) *outcome {
	endRest(j, job.BySupersede)
	j.State, j.CompletedAt, j.Park = job.Done, s.now, ""
	return s.finish(o, j, j.RetainDone, s.q.RetainDone, s.w.setup.server.RetainDone)
}

// dead is core.md 2, on_dead.
func (s *scene) dead(o *outcome, j *job.Job, why job.Reason, aside bool) *outcome {
	j.State, j.Reason, j.Park, j.DiedAt, j.Wait = job.Dead, why, "", s.now, job.Wait{}
	if j.Print == 0 {
		j.Print = rule.Fingerprint(&job.Failure{Type: why.String()})
	}
	o.note("dead of " + why.String())
	if j.Group == "" || s.q.OnDead == job.DeadSkip || aside || s.outdated(j) {
		return s.finish(o, j, j.RetainDead, s.q.RetainDead, s.w.setup.server.RetainDead)
	}
	j.BlocksGroup = true
	if s.q.Turns {
		j.PurgeAt = j.ExpiresAt
	}
	o.note("a dead head: " + s.q.OnDead.String())
	if s.q.OnDead == job.DeadPark && !s.behind() {
		g := s.g
		if o.gate != nil { // held with the same settle
			g = *o.gate
		}
		g.Park = "dead/" + j.ID.String()
		o.gate = &g
		if s.old.Order == job.OrderStrict && s.old.State != job.Leased {
			o.note("a head that waited parked its group")
		}
	}
	o.want, o.state = j, job.Dead
	return o
}

// behind reports whether the job is a member of a group with a head that is behind
// another one: of a strict turn that runs, behind one of it.
func (s *scene) behind() bool {
	switch strict := s.old.Order == job.OrderStrict; {
	case strict && s.old.State == job.Leased:
		return s.followsOne()
	case strict, s.q.Turns:
		return s.headOf(s.old) != s.old.ID
	}
	return false
}

// back returns a job to its line without blame.
func (s *scene) back(o *outcome, j *job.Job, p job.Place, delay job.Millis) *outcome {
	if len(j.Leases) == 0 && s.failedBeside(j) {
		j.CopiesWanted = j.Copies
		o.note("the last copy of one past its limit")
		return s.died(s.dead(o, j, job.Exhausted, false))
	}
	o.want = j
	if len(j.Leases) > 0 {
		o.state = job.Leased
		return o
	}
	j.CopiesWanted = j.Copies
	j.State, j.Wait = job.Ready, job.Wait{}
	if delay > 0 {
		j.ReadyAt = s.now + delay
	}
	if j.ReadyAt > s.now && (delay > 0 || j.ReadyAt > j.DequeuedAt) {
		j.State = job.Scheduled
	}
	s.place(o, j, p)
	o.state = j.State
	return o
}

// failedBeside is core.md 5, attempts: of a job that is past its limit since a
// copy of it failed the last live one decides. The limit is that of the rule which
// matched the failure, if it has one.
func (s *scene) failedBeside(j *job.Job) bool {
	p := s.policy(j)
	if n := j.Wait.Rule; n > 0 && p.Rules != nil && int(n) <= len(*p.Rules) && (*p.Rules)[n-1].Limit.IsSet() {
		p.Limit = (*p.Rules)[n-1].Limit
	}
	limit, bounded := p.LimitValue()
	return bounded && int64(j.Attempts) > limit && j.Overrides == 0 && j.FailedBesideCopy
}

// waits is the range of the curves that histories use, for the n-th attempt.
func waits(c *job.Curve, n float64) (lo, hi job.Millis) {
	switch c.Kind {
	case job.CurveConstant:
		return c.Delay, c.Delay
	case job.CurveExponential: // full jitter
		return 0, min(job.Millis(float64(c.Unit)*math.Pow(c.Factor, n-1)), c.Cap)
	case job.CurveList:
		d := c.Delays[min(int(n), len(c.Delays))-1]
		return d, d
	case job.CurvePolynomial:
		lo = c.Base + job.Millis(math.Pow(n-1, c.Exponent))*job.Second
		return lo, lo + job.Millis(n-1)*c.Spread
	default:
		return 0, 0
	}
}

// lose counts a holder that vanished (core.md 5).
func (s *scene) lose(j *job.Job, l job.Lease) {
	if j.Isolated && !l.Exclusive || s.followsOne() {
		return
	}
	p := s.policy(j)
	limit := p.LossLimitValue()
	j.Losses++
	if j.Isolated = j.Losses >= (limit+1)/2; j.Isolated {
		s.recorded(j, 1, nil)
	}
}

// lost decides about a job whose holders vanished.
func (s *scene) lost(o *outcome, j *job.Job) *outcome {
	p := s.policy(j)
	if len(j.Leases) == 0 && j.Losses >= p.LossLimitValue() {
		return s.died(s.dead(o, j, job.Lost, false))
	}
	return s.back(o, j, job.PlaceKeep, 0)
}

// died counts a death that a settle or a lapse brought.
func (s *scene) died(o *outcome) *outcome {
	if o.state == job.Dead {
		o.stats.Died++
	}
	return o
}

// left is the end of all leases of one holder.
func (s *scene) left(holder string, how job.Ending) *outcome {
	o := &outcome{why: "the end of " + holder + " by " + how.String(), verb: rule.Lapse}
	j := s.old.Clone()
	for i := len(j.Leases) - 1; i >= 0; i-- {
		if j.Leases[i].Holder == holder {
			l := j.Leases[i]
			end(j, i, how)
			o.stats.Lapsed++
			if how != job.ByRestart {
				s.lose(j, l)
			}
		}
	}
	o.note("lease ended by " + how.String())
	if how == job.ByRestart {
		return s.back(o, j, job.PlaceKeep, 0)
	}
	return s.lost(o, j)
}

// timedOut is the end of the leases whose own timers passed; without the soft
// ends while holders have extra time to report.
func (s *scene) timedOut(soft bool) []*outcome {
	o := &outcome{why: "its timers", verb: rule.Lapse}
	j := s.old.Clone()
	var ran uint32
	lost := false
	for i := 0; i < len(j.Leases); {
		l := j.Leases[i]
		past := func(at job.Millis) bool { return at > 0 && at <= s.steady }
		switch {
		case past(l.RunEnd):
			ran++
			end(j, i, job.ByTimeout)
			o.note("run timeout")
		case past(l.StartBy):
			j.Evictions++
			end(j, i, job.ByRelease)
			o.note("start timeout")
		case soft && past(l.Until):
			lost = true
			end(j, i, job.ByLapse)
			s.lose(j, l)
			o.note("unary lease lapsed")
		default:
			i++
			continue
		}
		o.stats.Lapsed++
	}
	if o.stats.Lapsed == 0 {
		return nil
	}
	switch {
	case ran > 0:
		var list []*outcome
		if s.now < j.GraceUntil {
			o.stats.Suppressed = uint64(ran)
		}
		for _, f := range s.failed(o, j, &engine.Settle{Failure: job.Failure{Type: "Timeout", Timeout: true}}, ran) {
			list = append(list, s.died(f))
		}
		return list
	case lost:
		return []*outcome{s.lost(o, j)}
	}
	return []*outcome{s.back(o, j, job.PlaceKeep, 0)}
}

// vanished lists the ends of holders that may have ended leases of the job.
func (s *scene) vanished() (list []*outcome) {
	seen := map[string]bool{}
	for _, l := range s.old.Leases {
		if seen[l.Holder] {
			continue
		}
		seen[l.Holder] = true
		switch {
		case strings.HasPrefix(l.Holder, "a/"):
			h := s.w.holders[l.Holder]
			if h != nil && h.closing {
				list = append(list, s.left(l.Holder, job.ByDisconnect))
			}
			if s.w.stopping || s.tokens[l.Token].epoch < s.epoch {
				list = append(list, s.left(l.Holder, job.ByRestart))
			}
		case strings.HasPrefix(l.Holder, "w/"):
			row, ok := s.book.rows[rowKey{job.Holders, l.Holder}].(*job.Holder)
			if ok && row.Until > 0 && row.Until <= s.steady {
				list = append(list, s.left(l.Holder, job.ByLapse))
			}
		}
	}
	return list
}
