package meter

import "github.com/reprisehq/reprise/internal/job"

// RatesWindow is how far rates look back: it is the last minute, of which the
// second that runs is the last part.
const RatesWindow = ratesSlots * job.Second

// ratesSlots is how many seconds are kept of each queue.
const ratesSlots = 60

// Rates are how much happened in a queue per second, on average over Window.
type Rates struct {
	Enqueued  float64    // jobs taken in
	Taken     float64    // jobs given to holders, again and again ones included
	Completed float64    // attempts that ended well
	Failed    float64    // attempts that failed: told by their holders, or over their run timeout
	Window    job.Millis // RatesWindow, a part of a second less, or the time since the start if that is shorter; at least a second
}

// happened is what rates are made of.
type happened [4]uint32

func happenedIn(t *Tally) happened {
	n := func(counts ...Count) (sum uint32) {
		for _, c := range counts {
			sum += uint32(t.N[c])
		}
		return sum
	}
	return happened{n(Enqueued), n(Taken), n(SettledOK), n(SettledRetry, SettledDead, EndedRunTimeout)}
}

// lately is what happened in one queue in each of the last seconds, about 1 KB.
type lately struct {
	last  job.Millis // the second of the newest slot, on the steady clock
	slots [ratesSlots]happened
}

// add counts what happened at a time, which is never before an earlier one.
func (l *lately) add(steady job.Millis, n happened) {
	l.turn(steady / job.Second)
	slot := &l.slots[l.last%ratesSlots]
	for i := range n {
		slot[i] += n[i]
	}
}

// turn empties the slots of the seconds that have begun since.
func (l *lately) turn(second job.Millis) {
	if second-l.last >= ratesSlots {
		l.slots, l.last = [ratesSlots]happened{}, second
	}
	for l.last < second {
		l.last++
		l.slots[l.last%ratesSlots] = happened{}
	}
}

// over reports whether nothing of it is in the window any more.
func (l *lately) over(steady job.Millis) bool { return steady/job.Second-l.last >= ratesSlots }

// rates is what happened per second; since is when counting began.
func (l *lately) rates(steady, since job.Millis) Rates {
	second := steady / job.Second
	oldest := second - ratesSlots + 1
	var sum [len(happened{})]uint64
	for s := max(oldest, l.last-ratesSlots+1, 0); s <= l.last; s++ {
		for i, n := range l.slots[s%ratesSlots] {
			sum[i] += uint64(n)
		}
	}
	window := max(steady-max(since, oldest*job.Second), job.Second)
	per := func(i int) float64 { return float64(sum[i]) * float64(job.Second) / float64(window) }
	return Rates{Enqueued: per(0), Taken: per(1), Completed: per(2), Failed: per(3), Window: window}
}

// recent is what happened lately in all queues. It is guarded by the mutex of
// its meter. Queues in which nothing happened for a minute are forgotten, and
// above max queues at a time no more are begun with.
type recent struct {
	max    int
	since  job.Millis // when counting began, on the steady clock
	swept  job.Millis
	queues map[string]*lately
}

// add takes over what a batch did to a queue.
func (r *recent) add(queue string, steady job.Millis, t *Tally) {
	n := happenedIn(t)
	if n == (happened{}) {
		return
	}
	l := r.queues[queue]
	if l == nil {
		if r.sweep(steady); len(r.queues) >= r.max {
			return
		}
		l = new(lately)
		r.queues[queue] = l
	}
	l.add(steady, n)
}

// sweep forgets, once a window at most, the queues in which nothing happened.
func (r *recent) sweep(steady job.Millis) {
	if steady-r.swept < RatesWindow {
		return
	}
	r.swept = steady
	for name, l := range r.queues {
		if l.over(steady) {
			delete(r.queues, name)
		}
	}
}

// of returns the rates of a queue; false if it may be one too many to know.
func (r *recent) of(queue string, steady job.Millis) (Rates, bool) {
	if l := r.queues[queue]; l != nil {
		return l.rates(steady, r.since), true
	}
	if len(r.queues) >= r.max {
		return Rates{}, false
	}
	none := lately{last: steady / job.Second}
	return none.rates(steady, r.since), true
}

// Rates returns what happens in a queue, since the start at most; false if that
// is not known, because things happened in more queues than max_queues within a
// minute.
func (m *Meter) Rates(queue string) (Rates, bool) {
	steady := m.engine.Steady()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recent.of(queue, steady)
}
