package rule

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
)

// historyVector is one of the histories of the vectors V4 to V13.
type historyVector struct {
	V          string                     `json:"v"`
	After      string                     `json:"after"`
	Queue      []string                   `json:"queue"`
	Running    []string                   `json:"running"`
	Given      map[string]taskGiven       `json:"given"`
	Events     []string                   `json:"events"`
	Then       []string                   `json:"then"`
	Or         []string                   `json:"or"`
	Expect     map[string]json.RawMessage `json:"expect"`
	ThenExpect map[string]json.RawMessage `json:"then_expect"`
	OrExpect   map[string]json.RawMessage `json:"or_expect"`
}

type taskGiven struct {
	Live        int    `json:"live"`
	Retries     uint32 `json:"retries"`
	Reschedules uint32 `json:"reschedules"`
}

// vectorRules are R = 2 and L = 1 of the vectors.
var vectorRules = account.Rules{MaxRetries: 2, MaxReschedules: 1, MaxCopies: 2}

// vectorEvent turns the words of a vector into what happened, how often.
func vectorEvent(t *testing.T, words string) (what account.Happening, n int) {
	t.Helper()
	n = 1
	if _, err := fmt.Sscanf(words[strings.LastIndex(words, " ")-1:], "%d times", &n); err != nil {
		n = 1
	}
	for _, k := range []struct {
		part string
		what account.Happening
	}{
		{"strategy fires", account.CopyAsked},
		{"takes A", account.RunBegan},
		{"succeeds", account.RunSucceeded},
		{"errors", account.RunFailed},
		{"evicted", account.RunEvicted},
		{"drains", account.RunEvicted},
	} {
		if strings.Contains(words, k.part) {
			return k.what, n
		}
	}
	t.Fatalf("what does %q mean?", words)
	return 0, 0
}

func follow(t *testing.T, tally *account.Tally, events []string) (suppressed bool) {
	t.Helper()
	for _, words := range events {
		what, n := vectorEvent(t, words)
		for range n {
			if tally.Live == 0 && what != account.RunBegan {
				if err := tally.Add(account.RunBegan, vectorRules); err != nil {
					t.Fatal(err)
				}
			}
			before := *tally
			if err := tally.Add(what, vectorRules); err != nil {
				suppressed = true
				if *tally != before || !strings.Contains(err.Error(), "max_reschedules") {
					t.Fatalf("%s: %v, and now it is %+v", words, err, tally)
				}
			}
		}
	}
	return suppressed
}

func holdsTo(t *testing.T, tally *account.Tally, want map[string]json.RawMessage, suppressed bool) {
	t.Helper()
	got := map[string]any{
		"state": tally.State.String(), "live": tally.Live, "in_line": tally.InLine, "reason": tally.Reason.String(),
		"retries": tally.Retries, "reschedules": tally.Reschedules, "evictions": tally.Evictions,
	}
	for name, raw := range want {
		switch name {
		case "A":
			var fields map[string]any
			if err := json.Unmarshal(raw, &fields); err != nil {
				t.Fatal(err)
			}
			for field, value := range fields {
				if fmt.Sprint(got[field]) != fmt.Sprint(value) {
					t.Errorf("%s is %v, want %v: %+v", field, got[field], value, tally)
				}
			}
		case "queue": // empty
			if string(raw) != "[]" || tally.InLine {
				t.Errorf("it is in line, the queue is to be %s", raw)
			}
		case "suppressed":
			if string(raw) != `"limit"` || !suppressed {
				t.Errorf("suppressed: %t", suppressed)
			}
		case "first copy":
			if string(raw) != `"superseded, told to stop"` || tally.Live != 0 || tally.Retries != 0 {
				t.Errorf("%+v, the first copy is to be %s", tally, raw)
			}
		default:
			t.Errorf("%s is to be %s; who looks at that?", name, raw)
		}
	}
}

func TestHistoriesOfTheVectors(t *testing.T) { // V4 to V11, V13
	vectors := loadGrid(t).History
	var seen []string
	for _, v := range vectors {
		seen = append(seen, v.V)
		t.Run(v.V, func(t *testing.T) {
			tally := &account.Tally{State: job.Leased, Live: 1}
			began := []string{"strategy fires for A", "second engine takes A"}
			switch v.After {
			case "":
			case "V4":
				follow(t, tally, began)
			case "V4 with the copy still in line":
				follow(t, tally, began[:1])
			default:
				t.Fatalf("after %s?", v.After)
			}
			g, ok := v.Given["A"]
			if len(v.Queue) > 0 || len(v.Running) > 0 && !slices.Equal(v.Running, []string{"A"}) || len(v.Given) != oneIf(ok) {
				t.Fatalf("given %v in line, %v running, %v", v.Queue, v.Running, v.Given)
			}
			if ok {
				tally.Live, tally.Retries, tally.Reschedules = max(g.Live, 1), g.Retries, g.Reschedules
			}
			suppressed := follow(t, tally, v.Events)
			holdsTo(t, tally, v.Expect, suppressed)
			other := *tally
			follow(t, tally, v.Then)
			holdsTo(t, tally, v.ThenExpect, false)
			follow(t, &other, v.Or)
			holdsTo(t, &other, v.OrExpect, false)
		})
	}
	if want := []string{"V4", "V5", "V6", "V7", "V8", "V9", "V10", "V11", "V13"}; !slices.Equal(seen, want) {
		t.Errorf("the vectors are %v, want %v", seen, want)
	}
}

func TestAHistoryThatCannotBeIsRefused(t *testing.T) {
	a, b := job.ID{1}, job.ID{2}
	for name, c := range map[string]struct {
		history []account.Event
		want    string
	}{
		"two results":    {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.RunBegan}, {Task: a, What: account.RunSucceeded}, {Task: a, What: account.RunSucceeded}}, "event 3, task " + a.String() + ": succeeded: the task is finished"},
		"from nothing":   {[]account.Event{{Task: b, What: account.RunBegan}}, "not at all"},
		"twice":          {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.TaskSubmitted}}, "submitted twice"},
		"no run":         {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.RunFailed}}, "no run is live"},
		"not wanted":     {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.RunBegan}, {Task: a, What: account.RunBegan}}, "no run is wanted"},
		"copies":         {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.RunBegan}, {Task: a, What: account.CopyAsked}, {Task: a, What: account.CopyAsked}}, "max_copies"},
		"again":          {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: a, What: account.RunBegan}, {Task: a, What: account.CopyAsked}, {Task: a, What: account.RunBegan}, {Task: a, What: account.RunEvicted}, {Task: a, What: account.CopyAsked}}, "max_reschedules"},
		"all as it must": {[]account.Event{{Task: a, What: account.TaskSubmitted}, {Task: b, What: account.TaskSubmitted}, {Task: b, What: account.RunBegan}, {Task: a, What: account.RunBegan}, {Task: b, What: account.RunVanished}, {Task: b, What: account.LateSucceeded}, {Task: a, What: account.TaskCancelledBy}}, ""},
	} {
		tasks, err := account.Replay(c.history, vectorRules)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.want == "" && (tasks[a].Reason != job.ReasonCancelled || tasks[b].Results != 1 || tasks[b].Losses != 0 || tasks[b].Runs != 1) {
			t.Errorf("%s: %+v, %+v", name, tasks[a], tasks[b])
		}
	}
}

// Step and the replay of what it decided are two accounts of the same task.
func TestCountersAreThoseOfTheReplay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := account.Rules{MaxRetries: uint32(rapid.IntRange(0, 3).Draw(t, "max_retries")), MaxReschedules: 3, MaxCopies: 2, LossLimit: 4}
		q := job.NewQueue("s")
		q.RetainDone, q.RunTimeout = job.Day, job.Minute
		r.LossesCharged = rapid.Bool().Draw(t, "losses_charged")
		q.Grid = &job.Grid{Weight: 5, MaxCopies: 2, MaxReschedules: r.MaxReschedules, LossesCharged: r.LossesCharged}
		q.Retry = job.Retry{Limit: job.LimitOf(r.MaxRetries), Curve: &job.Curve{Kind: job.CurveImmediate}, LossLimit: job.LimitOf(r.LossLimit)}
		server, seq, steady := DefaultServer(), int64(0), job.Millis(1000)
		var j *job.Job
		step := func(c Command) error {
			e, err := Step(View{
				Now: steady, Steady: steady, Job: j, Queue: q, Server: &server,
				Rand: func() float64 { return 0.5 }, Seq: func() int64 { seq++; return seq },
			}, c)
			if err == nil {
				j = e.Job
			}
			return err
		}
		tally, n := &account.Tally{}, byte(0)
		var lost []job.Token
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			what := account.Happening(rapid.IntRange(0, int(account.TaskCancelledBy)+1-1).Draw(t, "what"))
			was := *tally
			if tally.Add(what, r) != nil || what == account.LateSucceeded && len(lost) == 0 {
				*tally = was
				continue
			}
			steady++
			var c Command
			var l job.Lease
			if j != nil && len(j.Leases) > 0 {
				l = j.Leases[rapid.IntRange(0, len(j.Leases)-1).Draw(t, "run")]
			}
			switch what {
			case account.TaskSubmitted:
				c = Command{Verb: Put, New: &job.Job{ID: job.ID{1}, RetainDone: job.Unset, RetainDead: job.Unset}}
			case account.RunBegan:
				n++
				c = Command{Verb: Take, Lease: &job.Lease{Token: job.Token{n}, Holder: fmt.Sprint(n), Kind: job.Named, Exclusive: true}}
			case account.CopyAsked:
				c = Command{Verb: Offer}
			case account.RunFailed:
				c = Command{Verb: SettleRetry, Token: l.Token, Match: noMessage}
			case account.RunTimedOut: // one at a time, and all older ones with it
				l = j.Leases[0]
				steady = max(steady, l.RunEnd)
				c = Command{Verb: Lapse}
				for i, other := range j.Leases {
					if i > 0 && other.RunEnd <= steady {
						if err := tally.Add(account.RunTimedOut, r); err != nil {
							t.Fatal(err)
						}
					}
				}
			case account.RunVanished:
				lost = append(lost, l.Token)
				c = Command{Verb: Lapse, Holder: l.Holder, Ending: job.ByLapse}
			case account.RunGivenBack:
				c = Command{Verb: SettleRelease, Token: l.Token}
			case account.RunUncharged:
				c = Command{Verb: Lapse, Holder: l.Holder, Ending: job.ByRestart}
			case account.RunSucceeded:
				c = Command{Verb: SettleOK, Token: l.Token}
			case account.LateSucceeded:
				c = Command{Verb: SettleOK, Token: lost[len(lost)-1]}
			case account.TaskCancelledBy:
				c = Command{Verb: Cancel}
			case account.RunEvicted:
				c = Command{Verb: Lapse, Holder: l.Holder, Ending: job.ByEvict}
			case account.Happenings:
			}
			if err := step(c); err != nil {
				if what == account.LateSucceeded && job.KindOf(err) == job.Superseded { // of those it remembers
					*tally = was
					continue
				}
				t.Fatalf("%s: %v\n%+v", what, err, j)
			}
			if what == account.RunBegan { // the clock of a task starts with its run
				if err := step(Command{Verb: Extend, Token: job.Token{n}, Started: true}); err != nil {
					t.Fatal(err)
				}
			}
			got := account.Tally{
				State: j.State, Reason: j.Reason, Live: len(j.Leases), InLine: tally.InLine, Asked: asked(j), Retries: j.Attempts, Reschedules: j.Reschedules,
				Evictions: j.Evictions, Losses: j.Losses, Runs: j.Deliveries, Results: uint32(oneIf(j.State == job.Done)),
			}
			if got != *tally {
				t.Fatalf("%s: the task has %+v, its history says %+v", what, got, *tally)
			}
			if e := EntriesOf(j); e.Wants != tally.InLine {
				t.Fatalf("%s: it wants a run: %t, its history says %t", what, e.Wants, tally.InLine)
			}
		}
	})
}

// asked is how many copies of a task have not begun.
func asked(j *job.Job) int {
	if !j.State.Open() {
		return 0
	}
	return max(0, int(j.CopiesWanted)-max(1, len(j.Leases)))
}
