package plan

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// What Spend is for, A17 and that a budget is never exceeded, is tested where
// sessions run on paper: internal/straggler.

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
