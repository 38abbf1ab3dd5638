package straggler

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

func by(list ...job.RedundancyStrategy) *job.Redundancy {
	r := job.DefaultRedundancy()
	r.Strategies = job.RedundancyOf(list...)
	return &r
}

func simulate(t testing.TB, o Options) *Report {
	t.Helper()
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Reference gridserver.md, A17: 100 engines, and from one moment on all tasks
// take ten times as long.
func TestA17SuddenSlownessIsNoStormOfCopies(t *testing.T) {
	o := Options{Tasks: 400, Slots: 200, Run: 1, Slow: 1, Copies: 2, Redundancy: by(job.RedundantMedian)}
	o.takes = func(task int, _ bool) job.Millis {
		if task < 300 {
			return 10 * job.Second
		}
		return 100 * job.Second
	}
	r := simulate(t, o)
	if r.Copies == 0 || len(r.Barred) == 0 {
		t.Errorf("%d copies, barred %v: nothing was copied, or nothing barred", r.Copies, r.Barred)
	}
	if r.Most > 11 { // a tenth of 100 tasks and 11 copies
		t.Errorf("%d copies at once", r.Most)
	}
	red := o.Redundancy
	if most := red.SecondsBurst + job.Millis(red.SecondsShare*float64(r.Useful)); r.Spent > most || r.Least < 0 {
		t.Errorf("copies took %s, %s were allowed; least left %s", r.Spent, most, r.Least)
	}
}

func TestAStragglerIsOvertakenByItsCopy(t *testing.T) {
	o := Options{Tasks: 100, Slots: 10, Run: 1, Slow: 1, Copies: 2}
	o.takes = func(task int, copied bool) job.Millis {
		if task == 99 && !copied {
			return 500 * job.Second
		}
		return 10 * job.Second
	}
	if r := simulate(t, o); r.End != 590*job.Second || r.Copies != 0 || r.Useful != 1490*job.Second {
		t.Errorf("without copies: %+v", r)
	}
	o.Redundancy = by(job.RedundantMedian)
	if r := simulate(t, o); r.End != 120_001 || r.Copies != 1 || r.Won != 1 || r.Spent != 10*job.Second || r.By["median"] != 1 {
		t.Errorf("with copies: %+v", r)
	}
	o.Copies = 1
	if r := simulate(t, o); r.Copies != 0 {
		t.Errorf("max_copies 1: %+v", r)
	}
}

// At most half the time, for at most 5 % more: what a session with few very slow
// runs is promised.
func TestEveryStrategyIsWorthItWhereItIsMeantFor(t *testing.T) {
	small := func(seed uint64) Options { // of a type that is known
		o := Default()
		o.Tasks, o.Slots, o.Run, o.SlowShare, o.Seed = 10, 40, job.Second, 0.03, seed
		return o
	}
	for s := range job.RedundancyStrategies {
		sessions, extra := []Options{Default()}, 0.05
		if s == job.RedundantClone || s == job.RedundantHedge {
			sessions, extra = nil, 1
			for seed := range uint64(50) {
				sessions = append(sessions, small(seed))
			}
		}
		var before, after, useful, spent job.Millis
		copies, won := 0, 0
		for _, o := range sessions {
			before += simulate(t, o).End
			o.Redundancy = by(s)
			r := simulate(t, o)
			after += r.End
			useful += r.Useful
			spent += r.Spent
			copies += r.Copies
			if won += r.Won; r.By[s.String()] != r.Copies {
				t.Errorf("%s: copies by %v", s, r.By)
			}
			if again := simulate(t, o); !reflect.DeepEqual(again, r) {
				t.Errorf("%s: the same seed gives another run", s)
			}
		}
		t.Logf("%-9s %s instead of %s, %s of copies beside %s, %d copies, %d won", s, after, before, spent, useful, copies, won)
		if 2*after > before || float64(spent) > extra*float64(useful) {
			t.Errorf("%s: %s instead of %s, %s of copies beside %s", s, after, before, spent, useful)
		}
	}
}

func TestTheBudgetOfCopiesIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Default()
		o.Tasks, o.Slots, o.Seed = rapid.IntRange(10, 80).Draw(t, "tasks"), rapid.IntRange(2, 40).Draw(t, "slots"), rapid.Uint64().Draw(t, "seed")
		o.SlowShare, o.Copies = rapid.Float64Range(0.02, 0.4).Draw(t, "slow"), rapid.IntRange(1, 3).Draw(t, "copies")
		r := job.DefaultRedundancy()
		r.Strategies = job.RedundancySet(rapid.IntRange(1, 1<<job.RedundancyStrategies-1).Draw(t, "strategies"))
		r.SecondsShare = rapid.Float64Range(0, 0.2).Draw(t, "share")
		r.SecondsBurst = job.Millis(rapid.Int64Range(0, 20_000).Draw(t, "burst"))
		r.RunningShare = rapid.Float64Range(0, 1).Draw(t, "running")
		r.AlsoBusy = rapid.Bool().Draw(t, "busy")
		o.Redundancy = &r
		got, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if got.Least < 0 {
			t.Fatalf("%s above the budget", -got.Least)
		}
		if !r.Strategies.Has(job.RedundantClone) && got.Most > max(1, int(r.RunningShare*float64(o.Slots))) {
			t.Fatalf("%d copies at once", got.Most)
		}
		if got.Copies > o.Tasks*(o.Copies-1) || got.Won > got.Copies || got.Withdrawn > got.Copies {
			t.Fatalf("%+v", got)
		}
		o.Redundancy = nil
		if without, err := Run(o); err != nil || without.Copies != 0 || without.Spent != 0 {
			t.Fatalf("without copies: %+v, %v", without, err)
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	for field, edit := range map[string]func(*Options){
		"tasks":      func(o *Options) { o.Tasks = 0 },
		"slots":      func(o *Options) { o.Slots = SlotsMax + 1 },
		"run":        func(o *Options) { o.Run = 0 },
		"spread":     func(o *Options) { o.Spread = 2 },
		"slow-share": func(o *Options) { o.SlowShare = -1 },
		"slow":       func(o *Options) { o.Slow = 0.5 },
		"copies":     func(o *Options) { o.Copies = 0 },
		"redundancy": func(o *Options) { o.Redundancy = &job.Redundancy{} },
	} {
		o := Default()
		edit(&o)
		_, err := Run(o)
		refused, _ := errors.AsType[*job.Error](err)
		if refused == nil || refused.Kind != job.Invalid || !strings.Contains(refused.Cause.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestThePictureShowsBothRuns(t *testing.T) {
	r := DefaultRedundancy()
	c, err := Compare(Default(), &r, []string{"median", "tail"})
	if err != nil || len(c.Runs) != 3 || c.Runs[0].Copies != 0 || c.Runs[2].By["tail"] == 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	var b bytes.Buffer
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"with copies", "without copies", "threshold", "1000 tasks of 10s ±20 % on 50 slots; 1 % of the runs take 50 times as long"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture does not tell: %s", want)
		}
	}
	if b.Len() > 100_000 {
		t.Errorf("%d bytes", b.Len())
	}
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// A pause shows what was done when it began.
func TestThinnedMarksAreTheLatestOfTheirTime(t *testing.T) {
	var marks []Mark
	for i := range 100 {
		marks = append(marks, Mark{At: job.Millis(10_000 + i), Done: i + 1})
	}
	marks = append(marks, Mark{At: 3_000_000, Done: 101})
	got := thinned(marks)
	if n := len(got); n < 2 || n > 3 || got[n-2].Done != 100 || got[n-1].Done != 101 || len(thinned(nil)) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestNothingIsComparedWithAnUnknownStrategy(t *testing.T) {
	r := DefaultRedundancy()
	if _, err := Compare(Default(), &r, []string{"median", "quorum"}); job.KindOf(err) != job.Invalid {
		t.Error(err)
	}
	alone, err := Compare(Default(), &r, nil)
	if err != nil || len(alone.Runs) != 1 || alone.WriteSVG(io.Discard) == nil {
		t.Errorf("%+v, %v", alone, err)
	}
}
