package worker_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/worker"
	"github.com/reprisehq/reprise/internal/rule"
)

func (r *rig) register(worker string) string {
	r.Helper()
	secret, err := r.Part.Workers.Register(r.Context(), worker)
	if err != nil {
		r.Fatal(err)
	}
	return secret
}

// beats wants one heartbeat of a worker to reach exactly these jobs.
func (r *rig) beats(worker, secret string, span job.Millis, want ...string) {
	r.Helper()
	list, err := r.Part.Workers.Extend(r.Context(), worker, secret, span)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, v := range list {
		if v.Err != nil || v.State != job.Leased {
			r.Errorf("%+v", v)
		}
		got = append(got, r.Names[v.Job.ID])
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Fatalf("extended %v, want %v", got, want)
	}
}

func (r *rig) by(name, secret string, n int) engine.LeaseOptions {
	r.Helper()
	if secret != "" {
		var err error
		if name, err = r.Part.Workers.Name(r.Context(), name, secret); err != nil {
			r.Fatal(err)
		}
	}
	return engine.LeaseOptions{Worker: name, Max: n, For: 10 * job.Second}
}

// A heartbeat that names no span keeps each lease for the one it has, from its
// grant or its latest extension, also over a restart of the server; and a date that
// was set back while the server was away keeps none for longer.
func TestALeaseKeepsItsSpan(t *testing.T) {
	scenario(t, func(r *rig) {
		secret := r.register("w")
		r.AddAll("q", "a", "b")
		o := r.by("w", secret, 1)
		r.Leased(o, "a")
		o.For = job.Hour
		r.Leased(o, "b")
		for range 2 {
			r.Pass(8 * job.Second)
			r.beats("w", secret, 0, "a", "b")
			r.Restart(job.Second)
		}
		left := func(name string) job.Millis { return r.Job(name).Leases[0].Until - r.Clock.Steady() }
		if a, b := left("a"), left("b"); a != 30*job.Second || b != job.Hour-job.Second {
			t.Errorf("behind a restart a lives for %s and b for %s", a, b)
		}
		r.End()
		r.Clock.Step.Add(-int64(job.Day))
		r.Begin()
		if a, b := left("a"), left("b"); a > 30*job.Second || b > job.Hour {
			t.Errorf("with the date set back a lives for %s and b for %s", a, b)
		}
	})
}

func TestOneHeartbeatKeepsAllLeasesOfAWorker(t *testing.T) { // operations.md, Security
	scenario(t, func(r *rig) {
		secret := r.register("w")
		r.AddAll("q", "a", "b", "c", "d")
		mine := r.Leased(r.by("w", secret, 2), "a", "b")
		r.Leased(r.by("w", secret, 1), "c")
		r.Leased(r.by("w", "", 1), "d") // of the same name, and not the same worker
		r.Pass(8 * job.Second)
		r.beats("w", secret, 10*job.Second, "a", "b", "c")
		r.Pass(8 * job.Second)
		r.Expect("a", job.Leased)
		r.Expect("c", job.Leased)
		r.Expect("d", job.Ready)
		r.Settled(mine["a"], job.OK)
		r.Operate("b", cancel)
		r.beats("w", secret, 10*job.Second, "c") // what it is not told of is over
		r.Pass(10 * job.Second)
		r.Expect("c", job.Ready)
		r.beats("w", secret, 10*job.Second)
		if list := r.Job("d"); list.Losses != 1 {
			r.Errorf("d: %+v", list)
		}
	})
}

// A job that runs twice is run by two workers; each keeps its own run.
func TestAHeartbeatKeepsNoRunOfAnotherWorker(t *testing.T) {
	scenario(t, func(r *rig) {
		first, second := r.register("first"), r.register("second")
		r.AddAll("q", "a")
		r.Leased(r.by("first", first, 1), "a")
		r.Operate("a", rule.Command{Verb: rule.Offer})
		held := r.Leased(r.by("second", second, 1), "a")
		r.Pass(8 * job.Second)
		r.beats("second", second, 10*job.Second, "a")
		r.Pass(8 * job.Second)
		if j := r.Job("a"); len(j.Leases) != 1 || j.Leases[0].Token != held["a"].Lease.Token {
			r.Errorf("what is left of two runs, one of which was kept: %+v", j.Leases)
		}
		r.beats("first", first, 10*job.Second)
		r.beats("second", second, 10*job.Second, "a")
	})
}

func TestAHeartbeatOfAWorkerIsNeverLaterThanOneOfALease(t *testing.T) { // run timeouts go on
	scenario(t, func(r *rig) {
		secret := r.register("w")
		r.Add("q", "a", func(n *engine.NewJob) { n.Job.RunTimeout = 12 * job.Second })
		r.Leased(r.by("w", secret, 1), "a")
		r.Pass(8 * job.Second)
		r.beats("w", secret, job.Minute, "a")
		r.Pass(5 * job.Second)
		if j := r.Job("a"); j.State == job.Leased || j.Attempts != 1 {
			r.Errorf("the run took longer than it may: %+v", j)
		}
	})
}

func TestASecretIsOfOneWorkerAndOneRegistration(t *testing.T) { // operations.md, Security
	scenario(t, func(r *rig) {
		if _, err := r.Part.Workers.Extend(r.Context(), "w", strings.Repeat("0", 48), job.Minute); !errors.Is(err, worker.ErrSecret) {
			r.Errorf("before the first registration: %v", err)
		}
		mine, again, other := r.register("w"), r.register("w"), r.register("v")
		if mine == again || mine == other || len(mine) != 48 {
			r.Errorf("secrets %q %q %q", mine, again, other)
		}
		r.AddAll("q", "a", "b")
		r.Leased(r.by("w", mine, 1), "a")
		until := r.Job("a").Leases[0].Until
		flipped := []byte(mine)
		flipped[47] ^= 1
		for _, wrong := range []string{
			"", "w", other, strings.ToUpper(mine) + "0", mine[:46], mine + "00", string(flipped), again[:16] + mine[16:], strings.Repeat("0", 48), strings.Repeat("g", 48),
		} {
			list, err := r.Part.Workers.Extend(r.Context(), "w", wrong, job.Hour)
			if !errors.Is(err, worker.ErrSecret) || list != nil {
				r.Errorf("%q: %v, %v", wrong, list, err)
			}
			if _, err := r.Part.Workers.Name(r.Context(), "w", wrong); !errors.Is(err, worker.ErrSecret) {
				r.Errorf("leased with %q: %v", wrong, err)
			}
			if wrong == "" {
				r.Leased(r.by("w", "", 1), "b") // without a secret it is another holder
				r.Pass(10 * job.Second)
			}
		}
		if _, err := r.Part.Workers.Extend(r.Context(), "v", mine, job.Hour); !errors.Is(err, worker.ErrSecret) {
			r.Errorf("under another name: %v", err)
		}
		r.beats("w", again, job.Hour) // a registration of its own holds nothing
		r.beats("v", other, job.Hour)
		if j := r.Job("a"); j.State == job.Leased && j.Leases[0].Until != until {
			r.Errorf("a refused heartbeat moved the end of the lease from %d to %d", until, j.Leases[0].Until)
		}
	})
}

func TestASecretSurvivesARestartAndAPowerCut(t *testing.T) {
	scenario(t, func(r *rig) {
		secret := r.register("w")
		r.PowerCut()
		r.AddAll("q", "a")
		r.Leased(r.by("w", secret, 1), "a")
		r.Restart(job.Second)
		r.beats("w", secret, job.Minute, "a")
		r.Pass(30 * job.Second)
		r.Expect("a", job.Leased)
		if again := r.register("w"); again[16:] == secret[16:] {
			r.Error("a second registration has the code of the first")
		}
		r.beats("w", secret, job.Minute, "a") // the key is still the same
	})
}

func TestAHeartbeatReachesMoreLeasesThanOneTransactionTakes(t *testing.T) {
	scenario(t, func(r *rig) {
		secret := r.register("w")
		const n = 2100
		list := make([]engine.NewJob, n)
		for i := range list {
			list[i] = newNamed("q", "x")
		}
		if _, err := r.Put(r.Context(), list); err != nil {
			r.Fatal(err)
		}
		for got := 0; got < n; {
			more := len(r.LeaseNow(r.by("w", secret, n)))
			if got += more; more == 0 {
				r.Fatalf("leased %d", got)
			}
		}
		told, err := r.Part.Workers.Extend(r.Context(), "w", secret, job.Hour)
		if err != nil || len(told) != n {
			r.Fatalf("extended %d, %v", len(told), err)
		}
		r.Pass(job.Minute)
		if d := r.DepthOf("q"); d.Leases != n {
			r.Errorf("%d leases live", d.Leases)
		}
	})
}

func TestTheNameOfAWorkerIsShownWithoutWhatItsSecretTells(t *testing.T) {
	scenario(t, func(r *rig) {
		secret := r.register("w")
		r.AddAll("q", "a")
		d := r.Leased(r.by("w", secret, 1), "a")["a"]
		r.Settled(d, job.Retried)
		list, err := r.Failures(r.Context(), r.IDs["a"], 0, false, 9)
		if err != nil || len(list) != 1 || job.WorkerOf(list[0].Holder) != "w" {
			r.Errorf("%+v, %v", list, err)
		}
	})
}
