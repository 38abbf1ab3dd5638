package wire

// Event is the data of one server-sent event of GET /events: what happened to
// a job. The name of the event is Kind.
type Event struct {
	Kind     string `json:"kind"` // enqueued, ready, taken, completed, retried, released, lapsed, died, revived, changed, purged, cancelled
	At       int64  `json:"at"`   // milliseconds since the epoch
	ID       string `json:"id"`
	Queue    string `json:"queue"`
	Type     string `json:"type"`
	Group    string `json:"group,omitempty"`
	Status   string `json:"status"`        // after it; of a job that left, the one in which it left
	Gone     bool   `json:"gone,omitzero"` // it left the store
	Attempts int64  `json:"attempts"`      // charged failures
	Reason   string `json:"reason,omitempty"`
}

// LostEvents is the data of the event "lost": so many are missing here.
type LostEvents struct {
	Count uint64 `json:"count"`
}
