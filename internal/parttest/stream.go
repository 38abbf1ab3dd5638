package parttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// Stream is a connection and what was read from it.
type Stream struct {
	*engine.Stream
	r    *Rig
	Held map[string]engine.Delivery
}

// Opened is a stream with these options, Anonymous and Named one of either kind.
func (r *Rig) Opened(o engine.StreamOptions) *Stream {
	r.Helper()
	s, err := r.Stream(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return r.Over(s)
}

// Over is what a stream of the engine is in tests.
func (r *Rig) Over(s *engine.Stream) *Stream { return &Stream{s, r, map[string]engine.Delivery{}} }

// Anonymous is described at Opened.
func (r *Rig) Anonymous(prefetch int, queues ...string) *Stream {
	r.Helper()
	return r.Opened(engine.StreamOptions{Prefetch: prefetch, Queues: queues})
}

// Named is described at Opened.
func (r *Rig) Named(name string, prefetch int) *Stream {
	r.Helper()
	return r.Opened(engine.StreamOptions{Name: name, Prefetch: prefetch})
}

// Gets wants exactly these jobs, in this order, among what was delivered by
// now; none = nothing.
func (s *Stream) Gets(want ...string) {
	s.r.Helper()
	if got := s.Read(); !slices.Equal(got, want) {
		s.r.Fatalf("delivered [%s], want [%s]", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// Read takes what has been delivered by now.
func (s *Stream) Read() (names []string) {
	s.r.Helper()
	ctx, cancel := context.WithCancel(s.r.Context())
	cancel()
	for {
		synctest.Wait()
		list, err := s.Next(ctx)
		if errors.Is(err, context.Canceled) {
			return names
		}
		if err != nil {
			s.r.Fatal(err)
		}
		for _, d := range list {
			names = append(names, s.keep(d))
		}
	}
}

func (s *Stream) keep(d engine.Delivery) string {
	s.r.Helper()
	name := s.r.Names[d.Job.ID]
	if d.Voided {
		return fmt.Sprintf("%s: %s", name, d.Ending)
	}
	if string(d.Payload) != name || d.Job.State != job.Leased || d.Job.LeaseOf(d.Lease.Token) < 0 {
		s.r.Fatalf("delivered %s with payload %q as %s", name, d.Payload, d.Job.State)
	}
	s.Held[name] = d
	return name
}

// IsOver wants the stream to be over.
func (s *Stream) IsOver() {
	s.r.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(s.r.Context())
	cancel()
	if list, err := s.Next(ctx); !errors.Is(err, engine.ErrStreamEnded) {
		s.r.Fatalf("the stream is not over: %d deliveries, %v", len(list), err)
	}
}

// OK ends the attempts of jobs with success.
func (s *Stream) OK(names ...string) {
	s.r.Helper()
	for _, name := range names {
		s.r.Settled(s.Held[name], job.OK)
		delete(s.Held, name)
	}
}

// Fails ends the attempt of a job with a failure.
func (s *Stream) Fails(name string, edits ...func(*engine.Settle)) engine.Verdict {
	s.r.Helper()
	return s.r.Settled(s.Held[name], job.Retried, edits...)
}

// End closes the stream.
func (s *Stream) End() { s.Close(); synctest.Wait() }

// Leased is one unary take that must find exactly these jobs at once.
func (r *Rig) Leased(o engine.LeaseOptions, want ...string) map[string]engine.Delivery {
	r.Helper()
	got, list := r.LeaseNow(o), []string(nil)
	held := map[string]engine.Delivery{}
	for _, d := range got {
		list = append(list, r.Names[d.Job.ID])
		held[r.Names[d.Job.ID]] = d
	}
	if !slices.Equal(list, want) {
		r.Fatalf("leased %v, want %v", list, want)
	}
	return held
}

// LeaseNow takes what is there and does not wait.
func (r *Rig) LeaseNow(o engine.LeaseOptions) []engine.Delivery {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Millisecond/2)
	defer cancel()
	list, err := r.Lease(ctx, o)
	if err != nil {
		r.Fatal(err)
	}
	return list
}
