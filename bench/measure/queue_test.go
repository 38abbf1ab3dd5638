package measure

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

func TestAPayloadCarriesItsNumber(t *testing.T) {
	t.Parallel()
	payload := newPayload()
	if len(payload) != PayloadBytes || !json.Valid(payload) {
		t.Fatalf("%d bytes: %s", len(payload), payload)
	}
	for _, n := range []int64{0, 7, 9_999_999_999_999_999} {
		putNumber(payload, n)
		if got, err := numberOf(payload); err != nil || got != n {
			t.Errorf("%d: %d, %v", n, got, err)
		}
	}
	putNumber(payload, 42)
	// What jsonb of PostgreSQL makes of it.
	if got, err := numberOf([]byte(`{"pad": "xx", "seq": "0000000000000042"}`)); err != nil || got != 42 {
		t.Errorf("%d, %v", got, err)
	}
	for _, text := range []string{"", `{"seq":"12"}`, `{"seq":"00000000000000x2"}`, `{"pad":"0000000000000042"}`} {
		if n, err := numberOf([]byte(text)); err == nil {
			t.Errorf("%s has the number %d", text, n)
		}
	}
}

func TestAnOpenLoopIsDueWhateverHappens(t *testing.T) {
	t.Parallel()
	o := newOpenLoop(200, 200*time.Millisecond, 2*time.Second)
	o.start.Store(int64(time.Hour))
	if o.first != 41 || o.total != 441 || o.due(1) != time.Hour+5*time.Millisecond {
		t.Errorf("first %d, total %d, due %v", o.first, o.total, o.due(1))
	}
}

// fake is a server in memory that loses or repeats what it is told to.
type fake struct {
	mu       sync.Mutex
	waiting  map[string][][]byte
	changed  chan struct{}
	open     map[string]int64
	enqueued int
	lose     int // every n-th enqueue
	repeat   int // every n-th delivery
	started  int
}

func newFake() *fake {
	return &fake{waiting: map[string][][]byte{}, open: map[string]int64{}, changed: make(chan struct{})}
}

func (f *fake) Start(context.Context) error          { f.started++; return nil }
func (f *fake) Stop() error                          { return nil }
func (f *fake) Kill() error                          { return nil }
func (f *fake) PIDs() []int                          { return nil }
func (f *fake) Alive() error                         { return nil }
func (f *fake) Create(context.Context, string) error { return nil }

func (f *fake) Producer(_ context.Context, queue string) (system.Producer, error) {
	return &fakeProducer{f, queue}, nil
}

type fakeProducer struct {
	server *fake
	queue  string
}

func (p *fakeProducer) Close() error { return nil }

func (p *fakeProducer) Enqueue(ctx context.Context, payload []byte) error {
	return p.EnqueueBulk(ctx, [][]byte{payload})
}

func (p *fakeProducer) EnqueueBulk(_ context.Context, payloads [][]byte) error {
	f := p.server
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, payload := range payloads {
		if f.enqueued++; f.lose == 0 || f.enqueued%f.lose != 0 {
			f.waiting[p.queue] = append(f.waiting[p.queue], bytes.Clone(payload))
			f.open[p.queue]++
		}
	}
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

func (f *fake) Work(ctx context.Context, queue string, h system.Handler) error {
	for n := 1; ; n++ {
		f.mu.Lock()
		changed, list := f.changed, f.waiting[queue]
		if len(list) > 0 {
			f.waiting[queue] = list[1:]
		}
		f.mu.Unlock()
		if len(list) == 0 || ctx.Err() != nil {
			if len(list) > 0 { // taken and not started
				f.mu.Lock()
				f.waiting[queue] = append(f.waiting[queue], list[0])
				f.mu.Unlock()
			}
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		payload := list[0]
		if h.Handle(payload) != nil {
			f.mu.Lock()
			f.waiting[queue] = append(f.waiting[queue], payload)
			f.mu.Unlock()
			continue
		}
		if f.repeat > 0 && n%f.repeat == 0 {
			_ = h.Handle(payload) // a duplicate, which never asks for a retry
		}
		f.mu.Lock()
		f.open[queue]--
		f.mu.Unlock()
		h.Acknowledged(1)
	}
}

func (f *fake) Count(_ context.Context, queue string) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open[queue], nil
}

func runOn(t *testing.T, f *fake, phases ...string) *result.Run {
	t.Helper()
	s := system.System{
		Name: "fake", Bulk: "API", Retry: "at once", AcksAnswered: true,
		New: func(*system.Env, string) system.Server { return f },
	}
	r, err := Run(t.Context(), &system.Env{}, s, 1, Options{
		Phases: phases, Window: 20 * time.Millisecond, Backlog: 2000, Storm: 200, Rate: 500, Connections: 4, BulkConnections: 2,
		Dir: t.TempDir(), Log: t.Logf, VerifyPatience: 50 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAllPhasesOfAnHonestServerHaveFiguresAndVerifiedCounts(t *testing.T) {
	t.Parallel()
	f := newFake()
	r := runOn(t, f, PhaseNames()...)
	if len(r.Failures) > 0 {
		t.Fatalf("failures %+v", r.Failures)
	}
	measured := map[string]bool{}
	for _, figure := range r.Figures {
		measured[figure.Phase] = true
	}
	checked := map[string]bool{}
	for _, c := range r.Checks {
		checked[c.Phase] = true
		if c.Left != c.Enqueued-c.Delivered || c.Duplicates != 0 {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range PhaseNames() {
		if !measured[name] || !checked[name] {
			t.Errorf("%s: measured %v, checked %v", name, measured[name], checked[name])
		}
	}
	if f.started != len(groups)+1 { // one more after the kill
		t.Errorf("the server was started %d times", f.started)
	}
}

func TestALostJobFailsItsPhase(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.lose = 10
	r := runOn(t, f, "singles", "bulk")
	if len(r.Failures) != 2 || len(r.Figures) != 0 ||
		!strings.Contains(r.Failures[0].Error, "verification") || !strings.Contains(r.Failures[1].Error, "singles failed before") {
		t.Errorf("failures %+v, figures %+v", r.Failures, r.Figures)
	}
}

func TestAnInventedJobFailsItsPhase(t *testing.T) {
	t.Parallel()
	q := &queue{name: "q"}
	q.issued.Store(3)
	payload := newPayload()
	putNumber(payload, 3)
	if err := q.Handle(payload); err != nil {
		t.Fatal(err)
	}
	if _, _, wrong := q.counts(); wrong == nil || !strings.Contains(wrong.Error(), "never enqueued") {
		t.Errorf("error %v", wrong)
	}
}

func TestARepeatedDeliveryIsCounted(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.repeat = 7
	r := runOn(t, f, "drain")
	duplicates := int64(0)
	for _, c := range r.Checks {
		duplicates += c.Duplicates
	}
	if len(r.Failures) > 0 || duplicates == 0 {
		t.Errorf("failures %+v, checks %+v", r.Failures, r.Checks)
	}
}

func TestFirstAttemptsFailOnceInAStorm(t *testing.T) {
	t.Parallel()
	q := &queue{name: "q", failFirst: true, failedAt: map[int64]time.Duration{}, waited: time.Hour}
	q.issued.Store(1)
	q.enqueued.Store(1)
	payload := newPayload()
	if err := q.Handle(payload); !errors.Is(err, errFirstAttempt) {
		t.Fatalf("the first attempt: %v", err)
	}
	reached := q.reach()
	if err := q.Handle(payload); err != nil {
		t.Fatalf("the second attempt: %v", err)
	}
	select {
	case <-reached:
		t.Error("the end is reached before the acknowledgement")
	default:
	}
	q.Acknowledged(1)
	<-reached
	if q.waited >= time.Hour {
		t.Error("the wait was not measured")
	}
}
