package e2e

import (
	"path/filepath"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// TestTheFileProtectsAndWinsAtEachStart: what the configuration file says of
// a queue holds from each start on, what was set live on others stays, and the
// audit log still knows who set it.
func TestTheFileProtectsAndWinsAtEachStart(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "reprise.yaml"), "queues:\n  hooks:\n    max_running: 2\n    breaker: {consecutive: 3}\n    fair_share: {weights: {gold: 3}}\n")
	root := filepath.Join(dir, "root")
	s := start(t, root, "-c", file)
	cl := dial(s.url)
	is := func(name string, running int64, rate float64, guarded bool) {
		t.Helper()
		var q wire.Queue
		cl.must(t, 200, &q, "GET", "/queues/"+name, nil)
		if q.MaxRunning != running || (q.Rate == nil) != (rate == 0) || q.Rate != nil && q.Rate.PerSecond != rate ||
			(q.Breaker != nil && q.Breaker.Consecutive == 3) != guarded || (q.FairShare != nil && q.FairShare.Weights["gold"] == 3) != guarded {
			t.Errorf("%s has %+v", name, q)
		}
	}
	is("hooks", 2, 0, true)
	cl.enqueueMany(t, "hooks", 5)
	var leased struct{ Jobs []wire.Job }
	cl.must(t, 200, &leased, "POST", "/jobs/lease", map[string]any{"worker": "w", "max": 10, "queues": []string{"hooks"}})
	if len(leased.Jobs) != 2 {
		t.Errorf("%d jobs run, and max_running of the file is 2", len(leased.Jobs))
	}
	for _, name := range []string{"hooks", "other"} {
		cl.must(t, 200, nil, "PATCH", "/queues/"+name, map[string]any{"max_running": 7, "rate": wire.Rate{PerSecond: 100}, "breaker": nil, "fair_share": nil})
		is(name, 7, 100, false)
	}
	cl.close()
	s.kill()
	s = start(t, root, "-c", file)
	cl = dial(s.url)
	is("hooks", 2, 0, true)
	is("other", 7, 100, false)
	var log wire.Audit
	cl.must(t, 200, &log, "GET", "/audit", nil)
	if len(log.Entries) != 2 || log.Entries[1].Subject != "queue hooks" || log.Entries[1].Action != "set" || len(log.Entries[1].Changes) != 4 {
		t.Errorf("the audit log says %+v", log.Entries)
	}
	cl.close()
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	write(t, file, "queues:\n  hooks:\n    max_running: many\n    breaker:\n      window: 1000\n")
	says(t, refusesToStart(t, root, "-c", file), "reprise.yaml:3: queues.hooks.max_running: \"many\" must be", "reprise.yaml:5: queues.hooks.breaker.window: must be a whole number from 1 to 256")
}
