package cron_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/store"
)

// Entries whose jobs have a batch or a unique key: zizq.md 1.15, 1.16, docs/cron.md.

// inBatch gives the template a batch that takes others in up to a length.
func inBatch(key string, most int) func(*cron.Ask) {
	return func(a *cron.Ask) { batched(key, most)(&a.Job) }
}

// payloads lists what is there, in the order of the jobs.
func (r *rig) payloads() string {
	r.Helper()
	list, err := enginetest.Page(r.Context(), r.Engine, store.Filter{}, 5000)
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, l := range list {
		out = append(out, string(l.Payload))
	}
	return strings.Join(out, " ")
}

func (r *rig) payloadsAre(want string) {
	r.Helper()
	if got := r.payloads(); got != want {
		r.Fatalf("the payloads are %q, want %q", got, want)
	}
}

func TestTicksFoldIntoTheJobThatWaits(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", inBatch("k", 5)), entry("f", "0 1 * * *"))
		r.Pass(job.Minute)
		r.payloadsAre("e")
		first := r.cronEntry("g", "e")
		if first.Next != r.Now()+job.Minute || first.Last != r.Now() || first.Retry != 0 || first.Error != "" {
			t.Errorf("%+v", first)
		}
		r.Pass(2 * job.Minute)
		r.payloadsAre("e+e+e")
		c := r.cronEntry("g", "e")
		if c.LastJob != first.LastJob || c.Last != r.Now() || c.Next != r.Now()+job.Minute {
			t.Errorf("the tick went into %s and the entry says %+v", first.LastJob, c)
		}
		r.Pass(2 * job.Minute) // the batch is full
		r.payloadsAre("e+e+e e+e")
		if s, c := r.stats(), r.crons.Counts(); c != (cron.Counts{Jobs: 2}) || r.folds.Folded() != 3 || s.Put != 2 {
			t.Errorf("%+v, %+v", s, c)
		}
		r.put("q", "x", batched("k", 9)) // and others join them
		r.payloadsAre("e+e+e e+e+x")
	}, utc, folding)
}

// The clock sleeps while others fold; how long it sleeps is cronFoldAgain.
func TestWhileATickIsFoldedTheCommitterRests(t *testing.T) {
	var enter, leave chan struct{}
	scenario(t, func(r *rig) {
		enter, leave = make(chan struct{}, 9), make(chan struct{})
		r.setCron("g", entry("e", "0 * * * *", inBatch("k", 99)), entry("other", "* * * * *"))
		r.put("q", "x", batched("k", 99))
		r.Pass(job.Hour - 1)
		before := r.stats().Batches
		r.Pass(1)
		<-enter
		r.Pass(10 * job.Second)
		if n := r.stats().Batches - before; n > 20 {
			t.Errorf("%d transactions in 10 s", n)
		}
		r.put("q", "stranger") // nobody else waits
		if len(enter) > 0 {
			t.Error("a second one folds the same tick")
		}
		if got := r.ticked("other"); got[len(got)-1] != "1h" {
			t.Errorf("%v", got)
		}
		close(leave)
		r.Pass(0)
		if got := r.payloads(); strings.Count(got, "x+e") != 1 {
			t.Errorf("%s", got)
		}
		r.Pass(job.Minute)
		if got := r.payloads(); strings.Count(got, "x+e") != 1 || strings.Contains(got, "+e+e") {
			t.Errorf("the tick came again: %s", got)
		}
	}, utc, func(r *rig) {
		r.folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
			enter <- struct{}{}
			select {
			case <-leave:
			case <-ctx.Done():
			}
			return appends(ctx, b, existing, newcomer)
		}
	})
}

// Whatever a power cut keeps, each tick is in a payload once.
func TestNoTickFoldsInTwiceOrNotAtAllOverPowerCuts(t *testing.T) {
	for seed := range uint64(10) {
		scenario(t, func(r *rig) {
			r.setCron("g", entry("e", "*/3 * * * * *", missing(job.MissedAll), inBatch("k", 30)))
			begin := r.Now()
			for i := range 40 {
				r.Pass(job.Second*7 - job.Millis(i%2))
				switch i % 4 {
				case 0:
					r.PowerCut()
				case 1:
					r.WorstPowerCut()
				case 2:
					r.Restart(10 * job.Second)
				}
			}
			r.Pass(5 * job.Second)
			c := r.cronEntry("g", "e")
			if got, want := strings.Count(r.payloads(), "e"), int((c.Next-begin)/(3*job.Second))-1; got != want || c.Next <= r.Now() {
				t.Errorf("seed %d: %d ticks were folded, want %d: %+v", seed, got, want, c)
			}
		}, utc, folding, func(r *rig) { r.Seed = seed })
	}
}

func TestManyMissedTicksFoldOneAfterAnother(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("all", "* * * * *", missing(job.MissedAll), inBatch("k", 9999)), entry("once", "* * * * *", inBatch("l", 9999)), entry("skip", "* * * * *", missing(job.MissedSkip), inBatch("m", 9999)))
		r.Restart(20*job.Minute + 30*job.Second)
		r.Pass(0)
		got := r.payloads()
		if strings.Count(got, "all") != 20 || strings.Count(got, "once") != 1 || strings.Contains(got, "skip") || strings.Count(got, " ") != 1 {
			t.Errorf("%s", got)
		}
		if c := r.cronEntry("g", "once"); c.Skipped != 19 || c.Next != r.Now()+30*job.Second {
			t.Errorf("%+v", c)
		}
	}, utc, folding)
}

func TestMoreEntriesFoldThanThereAreGoroutinesForThem(t *testing.T) {
	scenario(t, func(r *rig) {
		var list []cron.Ask
		for i := range 20 {
			list = append(list, entry(fmt.Sprint("e", i), "* * * * *", inBatch(fmt.Sprint("k", i%7), 9999)))
		}
		r.setCron("g", list...)
		r.Pass(3 * job.Minute)
		got := r.payloads()
		if n := strings.Count(got, "e"); n != 60 || strings.Count(got, " ") != 6 {
			t.Errorf("%d ticks: %s", n, got)
		}
	}, utc, folding)
}

func TestAFoldThatFailsIsTheErrorOfItsEntry(t *testing.T) {
	scenario(t, func(r *rig) {
		bad := entry("e", "*/5 * * * *", inBatch("k", 99))
		bad.Job.Payload = []byte("bad")
		r.setCron("g", bad, entry("f", "*/5 * * * *"))
		id := r.put("q", "a", batched("k", 99))
		r.Pass(5*job.Minute + 2*job.Second)
		c := r.cronEntry("g", "e")
		if !strings.Contains(c.Error, "it failed") || c.Failures < 2 || c.Retry <= r.Now() || c.Last != 0 || c.Next != r.Now()-2*job.Second {
			t.Errorf("%+v", c)
		}
		if s := r.crons.Counts(); s.Refused != uint64(c.Failures) || s.Jobs != 1 {
			t.Errorf("%+v", s)
		}
		r.payload(id, "a")
		if _, err := r.desk.Do(r.Context(), ann, desk.Delete, id); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		c = r.cronEntry("g", "e") // nobody waits any more: it comes late, and once
		if c.Error != "" || c.Failures != 0 || c.Retry != 0 || c.Last != c.Next-5*job.Minute || c.Next <= r.Now() {
			t.Errorf("%+v", c)
		}
		r.payloadsAre("f bad")
	}, utc, folding)
}

// The clock looks at the tick each second meanwhile; these looks count for nothing.
func TestAFoldThatTakesLongAndFailsIsOneRefusal(t *testing.T) {
	var leave chan struct{}
	scenario(t, func(r *rig) {
		leave = make(chan struct{})
		bad := entry("e", "*/5 * * * *", missing(job.MissedAll), inBatch("k", 99))
		bad.Job.Payload = []byte("bad")
		r.setCron("g", bad)
		r.put("q", "a", batched("k", 99))
		r.Pass(5*job.Minute + 3*job.Second + 500)
		close(leave)
		r.Pass(0)
		if c := r.cronEntry("g", "e"); c.Failures != 1 || c.Retry != r.Now()+job.Second {
			t.Errorf("%+v", c)
		}
	}, utc, func(r *rig) {
		r.folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
			<-leave
			return appends(ctx, b, existing, newcomer)
		}
	})
}

func TestAFoldIntoAFullQueueIsTriedAgain(t *testing.T) {
	scenario(t, func(r *rig) {
		r.queue("q", func(q *job.Queue) { q.MaxBytes = 2 })
		r.setCron("g", entry("e", "*/5 * * * *", inBatch("k", 99)))
		id := r.put("q", "a", batched("k", 99))
		r.Pass(5*job.Minute + job.Second)
		if c := r.cronEntry("g", "e"); !strings.Contains(c.Error, "full") || c.Failures == 0 {
			t.Errorf("%+v", c)
		}
		r.queue("q", func(q *job.Queue) { q.MaxBytes = 0 })
		r.Pass(job.Minute)
		r.payload(id, "a+e")
	}, utc, folding)
}

// What changes while a tick is folded decides about it.
func TestAnEntryThatChangesWhileItsTickIsFolded(t *testing.T) {
	for name, c := range map[string]struct {
		change func(r *rig) error
		want   string
	}{
		"paused": {func(r *rig) error { _, err := r.crons.PauseEntry(r.Context(), "g", "e", true, ann); return err }, "x"},
		"group paused": {func(r *rig) error {
			_, err := r.crons.Patch(r.Context(), "g", cron.Patch{Paused: new(true)}, ann)
			return err
		}, "x"},
		"deleted":       {func(r *rig) error { return r.crons.DeleteEntry(r.Context(), "g", "e", ann) }, "x"},
		"group deleted": {func(r *rig) error { return r.crons.Delete(r.Context(), "g", ann) }, "x"},
		"reset":         {func(r *rig) error { _, err := r.desk.Reset(r.Context()); return err }, ""},
		"another expression": {func(r *rig) error {
			_, err := r.crons.SetEntry(r.Context(), "g", entry("e", "0 0 1 1 *", inBatch("k", 99)), ann)
			return err
		}, "x"},
		"another job": {func(r *rig) error {
			a := entry("e", "0 * * * *", inBatch("k", 99))
			a.Job.Payload = []byte("new")
			_, err := r.crons.SetEntry(r.Context(), "g", a, ann)
			return err
		}, "x+new"},
		"no batch": {func(r *rig) error {
			_, err := r.crons.SetEntry(r.Context(), "g", entry("e", "0 * * * *"), ann)
			return err
		}, "x e"},
		"nothing":       {func(*rig) error { return nil }, "x+e"},
		"stopped":       {func(r *rig) error { r.Restart(0); return nil }, "x+e"},
		"cut off":       {func(r *rig) error { r.PowerCut(); return nil }, "x+e"},
		"batch changed": {func(r *rig) error { return r.takes("x", false) }, "x e"},
	} {
		t.Run(name, func(t *testing.T) {
			var enter, leave chan struct{}
			scenario(t, func(r *rig) {
				enter, leave = make(chan struct{}, 99), make(chan struct{})
				r.setCron("g", entry("e", "0 * * * *", inBatch("k", 99)))
				r.put("q", "x", batched("k", 99))
				r.Pass(job.Hour)
				<-enter
				if err := c.change(r); err != nil {
					t.Fatal(err)
				}
				close(leave)
				r.Pass(2 * job.Second)
				r.payloadsAre(c.want)
			}, utc, func(r *rig) {
				r.folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
					enter <- struct{}{}
					select {
					case <-leave:
						return appends(ctx, b, existing, newcomer)
					case <-ctx.Done():
						return nil, false, ctx.Err()
					}
				}
			})
		})
	}
}

func TestRunningAnEntryNowFoldsToo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", pausedAs(true), inBatch("k", 99)))
		before := r.cronEntry("g", "e")
		a, _, err := r.crons.Run(r.Context(), "g", "e", ann)
		if err != nil || a.Folded || a.Job == nil {
			t.Fatalf("%+v, %v", a, err)
		}
		b, _, err := r.crons.Run(r.Context(), "g", "e", ann)
		if err != nil || !b.Folded || b.ID != a.ID {
			t.Fatalf("%+v, %v", b, err)
		}
		r.payload(a.ID, "e+e")
		if after := r.cronEntry("g", "e"); fmt.Sprint(*after) != fmt.Sprint(*before) && after.Next != before.Next {
			t.Errorf("%+v became %+v", before, after)
		}
		r.audited("ann run cron 1", "ann run cron 1", "ann set cron 1")
	}, utc, folding)
}

func TestARunThatFailsToFoldIsRefused(t *testing.T) {
	scenario(t, func(r *rig) {
		bad := entry("e", "0 0 1 1 *", inBatch("k", 99))
		bad.Job.Payload = []byte("bad")
		r.setCron("g", bad)
		id := r.put("q", "a", batched("k", 99))
		if _, _, err := r.crons.Run(r.Context(), "g", "e", ann); job.KindOf(err) != job.Unprocessable {
			t.Errorf("%v", err)
		}
		r.payload(id, "a")
		r.audited("ann set cron 1")
	}, utc, folding)
}

// An entry that changes while a run of it is planned is run as it is then.
func TestARunOfAnEntryThatChangesBeginsAnew(t *testing.T) {
	var once bool
	var at *rig
	scenario(t, func(r *rig) {
		at = r
		r.setCron("g", entry("e", "0 0 1 1 *", inBatch("k", 99)))
		id := r.put("q", "a", batched("k", 99))
		if a, n, err := r.crons.Run(r.Context(), "g", "e", ann); err != nil || a.Folded || string(n.Payload) != "new" {
			t.Errorf("%+v, %v", a, err)
		}
		r.payload(id, "a")
		r.payloadsAre("a new")
	}, utc, func(r *rig) {
		r.folder = func(ctx context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
			if !once {
				once = true
				a := entry("e", "0 0 1 1 *")
				a.Job.Payload = []byte("new")
				if _, err := at.crons.SetEntry(ctx, "g", a, ann); err != nil {
					at.Error(err)
				}
			}
			return appends(ctx, b, existing, newcomer)
		}
	})
}

func TestATickWhoseJobIsADuplicate(t *testing.T) { // zizq.md 1.15: nothing is written, and the answer names the owner
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", func(a *cron.Ask) {
			a.Job.Job.Extras = &job.Extras{Unique: &job.Unique{Key: "k", While: job.WhileActive}}
		}))
		r.Pass(3 * job.Minute)
		r.ticksAre("e", "1m")
		c := r.cronEntry("g", "e")
		first := c.LastJob
		if c.Last != r.Now() || c.Next != r.Now()+job.Minute || c.Error != "" || c.Skipped != 0 {
			t.Errorf("%+v", c)
		}
		if s, c := r.stats(), r.crons.Counts(); c.Jobs != 1 || s.Duplicates != 2 || s.Put != 1 {
			t.Errorf("%+v, %+v", s, c)
		}
		if a, _, err := r.crons.Run(r.Context(), "g", "e", ann); err != nil || !a.Duplicate || a.ID != first {
			t.Errorf("%+v, %v", a, err)
		}
		if err := r.takes("e", true); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		if c := r.cronEntry("g", "e"); c.LastJob == first || c.Last != r.Now() {
			t.Errorf("the key is free: %+v", c)
		}
	}, utc)
}

func TestResetForgetsCron(t *testing.T) {
	scenario(t, func(r *rig) {
		many := make([]cron.Ask, 3_000)
		for i := range many {
			many[i] = entry(fmt.Sprint(i), "0 0 1 1 *")
		}
		r.setCron("many", many...)
		r.setCron("g", entry("e", "* * * * *"))
		r.Pass(job.Minute)
		if n, err := r.desk.Reset(r.Context()); err != nil || n != 1 {
			t.Fatalf("reset %d, %v", n, err)
		}
		if r.rows(job.CronGroups) != 0 || r.rows(job.CronEntries) != 0 {
			t.Error("rows are left")
		}
		r.Pass(job.Hour)
		r.ticksAre("e")
		again := make([]cron.Ask, 9_999) // and count no more
		for i := range again {
			again[i] = entry(fmt.Sprint(i), "0 0 1 1 *")
		}
		r.setCron("again", again...)
	}, utc, func(r *rig) { r.Twice = false })
}

func TestAnEngineWithoutAFolderSaysSo(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", inBatch("k", 9)))
		r.Pass(job.Minute)
		synctest.Wait()
		if c := r.cronEntry("g", "e"); !strings.Contains(c.Error, "not supported") || c.Failures != 1 {
			t.Errorf("%+v", c)
		}
	}, utc)
}
