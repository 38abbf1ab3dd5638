package engine

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// ErrStreamEnded is what Next answers when the server ended the stream: it
// shuts down, heals, or the same worker connected again.
var ErrStreamEnded = errors.New("the stream was ended by the server")

// outputBytesMax bounds the payloads that wait in memory for one holder,
// and those of one Next: a reader that stalls must not cost what it does
// not read. What is beyond is read from the store when there is room for it.
const outputBytesMax = 1 << 20

// Holder names carry their kind, so that a restart knows whose leases to end.
const (
	anonymousPrefix = "a/"
	namedPrefix     = "w/"
	unaryPrefix     = "u/"
)

// Feeder decides what the holders get that a part makes.
type Feeder interface {
	// Room is how many more jobs the holder takes now.
	Room(tx *Tx, h *Holder) int
	// Feed gives up to n jobs with Grant, and returns how many. dry means that holders
	// with the same Key would find nothing either.
	Feed(tx *Tx, h *Holder, n int) (took int, dry bool, err error)
	// Lease fills in the lease that a job is granted under. begins is when the holder has
	// room to begin it, at the latest; 0 = that is not known, or does not matter.
	Lease(tx *Tx, h *Holder, q *job.Queue, j *job.Job, l *job.Lease) (begins job.Millis, err error)
	// Left follows the end of its stream.
	Left(tx *Tx, h *Holder, how job.Ending) error
}

// Holder is a stream or a waiting unary call.
type Holder struct {
	Name string
	Kind job.HolderKind
	Opts StreamOptions
	life job.Millis // of each unary lease
	Key  string     // equal keys ask for the same work
	Want int        // unary: jobs at most; 0 = a stream
	Once bool       // unary: does not wait for jobs, see ErrStreamEnded
	Raw  bool       // unary: gets payloads as they are kept, not as Shown

	// Feeder decides what it gets; nil = the ready jobs of its queues, in their order. The
	// holder counts among the workers of the queues that its options name.
	Feeder Feeder

	// Owned by the committer.
	held, alone int
	unread      int // given, not yet read by Next
	gone        bool
	arrival     uint64        // its number among the arrivals at the end of the line of the hungry
	place       *list.Element // and where it is kept; nil = it is not among them

	mu      sync.Mutex // guards out, waiting and end
	out     []Delivery
	waiting int // bytes of payloads in out
	end     error
	bell    chan struct{}
}

// NewHolder is one that has not joined yet.
func NewHolder(kind job.HolderKind, name string, o StreamOptions) *Holder {
	h := &Holder{Name: name, Kind: kind, Opts: o, bell: make(chan struct{}, 1)}
	h.Key = fmt.Sprintf("%q %q", o.Queues, o.Properties)
	return h
}

// give and ring hand a delivery over once it is on disk.
func (h *Holder) give(d Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting+len(d.Payload) > outputBytesMax {
		d.Payload = nil
	}
	h.waiting += len(d.Payload)
	h.out = append(h.out, d)
}

func (h *Holder) ring() {
	select {
	case h.bell <- struct{}{}:
	default:
	}
}

func (h *Holder) finish(why error) {
	h.mu.Lock()
	h.end = why
	h.mu.Unlock()
	h.ring()
}

// collect takes what was given: for a unary call all of it, for a stream a
// piece of a bounded size.
func (h *Holder) collect() ([]Delivery, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, size := 0, 0
	for ; n < len(h.out); n++ {
		size += int(h.out[n].Job.PayloadSize)
		if n > 0 && h.Want == 0 && size > outputBytesMax {
			break
		}
		h.waiting -= len(h.out[n].Payload)
	}
	if n == 0 {
		return nil, h.end
	}
	out := h.out[:n:n]
	if h.out = h.out[n:]; len(h.out) == 0 {
		h.out = nil
	}
	return out, nil
}

// Stream is a holder that receives jobs as they become ready.
type Stream struct {
	e *Engine
	h *Holder

	// Room is asked before payloads come into memory; nil = there always is.
	Room Room
}

// Stream registers a holder. A named stream first gets what it still holds; a
// second stream of the same name ends the first.
func (e *Engine) Stream(ctx context.Context, o StreamOptions) (*Stream, error) {
	kind, name := job.Anonymous, anonymousPrefix+fmt.Sprintf("%016x", e.rnd())
	if o.Name != "" {
		kind, name = job.Named, namedPrefix+o.Name
	}
	h := NewHolder(kind, name, o)
	return e.OpenStream(ctx, h, func(r *Tx) error { return r.join(h) })
}

// OpenStream makes the stream of a holder, which join registers.
func (e *Engine) OpenStream(ctx context.Context, h *Holder, join func(*Tx) error) (*Stream, error) {
	if err := e.Do(ctx, 0, join); err != nil {
		if ctx.Err() != nil { // it may have joined meanwhile
			s := &Stream{e: e, h: h}
			s.Close()
		}
		return nil, err
	}
	return &Stream{e: e, h: h}, nil
}

// Name is the name of the holder, without its kind.
func (s *Stream) Name() string { return s.h.Name[len(anonymousPrefix):] }

// Next blocks until there are deliveries, ctx ends, or the server ends the
// stream (ErrStreamEnded).
func (s *Stream) Next(ctx context.Context) ([]Delivery, error) {
	for {
		out, err := s.Poll()
		if err != nil || len(out) > 0 {
			return out, err
		}
		select {
		case <-s.Bell():
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Bell rings when Poll may have something to tell. It rings for one goroutine.
func (s *Stream) Bell() <-chan struct{} { return s.h.bell }

// Poll is Next for those who wait for other things too: it returns at once,
// also with nothing.
func (s *Stream) Poll() ([]Delivery, error) {
	for {
		out, err := s.h.collect()
		if err != nil || len(out) == 0 {
			return nil, err
		}
		if s.h.Opts.Prefetch == 0 {
			n := len(out)
			s.e.tell(func(r *Tx) error { r.reads[s.h] += n; return nil })
		}
		if s.Room != nil {
			if err := s.Room(bytesOf(out)); err != nil {
				return nil, err
			}
		}
		if out, err = s.e.bodies.fill(out, false); err != nil || len(out) > 0 {
			return out, err
		}
	}
}

// tellVoid tells a connected worker that what it runs is for nothing.
func (r *crowd) tellVoid(j *job.Job, v *rule.Void) error {
	if v.Lease.Kind != job.Named {
		return nil
	}
	if err := r.e.parts.voided(r.Tx, v); err != nil {
		return err
	}
	if h := r.Holder(v.Lease.Holder); h != nil {
		r.tx.Durable() // what it is told must stay so
		r.gifts = append(r.gifts, gift{h, Delivery{Job: j, Lease: v.Lease, Voided: true, Ending: v.How}})
	}
	return nil
}

// tell submits a command nobody waits for.
func (e *Engine) tell(f func(*Tx) error) {
	if o := e.commands.make(f); e.submit(o) != nil {
		e.commands.spare.Put(o)
	}
}

// Close tells the engine that the holder disconnected. It does not wait.
func (s *Stream) Close() {
	s.e.tell(func(r *Tx) error { return r.leave(s.h, job.ByDisconnect) })
}
