package cron

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

const (
	// Tolerance is how late a tick may be looked at before it counts as missed.
	Tolerance = 5 * job.Second
	// MissedMax bounds the missed ticks of one entry that are made up for: of
	// more, the latest so many.
	MissedMax = 1000
)

// Due is what a look at the clock makes of an entry.
type Due struct {
	Ticks  []job.Millis // each is enqueued, in this order
	Next   job.Millis   // the first tick after the look; 0 = there is none
	Missed int          // ticks that were missed, counted up to MissedMax + 1
	Made   int          // missed ones among Ticks
}

// Look decides what is enqueued at a time, when next is the first tick that is
// not dealt with yet. A tick that is at most Tolerance late is enqueued. Of
// those that are later, missed ones,
//
//	MissedSkip  none is;
//	MissedOnce  the latest is, unless one that is not missed stands for it;
//	MissedAll   each is, but only the latest MissedMax.
//
// No tick is ever returned twice: every one is from next on and before Next.
func (s Schedule) Look(next, now job.Millis, rule job.Missed) Due {
	var d Due
	at, ok := next, next != 0
	for ; ok && at <= now; at, ok = s.Next(at) {
		if now-at > Tolerance {
			if d.Missed++; d.Missed > MissedMax { // there may be millions
				at = now - Tolerance - 1
				d.Ticks = s.latest(next, at, rule)
				d.Made = len(d.Ticks)
				continue
			}
			if rule != job.MissedAll {
				d.Ticks = d.Ticks[:0]
			}
			if rule != job.MissedSkip {
				d.Ticks = append(d.Ticks, at)
			}
			d.Made = len(d.Ticks)
			continue
		}
		if rule == job.MissedOnce && d.Made > 0 {
			d.Ticks, d.Made = d.Ticks[:0], 0
		}
		d.Ticks = append(d.Ticks, at)
	}
	if ok {
		d.Next = at
	}
	return d
}

// latest returns the latest missed ticks up to a time, as many as a rule makes
// up for.
func (s Schedule) latest(from, until job.Millis, rule job.Missed) (list []job.Millis) {
	n := [...]int{job.MissedOnce: 1, job.MissedSkip: 0, job.MissedAll: MissedMax}[rule]
	for at, ok := s.Last(until); ok && at >= from && len(list) < n; at, ok = s.Last(at - 1) {
		list = append(list, at)
	}
	slices.Reverse(list)
	return list
}

// RetryAfter is the wait after so many refused enqueues in a row: 1 s, 2 s,
// 4 s, up to a minute. Meanwhile the entry's ticks count as missed.
func RetryAfter(failures uint32) job.Millis {
	return min(job.Second<<min(failures-1, 6), job.Minute)
}
