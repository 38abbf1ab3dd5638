package metrics_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/metrics"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/parttest"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// Every metric is in the documentation, and everything there is a metric.
func TestEveryMetricIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Metrics\n")
	if !ok {
		t.Fatal("docs/operations.md has no section Metrics")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	documented, there := map[string]bool{}, map[string]bool{}
	for _, m := range regexp.MustCompile("`(reprise_[a-z_]+)`").FindAllStringSubmatch(section, -1) {
		documented[m[1]] = true
	}
	for line := range strings.Lines(page(t)) {
		if name, ok := strings.CutPrefix(line, "# TYPE reprise_"); ok {
			name, _, _ = strings.Cut(name, " ")
			there["reprise_"+name] = true
		}
	}
	for name := range there {
		if !documented[name] {
			t.Errorf("%s is not documented", name)
		}
	}
	for name := range documented {
		if !there[name] {
			t.Errorf("%s is documented and not there", name)
		}
	}
}

// What parts count themselves is told, each under its own name.
func TestWhatPartsCountIsTold(t *testing.T) {
	batched := parttest.NewNamed("batches", "a")
	batched.Job.Extras = &job.Extras{Batch: &job.Batch{Key: "k"}}
	parttest.Scenario(t, func(r *parttest.Rig) *parttest.Rig { return r }, func(r *parttest.Rig) {
		r.PutAgain(batched, batched, batched, batched)
		r.SetQueue("full", func(q *job.Queue) { q.MaxJobs = 1 })
		r.AddAll("full", "first")
		r.SetQueue("fails", parttest.Breaker)
		r.AddAll("fails", "a", "b", "c")
		w := r.Anonymous(3, "fails")
		w.FailAll(w.Read()...)
		ask := cron.GroupAsk{Missed: job.MissedSkip, Zone: "UTC"}
		for _, queue := range []string{"q", "full"} {
			ask.Entries = append(ask.Entries, cron.Ask{Name: queue, Expression: "*/20 * * * *", Job: parttest.NewNamed(queue, "tick")})
		}
		if _, err := r.Part.Crons.Set(r.Context(), "g", ask, parttest.Ann); err != nil {
			r.Fatal(err)
		}
		r.Pass(40 * job.Minute)
		r.Jump(41 * job.Minute)
		is := r.Part.Crons.Counts()
		counts := map[string]uint64{"cron_jobs": is.Jobs, "cron_refused": is.Refused, "cron_skipped": is.Skipped, "folded": r.Part.Folds.Folded(), "breaker_opened": r.Part.Guard.Opened()}
		answer := httptest.NewRecorder()
		metrics.New(r.Part, "1").ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		seen := map[uint64]bool{0: true}
		for name, n := range counts {
			if seen[n] {
				t.Errorf("what is counted is not told apart: %v", counts)
			}
			seen[n] = true
			if line := fmt.Sprintf("\nreprise_%s_total %d\n", name, n); !strings.Contains(answer.Body.String(), line) {
				t.Errorf("%q is missing", line)
			}
		}
	}, func(r *parttest.Rig) {
		r.Folder = func(_ context.Context, _ *job.Batch, existing, _ []byte) ([]byte, bool, error) {
			return existing, true, nil
		}
	})
}

type crowd struct{}

func (crowd) Open() int      { return 7 }
func (crowd) Refused() int64 { return 8 }

func TestConnectionsAndInboxesAreCounted(t *testing.T) {
	text := page(t)
	for _, line := range []string{"reprise_connections 7\n", "reprise_connections_refused_total 8\n", "reprise_inboxes_not_delivering 2\n"} {
		if !strings.Contains(text, "\n"+line) {
			t.Errorf("%q is missing", line)
		}
	}
}

// page scrapes an engine in which there is something of everything.
func page(t *testing.T) string {
	t.Helper()
	clock := engine.SystemClock()
	var mu sync.Mutex
	src := rand.New(rand.NewPCG(1, 1))
	rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
	st := mem.Open(mem.Options{Now: clock.Wall, Rand: rand.New(rand.NewPCG(2, 2)), Free: func() (int64, int64) { return 500, 1000 }})
	e := part.New(st, clock, rnd, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()})
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Stop(t.Context()) })
	n := engine.NewJob{Payload: []byte("1")}
	n.Job.Queue, n.Job.Type = "q", "t"
	if _, err := e.Put(t.Context(), []engine.NewJob{n}); err != nil {
		t.Fatal(err)
	}
	turns := func(q *job.Queue) error {
		q.Order, q.Turns, q.Protection.Fair = job.OrderStrict, true, &job.FairShare{}
		return nil
	}
	if _, err := e.Desk.SetQueue(t.Context(), "in", turns, job.Actor{}); err != nil {
		t.Fatal(err)
	}
	n.Job.Queue, n.Job.Group = "in", "g"
	if _, err := e.Put(t.Context(), []engine.NewJob{n, n, n}); err != nil {
		t.Fatal(err)
	}
	given, err := e.Turns.Lease(t.Context(), turn.Options{Queue: "in"})
	if err != nil {
		t.Fatal(err)
	}
	d := given[0].Deliveries[0]
	if _, err := e.Settle(t.Context(), []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token}}); err != nil {
		t.Fatal(err)
	}
	session := grid.NewSession{Queue: *job.NewQueue("s")}
	session.Queue.Grid = &job.Grid{Weight: job.GridWeightDefault, MaxCopies: 1}
	if _, err := e.Grid.OpenSession(t.Context(), session, job.Actor{}); err != nil {
		t.Fatal(err)
	}
	n.Job.Queue, n.Job.Group, n.Job.Door = "s", "", job.DoorGrid
	if _, err := e.Put(t.Context(), []engine.NewJob{n}); err != nil {
		t.Fatal(err)
	}
	if err := e.Desk.PauseGroup(t.Context(), job.Actor{}, "in", "g", true); err != nil {
		t.Fatal(err)
	}
	if err := e.Guard.ForceBreaker(t.Context(), "q", "", 1, job.Actor{}); err != nil {
		t.Fatal(err)
	}
	m := metrics.New(e, "v1")
	m.Connections(crowd{})
	m.Inboxes(func() int { return 2 })
	m.Answered("read", time.Second)
	m.Refused("invalid")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestMessagesAndGroupsOfInboxesAreCounted(t *testing.T) {
	text := page(t)
	for _, line := range []string{
		`reprise_queue_turn_jobs{queue="in",status="waiting"} 2`, `reprise_queue_turn_jobs{queue="in",status="blocking"} 0`,
		`reprise_queue_turn_groups{condition="paused",queue="in"} 1`, `reprise_queue_turn_groups{condition="ready",queue="in"} 0`,
		`reprise_turn_attempts_bucket{outcome="done",queue="in",le="1"} 1`, `reprise_turn_attempts_sum{outcome="done",queue="in"} 1`,
		`reprise_turn_attempts_count{outcome="exhausted",queue="in"} 0`, `reprise_turn_latency_seconds_count{queue="in"} 1`,
		`reprise_queue_oldest_seconds{queue="in",state="in_flight"} 0`, `reprise_queue_turn_oldest_seconds{queue="in",status="blocking"} 0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	for _, series := range []string{`queue_oldest_seconds{queue="in",state="ready"}`, `queue_turn_oldest_seconds{queue="in",status="waiting"}`} {
		oldest := regexp.MustCompile("reprise_" + regexp.QuoteMeta(series) + ` (\S+)\n`).FindStringSubmatch(text)
		if oldest == nil || oldest[1] == "0" {
			t.Errorf("%s is %q", series, oldest)
		}
	}
	if strings.Contains(text, `reprise_turn_attempts_count{outcome="done",queue="q"`) {
		t.Error("a queue without turns has them counted")
	}
	if strings.Contains(text, `reprise_queue_turn_jobs{queue="q"`) {
		t.Error("a queue without turns has its jobs counted twice")
	}
}

func TestSharesOfSessionsAreTold(t *testing.T) {
	text := page(t)
	for _, line := range []string{
		`reprise_grid_sessions 1`, `reprise_grid_share_slots{what="actual"} 0`, `reprise_grid_excluded_engines 0`,
		`reprise_queue_jobs{queue="_grid",state="ready"} 1`, `reprise_enqueued_total{queue="_grid"} 1`,
		`reprise_grid_engines{health="well"} 0`, `reprise_grid_tasks_total{outcome="failed"} 0`,
		`reprise_grid_redundancy_suppressed_total{reason="busy"} 0`, `reprise_grid_late_results_total{answer="ignored"} 0`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%q is missing", line)
		}
	}
}

// The name of a session is an id: however many there are, they are one label, and
// push no queue into the others. Neither do those that a start finds.
func TestNoSessionIsALabel(t *testing.T) {
	clock := engine.SystemClock()
	st := mem.Open(mem.Options{Now: clock.Wall, Rand: rand.New(rand.NewPCG(3, 3))})
	for round, real := range []string{"mail", "bills"} {
		src := rand.New(rand.NewPCG(uint64(round), 4))
		var mu sync.Mutex
		rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return src.Uint64() }
		e := part.New(st, clock, rnd, slog.New(slog.DiscardHandler), engine.Options{Server: rule.DefaultServer()})
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		put := func(queue string, door job.Door) {
			n := engine.NewJob{Payload: []byte("1")}
			n.Job.Queue, n.Job.Type, n.Job.Door = queue, "t", door
			if _, err := e.Put(t.Context(), []engine.NewJob{n}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 205 {
			s := grid.NewSession{Queue: *job.NewQueue("secret-session-" + string(rune('a'+round)) + strconv.Itoa(i))}
			s.Queue.Grid = &job.Grid{Weight: job.GridWeightDefault, MaxCopies: 1}
			if _, err := e.Grid.OpenSession(t.Context(), s, job.Actor{}); err != nil {
				t.Fatal(err)
			}
			put(s.Queue.Name, job.DoorGrid)
		}
		put(real, job.DoorJobs)
		w := httptest.NewRecorder()
		metrics.New(e, "v1").ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		text := w.Body.String()
		for _, line := range []string{
			`reprise_queue_jobs{queue="` + real + `",state="ready"} 1`, `reprise_queue_jobs{queue="_other",state="ready"} 0`,
			`reprise_queue_jobs{queue="_grid",state="ready"} ` + strconv.Itoa(205*(round+1)), `reprise_enqueued_total{queue="_grid"} 205`,
			`reprise_grid_sessions ` + strconv.Itoa(205*(round+1)),
		} {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("start %d: %q is missing", round+1, line)
			}
		}
		if strings.Contains(text, "secret-session") {
			t.Errorf("start %d: the id of a session is a label", round+1)
		}
		if err := e.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
