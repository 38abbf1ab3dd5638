package wire

import "encoding/json"

// The states of a session. The last three are its end.
const (
	SessionOpen       = "open"          // takes tasks in
	SessionClosed     = "closed_submit" // takes no more; those it has go on
	SessionCancelling = "cancelling"
	SessionDone       = "done"             // every task is done
	SessionErrors     = "done_with_errors" // every task is finished, and not all are done
	SessionCancelled  = "cancelled"
)

// The states of a task.
const (
	TaskWaiting   = "waiting"   // for an engine, for its time, or for another task
	TaskActive    = "active"    // at least one engine has it
	TaskDone      = "completed" // it has a result
	TaskFailed    = "failed"    // for good
	TaskCancelled = "cancelled"
)

// OpenSession is the body of POST /sessions. What it leaves out comes from the
// service type, the broker or the profile.
type OpenSession struct {
	ID      string                     `json:"id,omitzero"`      // "" = made up; opening it again under the same id finds it
	Service string                     `json:"service,omitzero"` // a service type of the configuration
	Options map[string]json.RawMessage `json:"options,omitzero"` // by their names, see docs/grid.md
}

// ChangeSession is the body of PATCH /sessions/{id}: options that may change
// while a session runs.
type ChangeSession struct {
	Options map[string]json.RawMessage `json:"options,omitzero"`
	Suspend *bool                      `json:"suspend,omitzero"` // true: what runs goes on, nothing begins
}

// Session is a session as the server tells it.
type Session struct {
	ID        string `json:"id"`
	Service   string `json:"service,omitzero"`
	Profile   string `json:"profile"`
	State     string `json:"state"`
	Suspended bool   `json:"suspended,omitzero"`
	CreatedAt int64  `json:"created_at"`
	ClosedAt  int64  `json:"closed_at,omitzero"` // no more tasks since then
	EndedAt   int64  `json:"ended_at,omitzero"`
	Why       string `json:"why,omitzero"` // it was cancelled

	Tasks     TaskCounts        `json:"tasks"`
	Share     int               `json:"share"`            // slots that it should have now
	Stalled   bool              `json:"stalled,omitzero"` // has tasks, and no engine may run any of them
	Collected int64             `json:"collected"`        // results up to this cursor are acknowledged
	Options   map[string]Option `json:"options,omitzero"`

	Excluded []ExcludedEngine `json:"excluded,omitzero"` // engines on which its tasks failed too often; at most 1,000

	ClientUntil int64 `json:"client_until,omitzero"` // it is cancelled then if nothing is heard of its client (client_timeout)
}

// ExcludedEngine is an engine that gets nothing of a session, because tasks failed
// there.
type ExcludedEngine struct {
	Engine   string `json:"engine"`
	Failures int    `json:"failures"`
	LastAt   int64  `json:"last_at"`         // the latest of them
	Until    int64  `json:"until,omitzero"`  // then it is tried again; 0 = not before somebody clears it
	Spared   bool   `json:"spared,omitzero"` // it goes on: as many as may be are excluded (exclusion_share)
}

// Ended reports whether the session is over.
func (s *Session) Ended() bool {
	return s.State == SessionDone || s.State == SessionErrors || s.State == SessionCancelled
}

// TaskCounts is how many tasks of a session there are, by what became of them.
type TaskCounts struct {
	Submitted int64 `json:"submitted"`
	Waiting   int64 `json:"waiting"`
	Active    int64 `json:"active"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
}

// Open is the number of tasks that are not finished.
func (c *TaskCounts) Open() int64 { return c.Waiting + c.Active }

// Option is the value of an option, and who chose it: the session, its service
// type, the broker or the profile.
type Option struct {
	Value json.RawMessage `json:"value"`
	From  string          `json:"from"`
}

// Sessions answers GET /sessions.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitzero"` // after= of the next page
}

// Task is one entry of POST /sessions/{id}/tasks.
type Task struct {
	// Seq is the client's number of the task. Sending the same one again is
	// harmless: the first answer comes again, and other content is refused.
	Seq     int64           `json:"seq"`
	Payload json.RawMessage `json:"payload"`

	Type     string   `json:"type,omitzero"`     // for engines that do several things
	Place    string   `json:"place,omitzero"`    // front: before all that wait
	Requires []string `json:"requires,omitzero"` // conditions on the engine, such as "cpuMHz > 350"

	// Affinity is a tag: of the tasks of the session with one tag the next one is
	// kept for engines that ran the tag, for the affinity_wait of the session.
	Affinity string `json:"affinity,omitzero"`

	// Needs are numbers of tasks of the session that must be over before. OnDepFail
	// says what becomes of this one if one of them failed: fail, the default, or run.
	Needs     []int64 `json:"needs,omitzero"`
	OnDepFail string  `json:"on_dep_fail,omitzero"`

	Budgets []Binding `json:"budgets,omitzero"` // what its attempts use together with others; the budgets must be there
}

// Tasks is the body of POST /sessions/{id}/tasks.
type Tasks struct {
	Tasks []Task `json:"tasks"`
}

// TasksAdded answers it, in the order of the request.
type TasksAdded struct {
	Added      int         `json:"added"`
	Duplicates int         `json:"duplicates"` // were here
	Tasks      []TaskAdded `json:"tasks"`
}

// TaskAdded tells the id of a task.
type TaskAdded struct {
	Seq       int64  `json:"seq"`
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate,omitzero"`
}

// TaskState answers GET /sessions/{id}/tasks/{task}.
type TaskState struct {
	ID       string          `json:"id"`
	Seq      int64           `json:"seq"`
	Type     string          `json:"type"`
	State    string          `json:"state"`
	Requires []string        `json:"requires,omitzero"`
	Affinity string          `json:"affinity,omitzero"`
	Payload  json.RawMessage `json:"payload,omitzero"`
	Result   json.RawMessage `json:"result,omitzero"`

	Retries     uint32     `json:"retries"`                    // charged failures
	Losses      uint32     `json:"losses,omitzero"`            // engines lost in a row
	Evictions   uint32     `json:"evictions,omitzero"`         // times it was given back
	Reschedules uint32     `json:"reschedules,omitzero"`       // copies asked for
	Attempts    []Attempt  `json:"attempts,omitzero"`          // those that are over in the order of their ends, then those that run
	LeftOut     uint32     `json:"attempts_left_out,omitzero"` // of many attempts the first 8 and the last 24 that are over are kept
	Errors      []JobError `json:"errors,omitzero"`            // of the latest ones that failed, newest first
	CreatedAt   int64      `json:"created_at"`
	FinishedAt  int64      `json:"finished_at,omitzero"`
}

// Attempt is one assignment of a task to an engine.
type Attempt struct {
	Number    uint32 `json:"number"` // in the order in which they were given out, from 1
	Engine    string `json:"engine"`
	Host      string `json:"host,omitzero"`
	Copy      bool   `json:"copy,omitzero"`      // it ran beside another one
	Committed bool   `json:"committed,omitzero"` // it was told to commit, see TryCommit
	SinceAt   int64  `json:"since"`
	StartedAt int64  `json:"started,omitzero"`
	EndedAt   int64  `json:"ended,omitzero"`   // 0 = it runs
	Reason    string `json:"reason,omitzero"`  // why it ended, one of the Ended words
	Charged   string `json:"charged,omitzero"` // what it was counted as: retry, loss or eviction
	Error     uint32 `json:"error,omitzero"`   // number of its error (JobError.Attempt)
}

// Why attempts end.
const (
	EndedOK          = "ok"          // its result is the one of the task
	EndedLate        = "late"        // so it is, though its engine had been given up for lost
	EndedError       = "error"       // its engine told of a failure
	EndedLost        = "lost"        // its engine was not heard of any more
	EndedTimeout     = "timeout"     // it took too long
	EndedSuperseded  = "superseded"  // another one was first, or commits
	EndedReleased    = "released"    // its engine gave it back
	EndedEvicted     = "evicted"     // its engine was logged off
	EndedPreempted   = "preempted"   // an urgent session needed the slot
	EndedWithdrawn   = "withdrawn"   // a copy that cost more than copies may
	EndedUndelivered = "undelivered" // its engine did not begin it in time, or does not know of it
	EndedRestarted   = "restarted"   // the server was away, and its engine did not come back with it
	EndedCancelled   = "cancelled"   // with its task or its session
)

// TryCommit is the body of POST /sessions/{id}/tasks/{task}/try_commit.
type TryCommit struct {
	Lease string `json:"lease"` // of the attempt that asks
}

// Committed answers it.
type Committed struct {
	Committed bool   `json:"committed"` // the effects of this attempt count, those of no other
	State     string `json:"state"`     // of the task
}

// TaskResult is what became of a task, as GET /sessions/{id}/results tells it.
type TaskResult struct {
	Cursor int64           `json:"cursor"`
	ID     string          `json:"id,omitzero"`
	Seq    int64           `json:"seq,omitzero"`
	State  string          `json:"state,omitzero"` // completed, failed or cancelled
	Result json.RawMessage `json:"result,omitzero"`
	Error  *JobError       `json:"error,omitzero"` // of one that failed

	Retries     uint32 `json:"retries,omitzero"`
	Losses      uint32 `json:"losses,omitzero"`
	Reschedules uint32 `json:"reschedules,omitzero"`
	Evictions   uint32 `json:"evictions,omitzero"`

	Attempts []Attempt `json:"attempts,omitzero"` // of one that failed
}

// TaskResults answers GET /sessions/{id}/results as one page.
type TaskResults struct {
	Results []TaskResult `json:"results"`
	Next    int64        `json:"next"`           // after= of the next page
	Ended   bool         `json:"ended,omitzero"` // the session is over, and nothing follows
}

// Collected is the body of POST /sessions/{id}/collected: results up to a cursor
// are worked off, and need not be kept.
type Collected struct {
	Cursor int64 `json:"cursor"`
}

// Login is the body of POST /engines.
type Login struct {
	ID         string            `json:"id,omitzero"`   // "" = made up; an engine that comes back under its id has its tasks again
	Host       string            `json:"host,omitzero"` // copies of a task run on different ones; "" = the engine is a host of its own
	Slots      int               `json:"slots"`         // tasks at once
	Properties map[string]string `json:"properties,omitzero"`
	Running    []Running         `json:"running,omitzero"` // what it runs yet, of an earlier login
}

// Epoch is the body of POST /engines/{id}/drain and logoff, which may be left
// out: then whatever login the engine has is meant.
type Epoch struct {
	Epoch int64 `json:"epoch,omitzero"`
}

// Running is a task that an engine runs.
type Running struct {
	ID    string `json:"id"`
	Lease string `json:"lease"`
}

// LoggedIn answers POST /engines.
type LoggedIn struct {
	ID          string `json:"id"`
	Epoch       int64  `json:"epoch"` // of this login; higher than every earlier one
	HeartbeatMS int64  `json:"heartbeat_ms"`
	LostAfterMS int64  `json:"lost_after_ms"`

	Stop []Running `json:"stop,omitzero"` // of what it runs yet: this is over
}

// Heartbeat is the body of POST /engines/{id}/heartbeat, which is answered with
// the engine.
type Heartbeat struct {
	Epoch   int64    `json:"epoch"`
	Stopped []string `json:"stopped,omitempty"` // tokens of attempts that it was told to stop, and has

	// Running is all that the engine has, until what it told of that is answered:
	// of an answer that was lost it does not know, and that is offered again. Empty
	// = it has nothing; nil = it does not say.
	Running []Running `json:"running,omitzero"`
}

// The states of an engine.
const (
	EngineIdle     = "idle"
	EngineBusy     = "busy"
	EngineDraining = "draining" // gets nothing more
	EngineSuspect  = "suspect"  // has no connection
	EngineStopping = "stopping" // gets nothing until it says that it stopped what took too long
	EngineLost     = "lost"
	EngineBarred   = "barred" // fails everything in no time; it gets nothing for a while
)

// Engine is an engine as GET /engines tells it.
type Engine struct {
	ID         string            `json:"id"`
	Host       string            `json:"host"`
	Slots      int               `json:"slots"`
	Running    int               `json:"running"`
	State      string            `json:"state"`
	Epoch      int64             `json:"epoch"`
	LoggedInAt int64             `json:"logged_in_at"`
	HeardAt    int64             `json:"heard_at"`
	Properties map[string]string `json:"properties,omitzero"`
	Stop       []Running         `json:"stop,omitzero"` // of what a heartbeat named: this is over
}

// Engines answers GET /engines.
type Engines struct {
	Engines []Engine `json:"engines"`
	Next    string   `json:"next,omitzero"` // after= of the next page
}

// LabelTaskSeq is the label that holds the client's number of a task.
const LabelTaskSeq = "task_seq"
