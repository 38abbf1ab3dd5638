package cron_test

import (
	"slices"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
)

func TestLook(t *testing.T) {
	const minute = job.Minute
	start := job.Millis(1_774_746_000_000) // a whole hour
	list := func(from, step job.Millis, n int) (out []job.Millis) {
		for i := range n {
			out = append(out, from+job.Millis(i)*step)
		}
		return out
	}
	for name, c := range map[string]struct {
		expression string
		late       job.Millis
		rule       job.Missed
		ticks      []job.Millis
		missed     int
	}{
		"not yet":                               {"* * * * *", -1, job.MissedOnce, nil, 0},
		"on its time":                           {"* * * * *", 0, job.MissedSkip, list(start, 0, 1), 0},
		"a little late is not missed":           {"* * * * *", 5000, job.MissedSkip, list(start, 0, 1), 0},
		"each second of a hiccup":               {"* * * * * *", 3200, job.MissedOnce, list(start, 1000, 4), 0},
		"skip":                                  {"* * * * *", 5001, job.MissedSkip, nil, 1},
		"once":                                  {"* * * * *", 5001, job.MissedOnce, list(start, 0, 1), 1},
		"once for many is the latest":           {"* * * * *", 10*minute + 30_000, job.MissedOnce, list(start+10*minute, 0, 1), 11},
		"once is nothing beside one on time":    {"* * * * *", 10*minute + 2000, job.MissedOnce, list(start+10*minute, 0, 1), 10},
		"skip beside one on time":               {"* * * * *", 10*minute + 2000, job.MissedSkip, list(start+10*minute, 0, 1), 10},
		"all":                                   {"* * * * *", 10*minute + 2000, job.MissedAll, list(start, minute, 11), 10},
		"all is bounded":                        {"* * * * *", 3000*minute + 30_000, job.MissedAll, list(start+2001*minute, minute, 1000), 1001},
		"all of a bound":                        {"* * * * *", 999*minute + 30_000, job.MissedAll, list(start, minute, 1000), 1000},
		"once of more than the bound":           {"* * * * *", 3000*minute + 30_000, job.MissedOnce, list(start+3000*minute, 0, 1), 1001},
		"skip of more than the bound":           {"* * * * *", 3000*minute + 30_000, job.MissedSkip, nil, 1001},
		"seconds of a year, once":               {"* * * * * *", 365 * job.Day, job.MissedOnce, list(start+365*job.Day-5000, 1000, 6), 1001},
		"all beside those on time of the bound": {"* * * * *", 3000*minute + 1000, job.MissedAll, list(start+2000*minute, minute, 1001), 1001},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustParse(t, c.expression).In(time.UTC)
			now := start + c.late
			d := s.Look(start, now, c.rule)
			if !slices.Equal(d.Ticks, c.ticks) || d.Missed != c.missed {
				t.Fatalf("it is %d ticks %v, %d missed; want %d %v, %d", len(d.Ticks), head(d.Ticks), d.Missed, len(c.ticks), head(c.ticks), c.missed)
			}
			made := 0
			for _, tick := range d.Ticks {
				if now-tick > cron.Tolerance {
					made++
				}
			}
			if made != d.Made {
				t.Errorf("%d missed ones are made up for, and it says %d", made, d.Made)
			}
			if want, _ := s.Next(max(now, start-1)); d.Next != want {
				t.Errorf("next is %d, want %d", d.Next, want)
			}
		})
	}
}

func head(list []job.Millis) []job.Millis { return list[:min(len(list), 3)] }

func TestLookWithoutANextTick(t *testing.T) {
	s := mustParse(t, "0 0 30 2 *").In(time.UTC)
	if d := s.Look(0, 1_774_746_000_000, job.MissedAll); d.Next != 0 || len(d.Ticks) > 0 {
		t.Errorf("%+v", d)
	}
}

// Whenever somebody looks, no tick comes twice, none before its time, and with
// `all` none is left out.
func TestLooksInTurn(t *testing.T) {
	s := mustParse(t, "*/7 * * * * *").In(time.UTC)
	for _, rule := range []job.Missed{job.MissedOnce, job.MissedSkip, job.MissedAll} {
		next, now := job.Millis(1_774_746_000_000), job.Millis(1_774_745_999_000)
		want, latest := next, job.Millis(0)
		for _, span := range []job.Millis{1, 999, 1, 6999, 1, 4000, 60_000, 3, 7000, 7000, 14_000, 500, 3_600_000, 1} {
			now += span
			d := s.Look(next, now, rule)
			for _, tick := range d.Ticks {
				if tick <= latest || tick > now {
					t.Fatalf("%s: tick %d after %d at %d", rule, tick, latest, now)
				}
				if rule == job.MissedAll && tick != want {
					t.Fatalf("%s: tick %d, want %d", rule, tick, want)
				}
				latest = tick
				want, _ = s.Next(tick)
			}
			if next = d.Next; next <= now {
				t.Fatalf("next is %d at %d", next, now)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for failures, want := range map[uint32]job.Millis{1: 1000, 2: 2000, 6: 32_000, 7: 60_000, 8: 60_000, 1 << 31: 60_000} {
		if got := cron.RetryAfter(failures); got != want {
			t.Errorf("after %d refusals: %d, want %d", failures, got, want)
		}
	}
}
