package job

import (
	"errors"
	"math"
	"strings"

	"github.com/reprisehq/reprise/internal/spell"
)

// Grid makes a queue a session: tasks for engines (spec/grid.md). The zero value
// of a setting is its default, but for Weight, MaxCopies and MaxReschedules. What
// a session shares with every queue is the queue's own: max_retries is
// Retry.Limit, the place of a retry Retry.Place, its wait Retry.Curve,
// task_max_time RunTimeout, front_order FrontOrder. A Grid is never changed in
// place: copies of a queue share it.
type Grid struct {
	Profile        Profile // whose defaults it was opened with
	Weight         uint8   // of its share of the engines, 0 to 9; 0 suspends
	Suspended      bool    // nothing starts; what runs goes on
	Urgent         bool    // may take slots from others at once
	MaxEngines     int     // runs at once; 0 = no limit
	LossesCharged  bool    // a lost engine is a failed attempt, else it counts as a loss
	EvictedPlace   Place   // of a task that was given back without blame; unset = keep
	LostPlace      Place   // of a task whose engine was lost; unset = front
	CopyPlace      Place   // of a task of which one more copy is wanted; unset = keep
	MaxCopies      uint8   // runs of one task side by side, at least 1
	MaxReschedules uint32  // copies asked for in the life of one task
	OnTimeout      OnTimeout
	AffinityWait   Millis // a task with a tag waits so long for an engine that ran the tag; 0 = tags are not looked at
	PollPeriod     Millis // an overrun is seen at the next multiple of it; 0 = at once
	TimeoutSlack   Millis // an overrun that the engine is to end itself is ended so much later; see rule.StopAfter
	AnyHost        bool   // a copy may run on the host of another one, on an engine of its own
	Collection     Collection
	AutoCancel     AutoCancel
	Retain         Millis // how long a session is kept after its end; 0 = a day
	ClientTimeout  Millis // a session whose client is silent for so long is cancelled; 0 = never
	FenceWait      Millis // of a non-idempotent task whose run the server ended, before the next; 0 = none

	RetryElsewhere bool // a task that failed runs where it did not, if an engine there is free

	Redundancy *Redundancy // copies of tasks that take long; nil = none
	Exclusion  *Exclusion  // of engines on which tasks fail; nil = none
}

// Bounds of sessions.
const (
	GridWeightMax     = 9
	GridWeightDefault = 5
	GridRetain        = Day
)

// Profile is a set of defaults of sessions.
type Profile uint8

// The profiles.
const (
	ProfileSeed Profile = iota // as GridServer is documented
	ProfileModern
	profileEnd
)

var profileNames = [profileEnd]string{"seed", "modern"}

func (p Profile) String() string { return nameOf(profileNames[:], uint8(p)) }

// ParseProfile reads the name of a profile.
func ParseProfile(s string) (Profile, error) {
	return parseName[Profile]("profile", profileNames[:], s)
}

// OnTimeout is what becomes of a task that runs longer than it may.
type OnTimeout uint8

// The choices; TimeoutRetry is the default.
const (
	TimeoutRetry      OnTimeout = iota // its engine stops it, and it counts as failed
	TimeoutReschedule                  // it runs on, and one more copy is wanted
	onTimeoutEnd
)

var onTimeoutNames = [onTimeoutEnd]string{"retry", "reschedule"}

func (o OnTimeout) String() string { return nameOf(onTimeoutNames[:], uint8(o)) }

// Collection is how the results of a session are collected.
type Collection uint8

// The modes; CollectImmediately is the default.
const (
	CollectImmediately Collection = iota // as tasks finish; what was acknowledged is forgotten
	CollectAfterSubmit                   // the same, but not before the session is closed
	CollectLater                         // by anybody; kept until the session is deleted
	CollectNever                         // finished tasks leave at once
	collectionEnd
)

var collectionNames = [collectionEnd]string{"immediately", "after_submit", "later", "never"}

func (c Collection) String() string { return nameOf(collectionNames[:], uint8(c)) }

// AutoCancel is which failed task cancels its whole session.
type AutoCancel uint8

// The choices; AutoCancelNever is the zero value.
const (
	AutoCancelNever   AutoCancel = iota
	AutoCancelLibload            // one whose engine could not load what it needs: error type LoadError
	AutoCancelAlways             // any
	autoCancelEnd
)

var autoCancelNames = [autoCancelEnd]string{"never", "libload", "always"}

func (a AutoCancel) String() string { return nameOf(autoCancelNames[:], uint8(a)) }

// LoadError is the error type of an engine that could not load what a task needs.
const LoadError = "LoadError"

func parseName[T ~uint8](field string, names []string, s string) (T, error) {
	at, ok := indexOf(names, s)
	if !ok {
		return 0, &Error{Kind: Invalid, Field: field, Text: field + " must be one of " + strings.Join(names, ", ") + spell.Hint(s, names)}
	}
	return T(at), nil
}

// Check names everything that is wrong with the settings.
func (g *Grid) Check() error {
	var c checks
	c.whole("priority", int(g.Weight), 0, GridWeightMax)
	c.whole("max_engines", g.MaxEngines, 0, math.MaxInt32)
	c.whole("max_copies", int(g.MaxCopies), 1, math.MaxUint8)
	c.whole("max_reschedules", int(min(g.MaxReschedules, math.MaxInt32)), 0, 1_000_000)
	c.span("poll_period_ms", g.PollPeriod, 0)
	c.span("timeout_slack_ms", g.TimeoutSlack, 0)
	c.span("fence_wait_ms", g.FenceWait, 0)
	c.span("client_timeout_ms", g.ClientTimeout, 0)
	c.span("affinity_wait_ms", g.AffinityWait, 0)
	if g.Retain < 0 {
		c.refuse("retain_ms", "must not be negative")
	}
	problems := []error{c.err()}
	c.list = nil
	if g.Redundancy != nil {
		problems = append(problems, g.Redundancy.Check("redundancy"))
	}
	if g.Exclusion != nil {
		problems = append(problems, g.Exclusion.Check("exclusion"))
	}
	for _, w := range []struct {
		field string
		bad   bool
	}{
		{"profile", g.Profile >= profileEnd},
		{"on_timeout", g.OnTimeout >= onTimeoutEnd},
		{"collection", g.Collection >= collectionEnd},
		{"auto_cancel", g.AutoCancel >= autoCancelEnd},
		{"evicted_place", g.EvictedPlace > PlaceBack},
		{"lost_place", g.LostPlace > PlaceBack},
		{"copy_place", g.CopyPlace > PlaceBack},
	} {
		if w.bad {
			c.refuse(w.field, "is not one of its choices")
		}
	}
	return errors.Join(append(problems, c.err())...)
}

// Served reports whether engines may get tasks of the session.
func (g *Grid) Served() bool { return g.Weight > 0 && !g.Suspended }

// SessionState is where a session is in its life.
type SessionState uint8

// The states. A session ends once: the first three lead to the others, never back.
const (
	SessionOpen       SessionState = iota // takes tasks in
	SessionClosed                         // takes no more; those it has go on
	SessionCancelling                     // its tasks are being cancelled
	SessionDone                           // every task is done
	SessionErrors                         // every task is finished, and not all are done
	SessionCancelled
	sessionStates
)

var sessionNames = [sessionStates]string{"open", "closed_submit", "cancelling", "done", "done_with_errors", "cancelled"}

func (s SessionState) String() string { return nameOf(sessionNames[:], uint8(s)) }

// Ended reports whether the session is over.
func (s SessionState) Ended() bool { return s >= SessionDone }

// Valid reports whether it is one of the states.
func (s SessionState) Valid() bool { return s < sessionStates }

// Session is what is known of a session beside its settings, which are those of
// the queue of the same name.
type Session struct {
	Name    string
	State   SessionState
	By      Actor  // who opened it
	Info    []byte // what its door keeps with it, as given
	Created Millis
	Closed  Millis // no more tasks since then; 0 = takes them in
	Ended   Millis // 0 = is not over

	// Tasks by what became of them. What is in none of the last three is open.
	Submitted, Done, Failed, Cancelled int64

	Depends   bool   // tasks of it wait for others
	Tags      int    // of affinity; at most AffinityTagsMax
	Collected int64  // results up to this number were collected,
	Forgotten int64  // and up to this one forgotten
	Dropped   bool   // it is forgotten with all its tasks
	Why       string // of a cancellation
	Next      Millis // when the clock must look at it; 0 = not

	Strikes []Strike // what it holds against engines
	Stalled bool     // every engine that may run its tasks failed too often
}

// Open is the number of tasks that are not finished.
func (s *Session) Open() int64 { return s.Submitted - s.Done - s.Failed - s.Cancelled }

// Table implements Row.
func (s *Session) Table() Table { return Sessions }

// Key implements Row.
func (s *Session) Key() string { return s.Name }

// Due implements Row.
func (s *Session) Due() Millis { return s.Next }
