package job

// Attempt is one run of a task that is over: on which engine, and why it ended.
// A task carries its first and its latest ones. A value is never changed in
// place.
type Attempt struct {
	Number    uint32 // among the runs of the task, in the order in which they were given out, 1 for the first
	Token     uint64 // hash of its token
	Holder    string // engine
	Host      string // of the engine
	Copy      bool   // it ran beside another one
	Committed bool   // it had the word that its effects count: see Lease.Commits
	Since     Millis // given out
	Started   Millis // it began, if its engine said so; 0 = it did not
	Ended     Millis
	Why       AttemptEnd
	Charged   Charge
	Failure   uint32 // number of its failure record; 0 = none
}

// Attempts that a task carries.
const (
	AttemptsFirst = 8  // from its first one on
	AttemptsLast  = 24 // up to its latest one
)

// AttemptEnd is why an attempt ended.
type AttemptEnd uint8

// The reasons.
const (
	AttemptOK          AttemptEnd = iota // its result is the one of the task
	AttemptLate                          // so it is, though the engine had been given up for lost
	AttemptError                         // its engine told of a failure
	AttemptLost                          // its engine was not heard of any more
	AttemptTimeout                       // it took too long
	AttemptSuperseded                    // another one was first, or has the word to commit
	AttemptReleased                      // its engine gave it back
	AttemptEvicted                       // its engine was logged off
	AttemptPreempted                     // an urgent session needed the slot
	AttemptWithdrawn                     // a copy that cost more than copies may
	AttemptUndelivered                   // its engine did not begin it in time, or does not know of it
	AttemptRestarted                     // the server was away, and its engine did not come back with it
	AttemptCancelled                     // with its task or its session
	attemptEnds
)

var attemptEndNames = [attemptEnds]string{
	"ok", "late", "error", "lost", "timeout", "superseded", "released", "evicted", "preempted", "withdrawn", "undelivered", "restarted", "cancelled",
}

func (w AttemptEnd) String() string { return nameOf(attemptEndNames[:], uint8(w)) }

// Valid reports whether it is one of the reasons.
func (w AttemptEnd) Valid() bool { return w < attemptEnds }

// Charge is which counter of its task the end of an attempt raised.
type Charge uint8

// The counters.
const (
	ChargedNothing Charge = iota
	ChargedRetry
	ChargedLoss
	ChargedEviction
	charges
)

var chargeNames = [charges]string{"", "retry", "loss", "eviction"}

func (c Charge) String() string { return nameOf(chargeNames[:], uint8(c)) }

// Valid reports whether it is one of the counters.
func (c Charge) Valid() bool { return c < charges }

// History are the attempts of the job that are over and kept, in the order in
// which they ended.
func (j *Job) History() []Attempt {
	if j == nil || j.Extras == nil {
		return nil
	}
	return j.Extras.Attempts
}

// WithOutcome returns the job's extras with this result, nil = as it is, and these
// attempts: of too many those in the middle are left out.
func (j *Job) WithOutcome(r *Result, list []Attempt) *Extras {
	x := Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	if r != nil {
		x.Result = r
	}
	if more := len(list) - AttemptsFirst - AttemptsLast; more > 0 {
		list = append(list[:AttemptsFirst:AttemptsFirst], list[AttemptsFirst+more:]...)
	}
	x.Attempts = list
	return x.orNil()
}
