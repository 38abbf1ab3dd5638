package meter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// rated wants that so much happened in a queue within the window.
func (r *rig) rated(queue string, window job.Millis, enqueued, taken, completed, failed int) {
	r.Helper()
	got, ok := r.Part.Meter.Rates(queue)
	if !ok || got.Window != window {
		r.Fatalf("%s: over %d ms (%v), want %d", queue, got.Window, ok, window)
	}
	for i, x := range []struct {
		rate float64
		want int
	}{{got.Enqueued, enqueued}, {got.Taken, taken}, {got.Completed, completed}, {got.Failed, failed}} {
		if n := x.rate * float64(window) / 1000; math.Abs(n-float64(x.want)) > 1e-9 {
			r.Fatalf("%s: %v of %d, want %d: %+v", queue, n, i, x.want, got)
		}
	}
}

// A scenario begins with a second.
func TestRatesAreThoseOfTheLastMinuteOrSinceTheStart(t *testing.T) {
	scenario(t, func(r *rig) {
		r.rated("q", job.Second, 0, 0, 0, 0)
		r.Pass(10 * job.Second)
		for i := range 6 {
			r.Add("q", fmt.Sprint(i), retry(job.Retry{Curve: wait(job.Hour)}), func(n *engine.NewJob) { n.Job.RunTimeout = 40 * job.Second })
		}
		r.rated("q", 10*job.Second, 6, 0, 0, 0)
		r.Pass(2 * job.Second)
		s := r.Anonymous(5, "q")
		s.Gets("0", "1", "2", "3", "4")
		s.OK("0")
		s.OK("1")
		s.Fails("2")
		r.Settled(s.Held["3"], job.Released, func(s *engine.Settle) { s.Delay = job.Hour }) // which is neither
		s.Gets("5")
		r.rated("q", 12*job.Second, 6, 6, 2, 1)
		r.rated("other", 12*job.Second, 0, 0, 0, 0)
		r.Pass(40 * job.Second) // 4 and 5 ran too long
		r.rated("q", 52*job.Second, 6, 6, 2, 3)
		r.Pass(17*job.Second + 999) // the second in which they came is the oldest that counts
		r.rated("q", 59_999, 6, 6, 2, 3)
		r.Pass(1)
		r.rated("q", 59_000, 0, 6, 2, 3)
		r.Pass(2 * job.Second)
		r.rated("q", 59_000, 0, 0, 0, 2)
		r.Pass(job.Minute)
		r.rated("q", 59_000, 0, 0, 0, 0)
		r.Add("q", "late")
		r.rated("q", 59_000, 1, 1, 0, 0)
		r.Restart(job.Second)
		r.rated("q", job.Second, 0, 0, 0, 0)
	})
}

// Against the plain way: every event is kept with its time.
func TestRatesAreWhatTheEventsSay(t *testing.T) {
	scenario(t, func(r *rig) {
		dice := rand.New(rand.NewPCG(1, 2))
		var came, ended []job.Millis // seconds
		s := r.Anonymous(0, "q")
		began := r.Clock.Steady()
		within := func(list []job.Millis) (n int) {
			for _, at := range list {
				if at > r.Clock.Steady()/1000-60 {
					n++
				}
			}
			return n
		}
		for i := range 150 {
			name := fmt.Sprint(i)
			r.Add("q", name)
			came = append(came, r.Clock.Steady()/1000)
			s.Gets(name)
			if dice.IntN(2) == 0 {
				s.OK(name)
				ended = append(ended, r.Clock.Steady()/1000)
			}
			now := r.Clock.Steady()
			window := max(now-max(began, (now/1000-59)*1000), job.Second)
			r.rated("q", window, within(came), within(came), within(ended), 0)
			r.Pass(job.Millis(dice.IntN([]int{50, 3000, 30_000, 90_000}[dice.IntN(4)])))
		}
	})
}
