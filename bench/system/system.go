// Package system knows the queue servers that are compared: how each is
// installed, started, stopped and killed, and how its official Go client is
// used for throughput. One file per system.
//
// It decides nothing about what is measured: package measure drives all of
// them through Server and sees no difference. It refuses to tune a system
// beyond what its own documentation or its own benchmark recommends; what is
// set is said in Durability, Workers and Bulk, which the report prints.
package system

import (
	"context"
	"time"
)

// Class is what an answered enqueue survives. Results are compared only inside
// a class.
type Class string

// The durability classes.
const (
	D0 Class = "D0" // nothing beyond memory or a snapshot now and then
	D1 Class = "D1" // the end of the process: the operating system has it
	D2 Class = "D2" // the end of the machine, but for the last moments: fsync by a timer
	D3 Class = "D3" // the end of the machine: fsync before the answer
)

// Classes lists the classes, the strongest first.
func Classes() []Class { return []Class{D3, D2, D1, D0} }

// About says what an answered enqueue survives.
func (c Class) About() string {
	switch c {
	case D0:
		return "memory only, or a snapshot now and then"
	case D1:
		return "handed to the operating system before the answer: survives a killed process, not a power cut"
	case D2:
		return "fsync by a timer: a power cut loses the last moments"
	case D3:
		return "fsync before the answer: survives a power cut"
	default:
		return "unknown"
	}
}

// RetryDelay is how long a failed job waits before it is delivered again.
const RetryDelay = time.Second

// Workers take with this much, where a system lets it be said: Takers
// connections or clients, each with HandlersEach handlers at a time and
// holding at most PrefetchEach jobs.
const (
	Takers       = 4
	HandlersEach = 16
	PrefetchEach = 2000
	handlers     = Takers * HandlersEach
)

// System is one queue server with one durability setting.
type System struct {
	// Name is unique and says peer and setting: "beanstalkd -f0".
	Name string
	// Class is what Durability makes of it.
	Class Class
	// Durability is the setting in the server's own words.
	Durability string
	// Bulk says how many jobs are enqueued at once: by a call for it ("API"), by
	// sending without waiting for each answer ("pipelined"), or "" where the
	// client has neither.
	Bulk string
	// Workers says how jobs are taken and acknowledged.
	Workers string
	// Retry says how a failed job comes back after RetryDelay; "" if it cannot.
	Retry string
	// AcksAnswered is false where a client cannot wait for the answer to an
	// acknowledgement. The end of a drain is then when the server says it is empty.
	AcksAnswered bool

	// Install puts the server on this machine if it is missing, and returns the
	// versions of server and client.
	Install func(context.Context, *Env) (string, error)
	// New makes a server on an empty directory, not started yet.
	New func(env *Env, dir string) Server
}

// Server is one server on one directory. Its methods are called one at a time,
// but for the producers and workers it gave out.
type Server interface {
	// Start starts it with what is stored in its directory, and returns when a
	// client was served.
	Start(ctx context.Context) error
	// Stop asks its processes to end and waits for that. A server that is not
	// running is stopped.
	Stop() error
	// Kill ends them by SIGKILL and waits for that.
	Kill() error
	// PIDs are the processes whose use of the machine, children included, is
	// the server's.
	PIDs() []int
	// Alive returns what a process that has ended said last, nil while all run.
	Alive() error

	// Create makes a queue where the system asks for that.
	Create(ctx context.Context, queue string) error
	// Producer opens what one enqueueing goroutine uses.
	Producer(ctx context.Context, queue string) (Producer, error)
	// Work takes jobs of a queue until ctx ends, then stops without leaving any
	// with a client. It returns nil after that.
	Work(ctx context.Context, queue string, h Handler) error
	// Count is the number of jobs of a queue that are not finished.
	Count(ctx context.Context, queue string) (int64, error)
}

// Producer is used by one goroutine.
type Producer interface {
	// Enqueue returns when the server has answered as its class promises.
	Enqueue(ctx context.Context, payload []byte) error
	// EnqueueBulk is the same for many. It is called only where System.Bulk is
	// not empty.
	EnqueueBulk(ctx context.Context, payloads [][]byte) error
	Close() error
}

// Handler is told of jobs by many goroutines at once.
type Handler interface {
	// Handle is called once per delivery. After an error the job must be
	// delivered again, RetryDelay later.
	Handle(payload []byte) error
	// Acknowledged says that the acknowledgements of n jobs were answered (or
	// sent, where AcksAnswered is false).
	Acknowledged(n int)
}

// All lists the systems in the order in which they run.
func All() []System {
	return []System{
		reprise("always", D3), beanstalkd("-f0", D3), riverOnPostgres(), asynqOnRedis("always", D3), natsJetStream("always", D3), rabbitmq(),
		reprise("interval", D2), beanstalkd("", D2), asynqOnRedis("everysec", D2),
		reprise("os", D1), natsJetStream("default", D1),
		faktory(),
	}
}
