package rule

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestALineIsOrderedByPriorityBandSeqAndID(t *testing.T) { // core.md section 1
	sorted := []Pos{
		{Priority: 1, Band: job.BandFront, Seq: -9},
		{Priority: 1, Band: job.BandFront, Seq: 50},
		{Priority: 1, Band: job.BandNormal, Seq: 2, ID: job.ID{1}},
		{Priority: 1, Band: job.BandNormal, Seq: 2, ID: job.ID{2}},
		{Priority: 1, Band: job.BandNormal, Seq: 3, ID: job.ID{1}},
		{Priority: 2, Band: job.BandFront, Seq: 1},
		{Priority: 65535, Band: job.BandNormal, Seq: 1},
	}
	for i, a := range sorted {
		for k, b := range sorted {
			if a.Before(b) != (i < k) || Pick(a, b) != (i < k) {
				t.Errorf("%+v before %+v: %v", a, b, a.Before(b))
			}
		}
	}
}

func TestKeepLeavesBandAndSeq(t *testing.T) { // core.md section 1
	w := newWorld(t)
	w.put("a")
	w.put("b")
	before := *w.jobs["a"]
	w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), Place: job.PlaceKeep})
	w.expectLine("a", "b")
	if j := w.jobs["a"]; j.Seq != before.Seq || j.Band != before.Band {
		t.Errorf("band %d seq %d", j.Band, j.Seq)
	}
}

func TestAScheduledRetryThatFallsDueReturnsWithKeep(t *testing.T) { // core.md section 1
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.put(name)
	}
	w.fail("a", w.take("a", "x"))
	w.put("d")
	w.expectLine("b", "c", "d")
	w.tick(15 * job.Second)
	w.do("a", Command{Verb: Promote})
	w.expectLine("a", "b", "c", "d")
}

func TestBackDrawsANewSeqInTheNormalBand(t *testing.T) { // core.md section 1
	w := newWorld(t)
	w.putAt(job.PlaceFront, "a")
	w.put("b")
	w.do("a", Command{Verb: SettleRelease, Token: w.take("a", "x"), Place: job.PlaceBack})
	w.expectLine("b", "a")
	w.put("c")
	w.expectLine("b", "a", "c")
	if w.jobs["a"].Band != job.BandNormal {
		t.Error("it is still in the front band")
	}
}

func TestFrontBySeqKeepsTheOrderOfTheReturned(t *testing.T) { // core.md section 1
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.put(name)
	}
	for _, name := range []string{"c", "b"} {
		w.do(name, Command{Verb: SettleRelease, Token: w.take(name, "x"), Place: job.PlaceFront})
	}
	w.expectLine("b", "c", "a", "d")
}

func TestFrontLIFOPutsTheLastReturnedFirst(t *testing.T) { // core.md section 1
	w := newWorld(t, func(q *job.Queue) { q.FrontOrder = job.FrontLIFO })
	for _, name := range []string{"a", "b", "c", "d"} {
		w.put(name)
	}
	for _, name := range []string{"b", "c"} {
		w.do(name, Command{Verb: SettleRelease, Token: w.take(name, "x"), Place: job.PlaceFront})
	}
	w.expectLine("c", "b", "a", "d")
	w.putAt(job.PlaceFront, "e")
	w.expectLine("e", "c", "b", "a", "d")
}

func TestFrontIsTheFrontOfItsPriority(t *testing.T) { // core.md section 1
	w := newWorld(t)
	w.put("urgent", func(j *job.Job) { j.Priority = 1 })
	w.put("plain")
	w.putAt(job.PlaceFront, "front")
	w.expectLine("urgent", "front", "plain")
}

func TestFreshAndRetriedJobsAreTwoLinesExceptInStrictGroups(t *testing.T) { // core.md section 1
	retried := func(w *world) bool {
		w.fail("a", w.take("a", "x"))
		w.tick(15 * job.Second)
		return EntriesOf(w.do("a", Command{Verb: Promote})).Class.Retried
	}
	w := newWorld(t)
	w.put("a")
	if EntriesOf(w.jobs["a"]).Class.Retried {
		t.Error("a fresh job stands among the retried")
	}
	if !retried(w) {
		t.Error("a retried job stands among the fresh")
	}
	s := newWorld(t, strict)
	s.put("a", grouped("g"))
	if retried(s) {
		t.Error("a budget could stop a strict group's head")
	}
	if w.loseOnce("a", job.ByLapse); !EntriesOf(w.jobs["a"]).Class.Retried {
		t.Error("a loss made it fresh again")
	}
}

func TestEntriesFollowTheStateOfTheJob(t *testing.T) { // I1, core.md section 3
	for _, x := range []struct {
		state job.State
		want  Entries
	}{
		{job.Ready, Entries{Wants: true, Timer: [Hands]job.Millis{HandExpire: 9}}},
		{job.Scheduled, Entries{Timer: [Hands]job.Millis{HandDue: 5, HandExpire: 9}}},
		{job.Leased, Entries{}},
		{job.Done, Entries{Timer: [Hands]job.Millis{HandPurge: 7}}},
		{job.Dead, Entries{Timer: [Hands]job.Millis{HandPurge: 7}, Dead: DeadEntry{Is: true, Print: 3, At: 4}}},
	} {
		j := &job.Job{State: x.state, ReadyAt: 5, ExpiresAt: 9, PurgeAt: 7, CopiesWanted: 1, Print: 3, DiedAt: 4}
		if x.state == job.Leased {
			j.Leases = []job.Lease{{Holder: "x"}}
		}
		x.want.Pos = Pos{}
		if got := EntriesOf(j); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.state, got, x.want)
		}
	}
}

func TestAScheduledJobWithoutADueTimeIsStillSeenByTheClock(t *testing.T) { // I1
	if at := EntriesOf(&job.Job{State: job.Scheduled}).Timer[HandDue]; at <= 0 {
		t.Errorf("due %d is never", at)
	}
}

func TestAParkedJobIsOutOfLineAndStillAMember(t *testing.T) { // core.md section 3, Park
	j := &job.Job{State: job.Ready, Park: "pause", Group: "g", CopiesWanted: 1}
	if e := EntriesOf(j); e.Wants || !e.Member {
		t.Errorf("%+v", e)
	}
}

func TestMembersAreTheOpenAndTheBlocking(t *testing.T) { // core.md section 2
	for _, x := range []struct {
		j    job.Job
		want bool
	}{
		{job.Job{Group: "g", State: job.Ready}, true},
		{job.Job{Group: "g", State: job.Scheduled}, true},
		{job.Job{Group: "g", State: job.Leased}, true},
		{job.Job{Group: "g", State: job.Dead, BlocksGroup: true}, true},
		{job.Job{Group: "g", State: job.Dead}, false},
		{job.Job{Group: "g", State: job.Done}, false},
		{job.Job{State: job.Ready}, false},
	} {
		if got := EntriesOf(&x.j).Member; got != x.want {
			t.Errorf("%s %q blocks %v: %v", x.j.State, x.j.Group, x.j.BlocksGroup, got)
		}
	}
}

func TestEveryHandHasItsName(t *testing.T) {
	var names []string
	for h := range Hands {
		names = append(names, h.String())
	}
	if !slices.Equal(names, []string{"due", "timeout", "lapse", "expire", "purge"}) {
		t.Error(names)
	}
}

// Fit.

func TestFitsComparesNumbersAsNumbersAndTextsAsTexts(t *testing.T) { // core.md section 3, Fit
	has := map[string]string{"cpu": "400", "region": "eu", "version": "1.10", "odd": "NaN", "big": "inf"}
	for text, want := range map[string]bool{
		"cpu > 350": true, "cpu > 400": false, "cpu >= 400": true, "cpu < 1000": true, "cpu <= 399": false,
		"cpu = 400.0": true, "cpu != 400": false, "cpu != 4e2": false, "cpu != x": true,
		"region = eu": true, "region = us": false, "region != us": true, "region > a": false, "region <= eu": false,
		"gpu = 1": false, "gpu > 0": false, "gpu != 1": true,
		"odd = NaN": true, "odd != NaN": false, "big = inf": true,
	} {
		r, err := ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Fits(Class{}, []job.Requirement{r}, Seeker{Properties: has}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestFitsWantsEveryRequirementMet(t *testing.T) {
	both := []job.Requirement{{Property: "a", Op: "=", Value: "1"}, {Property: "b", Op: "=", Value: "2"}}
	if !Fits(Class{}, both, Seeker{Properties: map[string]string{"a": "1", "b": "2"}}) {
		t.Error("both are met")
	}
	if Fits(Class{}, both, Seeker{Properties: map[string]string{"a": "1"}}) {
		t.Error("one is not met")
	}
	if Fits(Class{}, []job.Requirement{{Property: "a", Op: "~", Value: "1"}}, Seeker{Properties: map[string]string{"a": "1"}}) {
		t.Error("an operator that nobody knows is not met")
	}
	if !Fits(Class{}, nil, Seeker{}) {
		t.Error("no requirement fits everybody")
	}
}

func TestAJobThatMustBeAloneFitsOnlyAHolderWithNothingElse(t *testing.T) { // core.md section 5
	for _, x := range []struct {
		c    Class
		s    Seeker
		want bool
	}{
		{Class{Isolated: true}, Seeker{}, true},
		{Class{Isolated: true}, Seeker{Held: 1}, false},
		{Class{}, Seeker{Held: 1}, true},
		{Class{}, Seeker{Held: 1, HasIsolated: true}, false},
		{Class{Isolated: true}, Seeker{Held: 1, HasIsolated: true}, false},
	} {
		if got := Fits(x.c, nil, x.s); got != x.want {
			t.Errorf("%+v %+v: %v", x.c, x.s, got)
		}
	}
}

func TestParseRequirementReadsPropertyOperatorAndValue(t *testing.T) {
	for text, want := range map[string]job.Requirement{
		"cpuMHz > 350":     {Property: "cpuMHz", Op: ">", Value: "350"},
		"region=eu":        {Property: "region", Op: "=", Value: "eu"},
		" a  !=  b c ":     {Property: "a", Op: "!=", Value: "b c"},
		"a<=1":             {Property: "a", Op: "<=", Value: "1"},
		"a>=1":             {Property: "a", Op: ">=", Value: "1"},
		"a<1":              {Property: "a", Op: "<", Value: "1"},
		"os name = x y":    {Property: "os name", Op: "=", Value: "x y"},
		"flags = -O2 !=ok": {Property: "flags", Op: "=", Value: "-O2 !=ok"}, // the first operator counts
		"formula < a=b":    {Property: "formula", Op: "<", Value: "a=b"},
	} {
		if got, err := ParseRequirement(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestParseRequirementRefusesWhatIsNoCondition(t *testing.T) {
	for _, text := range []string{"", "cpu", "= 1", "a =", "a >", "!=", "   ", "a == 1", "a => 1", "a <> 1", "a ! 1"} {
		if r, err := ParseRequirement(text); job.KindOf(err) != job.Invalid || err == nil {
			t.Errorf("%q was read as %+v, %v", text, r, err)
		}
	}
}

func TestEqualRequirementsAreEqualTextsAndOthersAreNot(t *testing.T) { // core.md section 3, classes
	a, b := job.Requirement{Property: "a", Op: "=", Value: "1"}, job.Requirement{Property: "b", Op: ">", Value: "2"}
	seen := map[string]string{}
	for name, list := range map[string][]job.Requirement{
		"none": nil, "a": {a}, "b": {b}, "a and b": {a, b},
		"other operator": {{Property: "a", Op: "<", Value: "=1"}}, "its twin": {{Property: "a", Op: "<=", Value: "1"}},
	} {
		text := Canonical(list)
		if other, taken := seen[text]; taken {
			t.Errorf("%s and %s are both written %q", name, other, text)
		}
		seen[text] = name
		if Canonical(slices.Clone(list)) != text {
			t.Errorf("%s is not always the same", name)
		}
	}
}

// Pick over many: a take never depends on the order in which lines are asked.
func TestPickIsATotalOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	var list []Pos
	for range 200 {
		list = append(list, Pos{
			Priority: uint16(rnd.IntN(3)), Band: uint8(rnd.IntN(2)), Seq: int64(rnd.IntN(4)), ID: job.ID{byte(rnd.IntN(3))},
		})
	}
	for _, a := range list {
		for _, b := range list {
			if Pick(a, b) && Pick(b, a) || !Pick(a, b) && !Pick(b, a) && a != b {
				t.Fatalf("%+v and %+v", a, b)
			}
		}
	}
}

// Quotas.

func TestAdmitHoldsTheQuotasOfAQueue(t *testing.T) { // core.md section 10
	reject, drop := job.FullReject, job.FullDropOldest
	for _, x := range []struct {
		q                 job.Queue
		jobs, bytes, size int64
		evict, refused    bool
	}{
		{job.Queue{}, 1 << 40, 1 << 50, 1 << 40, false, false}, // no limit
		{job.Queue{MaxJobs: 3, OnFull: reject}, 2, 0, 1, false, false},
		{job.Queue{MaxJobs: 3, OnFull: reject}, 3, 0, 1, false, true},
		{job.Queue{MaxJobs: 3, OnFull: drop}, 2, 0, 1, false, false},
		{job.Queue{MaxJobs: 3, OnFull: drop}, 3, 0, 1, true, false},
		{job.Queue{MaxBytes: 100, OnFull: reject}, 1, 90, 10, false, false},
		{job.Queue{MaxBytes: 100, OnFull: reject}, 1, 90, 11, false, true},
		{job.Queue{MaxBytes: 100, OnFull: drop}, 1, 90, 11, true, false},
		{job.Queue{MaxBytes: 100, OnFull: drop}, 1, 90, 101, false, true}, // it could never fit
		{job.Queue{MaxBytes: 100, OnFull: drop}, 0, 0, 101, false, true},
		{job.Queue{MaxJobs: 3, MaxBytes: 100, OnFull: reject}, 3, 0, 1, false, true},
		{job.Queue{MaxJobs: 3, MaxBytes: 100, OnFull: drop}, 3, 100, 1, true, false},
	} {
		evict, err := Admit(&x.q, x.jobs, x.bytes, x.size)
		if evict != x.evict || (err != nil) != x.refused || err != nil && job.KindOf(err) != job.OverLimit {
			t.Errorf("%+v: evict %v, %v", x, evict, err)
		}
	}
}
