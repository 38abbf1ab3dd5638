package rule

import "github.com/reprisehq/reprise/internal/job"

// Obstacle names a reason why an open job does not run (retry.md section 5).
type Obstacle uint8

// The obstacles, in the order in which they are told: what is nearest to the
// job comes first.
const (
	NotDue          Obstacle = iota // waits for its time
	Parked                          // out of line under a label
	Paused                          // its queue is
	Held                            // its queue or its group, until a time
	BreakerShut                     // of its queue or its group; nothing, or no more, is let through
	GroupParked                     // with its dead head
	BehindHead                      // of its group
	GroupLimit                      // as many of its group run as may
	QueueLimit                      // as many of its queue run as may (max_running)
	RateUsed                        // of its queue or its group
	BudgetUsed                      // of retries
	NoWorker                        // none is connected to its queue
	NoFittingWorker                 // none of those that are may run it
	NoFreeWorker                    // all of those that may are busy
	ServerLimit                     // as many jobs run as the server allows
	BudgetShort                     // of a budget that it is bound to
	BehindTag                       // the next one of its affinity tag goes first
	KeptForTag                      // kept for the engines that ran its affinity tag, until a time
	CopyHost                        // it runs, a copy of it is due, and no other host may run that
	CopyBarred                      // it runs, a copy of it is due, and a guard holds that back: its label
	EnginesExcluded                 // by its session: all that may run it, as many as the limit says
	InLine                          // nothing holds it back; others stand before it
	Obstacles                       // how many there are
)

func (o Obstacle) String() string {
	return [...]string{
		"not_due", "parked", "paused", "held", "breaker", "group_parked", "behind_head", "group_limit", "max_running",
		"rate", "retry_budget", "no_worker", "no_fitting_worker", "no_free_worker", "max_inflight", "budget", "behind_affinity", "affinity", "no_eligible_host", "no_copy", "excluded", "in_line",
	}[o]
}

// Reason is an obstacle with what is known of it.
type Reason struct {
	Is     Obstacle
	Group  bool             // it is the group's, not the queue's
	Until  job.Millis       // the date at which it ends by itself; 0 = not by time
	State  job.BreakerState // BreakerShut
	Forced bool             // BreakerShut: by an operator
	Limit  int              // GroupLimit, QueueLimit, ServerLimit, EnginesExcluded
	Label  string           // Parked; BudgetShort: its key; BehindTag, KeptForTag: the tag; CopyBarred
	Head   *job.Job         // BehindHead, GroupParked: who is in front; Parked: the task it needs; nil if that is not known
}

// Situation is everything that may keep a job from running.
type Situation struct {
	Moment
	Job           *job.Job
	Queue         *job.Queue
	Gate          *job.Gate     // of its group; nil when ungrouped
	QueueThrottle *job.Throttle // nil = nothing
	GroupThrottle *job.Throttle
	Head          *job.Job   // the first member of its group; nil when ungrouped
	Blocker       *job.Job   // a dead member that holds the group; nil if there is none
	GroupLive     int        // live leases of its group
	Running       int        // live leases of its queue
	Room          Room       // of its queue
	RoomAgain     job.Millis // when time gives more of it, on the steady clock; 0 = it does not
	Workers       int        // connected to its queue
	Fitting       int        // of them, those that may run it
	Free          int        // of them, those with room
	Excluded      int        // may run it, but its session excludes them: not among Fitting
	InFlight      int        // leases of all holders
	InFlightMax   int        // 0 = no limit

	Short   *job.Budget      // lacks what the job needs, or others wait for it before the job; nil = none does
	Tag     *job.AffinityTag // of a task with affinity; nil = has none
	TagHead *job.Job         // the next one of the tag
	Needed  *job.Job         // the task that this one waits for; nil = none, or it is forgotten
	CopyBar string           // why a task that runs gets no copy although one is due; "" = none is due
	NoHost  bool             // it is that no other host may run it

	ShortAgain job.Millis // when time gives enough, on the steady clock; 0 = it does not, or others wait
}

// Explain lists what keeps an open job from running; a job that is finished has no
// obstacles, and one that runs only what keeps a copy of it back that is due.
func Explain(s Situation) []Reason {
	switch {
	case s.NoHost:
		return []Reason{{Is: CopyHost}}
	case s.CopyBar != "":
		return []Reason{{Is: CopyBarred, Label: s.CopyBar}}
	case s.Job.State != job.Ready && s.Job.State != job.Scheduled:
		return nil
	}
	var out []Reason
	tell := func(r Reason) { out = append(out, r) }
	if s.Job.State == job.Scheduled {
		tell(Reason{Is: NotDue, Until: s.Job.ReadyAt})
	}
	s.aside(tell)
	s.holds(tell)
	if s.Tag != nil && reservedFor(s.Job) != "" {
		tell(Reason{Is: KeptForTag, Label: s.Tag.Tag, Until: s.Date(s.Tag.Until)})
	}
	s.breaker(s.QueueThrottle, false, tell)
	s.breaker(s.GroupThrottle, true, tell)
	s.group(tell)
	if s.Job.State == job.Ready { // limits change from moment to moment
		s.limits(tell)
	}
	if len(out) == 0 { // only then workers matter
		s.workers(tell)
	}
	if len(out) == 0 {
		tell(Reason{Is: InLine})
	}
	return out
}

// aside is why a job stands beside its line.
func (s *Situation) aside(tell func(Reason)) {
	switch {
	case s.Short != nil:
		tell(Reason{Is: BudgetShort, Label: s.Short.Name, Limit: int(s.Short.Capacity()), Until: s.Date(s.ShortAgain)})
	case s.Tag != nil && s.Job.Park == AffinityPark(s.Tag.Session, s.Tag.Tag):
		tell(Reason{Is: BehindTag, Label: s.Tag.Tag, Head: s.TagHead})
	case s.Job.Park != "":
		tell(Reason{Is: Parked, Label: s.Job.Park, Head: s.Needed})
	}
}

// holds are what operators, and failures, keep of the queue and of the group.
func (s *Situation) holds(tell func(Reason)) {
	if s.Queue.Paused || s.Queue.Grid != nil && !s.Queue.Grid.Served() {
		tell(Reason{Is: Paused})
	}
	if s.Queue.HoldUntil != 0 {
		tell(Reason{Is: Held, Until: s.Queue.HoldUntil})
	}
	if s.Gate != nil && s.Gate.Hold != 0 {
		tell(Reason{Is: Held, Group: true, Until: s.Gate.Hold})
	}
}

// Date is a time of the steady clock as a date.
func (s *Situation) Date(steady job.Millis) job.Millis {
	if steady == 0 {
		return 0
	}
	return s.Now.Add(max(0, steady-s.Steady))
}

func (s *Situation) breaker(t *job.Throttle, group bool, tell func(Reason)) {
	if Lets(t) == 0 {
		r := Reason{Is: BreakerShut, Group: group, State: t.State, Forced: t.Forced}
		if t.State == job.BreakerOpen {
			r.Until = s.Date(t.Until)
		}
		tell(r)
	}
}

// group tells what the gate has against the job.
func (s *Situation) group(tell func(Reason)) {
	switch {
	case s.Gate == nil:
	case s.Gate.Park != "":
		tell(Reason{Is: GroupParked, Head: s.Blocker})
	case s.Gate.Paused:
		tell(Reason{Is: Paused, Group: true})
	case s.Blocker != nil && !s.Queue.Turns:
		tell(Reason{Is: BehindHead, Head: s.Blocker})
	case headFirst(s.Queue.Order, s.Queue.Turns) && s.Head != nil && s.Head.ID != s.Job.ID:
		tell(Reason{Is: BehindHead, Head: s.Head})
	}
}

func (s *Situation) limits(tell func(Reason)) {
	most := s.Queue.Protection.MaxRunning
	if g := s.Queue.Grid; g != nil {
		most = g.MaxEngines
	}
	if s.Gate != nil && s.Queue.Order != job.OrderStrict && s.Queue.Concurrency > 0 && s.GroupLive >= s.Queue.Concurrency {
		tell(Reason{Is: GroupLimit, Limit: s.Queue.Concurrency})
	}
	if s.GroupThrottle != nil && s.GroupThrottle.Slow > 0 {
		tell(Reason{Is: RateUsed, Group: true, Until: s.Date(s.GroupThrottle.Slow)})
	}
	switch {
	case Lets(s.QueueThrottle) == 0:
	case most > 0 && s.Running >= most:
		tell(Reason{Is: QueueLimit, Limit: most})
	case s.Room.All <= 0:
		tell(Reason{Is: RateUsed, Until: s.Date(s.RoomAgain)})
	case retried(s.Job) && s.Room.Retried <= 0:
		tell(Reason{Is: BudgetUsed, Until: s.Date(s.RoomAgain)})
	}
}

func (s *Situation) workers(tell func(Reason)) {
	switch {
	case s.Workers == 0:
		tell(Reason{Is: NoWorker})
	case s.Fitting == 0 && s.Excluded > 0:
		tell(Reason{Is: EnginesExcluded, Limit: s.Excluded})
	case s.Fitting == 0:
		tell(Reason{Is: NoFittingWorker})
	case s.InFlightMax > 0 && s.InFlight >= s.InFlightMax:
		tell(Reason{Is: ServerLimit, Limit: s.InFlightMax})
	case s.Free == 0:
		tell(Reason{Is: NoFreeWorker})
	}
}

// RetryWait tells how the wait of a retry came about (retry.md section 5).
type RetryWait struct {
	By     job.WaitBy // who chose the date
	Number int        // of the retry, 1 for the first; 0 where nothing was charged yet
	Rule   int        // that decided about the failure, 1 for the first; 0 = none
	Ruled  bool       // the curve is that rule's own
	Curve  job.Curve  // that says how long it waits if nobody else does
	From   Source     // who gave the curve
	Rules  Source     // who gave the rules
	Min    job.Millis // the interval of the curve
	Max    job.Millis
	Drew   job.Millis // what was drawn from it; 0 where somebody else chose
	Waits  job.Millis // from the failure to the next attempt
}

// ExplainRetry tells how the wait of a job that failed came about; false if it
// waits for no retry. The policy is the job's as it is now: if it has changed
// since the failure, what was drawn may lie outside of its interval.
func ExplainRetry(j *job.Job, p *Effective) (RetryWait, bool) {
	if j.State != job.Scheduled || j.Wait.By == job.WaitNobody {
		return RetryWait{}, false
	}
	w := RetryWait{
		By: j.Wait.By, Number: int(j.Attempts), Rule: int(j.Wait.Rule), From: p.From.Curve, Rules: p.From.Rules,
		Waits: j.ReadyAt - j.FailedAt,
	}
	if all := j.History(); w.By == job.WaitFence && len(all) > 0 { // nothing may have been charged
		w.Waits = j.ReadyAt - all[len(all)-1].Ended
	}
	curve := p.Retry.Curve
	if rules := p.Retry.Rules; w.Rule > 0 && rules != nil && w.Rule <= len(*rules) {
		if own := (*rules)[w.Rule-1].Curve; own != nil {
			curve, w.From, w.Ruled = own, p.From.Rules, true
		}
	}
	if curve != nil {
		w.Curve = *curve
	}
	w.Min, w.Max, _ = DelayBounds(curve, max(w.Number, 1))
	if w.By == job.WaitCurve {
		w.Drew = j.LastDelay
	}
	return w, true
}

// Changed reports whether the policy cannot be the one that chose the wait.
func (w *RetryWait) Changed() bool {
	return w.By == job.WaitCurve && (w.Drew < w.Min || w.Drew > w.Max)
}
