package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// TestAReplayOfTenThousandSurvivesKillNineAndTouchesEachJobOnce kills the
// server in the middle of a replay, twice, and lets everything die once more:
// each job must have been brought back exactly once (retry.md section 3).
func TestAReplayOfTenThousandSurvivesKillNineAndTouchesEachJobOnce(t *testing.T) {
	told(t)
	t.Parallel()
	const many = 10_000
	root := filepath.Join(t.TempDir(), "root")
	s := start(t, root)
	cl := dial(s.url)
	ids := map[string]bool{}
	for len(ids) < many {
		for _, j := range cl.enqueueMany(t, "q", 1000) {
			ids[j.ID] = true
		}
	}
	if n := killAll(t, cl); n != many {
		t.Fatalf("%d of %d died", n, many)
	}
	var groups wire.DeadGroups
	cl.must(t, 200, &groups, "GET", "/dead/groups", nil)
	if groups.Total != 1 || groups.Groups[0].Count != many {
		t.Fatalf("%+v", groups)
	}
	filter := wire.DeadFilter{Fingerprints: []string{groups.Groups[0].Fingerprint}}
	var run wire.Replay
	cl.must(t, 202, &run, "POST", "/dead/replay", wire.DeadReplay{Filter: filter, Rate: 4000})
	if run.Total != many {
		t.Fatalf("%+v", run)
	}
	for _, enough := range []int64{many / 4, many / 2} {
		until(t, "the replay coming so far", func() (bool, string) {
			cl.must(t, 200, &run, "GET", "/replays/"+run.ID, nil)
			return run.Done >= enough, fmt.Sprintf("%+v", run)
		})
		if run.Status != wire.RunRunning {
			t.Fatalf("it was over before it could be killed: %+v", run)
		}
		cl.close()
		s.kill()
		s = start(t, root, "--port", s.port())
		cl = dial(s.url)
	}
	until(t, "the end of the replay", func() (bool, string) {
		cl.must(t, 200, &run, "GET", "/replays/"+run.ID, nil)
		return run.Status == wire.RunDone, fmt.Sprintf("%+v", run)
	})
	if run.Done != many || run.Skipped+run.Refused+run.Guarded != 0 {
		t.Errorf("%+v", run)
	}
	if ready, dead := cl.count(t, "status=ready"), cl.count(t, "status=dead"); ready != many || dead != 0 {
		t.Errorf("%d are ready and %d dead", ready, dead)
	}
	if n := killAll(t, cl); n != many {
		t.Errorf("%d of %d died again", n, many)
	}
	for next := "/dead?limit=2000"; next != ""; {
		var page wire.DeadPage
		cl.must(t, 200, &page, "GET", next, nil)
		for _, j := range page.Jobs {
			if !ids[j.ID] || j.Replays != 1 {
				t.Errorf("job %s was replayed %d times (ours, and not seen before: %t)", j.ID, j.Replays, ids[j.ID])
			}
			delete(ids, j.ID)
		}
		if next = ""; page.Pages.Next != nil {
			next = *page.Pages.Next
		}
	}
	if len(ids) > 0 {
		t.Errorf("%d jobs are lost", len(ids))
	}
	cl.close()
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// killAll lets every job that is ready die, all of the same error but for its
// number, and returns how many there were.
func killAll(t *testing.T, cl *client) (died int) {
	t.Helper()
	for {
		if cl.count(t, "status=ready") == 0 {
			return died
		}
		var leased struct{ Jobs []wire.Job }
		cl.must(t, 200, &leased, "POST", "/jobs/lease", map[string]any{"worker": "reaper", "max": 1000})
		var ends []wire.Settle
		for i, j := range leased.Jobs {
			why := &wire.Failure{Message: fmt.Sprintf("no answer from 10.0.0.%d in %ds", i%256, i), ErrorType: "Timeout"}
			ends = append(ends, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: wire.OutcomeDead, Error: why})
		}
		var verdicts wire.Verdicts
		cl.must(t, 200, &verdicts, "POST", "/jobs/settle", ends)
		for _, v := range verdicts.Verdicts {
			if v.Status == wire.Dead {
				died++
			}
		}
	}
}
