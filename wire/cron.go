package wire

// Labels that the server puts on a job of a cron entry.
const (
	LabelCronGroup = "cron_group"
	LabelCronEntry = "cron_entry"
	LabelCronTick  = "cron_tick" // milliseconds since the epoch; not there when it was run by hand
)

// What becomes of ticks that came while the server was down, stood still, or
// had the job refused.
const (
	MissedOnce = "once" // one job for all of them; the default
	MissedSkip = "skip" // none
	MissedAll  = "all"  // one job each, for the latest 1000
)

// CronGroup is a named set of cron entries: the answer to GET /crons/{group},
// and, without what only the server knows, the body of PUT.
type CronGroup struct {
	Name      string      `json:"name,omitzero"`
	Paused    *bool       `json:"paused,omitzero"` // left out in a PUT: as it is
	PausedAt  int64       `json:"paused_at,omitzero"`
	ResumedAt int64       `json:"resumed_at,omitzero"`
	Timezone  string      `json:"timezone,omitzero"` // of entries that name none; "" = the server's
	Missed    string      `json:"missed,omitzero"`   // of entries that name none
	Entries   []CronEntry `json:"entries"`           // all there are to be
}

// CronEntry enqueues a job at each tick of an expression.
type CronEntry struct {
	Name       string  `json:"name,omitzero"`
	Expression string  `json:"expression"`
	Timezone   string  `json:"timezone,omitzero"` // "" = the group's
	Missed     string  `json:"missed,omitzero"`   // "" = the group's
	Paused     *bool   `json:"paused,omitzero"`   // left out in a PUT: as it is
	PausedAt   int64   `json:"paused_at,omitzero"`
	ResumedAt  int64   `json:"resumed_at,omitzero"`
	Job        Enqueue `json:"job"` // without ready_at, expires_at and idempotency_key

	NextEnqueueAt int64  `json:"next_enqueue_at,omitzero"` // the next tick; none comes if it is not there
	LastEnqueueAt int64  `json:"last_enqueue_at,omitzero"` // the latest tick that has a job
	LastJobID     string `json:"last_job_id,omitzero"`     // that job
	Skipped       int64  `json:"skipped,omitzero"`         // ticks that were missed and not made up for
	LastError     string `json:"last_error,omitzero"`      // why the latest job was refused
	LastErrorAt   int64  `json:"last_error_at,omitzero"`
	Failures      uint32 `json:"failures,omitzero"` // refusals in a row
	RetryAt       int64  `json:"retry_at,omitzero"` // when it is tried again
}

// Crons answers GET /crons.
type Crons struct {
	Crons []string `json:"crons"`
}

// CronsDeleted answers DELETE /crons: the number of groups.
type CronsDeleted struct {
	Deleted int `json:"deleted"`
}

// CronPatch is the body of PATCH /crons/{group}: what is left out stays.
type CronPatch struct {
	Paused   *bool   `json:"paused,omitempty"`
	Timezone *string `json:"timezone,omitempty"` // "" = the server's
	Missed   string  `json:"missed,omitempty"`
}

// CronPause is the body of PATCH of a cron entry.
type CronPause struct {
	Paused bool `json:"paused"`
}

// CronPreview answers GET /crons/preview.
type CronPreview struct {
	Expression string  `json:"expression"`
	Timezone   string  `json:"timezone,omitzero"`
	Ticks      []int64 `json:"ticks"`
}
