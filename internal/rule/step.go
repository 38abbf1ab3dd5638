package rule

import (
	"cmp"
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
)

// View is everything a step may look at.
type View struct {
	Now    job.Millis // the date, for due times and records
	Steady job.Millis // runs on through clock steps, for leases and timeouts (core.md section 8)
	Job    *job.Job   // nil for Put
	Queue  *job.Queue // settings of its queue
	Gate   *job.Gate  // its group's gate; nil when ungrouped, but in a fair queue
	Head   bool       // no member of its group stands before it; see NeedsHead
	Behind bool       // of a strict group: an earlier member runs
	Server *Server    // defaults
	Rand   func() float64
	Seq    func() int64                    // next line position, from a durably reserved block
	Paused func(job.Fingerprint) bool      // is it paused by an operator; nil = none is
	Kept   func(queue string) (int64, int) // how many finished jobs it keeps, and how many queues there are; nil = none
	Start  uint32                          // number of this server start
	Owner  job.ID                          // another job that has its unique key; zero = none

	Session *job.Session // of a task; nil = the queue is no session
}

// Server holds what applies where neither job nor queue says anything.
type Server struct {
	Retry      job.Retry
	Types      map[string]*job.Retry // of jobs of a type
	Doors      [job.Doors]*job.Retry // of jobs that came through a door; nil = none
	RetainDone job.Millis            // 0 = finished jobs leave at once; may be RetainRecent
	RetainDead job.Millis            // 7 days by default
	GraceDelay job.Millis            // wait after a failure inside grace, 6 s
}

const defaultGraceDelay = 6 * job.Second

// DefaultServer returns the defaults of the specification.
func DefaultServer() Server {
	return Server{
		Retry: job.DefaultRetry(), RetainDead: 7 * job.Day,
		GraceDelay: defaultGraceDelay,
	}
}

// Command is a verb with what it needs.
type Command struct {
	Verb Verb

	New        *job.Job         // Put: the job as asked for, id drawn
	Place      job.Place        // Put, settles: where to stand; unset = by policy
	Token      job.Token        // settles, Extend: zero = without a token
	Lease      *job.Lease       // Take: the lease to grant, token and holder filled in
	Turn       int64            // Take: the running turn of its group that the member joins; 0 = begins one
	Ending     job.Ending       // Lapse: what kind of end
	Holder     string           // Lapse: whose leases; "" = those whose own timers passed, with ByTimeout no soft ends
	Until      job.Millis       // Extend: new soft end
	Started    bool             // Extend: the run has begun
	Commit     bool             // Extend: the run asks for the word that its effects count
	Progress   *job.RunProgress // Extend: what the worker tells; nil = nothing
	Begins     job.Millis       // Take: of a task: the steady time at which its engine has a slot for it at the latest; 0 = not known
	Back       bool             // Extend: of a task: its engine is back after a start of the server
	ClockShift *ClockShift      // Extend: the server started anew, and the times of the lease move to its clock; nil = it did not
	RunStart   job.Millis       // settles: when the run began, as the holder says; 0 = not said
	Result     *job.Result      // SettleOK: what it made; nil = it made nothing
	Failure    job.Failure      // SettleRetry, SettleDead: what went wrong
	Match      Match            // SettleRetry: what is known of the failure's message; nil = nothing yet
	RetryAt    job.Millis       // SettleRetry: the worker's own time; 0 = none
	After      job.Millis       // SettleRetry, SettleDead: Retry-After of a target; SettleRelease: delay
	ByTarget   bool             // SettleRelease: the target that it was delivered to gave it back
	Hold       job.Millis       // settles: how long its worker asks to hold the group or queue
	Allow      bool             // Revive: allow_out_of_order
	Remaining  bool             // Revive: what was used up stays so: counters and age do not start again
	Reason     job.Reason       // Cancel: why; zero = cancelled
	Edit       func(*job.Job)   // Patch, Revive
}

// ClockShift is what a start of the server does to steady times that were kept before it:
// each start has a steady clock of its own.
type ClockShift struct {
	Shift  job.Millis // this clock is so much ahead of the one before
	Window job.Millis // nothing ends sooner than this after the start: holders must be heard of first
}

// move is the end of a span on the clock of this start. What was left of the span is left
// now: no more than all of it (whole, 0 = not known), and no less than the window.
func (a *ClockShift) move(v View, end, whole job.Millis) job.Millis {
	if end == 0 {
		return 0
	}
	left := max(end.Add(a.Shift)-v.Steady, a.Window)
	if whole > 0 {
		left = min(left, whole)
	}
	return v.Steady.Add(left)
}

// Effect is what a step asks the engine to write and to tell.
type Effect struct {
	Job      *job.Job      // the job as it shall be; nil = gone
	Gate     *job.Gate     // the gate as it shall be; nil = unchanged
	Queue    *job.Queue    // the queue as it shall be; nil = unchanged
	Failures []job.Failure // records to keep, by number; see OutdatedBy

	Voided     []Void      // leases that ended without their holder asking
	Ended      []job.Lease // every lease that ended, so that holders' counts follow
	Late       bool        // an OK that came after its lease ended
	Repeat     bool        // the same settle again: same answer, nothing to write
	OutOfOrder bool        // delivered behind a later member of its group
	AtLimit    bool        // an overrun asked for a copy, and the job has had as many as it may
	Cut        bool        // later members of its turn go back, see cuts
	Gone       job.State   // the state in which the job left, when Job is nil
	Left       *job.Job    // the job as it left

	result *job.Result // of the job, which is done now and stays; nil = it has none
}

// HowEnded is how a lease of Ended came to its end in the step of a verb: as its
// holder said, unless it is one of Voided.
func (e *Effect) HowEnded(verb Verb, l *job.Lease) job.Ending {
	for i := range e.Voided {
		if e.Voided[i].Lease.Token == l.Token {
			return e.Voided[i].How
		}
	}
	if isSettle(verb) {
		return endingOf(verb)
	}
	return job.ByRelease
}

// gate is the gate of the effect, to be changed: the one of the view is not.
func (e *Effect) gate(v View) *job.Gate {
	if e.Gate == nil {
		e.Gate = new(*v.Gate)
	}
	return e.Gate
}

// Void is a lease that ended without its holder asking, and how.
type Void struct {
	Lease job.Lease
	How   job.Ending
}

// Step applies one verb to one job. It changes nothing: the engine writes the
// effect in one transaction. A refused step is a *job.Error and has no effect.
func Step(v View, c Command) (Effect, error) {
	from := job.None
	if v.Job != nil {
		from = v.Job.State
	}
	if !Allowed(c.Verb, from) {
		if isSettle(c.Verb) {
			return late(v, c)
		}
		if c.Verb == Extend && v.Job != nil { // no lease of it lives
			return Effect{}, superseded(v.Job)
		}
		return Effect{}, wrongState(c.Verb, from)
	}
	e, err := apply(v, c)
	if err != nil || e.Repeat {
		return e, err
	}
	to := job.None
	if e.Job != nil {
		leaveBudget(e.Job)
		keepOutcome(v, &c, &e)
		to = e.Job.State
		if e.Job.Extras != nil {
			holdKey(v, e.Job)
		}
	}
	e.Cut = cuts(v, c.Verb, &e)
	noteDelivered(v, c.Verb, &e)
	if !Leads(c.Verb, from, to) {
		panic(fmt.Sprintf("rule: %s led from %s to %s, which the table does not know", c.Verb, from, to))
	}
	return e, nil
}

func apply(v View, c Command) (Effect, error) {
	switch c.Verb {
	case Put:
		return put(v, c), nil
	case Take:
		return take(v, c)
	case Extend:
		return extend(v, c)
	case SettleOK, SettleRetry, SettleRelease, SettleDead:
		return settle(v, c)
	case Lapse:
		e, err := lapse(v, c)
		return fenced(v, e), err
	case Promote:
		return promote(v)
	case Expire:
		return expire(v)
	case Offer:
		return offer(v, c)
	case Revive:
		return revive(v, c)
	case Cancel:
		return cancel(v, c), nil
	case Patch:
		return patch(v, c), nil
	case Purge:
		return purge(v), nil
	default:
		return Effect{}, wrongState(c.Verb, v.Job.State)
	}
}

func put(v View, c Command) Effect {
	j := c.New.Clone()
	j.Created = v.Now
	j.Seq = v.Seq()
	j.Band = job.BandNormal
	ordered(v, j)
	if c.Place == job.PlaceFront {
		place(v, j, c.Place)
	}
	j.Copies = max(j.Copies, 1)
	j.CopiesWanted = j.Copies
	j.State = job.Scheduled
	if j.ReadyAt <= v.Now {
		j.State = job.Ready
		if j.ReadyAt == 0 {
			j.ReadyAt = v.Now
		}
	}
	return Effect{Job: j}
}

// toFront puts a job at the front of its priority (core.md section 1): by_seq
// keeps its sequence number, lifo draws one below all others.
func toFront(v View, j *job.Job) {
	j.Band = job.BandFront
	if v.Queue.FrontOrder == job.FrontLIFO {
		j.Seq = -v.Seq()
	}
}

// place moves a job in its line. Members of a strict group keep their place:
// its sequence is its order.
func place(v View, j *job.Job, p job.Place) {
	if j.Order == job.OrderStrict {
		return
	}
	switch p {
	case job.PlaceFront:
		toFront(v, j)
	case job.PlaceBack:
		j.Band, j.Seq = job.BandNormal, v.Seq()
	case job.PlaceKeep, job.PlaceUnset:
	}
}

func take(v View, c Command) (Effect, error) {
	if v.Job.State == job.Leased && len(v.Job.Leases) >= int(v.Job.CopiesWanted) {
		return Effect{}, job.Errorf(job.WrongState, "no further copy of job %s is wanted", v.Job.ID)
	}
	if v.Job.HeldBy(c.Lease.Holder) {
		return Effect{}, job.Errorf(job.WrongState, "holder %s already runs job %s", c.Lease.Holder, v.Job.ID)
	}
	if v.Job.RunsOn(c.Lease.Host) {
		return Effect{}, job.Errorf(job.WrongState, "host %s already runs job %s", c.Lease.Host, v.Job.ID)
	}
	j, l, e := v.Job.Clone(), *c.Lease, Effect{}
	if j.FailedBesideCopy = j.FailedBesideCopy && len(j.Leases) > 0; !j.FailedBesideCopy {
		j.Wait = job.Wait{}
	}
	l.Since = v.Now
	begin := cmp.Or(j.StartTimeout, v.Queue.StartTimeout)
	if begin > 0 {
		l.StartBy = v.Steady.Add(begin)
	}
	if l.Until > 0 {
		l.Length = l.Until - v.Steady
	}
	if v.Queue.Grid == nil {
		l.RunEnd = runEnd(v, j)
	} else {
		startRunClock(v, c.Begins, begin, j, &l)
		l.Number, l.Copy = j.Deliveries+1, len(j.Leases) > 0
	}
	joinTurn(v, c.Turn, j, &l, &e)
	if v.Gate != nil && c.Turn == 0 && v.Queue.Protection.Fair != nil { // all of a turn is one start
		served(v, e.gate(v))
	}
	if x := j.Extras; x != nil && x.Progress != nil && len(j.Leases) == 0 { // of an earlier run only the checkpoint counts
		var kept *job.RunProgress
		if c := x.Progress.Checkpoint; c != nil {
			kept = &job.RunProgress{Fraction: job.FractionUnset, Checkpoint: c, At: x.Progress.At}
		}
		j.Extras = j.WithProgress(kept)
	}
	j.State, j.DequeuedAt = job.Leased, v.Now
	j.Deliveries++
	j.Leases = append(j.Leases, l)
	e.Job = j
	return e, nil
}

// startRunClock starts the run clock of a task whose engine may never say that the run
// began: when it has a slot for the task at the latest (begins).
func startRunClock(v View, begins, startTimeout job.Millis, j *job.Job, l *job.Lease) {
	if begins == 0 || startTimeout > 0 {
		return
	}
	now := v.Steady
	v.Steady = begins
	if l.RunEnd = runEnd(v, j); l.RunEnd > 0 && begins > now {
		l.Length = l.RunEnd - now
	}
}

func extend(v View, c Command) (Effect, error) {
	i := v.Job.LeaseOf(c.Token)
	if i < 0 {
		return Effect{}, superseded(v.Job)
	}
	j := v.Job.Clone()
	l := &j.Leases[i]
	if l.Until > 0 && c.Until > 0 {
		l.Until, l.Length = c.Until, c.Until-v.Steady
	}
	if a := c.ClockShift; a != nil {
		whole := runEnd(v, j) - v.Steady
		if l.Until > 0 && l.Length > 0 {
			l.Until = a.move(v, l.Until, max(l.Length, a.Window))
		} else if l.Until > 0 {
			l.Until = a.move(v, l.Until, 0)
		} else {
			whole = cmp.Or(l.Length, whole)
		}
		l.RunEnd = a.move(v, l.RunEnd, whole)
		l.StartBy = a.move(v, l.StartBy, cmp.Or(j.StartTimeout, v.Queue.StartTimeout))
	}
	if c.Back && l.RunEnd > 0 {
		l.RunEnd = min(l.RunEnd, max(ownRunEnd(v, j, l), v.Steady.Add(backGrace)))
	}
	if p := c.Progress; p != nil {
		var known *job.RunProgress
		if j.Extras != nil {
			known = j.Extras.Progress
		}
		told := p.Over(known)
		told.At = v.Now
		j.Extras = j.WithProgress(told)
	}
	if c.Started && l.Started == 0 {
		l.Started, l.StartBy = v.Now, 0
		l.RunEnd = runEnd(v, j) // the run clock starts with the run, not with the lease
		if l.Until == 0 {
			l.Length = 0
		}
	}
	e := Effect{Job: j}
	if c.Commit {
		commit(j, i, &e)
	}
	return e, nil
}

func promote(v View) (Effect, error) {
	if v.Job.ReadyAt > v.Now { // I6
		return Effect{}, job.Errorf(job.WrongState, "job %s is not due before %d", v.Job.ID, v.Job.ReadyAt)
	}
	j := v.Job.Clone()
	j.State = job.Ready
	holdPrint(v, j)
	return Effect{Job: j}, nil
}

func expire(v View) (Effect, error) {
	if v.Job.ExpiresAt == 0 || v.Job.ExpiresAt > v.Now { // I6
		return Effect{}, job.Errorf(job.WrongState, "job %s is not expired", v.Job.ID)
	}
	return die(v, v.Job.Clone(), job.Expired, Effect{}), nil
}

func offer(v View, c Command) (Effect, error) {
	if why := NoCopy(v.Job, v.Queue, v.Server); why != CopyAllowed {
		return Effect{}, job.Errorf(job.OverLimit, "no further copy of job %s: %s", v.Job.ID, why)
	}
	j := v.Job.Clone()
	oneMore(v, j, c.Place)
	return Effect{Job: j}, nil
}

// ordered gives a job the order of its queue as it is now: all members of a
// group have the same. Which queue a job moved to by a patch is in, the caller
// of Step has made the view's.
func ordered(v View, j *job.Job) {
	if j.Order = job.OrderNone; j.Group != "" {
		j.Order = v.Queue.Order
	}
}

// revive brings a dead job back, or a scheduled one forward. Counters start
// again unless the command asks for what is left of them (I4); failure records stay.
func revive(v View, c Command) (Effect, error) {
	old := v.Job
	if Misplaced(old, v.Queue) {
		return Effect{}, job.Errorf(job.WrongState, "job %s cannot run in queue %q: sessions have tasks only, and tasks belong to sessions; put its payload anew where it belongs", old.ID, old.Queue)
	}
	e := Effect{Gate: unparked(v)}
	if e.Gate == nil && old.State == job.Dead && old.Order == job.OrderStrict && !old.BlocksGroup && !c.Allow {
		return Effect{}, job.Errorf(job.WrongState,
			"job %s belongs to the strictly ordered group %q, which went on without it; replay it with allow_out_of_order",
			old.ID, old.Group)
	}
	if old.State == job.Dead && !v.Owner.IsZero() {
		return Effect{}, job.Errorf(job.Exists, "job %s was put with the unique key %q, which job %s has now; wait for that one, or delete it",
			old.ID, old.Extras.Unique.Key, v.Owner)
	}
	if s := v.Session; s != nil && (s.State == job.SessionCancelling || s.State.Ended()) {
		return Effect{}, job.Errorf(job.WrongState, "session %q is %s; submit the task to another one", s.Name, s.State)
	}
	j := old.Clone()
	j.Finished = 0
	if old.State == job.Dead {
		if !c.Remaining {
			j.Attempts, j.Losses, j.Overrides, j.Suppressed, j.LastDelay, j.Isolated = 0, 0, 0, 0, 0, false
			j.Releases, j.RevivedAt = 0, v.Now
		}
		j.CopiesWanted, j.Reason, j.BlocksGroup, j.PurgeAt, j.DiedAt = j.Copies, job.Alive, false, 0, 0
		j.Replays++
		if j.ExpiresAt <= v.Now {
			j.ExpiresAt = 0 // an operator who revives an expired job wants it to run
		}
	}
	ordered(v, j)
	if c.Edit != nil {
		c.Edit(j)
	}
	place(v, j, c.Place)
	j.State, j.ReadyAt, j.Wait = job.Ready, v.Now, job.Wait{}
	e.Job = j
	return e, nil
}

// purge forgets a terminal job. A group that it kept aside goes on without it.
func purge(v View) Effect { return Effect{Gone: v.Job.State, Gate: unparked(v)} }

// unparked is the gate without the park of the job as its dead head; nil if
// the job does not park its group.
func unparked(v View) *job.Gate {
	if v.Gate == nil || v.Gate.Park != deadHead(v.Job.ID) {
		return nil
	}
	free := *v.Gate
	free.Park = ""
	return &free
}

func cancel(v View, c Command) Effect {
	e := Effect{}
	j := v.Job.Clone()
	endAll(j, job.ByCancel, &e, true)
	if c.Failure.Message != "" {
		note(v, j, c.Failure, &e)
	}
	if c.Reason != job.Alive {
		return dieAside(v, j, c.Reason, e)
	}
	return dieAside(v, j, job.ReasonCancelled, e)
}

func patch(v View, c Command) Effect {
	j := v.Job.Clone()
	c.Edit(j)
	ordered(v, j)
	if j.ReadyAt != v.Job.ReadyAt && j.State != job.Leased {
		j.Wait = job.Wait{}
	}
	if j.State != job.Leased {
		j.State = job.Scheduled
		if j.ReadyAt <= v.Now {
			j.State = job.Ready
		}
	}
	if v.Job.State == job.Scheduled && j.State == job.Ready {
		holdPrint(v, j)
	}
	return Effect{Job: j}
}
