package httpapi

import (
	"sync"
	"time"
)

// pulse sends the heartbeats of all takes. Those that come due in the same
// thirtieth of the interval go out together, and where nothing stands between
// a line and its socket, without waking the goroutine of its take: an idle
// server with ten thousand workers does little else.
type pulse struct {
	interval time.Duration // the silence before a heartbeat; it comes up to a step later
	step     time.Duration
	began    time.Time

	mu    sync.Mutex
	slots [beatSteps + 2][]*line // by the step in which they are due, round and round
	next  int64                  // the step that is looked at next
	lines int                    // in all slots
}

// beatSteps is how many moments of an interval there are for heartbeats.
const beatSteps = 30

func newPulse(interval time.Duration) *pulse {
	return &pulse{interval: interval, step: max(interval/beatSteps, time.Millisecond), began: time.Now()}
}

// watch gives a line heartbeats until it is closed.
func (p *pulse) watch(l *line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.lines == 0 {
		p.next = p.after(now)
		p.wait(now)
	}
	p.lines++
	l.due = now.Add(p.interval)
	p.put(l)
}

// after is the first step that begins at a time or later.
func (p *pulse) after(t time.Time) int64 {
	return int64((t.Sub(p.began) + p.step - 1) / p.step)
}

// put files a line under the time that it is due.
func (p *pulse) put(l *line) {
	at := min(max(p.after(l.due), p.next), p.next+int64(len(p.slots))-1)
	slot := &p.slots[at%int64(len(p.slots))]
	*slot = append(*slot, l)
}

// begins is when a step begins.
func (p *pulse) begins(step int64) time.Time {
	return p.began.Add(time.Duration(step) * p.step)
}

// wait looks again when the next step begins.
func (p *pulse) wait(now time.Time) {
	time.AfterFunc(p.begins(p.next).Sub(now), p.beat)
}

// beat serves the lines that are due.
func (p *pulse) beat() {
	p.mu.Lock()
	slot := &p.slots[p.next%int64(len(p.slots))]
	due := *slot
	*slot = nil
	now := p.begins(p.next) // so that intervals do not grow by what a step takes
	p.next++
	p.mu.Unlock()

	kept := due[:0]
	for _, l := range due {
		if l.beat(now, p.interval) {
			kept = append(kept, l)
		}
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range kept {
		p.put(l)
	}
	if p.lines += len(kept) - len(due); p.lines > 0 {
		p.wait(time.Now())
	}
}
