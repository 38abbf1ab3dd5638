package client

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestOutcomesWaitForTheServerAndGoWithTheReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 3)
		gate := make(chan struct{})
		w := start(t, c, WorkerOptions{Concurrency: 3}, func(context.Context, *Delivery) error { <-gate; return nil })
		f.ln.fall()
		close(gate)
		pass(40 * time.Second) // the waits for a settle have grown to half a minute by now
		if w.count("delayed") < 3 || w.count("settled") != 0 {
			t.Errorf("%q", w.lines)
		}
		f.ln.rise()
		pass(5100 * time.Millisecond) // at most one wait for the stream
		f.want(t, wire.Completed, 3)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		if w.count("started") != 3 {
			t.Errorf("%q", w.lines)
		}
	})
}

func TestAnOutcomeRefusedByNameIsToldAndNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		w := start(t, c, WorkerOptions{}, func(_ context.Context, d *Delivery) error { f.remove(d.Job.ID); return nil })
		pass(time.Minute)
		if w.count("refused ok: not_found") != 1 || len(f.calls) != 1 {
			t.Errorf("%d calls: %q", len(f.calls), w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOutcomeThatMayPassLaterIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		settled := &diary{}
		events := settled.events()
		s := newSettler(func(_ context.Context, list []wire.Settle) ([]wire.Verdict, error) {
			calls++
			out := make([]wire.Verdict, len(list))
			for i := range list {
				if out[i].ID = list[i].ID; i == 0 && calls == 1 {
					out[i].Code = wire.CodeUnavailable
				}
			}
			return out, nil
		}, &events, times{}.orDefault())
		s.answer = func(e wire.Settle, _ wire.Verdict) { settled.note("answered %s", e.ID) }
		s.add(wire.Settle{ID: "a"})
		s.add(wire.Settle{ID: "b"})
		s.close()
		s.run(t.Context())
		if want := []string{"answered b", "delayed 1: ", "answered a"}; calls != 2 || len(settled.lines) != 3 ||
			!slices.EqualFunc(settled.lines, want, strings.HasPrefix) {
			t.Errorf("%d calls: %q", calls, settled.lines)
		}
	})
}

func TestAnOutcomeWhoseAnswerWasLostCountsAsTakenOnceTheJobIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 1)
		lost := false
		f.refuse = func(r *http.Request) *refusal {
			if r.URL.Path != "/jobs/settle" || lost {
				return nil
			}
			lost = true
			var list []wire.Settle
			f.read(r, &list)
			f.settle(list)
			f.remove(list[0].ID) // completed jobs leave at once
			return &refusal{hangUp: true}
		}
		w := start(t, c, WorkerOptions{}, nothing)
		pass(2 * time.Second)
		if w.count("settled ok: completed") != 1 || w.count("refused") != 0 {
			t.Errorf("%q", w.lines)
		}
		if err := w.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestACallThatIsRefusedWholeIsTakenApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		events := d.events()
		s := newSettler(func(_ context.Context, list []wire.Settle) ([]wire.Verdict, error) {
			if slices.ContainsFunc(list, func(s wire.Settle) bool { return s.ID == "bad" }) {
				return nil, &Error{Status: 413, Code: wire.CodeTooLarge}
			}
			return make([]wire.Verdict, len(list)), nil
		}, &events, times{}.orDefault())
		s.answer = func(e wire.Settle, v wire.Verdict) { d.note("%s %s", e.ID, v.Code) }
		for _, id := range strings.Split("a b c bad d e", " ") {
			s.add(wire.Settle{ID: id})
		}
		s.close()
		s.run(t.Context())
		if got := strings.Join(d.lines, "|"); got != "a |b |c |bad too_large|d |e " {
			t.Errorf("%s", got)
		}
	})
}
