package wire

import "encoding/json"

// DeadFilter chooses dead jobs. Inside a field any of the values will do, all
// fields together must fit; a field that is not there fits everything.
type DeadFilter struct {
	IDs          []string `json:"id,omitzero"`
	Queues       []string `json:"queue,omitzero"`
	Types        []string `json:"type,omitzero"`
	Groups       []string `json:"group,omitzero"`       // group keys inside the queues
	Reasons      []string `json:"reason,omitzero"`      // why they are dead
	Fingerprints []string `json:"fingerprint,omitzero"` // groups of the dead set
	ErrorTypes   []string `json:"error_type,omitzero"`  // of the latest failure, whole
	Text         string   `json:"text,omitzero"`        // in the message of the latest failure, letter case ignored
	DiedFrom     int64    `json:"died_from,omitzero"`
	DiedBefore   int64    `json:"died_before,omitzero"`
	Attempts     string   `json:"attempts,omitzero"` // 3, 1..5, 2.. or ..4
	Filter       string   `json:"filter,omitzero"`   // jq over the payload: any truthy output
}

// The budgets of a replay.
const (
	BudgetFresh     = "fresh"     // counters and age start again
	BudgetRemaining = "remaining" // what was used up stays used up
)

// MaxReplaysDefault is the guard of a replay that names none.
const MaxReplaysDefault = 10

// DeadReplay is the body of POST /dead/replay. An empty filter needs All.
type DeadReplay struct {
	Filter          DeadFilter `json:"filter"`
	All             bool       `json:"all,omitzero"`
	DryRun          bool       `json:"dry_run,omitzero"` // count, and show some
	Rate            float64    `json:"rate,omitzero"`    // jobs a second; 0 = as fast as it goes
	RampMS          int64      `json:"ramp_ms,omitzero"` // the rate grows from 0 for so long
	Budget          string     `json:"budget,omitzero"`
	Place           string     `json:"place,omitzero"`
	AllowOutOfOrder bool       `json:"allow_out_of_order,omitzero"` // also where a strict group went on without them
	MaxReplays      *uint32    `json:"max_replays,omitzero"`        // who was replayed so often stays dead; 0 = no guard
}

// DeadDelete is the body of POST /dead/delete. An empty filter needs All.
type DeadDelete struct {
	Filter DeadFilter `json:"filter"`
	All    bool       `json:"all,omitzero"`
	DryRun bool       `json:"dry_run,omitzero"`
	Rate   float64    `json:"rate,omitzero"`
	RampMS int64      `json:"ramp_ms,omitzero"`
}

// DryRun answers a replay or a delete that only asks.
type DryRun struct {
	DryRun bool      `json:"dry_run"` // always true
	Count  int64     `json:"count"`
	Sample []DeadJob `json:"sample"`
}

// The stages of a run.
const (
	RunRunning   = "running"
	RunDone      = "done"
	RunCancelled = "cancelled"
)

// Replay is a run through the dead set: it replays, or deletes, every job that
// its filter chooses and that was dead when it began, once.
type Replay struct {
	ID              string     `json:"id"`
	Action          string     `json:"action"` // replay or delete
	Status          string     `json:"status"`
	Filter          DeadFilter `json:"filter"`
	Total           int64      `json:"total"`   // chosen when it began
	Done            int64      `json:"done"`    // replayed, or deleted
	Refused         int64      `json:"refused"` // a strict group went on without them
	Guarded         int64      `json:"guarded"` // replayed too often already
	Skipped         int64      `json:"skipped"` // not dead any more when their turn came; known at the end
	Rate            float64    `json:"rate,omitzero"`
	RampMS          int64      `json:"ramp_ms,omitzero"`
	Budget          string     `json:"budget,omitzero"`
	Place           string     `json:"place,omitzero"`
	AllowOutOfOrder bool       `json:"allow_out_of_order,omitzero"`
	MaxReplays      uint32     `json:"max_replays,omitzero"`
	CreatedAt       int64      `json:"created_at"`
	FinishedAt      int64      `json:"finished_at,omitzero"`
	By              string     `json:"by,omitzero"`
	From            string     `json:"from,omitzero"`
}

// Replays answers GET /replays, newest first.
type Replays struct {
	Replays []Replay `json:"replays"`
	Next    *string  `json:"next"`
}

// DeadOne is the body of POST /dead/{id}/replay.
type DeadOne struct {
	Budget          string          `json:"budget,omitzero"`
	Place           string          `json:"place,omitzero"`
	AllowOutOfOrder bool            `json:"allow_out_of_order,omitzero"`
	MaxReplays      uint32          `json:"max_replays,omitzero"` // 0 = no guard
	Payload         json.RawMessage `json:"payload,omitzero"`     // a new one
}

// DeadJob is a dead job with its latest error.
type DeadJob struct {
	Job
	Fingerprint string    `json:"fingerprint"`
	DiedAt      int64     `json:"died_at"`
	Replays     uint32    `json:"replays,omitzero"` // times it was brought back before
	Error       *JobError `json:"error,omitzero"`   // not there if it never failed
}

// DeadPage answers GET /dead.
type DeadPage struct {
	Jobs  []DeadJob `json:"jobs"`
	Pages Pages     `json:"pages"`
}

// DeadGroup is the dead jobs of one fingerprint.
type DeadGroup struct {
	Fingerprint string           `json:"fingerprint"`
	Count       int64            `json:"count"`
	FirstSeen   int64            `json:"first_seen"`
	LastSeen    int64            `json:"last_seen"`
	Queues      map[string]int64 `json:"queues"`
	ErrorType   string           `json:"error_type,omitzero"` // of the sample, as the rest
	Message     string           `json:"message,omitzero"`
	Reason      string           `json:"reason,omitzero"`
	Sample      string           `json:"sample,omitzero"` // id of the latest
	Trend       []int64          `json:"trend"`           // deaths in each of the last hours, the latest last
	Held        int              `json:"held,omitzero"`   // open jobs that a pause holds; counted up to 1000
	Muted       bool             `json:"muted,omitzero"`
	Paused      bool             `json:"paused,omitzero"`
	Note        string           `json:"note,omitzero"`
}

// DeadGroups answers GET /dead/groups.
type DeadGroups struct {
	Groups []DeadGroup `json:"groups"`
	Total  int         `json:"total"` // groups there are, on all pages
	Next   *string     `json:"next"`
}

// Mark is the body of PATCH /dead/groups/{fingerprint}, where what is named
// changes, and with a fingerprint its answer.
type Mark struct {
	Fingerprint string  `json:"fingerprint,omitzero"`
	Muted       *bool   `json:"muted,omitzero"`
	Paused      *bool   `json:"paused,omitzero"`
	Note        *string `json:"note,omitzero"`
}

// AuditEntry is one thing an operator did.
type AuditEntry struct {
	ID      string `json:"id"`
	At      int64  `json:"at"`
	By      string `json:"by,omitzero"` // as the request named itself
	From    string `json:"from,omitzero"`
	Action  string `json:"action"`
	Subject string `json:"subject"` // id, fingerprint, "queue NAME", "group KEY of queue NAME"
	Count   int64  `json:"count"`   // of jobs

	Changes []AuditChange `json:"changes,omitzero"` // of settings
}

// AuditChange is a setting that was changed. One that is not set is null, and
// what is longer than 1 KiB is a string that begins like it.
type AuditChange struct {
	Field string          `json:"field"`
	From  json.RawMessage `json:"from"`
	To    json.RawMessage `json:"to"`
}

// Audit answers GET /audit, newest first.
type Audit struct {
	Entries []AuditEntry `json:"entries"`
	Next    *string      `json:"next"`
}

// HeaderActor is the request header in which a person says who they are, for
// the audit log.
const HeaderActor = "Reprise-Actor"
