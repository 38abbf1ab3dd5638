package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

func anyEngine(string) bool { return true }

func TestA26AnEngineIsExcludedByItsSessionOnly(t *testing.T) {
	x := job.SeedExclusion()
	x.Failures = 3
	a, b := job.ID{1}, job.ID{2}
	var list, other []job.Strike
	for i, task := range []job.ID{a, b, a} { // failures of two tasks
		if list, _ = Exclude(list, &x, 4, anyEngine, 5); Excluded(list, "W") {
			t.Fatalf("excluded after %d failures", i)
		}
		list = Struck(list, &x, "W", task, 5)
	}
	if list, _ = Exclude(list, &x, 4, anyEngine, 5); !Excluded(list, "W") || Excluded(list, "V") || Excluded(other, "W") {
		t.Errorf("%+v", list)
	}
	for how := job.ByLapse; how <= job.ByTimeout; how++ { // a drain does not count
		if want := how == job.ByRetry || how == job.ByDead || how == job.ByTimeout; CountsAgainst(how) != want {
			t.Errorf("%s counts: %t", how, !want)
		}
	}
	if far, _ := Exclude(list, &x, 4, anyEngine, 1<<60); !Excluded(far, "W") || NextPardon(far) != 0 {
		t.Error("the exclusion ended by itself")
	}
	if list = ClearStrikes(list, "W"); Excluded(list, "W") || len(list) != 0 {
		t.Errorf("after it was cleared: %+v", list)
	}

	own := job.DefaultExclusion() // counts tasks, and ends
	for _, task := range []job.ID{a, b, a, b, a} {
		list = Struck(list, &own, "W", task, 100)
	}
	if list, _ = Exclude(list, &own, 4, anyEngine, 100); Excluded(list, "W") || list[0].Count != 5 {
		t.Errorf("excluded by two tasks: %+v", list)
	}
	before := list
	list = Struck(list, &own, "W", job.ID{3}, 200)
	if !reflect.DeepEqual(before, []job.Strike{{Engine: "W", Tasks: []job.ID{a, b}, Count: 5, Last: 100}}) {
		t.Errorf("the old list was changed: %+v", before)
	}
	end := 200 + own.TTL
	if list, _ = Exclude(list, &own, 4, anyEngine, end-1); !Excluded(list, "W") || NextPardon(list) != end {
		t.Errorf("%+v", list)
	}
	if list, _ = Exclude(list, &own, 4, anyEngine, end); len(list) != 0 {
		t.Errorf("it is not over: %+v", list)
	}
	list = Struck(Struck(nil, &own, "W", a, 100), &own, "W", b, 100+own.TTL)
	if list[0].Count != 1 || len(list[0].Tasks) != 1 {
		t.Errorf("a failure of long ago counts: %+v", list)
	}
	list = Struck(Struck(nil, &own, "W", a, 100), &own, "W", b, 99+own.TTL)
	if list[0].Count != 2 || len(list[0].Tasks) != 2 {
		t.Errorf("a failure does not count until it is long ago: %+v", list)
	}
	if got := ClearStrikes(ClearStrikes(list, "V"), ""); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestA27TheFloorRuleFreesTheBestHalf(t *testing.T) {
	x := job.DefaultExclusion()
	x.Failures = 1
	var list []job.Strike
	for i := range 4 {
		for k := range i + 1 { // the fourth is the worst
			list = Struck(list, &x, fmt.Sprint("W", i), job.ID{byte(k)}, job.Millis(10+i))
		}
	}
	list = Struck(list, &x, "gone", job.ID{9}, 5)
	may := func(engine string) bool { return engine != "gone" }
	list, stalled := Exclude(list, &x, 4, may, 20)
	for i, out := range []bool{false, false, true, true} {
		if Excluded(list, fmt.Sprint("W", i)) != out {
			t.Errorf("engine %d is excluded: %t", i, !out)
		}
	}
	if !stalled {
		t.Error("all failed too often, and the session is not stalled")
	}
	if _, stalled = Exclude(list, &x, 5, may, 20); stalled {
		t.Error("one never failed, and the session is stalled")
	}
	seed := job.SeedExclusion()
	if list, stalled = Exclude(list, &seed, 4, may, 20); !stalled || !Excluded(list, "W0") || Excluded(list, "gone") {
		t.Errorf("without a floor all are excluded: %+v", list)
	}
	if _, stalled = Exclude(nil, &x, 0, may, 20); stalled {
		t.Error("without engines it is stalled")
	}
}

func TestLawsOfExclusion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := job.Exclusion{
			Failures: rapid.IntRange(1, 3).Draw(t, "failures"), EachFailure: rapid.Bool().Draw(t, "each"),
			TTL: job.Millis(rapid.Int64Range(0, 50).Draw(t, "ttl")), MaxFraction: rapid.Float64Range(0, 1).Draw(t, "fraction"),
		}
		all := rapid.IntRange(1, 8).Draw(t, "engines")
		var list []job.Strike
		now := job.Millis(1000)
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			now += job.Millis(rapid.Int64Range(0, 10).Draw(t, "pass"))
			kept, was := slices.Clone(list), fmt.Sprint(list)
			engine, task := fmt.Sprint(rapid.IntRange(0, all-1).Draw(t, "engine")), job.ID{byte(rapid.IntRange(0, 4).Draw(t, "task"))}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				list = ClearStrikes(list, engine)
			case 1:
				list = PardonStrikes(list, &x, task)
			default:
				list = Struck(list, &x, engine, task, now)
			}
			if fmt.Sprint(kept) != was {
				t.Fatalf("the old list was changed to %v", kept)
			}
			list, _ = Exclude(list, &x, all, anyEngine, now)
			out := 0
			for _, s := range list {
				out += oneIf(s.Out)
				if s.Out && (s.Until <= now || len(s.Tasks) < x.Failures) || len(s.Tasks) > x.Failures || len(s.Tasks) == 0 {
					t.Fatalf("%+v", s)
				}
			}
			if float64(out) > x.MaxFraction*float64(all)+1e-6 {
				t.Fatalf("%d of %d are excluded", out, all)
			}
			if !slices.IsSortedFunc(list, func(a, b job.Strike) int { return slices.Compare([]string{a.Engine}, []string{b.Engine}) }) {
				t.Fatalf("out of order: %v", list)
			}
			if at := NextPardon(list); at != 0 && at <= now {
				t.Fatalf("an exclusion was over at %d", at)
			}
		}
		b, err := json.Marshal(list)
		var back []job.Strike
		if err != nil || json.Unmarshal(b, &back) != nil || !reflect.DeepEqual(back, list) {
			t.Fatalf("it does not come back: %s", b)
		}
	})
}

func TestStrikesAreBounded(t *testing.T) {
	x := job.DefaultExclusion()
	list := make([]job.Strike, 0, job.StrikesMax)
	for i := range job.StrikesMax {
		list = append(list, job.Strike{Engine: fmt.Sprintf("%06d", i), Last: job.Millis(1000 + (i+1)%job.StrikesMax)})
	}
	last := len(list) - 1
	for _, oldest := range []int{last, 50} { // behind the new one, and before it
		list[last].Last, list[oldest].Last = 1001, 1000
		got := Struck(list, &x, "000100x", job.ID{1}, 5000)
		_, kept := strikeAt(got, list[oldest].Engine)
		at, known := strikeAt(got, "000100x")
		if kept || len(got) != job.StrikesMax || !known || got[at].Count != 1 {
			t.Errorf("%d are remembered, who failed longest ago too: %t; the new one: %t", len(got), kept, known)
		}
	}
}

func TestA28ABlackHoleIsProbedAndReleased(t *testing.T) {
	s, now := job.DefaultBlackHoles(), job.Millis(1_000_000)
	var h job.Health
	for i := range byte(5) { // 5 failures in 2 s
		if h.State != job.HealthWell || HealthAdmits(h, 9) != rule.NoLimit {
			t.Fatalf("after %d failures it is %s", i, h.State)
		}
		now += 400
		h = HealthFailed(h, &s, job.ID{i}, 350, now, true)
	}
	if h.State != job.HealthSuspended || h.Until != now+10*job.Second || HealthAdmits(h, 0) != 0 {
		t.Fatalf("%+v", h)
	}
	for i := range byte(3) { // three of five tasks pass elsewhere
		h = HealthElsewhere(h, &s, job.ID{i}, now, true)
		if quarantined := h.State == job.HealthQuarantined; quarantined != (i == 2) {
			t.Errorf("after %d tasks passed elsewhere it is %s", i+1, h.State)
		}
	}
	if h.Until != now+10*job.Minute || HealthAdmits(h, 0) != 0 || !HealthHolds(h, job.ID{4}) {
		t.Errorf("%+v", h)
	}
	if _, err := HealthRecovers(h, h.Until-1); err == nil {
		t.Error("I6: it is probed before its time")
	}
	if same := HealthSucceeded(h, false); same.State != job.HealthQuarantined {
		t.Error("what began before it was in quarantine releases it")
	}
	for name, same := range map[string]job.Health{
		"failed":           HealthFailed(h, &s, job.ID{7}, 1, now+5, true),
		"passed elsewhere": HealthElsewhere(h, &s, job.ID{4}, now+5, true),
		"is poison":        HealthPardoned(h, &s, job.ID{7}),
	} {
		if same.State != job.HealthQuarantined || same.Until != h.Until {
			t.Errorf("a task that began before %s: %+v", name, same)
		}
	}
	now = h.Until
	probed, err := HealthRecovers(h, now)
	if err != nil || probed.State != job.HealthProbed || HealthAdmits(probed, 0) != 1 || HealthAdmits(probed, 1) != 0 {
		t.Fatalf("%+v, %v", probed, err)
	}
	if bad := HealthFailed(probed, &s, job.ID{9}, job.Hour, now, true); bad.State != job.HealthQuarantined || bad.Until != now+10*job.Minute {
		t.Errorf("the probe failed: %+v", bad)
	}
	if same := HealthSucceeded(probed, false); same.State != job.HealthProbed {
		t.Error("what is no probe releases it")
	}
	if well := HealthSucceeded(probed, true); !reflect.DeepEqual(well, job.Health{}) {
		t.Errorf("released: %+v", well)
	}
}

func TestWhoIsOnlySuspectedIsBackSoon(t *testing.T) {
	s := job.DefaultBlackHoles()
	row := func(n int, took job.Millis, room bool) (h job.Health) {
		for i := range n {
			h = HealthFailed(h, &s, job.ID{byte(i)}, took, 100, room)
		}
		return h
	}
	h, err := HealthRecovers(row(5, 1000, true), 100+10*job.Second)
	if err != nil || h.State != job.HealthWell || len(h.Row) != 5 {
		t.Fatalf("%+v, %v", h, err)
	}
	if again := HealthFailed(h, &s, job.ID{7}, 5, 20_000, true); again.State != job.HealthSuspended || again.Until != 30_000 {
		t.Errorf("it fails again: %+v", again)
	}
	if slow := HealthFailed(h, &s, job.ID{7}, 1001, 20_000, true); slow.State != job.HealthWell || len(slow.Row) != 0 {
		t.Errorf("a run that was not fast: %+v", slow)
	}
	if ok := HealthSucceeded(h, false); len(ok.Row) != 0 {
		t.Errorf("a success ends the row: %+v", ok)
	}
	if row(50, 1, false).State != job.HealthWell || len(row(50, 1, false).Row) != job.HealthTasksMax {
		t.Error("more engines are out than may be")
	}
	if !HealthRoom(&s, 1, 4) || HealthRoom(&s, 2, 4) || HealthRoom(&s, 0, 1) {
		t.Error("there is room for another number")
	}
	known := row(5, 1, false)
	known = HealthElsewhere(known, &s, job.ID{0}, 100, false)
	if known = HealthElsewhere(known, &s, job.ID{99}, 100, true); known.State != job.HealthWell {
		t.Errorf("%+v", known)
	}
	for i := range byte(3) {
		known = HealthElsewhere(known, &s, job.ID{i}, 100, true)
	}
	if known.State != job.HealthQuarantined {
		t.Errorf("proven at once it is %s", known.State)
	}
}

func TestAnEngineComesBackAtItsTimeAndNotBefore(t *testing.T) {
	for _, h := range []job.Health{{State: job.HealthSuspended}, {State: job.HealthSuspended, Until: 101}} {
		if got, err := HealthRecovers(h, 100); job.KindOf(err) != job.WrongState || got.State != h.State {
			t.Errorf("%+v: %+v, %v", h, got, err)
		}
	}
	for state, want := range map[job.HealthState]job.HealthState{job.HealthSuspended: job.HealthWell, job.HealthQuarantined: job.HealthProbed} {
		if got, err := HealthRecovers(job.Health{State: state, Until: 100}, 100); err != nil || got.State != want || got.Until != 0 {
			t.Errorf("%s: %+v, %v", state, got, err)
		}
	}
}

func TestAProbedEngineIsNotJudgedByItsOldTasks(t *testing.T) {
	s, task := job.DefaultBlackHoles(), job.ID{1}
	s.Failures, s.Elsewhere = 1, 0.5
	row := []job.FastFail{{Task: task}}
	for _, state := range []job.HealthState{job.HealthProbed, job.HealthQuarantined} {
		h := HealthElsewhere(job.Health{State: state, Until: 7, Row: row}, &s, task, 100, true)
		if h.State != state || h.Until != 7 || !h.Row[0].Elsewhere || row[0].Elsewhere {
			t.Errorf("%s: %+v, before %+v", state, h, row)
		}
	}
	if h := HealthElsewhere(job.Health{State: job.HealthSuspended, Row: row}, &s, task, 100, false); h.State != job.HealthQuarantined {
		t.Errorf("%+v", h)
	}
	two := []job.FastFail{{Task: task}, {Task: job.ID{2}}}
	if s.Failures = 1; HealthPardoned(job.Health{State: job.HealthSuspended, Row: two}, &s, task).State != job.HealthSuspended {
		t.Error("well with a row that is as long as suspends")
	}
}

func TestA29PoisonIsNotHeldAgainstEngines(t *testing.T) {
	x, s := job.DefaultExclusion(), job.DefaultBlackHoles()
	x.Failures, s.Failures = 2, 2
	poison, task := job.ID{1}, job.ID{2}
	var list []job.Strike
	j := &job.Job{}
	health := map[string]job.Health{}
	for i, engine := range []string{"A", "B", "C"} {
		// Each has one failure of another task: with the poison it is one too many.
		list = Struck(list, &x, engine, task, 10)
		list = Struck(list, &x, engine, poison, 10)
		health[engine] = HealthFailed(HealthFailed(health[engine], &s, task, 1, 10, true), &s, poison, 1, 10, true)
		for _, why := range []job.AttemptEnd{job.AttemptError, job.AttemptTimeout, job.AttemptLost} { // more than once on a host
			j.Extras = j.WithOutcome(nil, append(slices.Clone(j.History()), job.Attempt{Holder: engine, Host: "host-" + engine, Why: why, Ended: 10}))
		}
		if bad := Poison(j); bad != (i == 2) {
			t.Fatalf("poison after %d hosts: %t", i+1, bad)
		}
	}
	if list, _ = Exclude(list, &x, 6, anyEngine, 10); !Excluded(list, "A") || health["A"].State != job.HealthSuspended {
		t.Fatalf("%+v, %+v", list, health["A"])
	}
	old := health["A"]
	list = PardonStrikes(list, &x, poison)
	if list, _ = Exclude(list, &x, 6, anyEngine, 10); len(list) != 3 || Excluded(list, "A") || list[0].Count != 1 {
		t.Errorf("%+v", list)
	}
	if h := HealthPardoned(old, &s, poison); h.State != job.HealthWell || len(h.Row) != 1 || len(old.Row) != 2 || h.Until != 0 {
		t.Errorf("%+v", h)
	}
	if h := HealthPardoned(HealthPardoned(old, &s, poison), &s, task); !reflect.DeepEqual(h, job.Health{}) {
		t.Errorf("%+v", h)
	}
	if got := PardonStrikes(list, &x, task); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	guilty := Struck(Struck(Struck(nil, &x, "G", task, 10), &x, "G", job.ID{3}, 10), &x, "V", poison, 10)
	guilty, _ = Exclude(guilty, &x, 6, anyEngine, 10)
	if got := PardonStrikes(guilty, &x, poison); len(got) != 1 || !reflect.DeepEqual(got[0], guilty[0]) || !got[0].Out {
		t.Errorf("an engine that failed by itself: %+v", got)
	}
}

func TestATaskIsReluctantToRunWhereItFailed(t *testing.T) {
	j := &job.Job{}
	j.Extras = j.WithOutcome(nil, []job.Attempt{
		{Holder: "e/a1", Host: "a", Why: job.AttemptError, Ended: 10},
		{Holder: "e/b1", Host: "b", Why: job.AttemptTimeout, Ended: 20},
		{Holder: "e/c1", Host: "c", Why: job.AttemptLost, Ended: 30}, // the engine, not the task
		{Holder: "e/d1", Host: "d", Why: job.AttemptReleased, Ended: 30},
		{Holder: "e/f1", Host: "f", Why: job.AttemptSuperseded, Ended: 30},
	})
	for _, c := range []struct {
		engine, host   string
		want, replayed int
	}{
		{"e/a1", "a", 2, 0}, {"e/a2", "a", 1, 0}, {"e/b1", "b", 2, 2}, {"e/b2", "b", 1, 1}, {"e/c1", "c", 0, 0}, {"e/d1", "d", 0, 0}, {"e/f1", "f", 0, 0}, {"e/x", "x", 0, 0},
	} {
		j.RevivedAt = 0
		if got := Reluctance(j, c.engine, c.host); got != c.want {
			t.Errorf("%s on %s: %d, want %d", c.engine, c.host, got, c.want)
		}
		j.RevivedAt = 10
		if got := Reluctance(j, c.engine, c.host); got != c.replayed {
			t.Errorf("%s on %s, after it was brought back: %d, want %d", c.engine, c.host, got, c.replayed)
		}
	}
	if j.RevivedAt = 0; !slices.Equal(FailedOn(j), []string{"a", "b"}) || Poison(j) {
		t.Errorf("%v", FailedOn(j))
	}
	if Undelivered(j) || Undelivered(&job.Job{}) {
		t.Error("what was delivered counts as undelivered")
	}
	j.Extras = j.WithOutcome(nil, append(slices.Clone(j.History()), job.Attempt{Holder: "e/g1", Host: "g", Why: job.AttemptUndelivered, Ended: 40}))
	if !Undelivered(j) || Reluctance(j, "e/g1", "g") != 3 || Reluctance(j, "e/a1", "a") != 2 || Reluctance(j, "e/x", "x") != 0 {
		t.Errorf("not begun: %d there, %d where it failed, %d elsewhere", Reluctance(j, "e/g1", "g"), Reluctance(j, "e/a1", "a"), Reluctance(j, "e/x", "x"))
	}
}
