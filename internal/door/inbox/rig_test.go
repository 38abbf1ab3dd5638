package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// rig is a door on an engine with a store in memory, in a bubble of fake time,
// and a target that does what the test says.
type rig struct {
	*testing.T
	*Door
	store *mem.Store
	began time.Time
	rules rule.Server

	mu     sync.Mutex
	reply  func(m *connect.Message) connect.Result // nil = OK
	got    []string                                // what arrived: seconds since the beginning and the message id
	allow  func(h *HTTP, configured bool) error
	closed int
}

// scenario runs f with a door that has the inbox "in" with these settings.
func scenario(t *testing.T, settings string, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, began: time.Now(), rules: rule.DefaultServer(), allow: func(*HTTP, bool) error { return nil }}
		r.store = mem.Open(mem.Options{Now: engine.SystemClock().Wall, Rand: rand.New(rand.NewPCG(1, 2))})
		r.start()
		defer func() { r.stop() }()
		if settings != "" {
			r.set("in", settings)
		}
		f(r)
	})
}

func (r *rig) start(configured ...Named) {
	r.Helper()
	e := part.New(r.store, engine.SystemClock(), rand.Uint64, slog.New(slog.DiscardHandler), engine.Options{Server: r.rules})
	if err := e.Start(r.Context()); err != nil {
		r.Fatal(err)
	}
	r.Door = New(Options{Engine: e, Sinks: r.sink, Log: slog.New(slog.DiscardHandler)})
	if err := r.Start(r.Context(), configured); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) stop() {
	r.Helper()
	r.Stop()
	if err := r.engine.Stop(context.Background()); err != nil {
		r.Fatal(err)
	}
}

// set makes an inbox; settings are in the form of JSON without its braces, and
// an endpoint stands for all that is delivered to.
func (r *rig) set(name, settings string) {
	r.Helper()
	s, err := ReadSettings([]byte("{" + settings + "}"))
	if err == nil {
		err = r.Set(r.Context(), name, s, job.Actor{})
	}
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) sink(h *HTTP, configured bool) (connect.Sink, error) {
	if err := r.allow(h, configured); err != nil {
		return nil, err
	}
	return &endpoint{r}, nil
}

// endpoint is the sink of a rig.
type endpoint struct{ r *rig }

func (s *endpoint) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	out := make([]connect.Result, len(b.Messages))
	for i := range b.Messages {
		if i > 0 && b.Stop && out[i-1].Outcome != job.OK {
			out[i].Outcome = job.Released
			continue
		}
		s.r.got = append(s.r.got, fmt.Sprintf("%v %s", time.Since(s.r.began).Seconds(), b.Messages[i].ID))
		if s.r.reply != nil {
			out[i] = s.r.reply(&b.Messages[i])
		}
	}
	return out
}

func (s *endpoint) Close() error {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.closed++
	return nil
}

// failing makes a target fail for some messages, named between blanks.
func failing(ids string) func(*connect.Message) connect.Result {
	return func(m *connect.Message) connect.Result {
		for _, id := range strings.Fields(ids) {
			if id == m.ID {
				return connect.Result{Outcome: job.Retried, Failure: job.Failure{Type: "Mismatch", Message: "no subscription", Backtrace: "at correlate(Service.java:17)\nat run"}}
			}
		}
		return connect.Result{}
	}
}

func (r *rig) replies(f func(*connect.Message) connect.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reply = f
}

// put sends messages, each as "group/id" or "group/id@rank" for sort header:N.
func (r *rig) put(list ...string) {
	r.Helper()
	for _, text := range list {
		group, id, _ := strings.Cut(text, "/")
		id, rank, ranked := strings.Cut(id, "@")
		m := Message{Payload: []byte(fmt.Sprintf(`{"g":%q}`, group))}
		m.put("x-correlate-id", id)
		if ranked {
			m.put("n", rank)
		}
		m.seal()
		r.accept("in", m)
	}
}

func (r *rig) accept(name string, list ...Message) *Intake {
	r.Helper()
	x, err := r.Find(name)
	if err != nil {
		r.Fatal(err)
	}
	in := x.NewIntake(r.Context(), list, r.engine.Now())
	if err := in.Put(r.Context(), r.engine.Put); err != nil {
		r.Fatal(err)
	}
	return in
}

// until lets time pass until so many seconds after the beginning.
func (r *rig) until(seconds float64) {
	<-time.After(time.Duration(seconds*float64(time.Second)) - time.Since(r.began) + time.Millisecond) // of the bubble
	synctest.Wait()
}

// arrived is what the target got since it was last asked.
func (r *rig) arrived() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	out := strings.Join(r.got, ", ")
	r.got = nil
	return out
}

func (r *rig) expect(what, want string) {
	r.Helper()
	if got := r.arrived(); got != want {
		r.Errorf("%s: %q arrived, want %q", what, got, want)
	}
}

const (
	byJSON = `"group":{"json":".g"},`
	toHTTP = `"deliver":{"http":{"url":"http://target/","concurrent":1}},`
	atOnce = `"batch":{"query":"none","mode":"fail_first"},`
	anyway = `"batch":{"query":"none","mode":"all"},`
)
