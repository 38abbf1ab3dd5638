package filter

import (
	"errors"
	"sync"
	"time"
)

// ThrottleOptions are the settings of the filter throttle.
type ThrottleOptions struct {
	Rate     float64       // events for an interval, on average over the window
	Window   int           // intervals; 0 = 5
	Interval time.Duration // 0 = 1 s
}

const (
	windowDefault = 5
	windowMax     = 1 << 20
)

// throttle counts the events that it let through by intervals. It looks at the
// intervals that have been, at most the window: it begins slowly.
type throttle struct {
	o ThrottleOptions

	mu     sync.Mutex // guards all below
	counts []int      // a ring
	at     int        // the interval that is now
	begin  time.Time  // of that
	filled int        // intervals that have been, with that
	total  int
}

// NewThrottle makes the filter that drops what comes too fast.
func NewThrottle(o ThrottleOptions) (Filter, error) {
	if o.Window == 0 {
		o.Window = windowDefault
	}
	if o.Interval == 0 {
		o.Interval = time.Second
	}
	var problems []error
	if !(o.Rate > 0) {
		problems = append(problems, errors.New("rate has to be more than 0: it is how many events pass in an interval"))
	}
	if o.Window < 0 || o.Window > windowMax {
		problems = append(problems, errors.New("window has to be between 1 and 1048576 intervals"))
		o.Window = 1
	}
	if o.Interval < 0 {
		problems = append(problems, errors.New("interval has to be more than 0"))
	}
	return &throttle{o: o, counts: make([]int, o.Window)}, named("throttle", problems)
}

func (t *throttle) Filter(in Input, _ *Output) Verdict {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(in.Now)
	if float64(t.total+1) > t.o.Rate*float64(t.filled) {
		return Dropped
	}
	t.counts[t.at]++
	t.total++
	return Keep
}

// advance goes on to the interval of a time.
func (t *throttle) advance(now time.Time) {
	if t.filled == 0 {
		t.begin, t.filled = now, 1
	}
	steps := int64(now.Sub(t.begin) / t.o.Interval)
	if steps <= 0 {
		return
	}
	t.begin = t.begin.Add(time.Duration(steps) * t.o.Interval)
	for range min(steps, int64(len(t.counts))) {
		t.at = (t.at + 1) % len(t.counts)
		t.total -= t.counts[t.at]
		t.counts[t.at] = 0
	}
	t.filled = int(min(int64(t.filled)+steps, int64(len(t.counts))))
}
