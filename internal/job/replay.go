package job

// Selection chooses dead jobs (retry.md section 3): OR inside a field, AND
// between fields, empty = any.
type Selection struct {
	IDs           []ID
	Queues        []string
	Types         []string
	Groups        []string
	Reasons       []Reason
	Prints        []Fingerprint
	ErrorTypes    []string // of the latest failure, whole
	Text          string   // in the message of the latest failure, letter case ignored
	DiedFrom      Millis
	DiedBefore    Millis // 0 = open
	AttemptsFrom  uint32
	AttemptsBelow uint32 // 0 = open
	// Filter is what chose among payloads, for the record: nothing evaluates it
	// where a selection is applied. A run that has one has the ids it chose.
	Filter string `json:",omitzero"`
}

// Reads reports whether the choice depends on the latest failure record.
func (s *Selection) Reads() bool { return len(s.ErrorTypes) > 0 || s.Text != "" }

// Action is what is done to each job of a run through the dead set.
type Action uint8

// The actions.
const (
	ActionReplay Action = iota
	ActionDelete
)

func (a Action) String() string { return [...]string{"replay", "delete"}[a] }

// Progress is how far such a run has come.
type Progress uint8

// The stages.
const (
	Running Progress = iota
	Finished
	Cancelled
)

func (p Progress) String() string { return [...]string{"running", "done", "cancelled"}[p] }

// Actor is who asked for something: the name that was given, and where the
// request came from. A name is a claim until there are tokens.
type Actor struct {
	Name  string
	From  string
	Admin bool `json:",omitempty"` // by a token with the scope admin
}

// Replay is a run through the dead set that replays, or deletes, each job it
// selects once. It is a job of the server's own: the clock moves it on, in
// bounded steps whose progress is in the same transaction as what they did.
// So it goes on after a restart where it was, and no job is touched twice.
type Replay struct {
	ID     ID
	Action Action
	Select Selection
	By     Actor

	Rate       float64 // jobs a second; 0 = as fast as it goes
	Ramp       Millis  // the rate grows evenly from 0 for so long
	Remaining  bool    // budget: what the job had used up stays used up
	Place      Place
	Allow      bool   // allow_out_of_order
	MaxReplays uint32 // who was replayed so often stays dead; 0 = no guard

	Created  Millis // who dies later is not meant
	Finished Millis
	Progress Progress
	Cursor   ID    // the last job looked at
	Total    int64 // selected when it was created
	Done     int64 // replayed, or deleted
	Refused  int64 // by the order of their group
	Guarded  int64 // by MaxReplays
	Conflict int64 // another job has their unique key
	Gone     int64 // not dead any more when their turn came; known at the end

	Paced Millis // time that counts for the rate
	At    Millis // latest step, on the steady clock like Next
	Next  Millis // of a finished one: when it is forgotten
}

// Table implements Row.
func (r *Replay) Table() Table { return Replays }

// Key implements Row.
func (r *Replay) Key() string { return r.ID.String() }

// Due implements Row.
func (r *Replay) Due() Millis { return r.Next }

// Mark is what a person decided about a fingerprint. It stays when the group
// is empty.
type Mark struct {
	Print     Fingerprint
	Muted     bool   // known; left out of the list unless asked for
	Paused    bool   // jobs that fail of it are held instead of retried
	Note      string // for people
	By        Actor  // of the latest change
	At        Millis
	Releasing Millis // not paused any more, and some are held yet: when to go on; 0 = none
}

// Table implements Row.
func (m *Mark) Table() Table { return Marks }

// Key implements Row.
func (m *Mark) Key() string { return m.Print.String() }

// Due implements Row.
func (m *Mark) Due() Millis { return m.Releasing }

// Blank reports whether the mark has nothing worth a row.
func (m *Mark) Blank() bool { return !m.Muted && !m.Paused && m.Note == "" && m.Releasing == 0 }

// Audit is one entry of the audit log: who did what, when, to how many.
type Audit struct {
	ID      ID
	At      Millis
	By      Actor
	Action  string
	Subject string   // of what: an id, a fingerprint, a selection in words
	Count   int64    // of jobs
	Changes []Change `json:",omitempty"` // of settings
	Expires Millis
}

// The actions about tokens, whose entries nobody but an admin pushes out.
const (
	AuditToken  = "token"
	AuditRevoke = "revoke"
)

// Change is a setting that was changed. From and To are JSON.
type Change struct{ Field, From, To string }

// Table implements Row.
func (a *Audit) Table() Table { return Audits }

// Key implements Row: later entries have higher ones.
func (a *Audit) Key() string { return a.ID.String() }

// Due implements Row.
func (a *Audit) Due() Millis { return a.Expires }
