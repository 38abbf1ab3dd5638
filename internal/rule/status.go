package rule

import "github.com/reprisehq/reprise/internal/job"

// Status says what becomes of a job: every job has exactly one.
type Status uint8

// The statuses.
const (
	StatusWaiting  Status = iota // open, and no failure was charged since its creation or revive
	StatusRetrying               // open, after a charged failure
	StatusPaused                 // open, and out of line under a label
	StatusRunning                // with a holder
	StatusBlocking               // dead, and holds its group
	StatusDead
	StatusDone
	StatusCancelled
	Statuses // how many there are
)

func (s Status) String() string {
	return [...]string{"waiting", "retrying", "paused", "running", "blocking", "dead", "done", "cancelled"}[s]
}

// StatusOf is the status of a job.
func StatusOf(j *job.Job) Status {
	switch {
	case j.State == job.Leased:
		return StatusRunning
	case j.State == job.Done:
		return StatusDone
	case j.BlocksGroup:
		return StatusBlocking
	case j.Reason == job.ReasonCancelled:
		return StatusCancelled
	case j.State == job.Dead:
		return StatusDead
	case j.Park != "":
		return StatusPaused
	case j.Attempts > 0:
		return StatusRetrying
	}
	return StatusWaiting
}

// Condition says what a group does that is given out in turns, or what keeps it
// from it.
type Condition uint8

// The conditions.
const (
	GroupReady      Condition = iota // stands in line for its turn
	GroupRunning                     // has its turn
	GroupBackingOff                  // its head is not due
	GroupPaused                      // by an operator, itself or its head
	GroupBlocked                     // by its dead head
	GroupAside                       // out of line with its dead head
	GroupHeld                        // for a time: by a hold, a breaker or a rate
	Conditions                       // how many there are
)

func (c Condition) String() string {
	return [...]string{"ready", "running", "backing_off", "paused", "blocked", "parked", "held"}[c]
}

// ConditionOf is the condition of a group that has members; head is the state of
// the first one.
func ConditionOf(g Group, head job.State) Condition {
	switch {
	case g.Live > 0:
		return GroupRunning
	case g.Gate.Park != "":
		return GroupAside
	case head == job.Dead:
		return GroupBlocked
	case g.Gate.Paused:
		return GroupPaused
	case head == job.Scheduled:
		return GroupBackingOff
	case Stands(g):
		return GroupReady
	case g.Gate.Hold > 0, Throttled(g.Throttle):
		return GroupHeld
	}
	return GroupPaused // its head is due, and wants no holder
}

// PausePark is the label of jobs that an operator took out of line.
const PausePark = "pause"

// Pause takes a job out of line until Resume; a running one once it is back. Its
// due time stays.
func Pause(j *job.Job) { j.Park = PausePark }

// Resume brings a paused job back. Of a fingerprint that is paused it stays out of
// line under that label.
func Resume(j *job.Job, paused func(job.Fingerprint) bool) {
	if j.Park != PausePark {
		return
	}
	if j.Park = ""; j.Print != 0 && paused != nil && paused(j.Print) {
		j.Park = PrintPark(j.Print)
	}
}
