package rule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

// crowd is a session on engines with one slot each, as an engine of ours would
// run it: it looks at what happens next, and sweeps nothing.
type crowd struct {
	r        *job.Redundancy
	spend    Spend
	own      Durations
	w        Work
	now      job.Millis
	free     int
	takes    func(task int, copied bool) job.Millis
	tasks    map[int]*spendTask
	next     int
	most     int // copies at once
	copied   int
	worst    job.Millis // least that was left
	barred   map[RedundancyBar]int
	withdrew int
}

type spendTask struct {
	since, ends         job.Millis
	copySince, copyEnds job.Millis // 0 = has no copy
}

func (c *crowd) run(t interface{ Fatalf(string, ...any) }) {
	c.tasks, c.worst, c.barred = map[int]*spendTask{}, 1<<60, map[RedundancyBar]int{}
	c.w.Waiting = c.w.Total
	for steps := 0; c.w.Done < c.w.Total; steps++ {
		if steps > 100_000 {
			t.Fatalf("it does not end: %+v", c.w)
		}
		for c.free > 0 && c.w.Waiting > 0 {
			c.tasks[c.next] = &spendTask{since: c.now, ends: c.now + c.takes(c.next, false)}
			c.next++
			c.free--
			c.w.Waiting--
		}
		at := c.copy()
		if dry := c.spend.Dry(c.r, c.now); dry > 0 && (at == 0 || dry < at) {
			at = dry
		}
		for _, x := range c.tasks {
			at = sooner(sooner(at, x.ends), x.copyEnds)
		}
		if at < c.now {
			t.Fatalf("time goes back from %d to %d", c.now, at)
		}
		c.now = at
		c.end()
		c.worst = min(c.worst, c.spend.Left(c.r, c.now))
		for c.spend.Dry(c.r, c.now) == c.now {
			c.withdraw()
		}
	}
}

// copy copies who is a straggler now, and returns when the next one is one.
func (c *crowd) copy() job.Millis {
	age, _, ok := Threshold(c.r, &c.own, nil, c.w)
	if !ok {
		return 0
	}
	var list []int
	for id, x := range c.tasks {
		if x.copySince == 0 {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, func(a, b int) int { return a - b }) // they began in this order
	for _, id := range list {
		x := c.tasks[id]
		if at := StragglesAt(x.since, age); at > c.now {
			return at
		}
		bar := c.spend.Bar(c.r, c.now, job.Millis(c.own.Median()), c.spend.Copies, len(c.tasks)+c.spend.Copies, c.free-c.w.Waiting, false)
		if c.free == 0 { // it waits for a slot
			return 0
		}
		if bar != RedundancyFree {
			c.barred[bar]++
			return 0
		}
		x.copySince, x.copyEnds = c.now, c.now+c.takes(id, true)
		c.spend.Start(c.now)
		c.free--
		c.copied++
		c.most = max(c.most, c.spend.Copies)
	}
	return 0
}

func (c *crowd) end() {
	for id, x := range c.tasks {
		if x.ends > c.now && (x.copyEnds == 0 || x.copyEnds > c.now) {
			continue
		}
		run := c.now - x.since
		if x.copySince > 0 {
			c.spend.End(c.now)
			c.free++
			if x.copyEnds <= c.now {
				run = c.now - x.copySince
			}
		}
		c.free++
		c.own.Add(run, c.now)
		c.spend.Earn(run)
		c.w.Done++
		delete(c.tasks, id)
	}
}

// withdraw takes the youngest copy away.
func (c *crowd) withdraw() {
	var youngest *spendTask
	for _, x := range c.tasks {
		if x.copySince > 0 && (youngest == nil || x.copySince > youngest.copySince) {
			youngest = x
		}
	}
	youngest.copySince, youngest.copyEnds = 0, 0
	c.spend.End(c.now)
	c.free++
	c.withdrew++
}

func TestA17SuddenSlownessIsNoStormOfCopies(t *testing.T) {
	r := job.DefaultRedundancy()
	c := &crowd{r: &r, free: 200, w: Work{Total: 400}, takes: func(task int, _ bool) job.Millis {
		if task < 300 {
			return 10 * job.Second
		}
		return 100 * job.Second
	}}
	c.run(t)
	t.Logf("%d copies, %d at once, %v spent of %v useful, %d taken away", c.copied, c.most, c.spend.Spent, c.spend.Useful, c.withdrew)
	if c.copied == 0 {
		t.Error("nothing was copied, although all ran far longer than the median")
	}
	if c.most > 11 { // the copies run, too
		t.Errorf("%d copies at once of 100 tasks that run", c.most)
	}
	if most := r.SecondsBurst + job.Millis(r.SecondsShare*float64(c.spend.Useful)); c.spend.Spent > most || c.worst < 0 {
		t.Errorf("copies took %d ms, %d were allowed; least left %d", c.spend.Spent, most, c.worst)
	}
	if c.barred[BarRunning]+c.barred[BarSeconds]+c.barred[BarBusy] == 0 {
		t.Error("nothing barred a copy")
	}
}

// A host that is fifty times slower: the rest is copied away from it.
func TestAStragglerIsOvertakenByItsCopy(t *testing.T) {
	span := func(r *job.Redundancy) (job.Millis, Spend) {
		c := &crowd{r: r, free: 10, w: Work{Total: 100}, takes: func(task int, copied bool) job.Millis {
			if task == 99 && !copied {
				return 500 * job.Second
			}
			return 10 * job.Second
		}}
		c.run(t)
		return c.now, c.spend
	}
	median := job.DefaultRedundancy()
	never := median
	never.MedianFactor = 1000
	without, _ := span(&never)
	with, spend := span(&median)
	if without != 590*job.Second || with != 120_001 || spend.Spent != 10*job.Second {
		t.Errorf("without copies it ends at %d, with them at %d for %d ms", without, with, spend.Spent)
	}
}

func TestTheBudgetOfCopiesIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := job.DefaultRedundancy()
		r.SecondsShare = rapid.Float64Range(0, 0.2).Draw(t, "share")
		r.SecondsBurst = job.Millis(rapid.Int64Range(0, 60_000).Draw(t, "burst"))
		r.RunningShare = rapid.Float64Range(0, 1).Draw(t, "running")
		r.AlsoBusy = rapid.Bool().Draw(t, "busy")
		seed := rapid.Uint64().Draw(t, "seed")
		c := &crowd{r: &r, free: rapid.IntRange(1, 12).Draw(t, "slots"), w: Work{Total: rapid.IntRange(1, 60).Draw(t, "tasks")}}
		c.takes = func(task int, copied bool) job.Millis {
			h := (uint64(task)*2 + uint64(oneIf(copied)) + seed) * 0x9e3779b97f4a7c15 >> 32
			if h%10 == 0 {
				return 1 + job.Millis(h%500_000)
			}
			return 1 + job.Millis(h%10_000)
		}
		slots := c.free
		c.run(t)
		if c.worst < 0 || c.spend.Left(&r, c.now) < 0 {
			t.Fatalf("%d ms above the budget", -c.worst)
		}
		if c.spend.Copies != 0 || c.free != slots {
			t.Fatalf("at the end %d copies run, %d of %d slots are free", c.spend.Copies, c.free, slots)
		}
		if c.most > max(1, int(r.RunningShare*float64(slots))) {
			t.Fatalf("%d copies at once", c.most)
		}
	})
}

func TestBarsOfCopies(t *testing.T) {
	r := job.DefaultRedundancy()
	for name, c := range map[string]struct {
		s                     Spend
		wanted, running, idle int
		want                  RedundancyBar
	}{
		"the first":              {Spend{}, 0, 1, 1, RedundancyFree},
		"no idle slot":           {Spend{}, 0, 1, 0, BarBusy},
		"one of few":             {Spend{Copies: 1}, 1, 19, 5, BarRunning},
		"a second of many":       {Spend{Copies: 1}, 1, 20, 5, RedundancyFree},
		"spent":                  {Spend{Spent: 51 * job.Second}, 0, 1, 1, BarSeconds},
		"earned":                 {Spend{Spent: 51 * job.Second, Useful: 20 * job.Second}, 0, 1, 1, RedundancyFree},
		"for those that run":     {Spend{Spent: 41 * job.Second, Copies: 1, At: 5000}, 1, 20, 5, BarSeconds},
		"what runs spends":       {Spend{Spent: 30 * job.Second, Copies: 1}, 1, 20, 5, RedundancyFree},
		"what runs spends on":    {Spend{Spent: 36 * job.Second, Copies: 1}, 1, 20, 5, BarSeconds},
		"those who wait as well": {Spend{Spent: 31 * job.Second}, 2, 30, 5, BarSeconds},
	} {
		if got := c.s.Bar(&r, 5000, 10*job.Second, c.wanted, c.running, c.idle, false); got != c.want {
			t.Errorf("%s: barred by %q, want %q", name, got, c.want)
		}
	}
	s := Spend{}
	if s.Dry(&r, 7) != 0 {
		t.Error("no copy runs, and it ends")
	}
	s.Start(1000)
	s.Start(2000)
	if at := s.Dry(&r, 2000); at != 2000+59_000/2 {
		t.Errorf("two copies spend it by %d", at)
	}
	s.End(3000)
	s.End(3000)
	s.End(9000)
	if s.Earn(-5); s != (Spend{Spent: 3000, At: 9000}) {
		t.Errorf("%+v", s)
	}
}
