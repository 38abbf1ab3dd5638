package job

import "slices"

// State is where a job is in its life. A job is in exactly one (I1).
type State uint8

// The states; None is "does not exist", before Put and after Purge.
const (
	None      State = iota
	Scheduled       // waits for its due time
	Ready           // waits for a holder
	Leased          // runs: at least one live lease; on the wire "in_flight"
	Done            // finished; on the wire "completed"
	Dead            // given up, with a Reason
	States          // how many there are
)

var stateNames = [States]string{"none", "scheduled", "ready", "leased", "done", "dead"}

func (s State) String() string { return stateNames[s] }

// Open reports whether the job is not finished.
func (s State) Open() bool { return s == Scheduled || s == Ready || s == Leased }

// Terminal reports whether only an operator can move the job.
func (s State) Terminal() bool { return s == Done || s == Dead }

// Reason says why a job is dead.
type Reason uint8

// The reasons.
const (
	Alive           Reason = iota
	Exhausted              // retry limit or max_age used up
	Killed                 // the worker said so, or an operator skipped it
	Expired                // not started before ExpiresAt
	Lost                   // its holders vanished too often
	Rejected               // refused after it was taken in
	Evicted                // pushed out by a quota
	ReasonCancelled        // nobody wants it any more: an operator, or with its session. It is not a death
	Reasons                // how many there are
)

func (r Reason) String() string {
	return [...]string{"", "exhausted", "killed", "expired", "lost", "rejected", "evicted", "cancelled"}[r]
}

// Bands of a line (core.md section 1).
const (
	BandFront  uint8 = 0
	BandNormal uint8 = 1
)

// PriorityDefault is the priority of a job that names none; lower runs first.
const PriorityDefault uint16 = 32768

// Unset marks an optional span of time that was not given.
const Unset Millis = -1

// Job is one unit of work. Once handed to a store it is immutable: a change is
// a new value made by rule.Step and written with Write(old, new). Small fields
// stand together, because there are very many jobs and each change is a copy.
type Job struct {
	ID    ID
	Queue string
	Type  string
	Group string // "" = ungrouped

	Seq  int64  // line position inside band
	Rank int64  // if Ranked
	Park string // out of line under this label; "" = not parked

	Priority         uint16
	Band             uint8
	Order            Order // of the queue when the job was put; decides its place in the group
	Ranked           bool  // Rank instead of Seq is its sort position in an ordered group
	State            State
	Reason           Reason
	BlocksGroup      bool  // a dead head that holds its group (on_dead block and park)
	Isolated         bool  // lost so often that it is delivered only to a holder with nothing else
	HoldsKey         bool  // stands under its key: has its unique key, or takes in newcomers of its batch
	FailedBesideCopy bool  // the latest charged failure was that of a run beside another one
	Copies           uint8 // runs wanted side by side when the job starts, at least 1
	CopiesWanted     uint8 // runs wanted now
	Door             Door  // through which it came
	Wait             Wait  // how the date of its next attempt came about

	Created     Millis
	ReadyAt     Millis // due; while Ready it is when it became due
	ExpiresAt   Millis // 0 = never
	DequeuedAt  Millis // latest take, 0 = never
	FailedAt    Millis // latest failure, 0 = never
	CompletedAt Millis
	PurgeAt     Millis // terminal jobs only; 0 = stays
	RevivedAt   Millis // latest revive; max_age counts from here or from Created
	GraceUntil  Millis // failures before this are suppressed, not charged

	RunTimeout   Millis // 0 = the queue's
	StartTimeout Millis // 0 = the queue's

	Attempts    uint32 // charged failures since creation or revive (I4)
	Losses      uint32 // consecutive endings without a settle
	Evictions   uint32 // graceful returns
	Reschedules uint32 // extra copies asked for
	Deliveries  uint32 // leases granted
	Suppressed  uint32 // failures inside grace
	Overrides   uint32 // retry times set by workers
	Failures    uint32 // number of the latest failure record; never falls
	Replays     uint32 // times it was brought back from the dead
	Releases    uint32 // times a rule gave it back, since creation or revive; at most ReleasesMax

	Print  Fingerprint // of the latest failure; of a dead job its group
	DiedAt Millis      // dead jobs only

	LastDelay Millis // previous wait, for decorrelated jitter

	Retry      *Retry // what was given to this job itself
	RetainDone Millis // Unset = the queue's
	RetainDead Millis // Unset = the queue's
	Requires   []Requirement
	Extras     *Extras // nil = none

	Finished int64 // of a task: its number among the finished, in order; 0 = is not

	Payload     ID // where the payload is kept; several jobs may share one
	PayloadSize uint32

	Leases []Lease // live ones
	Ended  []Ended // the last EndedMax tokens that are not live any more
}

// EndedMax is how many ended tokens a job remembers (core.md section 4).
const EndedMax = 4

// Clone copies the job deeply enough that changing the copy leaves the
// original as it was.
func (j *Job) Clone() *Job {
	c := *j
	c.Leases = slices.Clone(j.Leases)
	c.Ended = slices.Clone(j.Ended)
	return &c
}

// Born is when max_age starts to count: creation or the latest revive.
func (j *Job) Born() Millis { return max(j.Created, j.RevivedAt) }

// LeaseOf returns the index of the live lease with this token, or -1.
func (j *Job) LeaseOf(t Token) int {
	return slices.IndexFunc(j.Leases, func(l Lease) bool { return l.Token == t })
}

// HeldBy reports whether the holder has a live lease on the job.
func (j *Job) HeldBy(holder string) bool {
	return slices.ContainsFunc(j.Leases, func(l Lease) bool { return l.Holder == holder })
}

// RunsOn reports whether a live lease keeps other copies off the host.
func (j *Job) RunsOn(host string) bool {
	return host != "" && slices.ContainsFunc(j.Leases, func(l Lease) bool { return l.Bars() == host })
}

// Committed reports whether an engine that runs the job had the word that the
// effects of its run count.
func (j *Job) Committed() bool {
	return slices.ContainsFunc(j.Leases, func(l Lease) bool { return l.Commits })
}

// Failure is the record of one failed attempt (retry.md section 2).
type Failure struct {
	Number    uint32 // counts all failures of the job, 1 for the first
	Attempt   uint32 // attempts after this failure was charged
	Type      string
	Message   string
	Backtrace string
	Holder    string
	Status    int  // HTTP status a target answered, 0 = none
	ExitCode  int  // of a command, 0 = none: that of a failure is another
	Timeout   bool // the attempt took too long
	Blank     Blank
	Started   Millis
	Failed    Millis
}

// Blank says which texts of a failure were given and are empty, as Zizq tells them.
type Blank uint8

// The texts that may be left out.
const (
	BlankType Blank = 1 << iota
	BlankBacktrace
)

// Failures kept per job: the first and the last FailuresKept.
const FailuresKept = 50

// ErrorBytesMax bounds message and backtrace of a failure record together
// (error_bytes_max).
const ErrorBytesMax = 16 << 10
