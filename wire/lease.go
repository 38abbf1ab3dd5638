package wire

// Lease is the body of POST /jobs/lease, which takes jobs in one call. It is
// answered with Leases.
type Lease struct {
	Queues  []string `json:"queues,omitempty"`   // none = all
	Max     int      `json:"max,omitempty"`      // jobs, 1 to 1000; 0 = 1
	LeaseMS int64    `json:"lease_ms,omitempty"` // life of each lease unless it is extended, up to a day; 0 = 30000
	WaitMS  int64    `json:"wait_ms,omitempty"`  // so long for the first job, up to 5 minutes; 0 = not at all

	// Worker is a name for records; "" = one is made up. With Register the answer
	// has a secret, which the worker sends with its further leases: with it, it
	// extends them all at once, and whoever takes its name does not.
	Worker   string `json:"worker,omitempty"`
	Register bool   `json:"register,omitempty"`
	Secret   string `json:"secret,omitempty"`

	// Engine takes tasks of sessions instead, as an engine that is logged in, with
	// the epoch of its login; its heartbeat keeps them. An Engine of package client
	// does that by itself.
	Engine string `json:"engine,omitempty"`
	Epoch  int64  `json:"epoch,omitempty"`

	Properties map[string]string `json:"properties,omitempty"` // what requirements of jobs look at
}

// Leases answers POST /jobs/lease: jobs with their payloads and tokens, none if
// there was nothing to take.
type Leases struct {
	Jobs   []Job  `json:"jobs"`
	Secret string `json:"secret,omitempty"` // with Register
}
