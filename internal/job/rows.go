package job

// Row is a small named record beside the jobs: settings, gates, holders,
// receipts, reserved numbers. A row is immutable once handed to a store.
type Row interface {
	Table() Table
	Key() string // unique inside the table
	Due() Millis // when the clock must look at it; 0 = never
}

// Table names a kind of row.
type Table uint8

// The tables. Receipts live on disk only; the others are small and kept in memory.
const (
	Queues Table = iota
	Gates
	Holders
	Receipts
	Reserves
	Replays
	Marks
	Audits
	Throttles
	Credentials
	CronGroups
	CronEntries
	Budgets
	Locks
	DoorSettings
	Sessions
	Affinities
	Cursors
	Tables // how many there are
)

// Order is how the members of a group follow each other (core.md section 2).
type Order uint8

// The orders.
const (
	OrderNone   Order = iota // groups carry limits and holds only
	OrderStart               // members start in sequence
	OrderStrict              // one at a time; the head blocks its group
)

func (o Order) String() string { return [...]string{"none", "start", "strict"}[o] }

// OnDead is what a group does when its head dies.
type OnDead uint8

// The choices; DeadSkip is the default.
const (
	DeadSkip OnDead = iota
	DeadBlock
	DeadPark
)

func (o OnDead) String() string { return [...]string{"skip", "block", "park"}[o] }

// FrontOrder decides how jobs put at the front stand to each other.
type FrontOrder uint8

// The front orders; FrontBySeq is the default.
const (
	FrontBySeq FrontOrder = iota
	FrontLIFO
)

func (o FrontOrder) String() string { return [...]string{"by_seq", "lifo"}[o] }

// OnFull is what a full queue does with a newcomer.
type OnFull uint8

// The choices; FullReject is the default.
const (
	FullReject OnFull = iota
	FullDropOldest
)

func (o OnFull) String() string { return [...]string{"reject", "drop_oldest"}[o] }

// Queue is a named line of jobs with its settings. The zero value of every
// setting is its default.
type Queue struct {
	Name          string
	Order         Order
	Concurrency   int  // live leases per group; 0 = no limit, strict = 1
	Turns         bool // groups are given out in turns, see rule.Stands and internal/part/turn
	OnDead        OnDead
	FrontOrder    FrontOrder
	Paused        bool
	HoldUntil     Millis // the whole line is out until then; 0 = not held
	Retry         Retry
	LateOKNever   bool
	RequireToken  bool
	NonIdempotent bool  // a take is on disk before it is answered
	MaxJobs       int64 // open jobs; 0 = no limit
	MaxBytes      int64 // payload bytes of open jobs; 0 = no limit
	OnFull        OnFull
	RunTimeout    Millis // 0 = none
	StartTimeout  Millis // 0 = none
	GraceDelay    Millis // wait after a failure inside grace; 0 = the server's
	AgeCap        Millis // a curve lets a job wait no longer than until it is so old, or for the GraceDelay; 0 = as long as it says
	RetainDone    Millis // Unset = the server's
	RetainDead    Millis // Unset = the server's
	Protection    Protection
	Outlet        bool  `json:",omitempty"` // of the output of a pipeline: its jobs are chunks of records, taken by its name only
	Grid          *Grid `json:",omitempty"` // makes it a session; nil = it is none
}

// NewQueue returns a queue with default settings.
func NewQueue(name string) *Queue {
	return &Queue{Name: name, RetainDone: Unset, RetainDead: Unset}
}

// Table implements Row.
func (q *Queue) Table() Table { return Queues }

// Key implements Row.
func (q *Queue) Key() string { return q.Name }

// Due implements Row: the end of a hold.
func (q *Queue) Due() Millis { return q.HoldUntil }

// Gate is what stands in line for a group whose members may not all run.
// A gate without a row has all defaults.
type Gate struct {
	Queue   string
	Group   string
	Hold    Millis // out of line until then; 0 = not held
	Park    string // out of line under this label
	Paused  bool   // out of line until an operator resumes it
	Turn    int64  // latest turn granted; a fencing number
	LastSeq int64  // highest sort position delivered; a lower one is out of order
	Place   int64  // its place in the round of a fair queue; also of the ungrouped, group ""
	Served  int    // members that started in this round
}

// GateKey is the key of a gate row; queue names hold no NUL.
func GateKey(queue, group string) string { return queue + "\x00" + group }

// Table implements Row.
func (g *Gate) Table() Table { return Gates }

// Key implements Row.
func (g *Gate) Key() string { return GateKey(g.Queue, g.Group) }

// Due implements Row: the end of a hold.
func (g *Gate) Due() Millis { return g.Hold }

// Blank reports whether the gate has nothing worth a row.
func (g *Gate) Blank() bool {
	return g.Hold == 0 && g.Park == "" && !g.Paused && g.Turn == 0 && g.LastSeq == 0 && g.Place == 0 && g.Served == 0
}

// Holder is who runs work. Only named and unary holders have a row: an
// anonymous stream lives and dies with its connection.
type Holder struct {
	Name       string
	Kind       HolderKind
	Until      Millis // lapses then; 0 = connected now
	Properties map[string]string
	Engine     *GridEngine `json:"Machine,omitempty"` // of an engine; nil = it is none
}

// Table implements Row.
func (h *Holder) Table() Table { return Holders }

// Key implements Row.
func (h *Holder) Key() string { return h.Name }

// Due implements Row: the lapse of the holder.
func (h *Holder) Due() Millis { return h.Until }

// Receipt remembers that work with an idempotency key was taken in. It
// outlives the job (core.md section 7).
type Receipt struct {
	Hash    [16]byte // of door, queue and key
	Content [16]byte // of what was asked for
	Job     ID
	Expires Millis
}

// Table implements Row.
func (r *Receipt) Table() Table { return Receipts }

// Key implements Row.
func (r *Receipt) Key() string { return string(r.Hash[:]) }

// Due implements Row: the end of the idempotency window.
func (r *Receipt) Due() Millis { return r.Expires }

// Reserve is a number under a name. Of a sequence it is the first one that was
// not yet handed out in a block: a crash skips numbers, never repeats one
// (core.md section 4).
type Reserve struct {
	Name string
	Next int64
}

// Table implements Row.
func (r *Reserve) Table() Table { return Reserves }

// Key implements Row.
func (r *Reserve) Key() string { return r.Name }

// Due implements Row.
func (r *Reserve) Due() Millis { return 0 }
