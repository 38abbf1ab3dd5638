package wire

// The states of a lock.
const (
	LockHeld = "held" // somebody has it
	LockKept = "kept" // nobody has it, and nobody gets it before its lock-at-least is over
	LockFree = "free"
)

// Lock is a named lock as it is now.
type Lock struct {
	Name      string `json:"name"`
	Status    string `json:"status"`          // held, kept or free
	LockUntil int64  `json:"lock_until"`      // nobody else gets it before then
	LockedAt  int64  `json:"locked_at"`       // when its latest holder got it
	LockedBy  string `json:"locked_by"`       // who that is
	Fencing   int64  `json:"fencing"`         // of the latest grant; it only rises
	Token     string `json:"token,omitempty"` // in the answer to POST /locks/{name} only
}

// TakeLock is the body of POST /locks/{name}.
type TakeLock struct {
	Owner         string `json:"owner"`                      // who asks, for people
	LockAtMostMS  int64  `json:"lock_at_most_ms"`            // it ends by itself after that
	LockAtLeastMS int64  `json:"lock_at_least_ms,omitempty"` // it stays taken so long, even if it is given back sooner

	// Request tells this ask of the owner from all others, such as a UUID; 16 to
	// 255 bytes. The same owner and request again, because the answer was lost, has
	// the same answer. Who knows it gets the token.
	Request string `json:"request,omitempty"`
}

// ExtendLock is the body of POST /locks/{name}/extend.
type ExtendLock struct {
	Token        string `json:"token"`
	LockAtMostMS int64  `json:"lock_at_most_ms"` // from now
}

// Locks answers GET /locks.
type Locks struct {
	Locks []Lock `json:"locks"`
}

// Locked is the answer to POST /locks/{name} while somebody else has the lock.
type Locked struct {
	Error
	Lock Lock `json:"lock"`
}

// LockTokenHeader carries the token of DELETE /locks/{name}.
const LockTokenHeader = "Lock-Token"
