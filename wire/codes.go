package wire

// Error is the body of every refusal.
type Error struct {
	Error string `json:"error"`          // for people; may change
	Code  string `json:"code,omitempty"` // for programs; stays
}

// The error codes. They are public and stay; their sentences may change.
const (
	CodeInvalid          = "invalid"
	CodeNotFound         = "not_found"
	CodeExists           = "exists"
	CodeWrongState       = "wrong_state"
	CodeSuperseded       = "superseded"
	CodeTokenNeeded      = "token_needed"
	CodeUnprocessable    = "unprocessable"
	CodeOverLimit        = "over_limit"
	CodeUnavailable      = "unavailable"
	CodeInternal         = "internal"
	CodeCorrupt          = "corrupt"
	CodeForbidden        = "forbidden"
	CodeUnauthorized     = "unauthorized"
	CodeMethodNotAllowed = "method_not_allowed"
	CodeNotAcceptable    = "not_acceptable"
	CodeTooLarge         = "too_large"
	CodeTooSlow          = "too_slow"
	CodeUnsupportedMedia = "unsupported_media_type"
	CodeLocked           = "locked"
)

// Code is one row of the table of error codes.
type Code struct {
	Code    string
	Status  int    // of HTTP, when it refuses a whole call
	Again   bool   // the same request may succeed later, unchanged
	Meaning string // what happened
	Advice  string // what to do
}

// Codes is the table of error codes.
var Codes = []Code{
	{CodeInvalid, 400, false, "The request is wrong; nothing was changed.", "Correct the field that the text names. Sending it again does not help."},
	{CodeUnauthorized, 401, false, "The server wants a token and got none, or one that it does not know.", "Send Authorization: Bearer TOKEN, with a token that is not revoked or expired."},
	{CodeForbidden, 403, false, "The caller may not do this, or the request came by a name or from a web page that the server does not trust.", "Use a token with the scope and for the queue that the text names, or a listed host name (--allow-host)."},
	{CodeNotFound, 404, false, "There is no such job, queue, error record or path, or nobody holds the job any more.", "Check the id. A finished job leaves as soon as its retention is over."},
	{CodeMethodNotAllowed, 405, false, "The path exists, the method does not.", "Use a method of the header Allow."},
	{CodeNotAcceptable, 406, false, "None of the formats in Accept can be sent.", "Ask for one that the answer lists."},
	{CodeExists, 409, false, "The idempotency key was used with other content, or another job has the unique key of one that is to be replayed.", "Use a new key for new work, or send exactly what was sent before; wait for the other job, or delete it."},
	{CodeSuperseded, 409, false, "The lease is over: it lapsed, was settled, or the job went to another worker. Nothing was changed.", "Drop the result. The job runs elsewhere or is finished."},
	{CodeTooSlow, 408, false, "A body of more than 4 KiB did not bring --min-upload-rate.", "Send it again, over a faster line or in smaller pieces."},
	{CodeTooLarge, 413, false, "The body is larger than the server takes (--body-max).", "Send fewer jobs at a time, or keep large data elsewhere and send a reference."},
	{CodeUnsupportedMedia, 415, false, "The body is in a format that the server cannot read.", "Send application/json."},
	{CodeWrongState, 422, false, "The job is in a state that does not allow this.", "Read the job; its status says what is possible."},
	{CodeTokenNeeded, 422, false, "This queue settles only with the token of the delivery.", "Take with Worker-Id and lease=token, and send the lease back."},
	{CodeUnprocessable, 422, false, "What the request brought was tried and failed, such as an expression. Nothing was changed.", "Correct what the text names; sending it again does not help."},
	{CodeLocked, 423, false, "Somebody else has the lock.", "Leave the work to whoever has it, or ask again at the lock_until of the answer."},
	{CodeOverLimit, 429, true, "The queue is full, or a quota is used up.", "Wait as long as Retry-After says, then send it again."},
	{CodeInternal, 500, true, "The server met a fault of its own.", "Look at the server's log. With an idempotency key, sending it again is safe."},
	{CodeCorrupt, 500, false, "What is on disk is not what was written.", "Stop the server and restore a backup; its log names the place."},
	{CodeUnavailable, 503, true, "The server cannot commit now: it starts, stops, or its disk is full or failing. The outcome of this request may be unknown.", "Send it again in a moment, enqueues with an idempotency key; look at GET /ready."},
}

// WarningHeader tells of a member of the body that its call does not know, with
// its path and what may be meant; one line each, at most 8. The member was
// ignored. A request with Prefer: handling=strict is refused instead.
const WarningHeader = "Reprise-Warning"
