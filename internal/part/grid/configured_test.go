package grid_test

import (
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// What came over the API keeps no server from starting, nor from reading its
// configuration again: inboxes and sessions, empty or not, stay what they are.
func TestTheConfigurationLeavesInboxesAndSessionsWhatTheyAre(t *testing.T) {
	limit := func(q *job.Queue) { q.MaxJobs = 7 }
	all := func(q *job.Queue) {
		toTheEnd(q)
		q.Turns, q.MaxJobs, q.OnFull, q.Paused = false, 7, job.FullDropOldest, true
	}
	makes := map[string]func(*gridRig){
		"session": func(g *gridRig) { g.session("q"); g.tasks("q", "A") },
		"inbox": func(g *gridRig) {
			row := job.DoorSetting{Door: job.DoorInbox, Name: "q", Body: []byte("{}")}
			if err := g.Part.Desk.SetDoor(g.Context(), row, func(q *job.Queue) error { failFirst(q); return nil }, func([]byte) string { return "" }, ann); err != nil {
				g.Fatal(err)
			}
		},
	}
	makes["inbox with a message"] = func(g *gridRig) {
		makes["inbox"](g)
		g.Add("q", "a1", grouped("a"), func(n *engine.NewJob) { n.Job.Door = job.DoorInbox })
	}
	for _, c := range []struct {
		name      string
		file      func(*job.Queue)
		apiFirst  bool
		what, log string
	}{
		{"max_jobs", limit, true, "session", "session"},
		{"all", all, true, "session", "not_taken=order,concurrency,on_dead,retry,fair_share,on_full"},
		{"all", all, true, "inbox", "not_taken=order,concurrency,on_full"},
		{"max_jobs", limit, true, "inbox", "inbox"},
		{"all", all, true, "inbox with a message", "not_taken=order,concurrency,on_full"},
		{"max_jobs", limit, false, "inbox", "inbox"},
		{"max_jobs", limit, false, "inbox with a message", "inbox"},
	} {
		t.Run(fmt.Sprintf("%s, %s, API first %t", c.name, c.what, c.apiFirst), func(t *testing.T) {
			grid(t, func(g *gridRig) {
				if !c.apiFirst {
					g.Configured(c.file)
					g.Restart(0)
				}
				makes[c.what](g)
				before, _, err := g.Queue(g.Context(), "q")
				if err != nil {
					t.Fatal(err)
				}
				want := *before
				want.MaxJobs, want.Paused = 7, c.name == "all"
				is := func(when string) {
					t.Helper()
					if q, _, err := g.Queue(g.Context(), "q"); err != nil || !reflect.DeepEqual(q, &want) {
						t.Errorf("%s: %+v, %v; want %+v", when, q, err, want)
					}
				}
				reload := g.Opts
				g.Configured(c.file)
				reload.Queues = g.Opts.Queues
				if err := g.Reconfigure(g.Context(), reload, ann); err != nil {
					t.Fatal(err)
				}
				is("reloaded")
				g.Restart(0)
				is("started")
				g.End()
				var lines strings.Builder
				g.Engine = engine.New(g.Mem, g.Clock, dice(9).Uint64, slog.New(slog.NewTextHandler(&lines, nil)), g.Opts)
				if err := g.Start(g.Context()); err != nil {
					t.Fatal(err)
				}
				g.Ended = false
				if s := lines.String(); !strings.Contains(s, "queue=q ") || !strings.Contains(s, c.log) {
					t.Errorf("the log says %q, want %q", s, c.log)
				}
			})
		})
	}
}
