package wire

// Pages links a page to its neighbours: paths with a query, to be requested
// as they are. Next and Prev are null where there is none.
type Pages struct {
	Self string  `json:"self"`
	Next *string `json:"next"`
	Prev *string `json:"prev"`
}

// Page answers GET /jobs.
type Page struct {
	Jobs  []Job `json:"jobs"`
	Pages Pages `json:"pages"`
}

// ErrorPage answers GET /jobs/{id}/errors.
type ErrorPage struct {
	Errors []JobError `json:"errors"`
	Pages  Pages      `json:"pages"`
}

// PageLimitMax is the most jobs or errors of one page.
const PageLimitMax = 2000

// Count answers GET /jobs/count.
type Count struct {
	Count int64 `json:"count"`
}

// Deleted answers DELETE /jobs.
type Deleted struct {
	Deleted int64 `json:"deleted"`
}

// Cancelled answers POST /jobs/cancel.
type Cancelled struct {
	Cancelled int64 `json:"cancelled"`
}

// Patched answers PATCH /jobs. Refused are jobs that could not be moved.
type Patched struct {
	Patched int64  `json:"patched"`
	Refused int64  `json:"refused,omitzero"`
	Why     string `json:"why,omitempty"` // the first of them, and why it was refused
}

// Queues answers GET /queues: the names in use, sorted; with ?rates=true also
// what happens in each of them, where that is known.
type Queues struct {
	Queues []string              `json:"queues"`
	Rates  map[string]QueueRates `json:"rates,omitzero"`
}

// Version answers GET /version.
type Version struct {
	Version string `json:"version"` // of the jobs protocol
	Product string `json:"product,omitempty"`
	Reprise string `json:"reprise,omitempty"` // of the server
}
