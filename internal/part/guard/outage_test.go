package guard_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// outage is a scene: jobs arrive for several hosts, two of which are down for
// a while. The engine and its store are the real ones, the time is not.
type outage struct {
	*testing.T
	*part.Engine
	scene
	start time.Time
	rng   *rand.Rand

	mu       sync.Mutex // guards what follows
	attempts [outageHosts][]time.Duration
	wasted   int
	waits    []time.Duration // of the jobs for healthy hosts, from put to done
	done     int
	born     map[job.ID]time.Duration
	last     time.Duration // a job was done
}

// outageFull plays the scene at its full length, which takes a minute.
var outageFull = flag.Bool("outage", false, "play the outage with 100,000 jobs and ten minutes")

// scene is how much happens.
type scene struct {
	jobs     int
	from, to time.Duration // two hosts are down
}

const (
	outageHosts = 10
	outageDead  = 2                      // hosts 0 and 1
	outageTick  = 100 * time.Millisecond // arrivals come together
	outageEach  = 10                     // jobs in one tick, in the mean
	outageTakes = 20                     // a second, is what a host can take
	outageRun   = 50 * time.Millisecond  // of a run that succeeds
	outageHangs = time.Second            // a host that is down answers nothing for so long
	outageSlots = 200                    // runs at once, of all workers
)

// play lets the scene happen. protect changes the settings of the queue.
func play(t *testing.T, sc scene, protect func(*job.Queue)) *outage {
	o := &outage{T: t, scene: sc, rng: rand.New(rand.NewPCG(1, 2)), born: map[job.ID]time.Duration{}}
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o.start = time.Now()
		c := enginetest.NewClock()
		st, err := embedded.Open(embedded.Options{Dir: dir, Sync: embedded.OS, Now: c.Wall, Logf: t.Logf})
		if err != nil {
			t.Fatal(err)
		}
		dice := rand.New(rand.NewPCG(3, 4))
		var mu sync.Mutex
		rnd := func() uint64 { mu.Lock(); defer mu.Unlock(); return dice.Uint64() }
		o.Engine = part.New(st, c, rnd, quiet, engine.Options{Server: rule.DefaultServer(), Reattach: job.Minute})
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = o.Desk.SetQueue(t.Context(), "hooks", func(q *job.Queue) error {
			q.Retry = job.Retry{Limit: job.Unlimited(), Curve: &job.Curve{
				Kind: job.CurveExponential, Unit: job.Second, Factor: 2, Cap: job.Minute, Jitter: job.Jitter{Kind: job.JitterFull},
			}}
			protect(q)
			return nil
		}, job.Actor{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		workers.Go(func() { o.work(ctx) })
		o.arrive()
		for o.open() > 0 {
			<-time.After(10 * time.Second)
		}
		cancel()
		workers.Wait()
		if err := o.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *outage) now() time.Duration { return time.Since(o.start) }

func (o *outage) open() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.jobs - o.done
}

func hostName(h int) string { return fmt.Sprintf("host-%d", h) }

// arrive puts all jobs, a random number for random hosts in each tick.
func (o *outage) arrive() {
	for left := o.jobs; left > 0; <-time.After(outageTick) {
		list := make([]engine.NewJob, min(left, o.rng.IntN(2*outageEach+1)))
		left -= len(list)
		for i := range list {
			list[i] = newNamed("hooks", "x", grouped(hostName(o.rng.IntN(outageHosts))))
		}
		if len(list) == 0 {
			continue
		}
		at := o.now()
		o.mu.Lock() // nobody settles before the jobs are known
		added, err := o.Put(context.Background(), list)
		if err != nil {
			o.Error(err)
		}
		for _, a := range added {
			o.born[a.ID] = at
		}
		o.mu.Unlock()
	}
}

// work takes jobs and runs them.
func (o *outage) work(ctx context.Context) {
	s, err := o.Stream(ctx, engine.StreamOptions{Name: "w", Prefetch: outageSlots})
	if err != nil {
		o.Error(err)
		return
	}
	var runs sync.WaitGroup
	for {
		list, err := s.Next(ctx)
		if err != nil {
			break
		}
		var fast, hung []engine.Delivery
		for _, d := range list {
			if o.attempt(d) {
				fast = append(fast, d)
			} else {
				hung = append(hung, d)
			}
		}
		runs.Go(func() { o.end(fast, outageRun, job.OK) })
		runs.Go(func() { o.end(hung, outageHangs, job.Retried) })
	}
	runs.Wait()
	s.Close()
}

// attempt is the request to the host: it reports whether the host is up.
func (o *outage) attempt(d engine.Delivery) bool {
	h, at := int(d.Job.Group[len("host-")]-'0'), o.now()
	up := h >= outageDead || at < o.from || at >= o.to
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attempts[h] = append(o.attempts[h], at)
	if !up {
		o.wasted++
	}
	return up
}

// end settles runs once they took their time.
func (o *outage) end(list []engine.Delivery, took time.Duration, how job.Outcome) {
	if len(list) == 0 {
		return
	}
	<-time.After(took)
	ends := make([]engine.Settle, len(list))
	for i, d := range list {
		ends[i] = engine.Settle{ID: d.Job.ID, Token: d.Lease.Token, Outcome: how, Failure: job.Failure{Message: "no answer"}}
	}
	verdicts, err := o.Settle(context.Background(), ends)
	if err != nil {
		o.Error(err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, v := range verdicts {
		if v.Err != nil {
			o.Error(v.Err)
		}
		if how != job.OK {
			continue
		}
		o.done, o.last = o.done+1, o.now()
		if d := list[i].Job; d.Group >= hostName(outageDead) {
			o.waits = append(o.waits, o.now()-o.born[d.ID])
		}
		delete(o.born, list[i].Job.ID)
	}
}

func (o *outage) p99() time.Duration {
	slices.Sort(o.waits)
	return o.waits[len(o.waits)*99/100]
}

// peak is the most attempts that a host saw in any second from a time on.
func peak(attempts []time.Duration, from time.Duration) (most int) {
	for i, first := 0, 0; i < len(attempts); i++ {
		for attempts[i]-attempts[first] >= time.Second {
			first++
		}
		if attempts[i] >= from {
			most = max(most, i-first+1)
		}
	}
	return most
}

// drained tells how fast a host was used while it had a backlog: from the end
// of the ramp until the attempts of ten seconds are no more than arrive, with
// room for chance.
func drained(attempts []time.Duration, up, ramp time.Duration) (perSecond float64, took time.Duration) {
	const span = 10 * time.Second
	first, _ := slices.BinarySearchFunc(attempts, up, func(a, b time.Duration) int { return int(a - b) })
	begin := attempts[first] + ramp
	counts := func(from time.Duration) (n int) {
		for _, a := range attempts {
			if a >= from && a < from+span {
				n++
			}
		}
		return n
	}
	total, end := 0, begin
	for ; ; end += span {
		n := counts(end)
		if n < outageTakes*8*int(span/time.Second)/10 {
			break
		}
		total += n
	}
	return float64(total) / (end - begin).Seconds(), end - up
}

// TestAnOutageOfTwoHostsLeavesTheOthersAlone is what the protection is for: 10
// minutes of outage, 100,000 jobs, 10 hosts of which 2 are down (-outage; else
// 45 seconds and 9,000 jobs). It takes fake time, so nothing in it depends on
// how fast the machine is.
func TestAnOutageOfTwoHostsLeavesTheOthersAlone(t *testing.T) {
	sc := scene{jobs: 9_000, from: 15 * time.Second, to: 60 * time.Second}
	if *outageFull {
		sc = scene{jobs: 100_000, from: 100 * time.Second, to: 700 * time.Second}
	}
	breaker := job.DefaultBreaker()
	protect := func(q *job.Queue) {
		q.Protection = job.Protection{
			GroupBreaker: &breaker, Budget: new(job.DefaultBudget()), GroupRate: job.Rate{PerSecond: 0.95 * outageTakes, Burst: 1},
		}
	}
	calm := play(t, scene{jobs: sc.jobs}, protect)
	bare := play(t, sc, func(*job.Queue) {})
	safe := play(t, sc, protect)
	t.Logf("%d jobs for %d hosts, of which %d are down from %s to %s", sc.jobs, outageHosts, outageDead, sc.from, sc.to)
	t.Logf("no outage, protected:  %s", calm)
	t.Logf("outage, not protected: %s", bare)
	t.Logf("outage, protected:     %s", safe)
	if safe.p99() > calm.p99()*12/10 {
		t.Errorf("jobs of healthy hosts waited %s at p99, without outage %s", safe.p99(), calm.p99())
	}
	if safe.wasted*100 > bare.wasted*5 {
		t.Errorf("%d attempts were wasted, without protection %d", safe.wasted, bare.wasted)
	}
	for h := range outageDead {
		most := peak(safe.attempts[h], sc.to)
		rate, took := drained(safe.attempts[h], sc.to, time.Duration(breaker.Ramp)*time.Millisecond)
		t.Logf("host %d, which takes %d a second, after the outage: at most %d attempts in a second (not protected: %d); %.1f/s while it has a backlog, which is gone after %s",
			h, outageTakes, most, peak(bare.attempts[h], sc.to), rate, took.Round(time.Second))
		if most > outageTakes {
			t.Errorf("host %d saw %d attempts in a second, and takes %d", h, most, outageTakes)
		}
		if rate < 0.8*outageTakes || took < 20*time.Second {
			t.Errorf("host %d was drained at %.1f a second for %s, and takes %d", h, rate, took, outageTakes)
		}
	}
}

func (o *outage) String() string {
	return fmt.Sprintf("healthy hosts wait %s at p99; %d attempts wasted; all done after %s", o.p99(), o.wasted, o.last.Round(time.Second))
}
