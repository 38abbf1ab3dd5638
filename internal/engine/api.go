package engine

import (
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// NewJob is work as a door asks for it.
type NewJob struct {
	// Job carries what the caller may choose: Door, Queue, Type, Group,
	// Priority, ReadyAt (0 = now), ExpiresAt, GraceUntil, RunTimeout,
	// StartTimeout, Copies, Ranked and Rank, Retry, RetainDone, RetainDead (Unset = by queue),
	// Requires, Extras. The engine fills in the rest.
	Job     job.Job
	Place   job.Place
	Payload []byte // kept as given; the engine does not look into it
	Key     string // idempotency key; "" = none
	Apart   bool   // a key that was used for other content refuses this job alone, by Added.Err

	Needs     []string      // keys of tasks of its session that must be over before, put earlier or before it in the same call
	OnDepFail job.OnDepFail // what if one of them failed

	// Shares is the job whose payload, the same bytes as Payload, this one shares; zero =
	// it has its own.
	Shares job.ID

	Create []job.Budget // budgets that are made if they do not exist, for those the job is bound to

	// Reach tells to which queues whoever sends it may look; nil = to all. A key
	// that a job in another queue has refuses it, and tells nothing of that job.
	Reach func(queue string) bool
}

// Sees reports whether who sends it may know of a job.
func (n *NewJob) Sees(j *job.Job) bool { return n.Reach == nil || n.Reach(j.Queue) }

// Added is the answer to one NewJob.
type Added struct {
	Job       *job.Job // as written, or as it is now for a duplicate; nil when a duplicate's job is gone
	ID        job.ID
	Duplicate bool  // it was here, by its idempotency key, or another one has its unique key: nothing was written
	Err       error // of a job that is Apart: it was refused, nothing of it was written, and Duplicate is set
	Folded    bool  // a waiting job of its batch, which is told, took it in
}

// Settle is the end of one attempt as its holder tells it.
type Settle struct {
	ID         job.ID
	Token      job.Token // zero = without a token (core.md section 4)
	Outcome    job.Outcome
	Failure    job.Failure // Retried, Died: Type, Message, Backtrace, Status, ExitCode, Timeout
	Started    job.Millis  // when the run began; 0 = not said
	RetryAt    job.Millis  // Retried: the worker's own time; 0 = none
	RetryIn    job.Millis  // Retried: the same as a span; 0 = none
	RetryAfter job.Millis  // Retried, Died: what a target asked for: holds the group or queue, and the job itself at least so long
	NotBefore  job.Millis  // Retried, Died: the same as a date; 0 = none
	Delay      job.Millis  // Released: not before then
	ByTarget   bool        // Released: the target gave it back; without Delay the rules say how long it waits
	Hold       job.Millis  // how long the worker asks to hold the group, or the queue of a job without one; 0 = not
	Place      job.Place   // Retried, Released: unset = by policy
	Rest       []byte      // of the payload: what is left to be done, which the job keeps; nil = all of it
	Pieces     []Piece     // other parts of the payload, which go on as jobs of their own
	Result     []byte      // OK: what the run made, kept with the done job as a payload of its own; nil = nothing

	match rule.Match // what Settle found out about the message
}

// Piece is a part of the payload of a job that is settled: a job of its own from then on,
// with the counters of the whole, settled by this outcome.
type Piece struct {
	Payload    []byte
	Outcome    job.Outcome
	Failure    job.Failure // Retried, Died
	RetryAfter job.Millis  // as of a Settle
}

// Verdict is the answer to one Settle, Extend or operator's call.
type Verdict struct {
	State job.State // after the call; Done or Dead also when the job left at once
	Job   *job.Job  // as it is now, or as it left
	Err   error     // a *job.Error; nothing was changed

	// Recalled: of a settle in a turn, other members of it that went back untouched,
	// in their order, because this one failed or they must not be delivered any more.
	Recalled []job.ID
	Cut      bool // of a settle in a strict turn: the turn ended with it
	inTurn   bool // what was settled had a part in a turn
}

// Delivery is a job given to a holder.
type Delivery struct {
	Job     *job.Job
	Lease   job.Lease
	Payload []byte
	Held    bool // the holder had it already before it reconnected

	// StopAfter is how long after its start the holder ends the run by itself, as
	// one that took too long: of a task; 0 = it does not.
	StopAfter job.Millis

	// Voided: this is no job but the news that the lease is over, by Ending. The
	// holder stops what it runs under it and settles nothing. Only named streams
	// are told; who leases by itself hears it when it extends.
	Voided bool
	Ending job.Ending
}

// StreamOptions describe a holder that receives a stream of jobs.
type StreamOptions struct {
	// Name makes the stream a named holder (core.md section 4): its leases
	// survive a disconnect for the re-attach window and are settled by token.
	// "" = anonymous: leases end with the connection.
	Name       string
	Queues     []string // none = all
	Prefetch   int      // leases held at most; 0 = no limit of its own
	Properties map[string]string
}

// LeaseDefault is the life of a unary lease whose caller names none.
const LeaseDefault = 30 * job.Second

// LeaseOptions describe one unary take.
type LeaseOptions struct {
	Worker     string // "" = a name is made up
	Queues     []string
	Max        int        // jobs at most
	For        job.Millis // life of each lease without Extend; 0 = LeaseDefault
	Properties map[string]string
}

// Extension is a heartbeat for one unary lease.
type Extension struct {
	ID      job.ID
	Token   job.Token
	For     job.Millis // new life from now; 0 = unchanged
	Started bool       // the run has begun

	// Progress is what the worker tells of its run, At left out; nil = nothing. A
	// checkpoint is on disk when Extend returns.
	Progress *job.RunProgress
}

// Options configure an engine.
type Options struct {
	Server        rule.Server
	Queues        []*job.Queue // settings from the configuration
	Changes       QueueChanges // names for the audit log what was changed; nil = it is not told
	Idempotency   job.Millis   // idempotency_window; 1 h
	Reattach      job.Millis   // reattach_window: how long a named holder may be away; 30 s
	QueuesMax     int          // max_queues; 10,000
	InFlightMax   int          // leases of all holders together; 0 = no limit
	Reserve       Reserve
	BatchOpsMax   int // commands in one transaction; 0 = 4096
	BatchBytesMax int // payload bytes in one transaction; 0 = 4 MiB

	// Lead may give jobs in a delivery, which is its own, another trace context before
	// they are handed over; nil = they are given as they are.
	Lead func([]Delivery)

	Parts []Part // in the order in which they are asked
}

// Reserve is the free disk space below which enqueues are refused
// (disk_reserve): the larger of Bytes and Share of the whole.
type Reserve struct {
	Bytes int64
	Share float64
}

// Stats are counters since start, for health pages and tests.
type Stats struct {
	Put, Taken, Done, Failed, Died, Released, Lapsed uint64
	Duplicates, LateOK, OutOfOrder, Suppressed       uint64
	Expired, Purged, Evicted                         uint64 // I9: data that left by policy
	ClockSteps                                       uint64
	Batches                                          uint64
	Faults                                           uint64 // panics, and refusals where none can be
}

// Figures are what the engine knows of itself after a transaction.
type Figures struct {
	Stats   Stats
	Holders [3]int // connected streams by job.HolderKind; of unary calls those that wait
	Leases  int    // live ones of all holders
	Full    bool   // as many run as Options.InFlightMax allows
}

// figures are those of the latest transaction, for other goroutines.
type figures struct {
	mu  sync.Mutex // guards now
	now Figures
}

func (f *figures) note(c *committer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = Figures{c.stats, c.streams, c.leases, c.opts.InFlightMax > 0 && c.leases >= c.opts.InFlightMax}
}

// Figures are those of the latest transaction.
func (e *Engine) Figures() Figures {
	e.figures.mu.Lock()
	defer e.figures.mu.Unlock()
	return e.figures.now
}

// Filter selects jobs; Depth is how much of a queue there is. They are the
// store's words under the engine's name, so that doors need not know a store.
type (
	Filter = store.Filter
	Depth  = store.Depth
)

// Status is what a job is, and Condition what a group is that is given out in
// turns, as Depth counts them: the words of the rules under the engine's name.
type (
	Status    = rule.Status
	Condition = rule.Condition
)
