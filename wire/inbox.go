package wire

import "encoding/json"

// Headers of a message of an inbox. On the request of a single message they
// are headers of HTTP, in a bulk they stand in `headers`; their case does not
// matter.
const (
	CorrelateID         = "X-CORRELATE-ID"                    // of the message; the same id and content again is a duplicate
	CorrelateTimestamp  = "X-CORRELATE-Timestamp"             // when it came about, ISO 8601 with a zone
	CorrelateTTL        = "X-CORRELATE-TTL"                   // errors so long after its receipt are not noted
	CorrelateExpiration = "X-CORRELATE-Expiration"            // not delivered from then on, ISO 8601 with a zone
	CorrelateEncoding   = "X-CORRELATE-Payload-Encoding"      // json, or jackson, which means the same
	CorrelateType       = "X-CORRELATE-PayloadType-FQCN"      // full name of its type; wins over the next three
	CorrelateNamespace  = "X-CORRELATE-PayloadType-Namespace" // together with the name
	CorrelateName       = "X-CORRELATE-PayloadType-Name"
	CorrelateRevision   = "X-CORRELATE-PayloadType-Revision"
)

// InboxSettings are those of an inbox, in the words of the seed: the body of
// PUT /inboxes/{name}, and what stands below a name of `inboxes` in the
// configuration. What is left out is the default. Spans of time are texts such
// as PT10S or 10s.
type InboxSettings struct {
	Group       InboxKey         `json:"group"`
	Sort        string           `json:"sort,omitzero"`    // sequence, the default; timestamp; header:NAME
	Deliver     json.RawMessage  `json:"deliver,omitzero"` // an InboxDelivery, or "workers", the default: who leases
	Batch       InboxBatch       `json:"batch,omitzero"`
	Persistence InboxPersistence `json:"persistence,omitzero"`
	Retry       InboxRetry       `json:"retry,omitzero"`
	Message     InboxTTL         `json:"message,omitzero"`
	OnExhausted string           `json:"onExhausted,omitzero"` // block, the default; skip; park
}

// InboxKey is where the group of a message stands. Exactly one is given.
type InboxKey struct {
	Header string `json:"header,omitzero"` // the name of a header
	JSON   string `json:"json,omitzero"`   // a path into the payload, .orderId or .order.ids[0]
	JQ     string `json:"jq,omitzero"`     // an expression over the payload
}

// InboxBatch is what is delivered together, and when.
type InboxBatch struct {
	Mode    string          `json:"mode,omitzero"`    // all, the default, or fail_first
	Query   json.RawMessage `json:"query,omitzero"`   // an InboxPoll, PT10S and PT6S by default, or "none": as soon as something is due
	Cleanup json.RawMessage `json:"cleanup,omitzero"` // when expired messages are forgotten: an InboxPoll, PT1M and PT1M by default, or "none"
}

// InboxPoll is a schedule: the first run so long after the start, then one
// each interval.
type InboxPoll struct {
	PollInitialDelay string `json:"pollInitialDelay,omitzero"`
	PollInterval     string `json:"pollInterval,omitzero"`
}

// InboxDelivery is where messages are delivered to.
type InboxDelivery struct {
	HTTP *InboxHTTP `json:"http,omitzero"`
}

// InboxHTTP is an endpoint that takes messages.
type InboxHTTP struct {
	URL        string            `json:"url"`
	Send       string            `json:"send,omitzero"`       // message, the default: one a request; or batch
	Headers    map[string]string `json:"headers,omitempty"`   // of each request, beside those of the message
	Timeout    string            `json:"timeout,omitzero"`    // of a request; 30s
	Concurrent int               `json:"concurrent,omitzero"` // groups at a time; 16
}

// InboxPersistence bounds tries and fetches.
type InboxPersistence struct {
	MessageMaxRetries    int `json:"messageMaxRetries,omitzero"`    // noted errors at which a message is exhausted; 100
	MessageFetchPageSize int `json:"messageFetchPageSize,omitzero"` // messages in memory at a time; 100
	MessageBatchSize     int `json:"messageBatchSize,omitzero"`     // of a group in one run; -1 = all, the default
}

// InboxRetry is how long a message waits after a noted error.
type InboxRetry struct {
	RetryMaxBackoffMinutes int     `json:"retryMaxBackoffMinutes,omitzero"` // 180
	RetryBackoffBase       float64 `json:"retryBackoffBase,omitzero"`       // 2
	CapApplies             string  `json:"capApplies,omitzero"`             // interval, the default, or age
}

// InboxTTL is what messages have that say nothing themselves.
type InboxTTL struct {
	TimeToLive string `json:"timeToLive,omitzero"` // left out: errors are noted from the first on
}

// Inbox answers GET and PUT /inboxes/{name}.
type Inbox struct {
	Name    string `json:"name"`
	Ordered bool   `json:"ordered"` // false: mode all goes on behind a failure
	Paused  bool   `json:"paused"`
	Problem string `json:"problem,omitempty"` // why it takes messages in and delivers none
	InboxSettings
	Messages InboxCounts `json:"messages"`
	Groups   InboxGroups `json:"groups"`
	Oldest   InboxAges   `json:"oldest_ms,omitzero"`

	// SinceStart is what became of messages since the start of the server; left out
	// of an inbox that is not counted by name (--metrics-queues).
	SinceStart *InboxPast `json:"since_start,omitempty"`
}

// InboxAges are how old the oldest message of each status is, in milliseconds since
// it was received; 0 = there is none.
type InboxAges struct {
	InProgress int64 `json:"in_progress,omitzero"`
	Delivering int64 `json:"delivering,omitzero"`
	Retrying   int64 `json:"retrying,omitzero"`
	Paused     int64 `json:"paused,omitzero"`
	Blocking   int64 `json:"blocking,omitzero"`
	Dead       int64 `json:"dead,omitzero"`
	Delivered  int64 `json:"delivered,omitzero"`
}

// InboxPast is what became of messages.
type InboxPast struct {
	Latency           InboxSpread `json:"latency_ms"`         // from the receipt of a message to its delivery
	AttemptsDelivered InboxSpread `json:"attempts_delivered"` // at the how-manieth attempt, 1 = the first; those inside its time to live are not counted
	AttemptsExhausted InboxSpread `json:"attempts_exhausted"` // after how many noted errors
}

// InboxSpread is how values are spread.
type InboxSpread struct {
	Count uint64  `json:"count"`
	Mean  float64 `json:"mean"`
	// UpTo are counts by bucket: each by its upper end, inclusive, as `le` of a
	// histogram, but not summed up; +Inf is the rest. Those with 0 are left out.
	UpTo map[string]uint64 `json:"up_to,omitempty"`
}

// InboxStatuses are what a message can be; each is exactly one.
var InboxStatuses = []string{"in_progress", "delivering", "retrying", "paused", "blocking", "dead", "delivered"}

// InboxCounts are the messages of an inbox by status.
type InboxCounts struct {
	InProgress int64 `json:"in_progress"` // waits, and no error of it was noted
	Delivering int64 `json:"delivering"`  // is with a receiver
	Retrying   int64 `json:"retrying"`    // failed, and waits for its next try
	Paused     int64 `json:"paused"`      // an operator stopped it
	Blocking   int64 `json:"blocking"`    // exhausted, and its group does not go on without it
	Dead       int64 `json:"dead"`        // given up; its reason tells why
	Delivered  int64 `json:"delivered"`   // and kept, where the retention says so
	Total      int64 `json:"total"`
}

// InboxMessage is one message as it is listed.
type InboxMessage struct {
	ID         string            `json:"id"` // of the job that it is
	MessageID  string            `json:"message_id,omitzero"`
	Group      string            `json:"group"`
	Status     string            `json:"status"`
	Type       string            `json:"type"`
	Received   int64             `json:"received"` // milliseconds since the epoch, as all dates
	Attempts   int               `json:"attempts"` // noted errors
	Suppressed int               `json:"suppressed,omitzero"`
	NextDue    int64             `json:"next_due,omitzero"`
	TTLUntil   int64             `json:"ttl_until,omitzero"`
	ExpiresAt  int64             `json:"expires_at,omitzero"`
	FailedAt   int64             `json:"failed_at,omitzero"`
	Reason     string            `json:"reason,omitzero"`
	Headers    map[string]string `json:"headers,omitzero"`
	Error      *InboxError       `json:"error,omitzero"`
	Payload    json.RawMessage   `json:"payload,omitzero"`
}

// InboxError is the head of an error that was noted.
type InboxError struct {
	Attempt int    `json:"attempt"`
	Type    string `json:"type,omitzero"`
	Text    string `json:"text,omitzero"`
	Trace   string `json:"trace,omitzero"` // the head of the stack trace
	At      int64  `json:"at"`
}

// InboxGroupStates are what a group can be; each is exactly one.
var InboxGroupStates = []string{"ready", "delivering", "backing_off", "paused", "blocked", "parked", "held"}

// InboxGroups are the groups of an inbox that have unfinished messages, by
// state.
type InboxGroups struct {
	Ready      int64 `json:"ready"`       // something is due
	Delivering int64 `json:"delivering"`  // messages of it are with a receiver
	BackingOff int64 `json:"backing_off"` // its head failed, and is not due
	Paused     int64 `json:"paused"`
	Blocked    int64 `json:"blocked"` // by an exhausted head
	Parked     int64 `json:"parked"`  // aside with its exhausted head (onExhausted: park)
	Held       int64 `json:"held"`    // for a time, because its target asked for it
	Total      int64 `json:"total"`
}

// InboxGroup is one group of an inbox.
type InboxGroup struct {
	Group    string        `json:"group"`
	State    string        `json:"state"`
	Messages int64         `json:"messages"`       // that hold a place in it
	Head     *InboxMessage `json:"head,omitempty"` // the first of them, without its payload
}

// InboxPut is one message of a bulk: the body of POST
// /inboxes/{name}/messages/bulk is {"messages": [...]} of these.
type InboxPut struct {
	Headers map[string]string `json:"headers,omitempty"`
	Payload json.RawMessage   `json:"payload"`
}

// InboxAccepted is what became of one message on intake. Those of a bulk
// stand in its order; one that was refused has Error and Code.
type InboxAccepted struct {
	ID        string `json:"id,omitzero"`
	MessageID string `json:"message_id,omitzero"`
	Group     string `json:"group,omitzero"`
	Duplicate bool   `json:"duplicate,omitzero"` // it was here, with the same content
	Error     string `json:"error,omitzero"`
	Code      string `json:"code,omitzero"`
}

// InboxIntake answers a bulk.
type InboxIntake struct {
	Accepted   int             `json:"accepted"` // duplicates included
	Duplicates int             `json:"duplicates"`
	Refused    int             `json:"refused"`
	Messages   []InboxAccepted `json:"messages"`
}

// InboxAct is the body of POST /inboxes/{name}/actions: what an operator does,
// and to what. With Message it is that message; with Statuses or Types all
// messages that have one of each (and are of the group, if one is given); with
// Group alone the group as a whole, of which retry, skip and edit take the head;
// with none of them the inbox, for which delete and skip want All: skip takes the
// head of each group then.
type InboxAct struct {
	Action   string   `json:"action"` // pause, resume, retry, skip, edit, delete
	Message  string   `json:"message,omitzero"`
	Group    *string  `json:"group,omitzero"`
	Statuses []string `json:"statuses,omitempty"`
	Types    []string `json:"types,omitempty"`
	All      bool     `json:"all,omitzero"`

	// AllowOutOfOrder lets retry bring messages back into groups that went on
	// without them.
	AllowOutOfOrder bool `json:"allow_out_of_order,omitzero"`

	// What edit changes; of several messages only the dates.
	InboxEdit
}

// InboxActed answers it.
type InboxActed struct {
	Changed int64 `json:"changed"`          // messages, groups or inboxes
	Refused int64 `json:"refused,omitzero"` // messages whose state does not allow it
}

// InboxEdit changes a message that is not being delivered: the body of PATCH
// /inboxes/{name}/messages/{id}. What is left out stays. A dead one takes a
// payload only, and goes back in line with it.
type InboxEdit struct {
	Payload   json.RawMessage `json:"payload,omitzero"`
	NextDue   *int64          `json:"next_due,omitzero"`   // milliseconds since the epoch
	ExpiresAt *int64          `json:"expires_at,omitzero"` // the same; 0 = never
}

// InboxLease is the body of POST /inboxes/{name}/lease.
type InboxLease struct {
	Worker  string `json:"worker,omitzero"`
	LeaseMS int64  `json:"lease_ms,omitzero"` // life of each lease without an extension; 30000
	WaitMS  int64  `json:"wait_ms,omitzero"`  // for something to be due; at most 300000
}

// InboxTurn answers it: messages of one group, in its order. Each is settled
// by POST /jobs/settle and kept by POST /jobs/extend, as a job is.
type InboxTurn struct {
	Group    string        `json:"group"`
	Ordered  bool          `json:"ordered"`
	More     bool          `json:"more,omitzero"` // the group has more than the 1,000 of a turn: the next lease of it has them
	Messages []InboxLeased `json:"messages"`      // none: nothing is due
}

// InboxLeased is a message and the lease on it.
type InboxLeased struct {
	InboxMessage
	Lease string `json:"lease"`
}

// InboxPreview answers GET and POST /inboxes/{name}/preview: what the runs of an
// inbox do about a message that is received at 0 and that no receiver takes.
type InboxPreview struct {
	Runs []InboxTry `json:"runs"` // at most 1,000
}

// InboxTry is one run; of those that pass the message by, the first after each
// try.
type InboxTry struct {
	At       int64  `json:"at_ms"` // since the message was received
	Outcome  string `json:"outcome"`
	Attempts int    `json:"attempts"`         // errors noted so far
	Next     int64  `json:"next_ms,omitzero"` // when it is due again, since it was received; 0 = at the next run, or never
}

// What a run does about a message that cannot be delivered.
const (
	TrySuppressed = "suppressed" // the error is not noted: the message is inside its time to live
	TryNoted      = "noted"
	TryExhausted  = "exhausted" // noted, and it was the last one
	TryNotDue     = "not_due"   // the run passes the message by
	TryOver       = "over"      // the message is not tried any more
)

// InboxTryOutcomes are all of them.
var InboxTryOutcomes = []string{TrySuppressed, TryNoted, TryExhausted, TryNotDue, TryOver}

// InboxList answers GET /inboxes.
type InboxList struct {
	Inboxes []Inbox `json:"inboxes"`
}

// InboxPage answers GET /inboxes/{name}/messages.
type InboxPage struct {
	Messages []InboxMessage `json:"messages"`
	Next     string         `json:"next,omitzero"` // of the next page, as `from`
}

// InboxGroupPage answers GET /inboxes/{name}/groups.
type InboxGroupPage struct {
	Groups []InboxGroup `json:"groups"`
	Next   string       `json:"next,omitzero"` // of the next page, as `from`
}
