package grid

import "github.com/reprisehq/reprise/internal/job"

// Settings are the options of a session, each with its value. There is no
// useful zero value: Resolve makes them.
type Settings struct {
	Weight     int64 // share of the engines, 1 to 9; 0 = suspended
	Urgent     bool  // may take engines from others
	MaxEngines int64 // engines at once; 0 = no limit

	TaskMaxTime job.Millis // of one attempt, from `started`; 0 = none
	OnTimeout   OnTimeout
	PollPeriod  job.Millis // overruns are seen at these steps; 0 = exactly when they happen
	AssignTime  job.Millis // from the assignment to `started`; 0 = without end

	MaxRetries     int64 // charged failures before the last; 0 = the first failure is the last
	MaxLosses      int64 // engines lost in a row; used where Losses is apart
	Losses         Losses
	MaxReschedules int64 // copies asked for
	RetryBackoff   job.Millis
	RetryCap       job.Millis
	FrontOrder     job.FrontOrder

	RescheduleFirst bool         // evicted tasks and copies go to the front
	EvictedPlace    EvictedPlace // of tasks given back, where RescheduleFirst does not hold

	Strategies []Strategy // none = no copies
	MaxCopies  int64      // runs of a task side by side, the first included
	CopiesOn   CopiesOn
	IdleOnly   bool    // copies only where no first attempt waits
	CopyBudget float64 // seconds of copies per second of useful work; 0 = no limit
	MinSamples int64   // finished tasks before a statistical strategy looks

	Idempotent bool // false: a task never runs twice at a time

	ExclusionAfter int64      // failed tasks before an engine gets no more; 0 = never
	ExclusionFor   job.Millis // 0 = until it is cleared

	Collection    Collection
	ClientTimeout job.Millis // an open session whose client is silent so long is cancelled; 0 = never
	AutoCancel    AutoCancel
	StopGrace     job.Millis // between the word that an attempt is over and its end by force
}

// OnTimeout is what becomes of a task that overran task_max_time.
type OnTimeout uint8

// The actions.
const (
	TimeoutRetry      OnTimeout = iota // its engine is stopped, the task is charged and goes to the front
	TimeoutReschedule                  // it runs on, and a copy is asked for
)

func (o OnTimeout) String() string { return [...]string{"retry", "reschedule"}[o] }

// Losses is what a lost engine costs its tasks.
type Losses uint8

// The choices.
const (
	LossesCharged Losses = iota // a retry, as the documentation of GridServer has it
	LossesApart                 // a loss, with a limit of its own
)

func (l Losses) String() string { return [...]string{"charged", "apart"}[l] }

// EvictedPlace is where a task goes that an engine gave back.
type EvictedPlace uint8

// The places.
const (
	EvictedBack EvictedPlace = iota // of the session
	EvictedKeep                     // where it stood
)

func (p EvictedPlace) String() string { return [...]string{"back", "keep"}[p] }

// CopiesOn is where a copy of a running task may run.
type CopiesOn uint8

// The choices.
const (
	OtherEngine CopiesOn = iota
	OtherHost
)

func (c CopiesOn) String() string { return [...]string{"other_engine", "other_host"}[c] }

// Strategy is a rule of redundant rescheduling (reference section 4).
type Strategy uint8

// The strategies.
const (
	Tail Strategy = iota
	Mean
	StdDev
	Median
	TimeLeft
	Hedge
	Clone
)

func (s Strategy) String() string {
	return [...]string{"tail", "mean", "stddev", "median", "time_left", "hedge", "clone"}[s]
}

// Collection is when results are handed out.
type Collection uint8

// The collection types.
const (
	Immediately Collection = iota // as tasks finish
	AfterSubmit                   // once the session is closed
	Later                         // by any client, and kept until they were collected
	Never                         // results are not kept
)

func (c Collection) String() string {
	return [...]string{"immediately", "after_submit", "later", "never"}[c]
}

// AutoCancel is what a failed task does to its session.
type AutoCancel uint8

// The choices.
const (
	CancelNever  AutoCancel = iota
	CancelOnLoad            // a task whose service could not be loaded
	CancelAlways            // any task that failed for good
)

func (a AutoCancel) String() string { return [...]string{"never", "load", "always"}[a] }
