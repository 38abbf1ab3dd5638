package inside

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// setClock is the clock of a machine whose date somebody sets, and on which a
// minute can pass at once. Its steady time is that of one process: it begins at
// the date, and no setting of the date reaches it.
type setClock struct {
	began  time.Time
	start  job.Millis   // the date when the process began
	set    atomic.Int64 // ms that the date is off
	passed atomic.Int64 // ms that went by at once, on both
	latest atomic.Int64 // the latest date that anybody saw
}

func newSetClock() *setClock { return bootedAt(time.Now().UnixMilli()) }

func bootedAt(date int64) *setClock {
	c := &setClock{began: time.Now(), start: job.Millis(date)}
	c.set.Store(date - c.began.UnixMilli())
	return c
}

// reboot is the clock that the next process sees, on the same machine.
func (c *setClock) reboot() *setClock {
	next := bootedAt(int64(c.Wall()))
	next.latest.Store(c.latest.Load())
	return next
}

// Wall implements engine.Clock.
func (c *setClock) Wall() job.Millis {
	now := time.Now().UnixMilli() + c.set.Load() + c.passed.Load()
	for {
		latest := c.latest.Load()
		if now <= latest || c.latest.CompareAndSwap(latest, now) {
			return job.Millis(now)
		}
	}
}

// Steady implements engine.Clock.
func (c *setClock) Steady() job.Millis {
	return c.start + job.Millis(time.Since(c.began).Milliseconds()+c.passed.Load())
}

// step sets the date, and the server notices: any command makes it look.
func (c *setClock) step(s *stack, span job.Millis) {
	s.t.Helper()
	c.set.Add(int64(span))
	s.enqueue("noise", "")
}

// pass lets time go by, in pieces in which nobody takes the server for one that
// stood still.
func (c *setClock) pass(s *stack, span job.Millis) {
	s.t.Helper()
	for span > 0 {
		piece := min(span, 2*job.Second)
		c.passed.Add(int64(piece))
		s.enqueue("noise", "")
		span -= piece
	}
}

// diary keeps what a server logs.
type diary struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (d *diary) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(b)
}

func (d *diary) count(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), what)
}

const saidOfAStep = "the clock stepped"

// enqueue adds one job; more is what else its body has.
func (s *stack) enqueue(queue, more string) wire.Job {
	s.t.Helper()
	var added wire.Enqueued
	s.must(http.StatusCreated, &added, "POST", "/jobs", fmt.Sprintf(`{"type":"t","queue":%q,"payload":0%s}`, queue, more))
	return added.Job
}

// lease enqueues a job into a queue of its own and leases it.
func (s *stack) lease(queue string, span job.Millis, more string) wire.Job {
	s.t.Helper()
	id := s.enqueue(queue, more).ID
	var page wire.Page
	s.must(http.StatusOK, &page, "POST", "/jobs/lease", fmt.Sprintf(`{"queues":[%q],"lease_ms":%d}`, queue, span))
	if len(page.Jobs) != 1 || page.Jobs[0].ID != id {
		s.t.Fatalf("leased %+v, want job %s", page.Jobs, id)
	}
	return page.Jobs[0]
}

// settles ends a lease well, which has to be alive.
func (s *stack) settles(j wire.Job) { s.t.Helper(); s.settlesAs(j, "ok", wire.Completed) }

func (s *stack) settlesAs(j wire.Job, outcome string, want string) {
	s.t.Helper()
	var v wire.Verdicts
	s.must(http.StatusOK, &v, "POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":%q}]`, j.ID, j.Lease, outcome))
	if len(v.Verdicts) != 1 || v.Verdicts[0].Status != want {
		s.t.Errorf("settling a job of queue %s is answered with %+v", j.Queue, v)
	}
}

// is wants a job to have one of some statuses.
func (s *stack) is(id, when string, statuses ...string) {
	s.t.Helper()
	var j wire.Job
	if s.must(http.StatusOK, &j, "GET", "/jobs/"+id, ""); !slices.Contains(statuses, j.Status) {
		s.t.Errorf("%s, the job of queue %s is %s (%s), want %s", when, j.Queue, j.Status, j.Reason, statuses)
	}
}

// counts wants the engine to have counted so much since its start.
func (s *stack) counts(when string, steps, expired, purged, lapsed uint64) {
	s.t.Helper()
	n, err := enginetest.Stats(s.t.Context(), s.engine)
	if err != nil || n.ClockSteps != steps || n.Expired != expired || n.Purged != purged || n.Lapsed != lapsed {
		s.t.Errorf("%s: %d steps, %d expired, %d purged, %d lapsed, %v; want %d, %d, %d, %d", when,
			n.ClockSteps, n.Expired, n.Purged, n.Lapsed, err, steps, expired, purged, lapsed)
	}
}

func at(field string, date job.Millis) string { return fmt.Sprintf(`,%q:%d`, field, date) }

// TestADateSetForwardTakesNothingAwayTooSoon: what is due by date is due at
// once. Leases run on, and silent holders have half a minute; what would be
// lost waits a minute (core.md section 8).
func TestADateSetForwardTakesNothingAwayTooSoon(t *testing.T) {
	t.Parallel()
	c, said := newSetClock(), &diary{}
	s := start(t, options{clock: c, log: slog.NewTextHandler(said, nil)})
	now := c.Wall()
	due := s.enqueue("due", at("ready_at", now+job.Hour)).ID
	later := s.enqueue("later", at("ready_at", now+job.Day)).ID
	expires := s.enqueue("expires", at("expires_at", now+job.Hour)).ID
	s.settlesAs(s.lease("retained", job.Minute, `,"retention":{"dead_ms":3600000}`), "dead", wire.Dead)
	held, silent := s.lease("held", 5*job.Minute, ""), s.lease("silent", 10*job.Second, "")
	stream := s.take("stream")
	c.pass(s, 5*job.Second)
	s.counts("before", 0, 0, 0, 0)

	c.step(s, 10*job.Hour)
	s.is(due, "after the step", wire.Ready)
	s.is(later, "after the step", wire.Scheduled)
	s.is(expires, "after the step", wire.Ready)
	s.is(silent.ID, "after the step", wire.InFlight)
	s.counts("after the step", 1, 0, 0, 0)
	if n := said.count(saidOfAStep); n != 1 {
		t.Errorf("the step was logged %d times", n)
	}
	s.settles(held)
	c.pass(s, 28*job.Second)
	s.is(silent.ID, "28 s after the step", wire.InFlight)
	c.pass(s, 4*job.Second)
	s.is(silent.ID, "32 s after the step", wire.Ready)
	s.counts("32 s after the step", 1, 0, 0, 1)
	c.pass(s, 26*job.Second)
	s.is(expires, "58 s after the step", wire.Ready)
	s.counts("58 s after the step", 1, 0, 0, 1)
	c.pass(s, 4*job.Second)
	s.is(expires, "62 s after the step", wire.Dead)
	s.counts("62 s after the step", 1, 1, 1, 1)
	s.is(later, "in the end", wire.Scheduled)
	stream.settles() // nobody took its job from it
	if n := said.count(saidOfAStep); n != 1 {
		t.Errorf("in the end the step was logged %d times", n)
	}
}

// TestADateSetBackOnlyWaits: new work goes on at once and is younger than the
// old, spans last as long as they should, and dates wait until they are there
// again (core.md section 8).
func TestADateSetBackOnlyWaits(t *testing.T) {
	t.Parallel()
	c, said := newSetClock(), &diary{}
	s := start(t, options{clock: c, log: slog.NewTextHandler(said, nil)})
	now := c.Wall()
	due := s.enqueue("due", at("ready_at", now+job.Minute)).ID
	expires := s.enqueue("expires", at("expires_at", now+job.Minute)).ID
	held, silent := s.lease("held", 10*job.Minute, ""), s.lease("silent", 10*job.Second, "")
	stream := s.take("stream")
	c.step(s, -10*job.Hour)
	if young := s.lease("young", job.Minute, ""); young.ID <= silent.ID || young.ReadyAt < silent.ReadyAt {
		t.Errorf("a job that came later is %s, ready at %d; an earlier one %s, at %d", young.ID, young.ReadyAt, silent.ID, silent.ReadyAt)
	}
	c.pass(s, 8*job.Second)
	s.is(silent.ID, "8 s after a lease of 10 s began", wire.InFlight)
	c.pass(s, 4*job.Second)
	s.is(silent.ID, "12 s after a lease of 10 s began", wire.Ready)
	c.pass(s, 2*job.Minute)
	s.is(due, "while the date is wrong", wire.Scheduled)
	s.is(expires, "while the date is wrong", wire.Ready)
	s.counts("while the date is wrong", 0, 0, 0, 2)
	if n := said.count(saidOfAStep); n != 0 {
		t.Errorf("a step back was logged as one forward, %d times", n)
	}
	c.step(s, 10*job.Hour) // which is a step
	s.is(due, "once the date is right again", wire.Ready)
	s.is(expires, "once the date is right again", wire.Ready)
	c.pass(s, 62*job.Second)
	s.is(expires, "a minute later", wire.Dead)
	s.counts("in the end", 1, 1, 0, 2)
	s.settles(held)
	stream.settles()
}

// TestAStepOfTheDateOutlivesARestart steps while the server is up, and stops it
// then: what was left of a lease is left, neither nothing nor ten hours more
// (docs/adr/0003).
func TestAStepOfTheDateOutlivesARestart(t *testing.T) {
	t.Parallel()
	for span, status := range map[job.Millis]string{10 * job.Hour: wire.Ready, -10 * job.Hour: wire.Scheduled} {
		t.Run(span.String(), func(t *testing.T) {
			t.Parallel()
			disk, c := vfs.NewMem(), newSetClock()
			s := start(t, options{fs: disk, clock: c})
			due := s.enqueue("due", at("ready_at", c.Wall()+job.Hour)).ID
			held, silent := s.lease("held", 70*job.Second, ""), s.lease("silent", 70*job.Second, "")
			c.pass(s, 10*job.Second)
			c.step(s, span)
			s.stop()
			c = c.reboot()
			s = start(t, options{fs: disk, clock: c})
			s.is(due, "after the restart", status)
			c.pass(s, 52*job.Second) // so 62 s and what the machine took are over
			s.is(held.ID, "near the end of the lease", wire.InFlight)
			s.settles(held)
			s.is(silent.ID, "near the end of the lease", wire.InFlight)
			c.pass(s, 10*job.Second)
			s.is(silent.ID, "after the end of the lease", wire.Ready, status) // its own date may be ahead now
			s.counts("in the end", 0, 0, 0, 1)
		})
	}
}

// TestADateSetWhileTheServerIsDown: ids rise all the same, a token is honoured,
// and no run may last longer than it was meant to, nor is it over before its
// worker had half a minute to come back.
func TestADateSetWhileTheServerIsDown(t *testing.T) {
	t.Parallel()
	for _, span := range []job.Millis{10 * job.Day, -10 * job.Day} {
		t.Run(span.String(), func(t *testing.T) {
			t.Parallel()
			disk, c := vfs.NewMem(), newSetClock()
			s := start(t, options{fs: disk, clock: c})
			const bounded = `,"run_timeout_ms":60000`
			held, silent := s.lease("held", job.Hour, bounded), s.lease("silent", job.Hour, bounded)
			s.stop()
			c.set.Add(int64(span))
			c = c.reboot()
			s = start(t, options{fs: disk, clock: c})
			if young := s.enqueue("young", ""); young.ID <= silent.ID {
				t.Errorf("job %s came after %s", young.ID, silent.ID)
			}
			c.pass(s, 24*job.Second)
			s.settles(held)
			s.is(silent.ID, "24 s after the start", wire.InFlight)
			c.pass(s, 38*job.Second)
			s.counts("62 s after the start", 0, 0, 0, 1)
			s.is(silent.ID, "62 s after the start", wire.Ready, wire.Scheduled)
		})
	}
}

// stream is an anonymous worker with one job.
type stream struct {
	s   *stack
	job wire.Job
	res *http.Response
}

// take enqueues a job into a queue of its own, and takes it on a stream.
func (s *stack) take(queue string) *stream {
	s.t.Helper()
	id := s.enqueue(queue, "").ID
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+"/jobs/take?prefetch=1&queue="+queue, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = res.Body.Close() })
	w := &stream{s: s, res: res}
	if err := json.NewDecoder(res.Body).Decode(&w.job); err != nil || w.job.ID != id {
		s.t.Fatalf("a stream delivered %+v, %v; want job %s", w.job, err, id)
	}
	return w
}

// settles ends the job well, which has to be this stream's still.
func (w *stream) settles() {
	w.s.t.Helper()
	w.s.is(w.job.ID, "on its stream", wire.InFlight)
	w.s.must(http.StatusNoContent, nil, "POST", "/jobs/"+w.job.ID+"/success", "")
	_ = w.res.Body.Close()
}
