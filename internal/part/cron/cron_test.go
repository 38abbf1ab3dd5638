package cron_test

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/store"
)

// Cron: docs/cron.md. The bubble begins on 1 January 2000 at 00:00:00 UTC, a Saturday.

var utc = func(r *rig) { r.zone = time.UTC }

// entry is what a caller asks for: jobs of queue q whose payload is the name.
func entry(name, expression string, edits ...func(*cron.Ask)) cron.Ask {
	a := cron.Ask{Name: name, Expression: expression, Job: newNamed("q", name)}
	for _, edit := range edits {
		edit(&a)
	}
	return a
}

func missing(m job.Missed) func(*cron.Ask) {
	return func(a *cron.Ask) { a.Missed = &m }
}

func inZone(name string) func(*cron.Ask) { return func(a *cron.Ask) { a.Zone = name } }

func pausedAs(paused bool) func(*cron.Ask) {
	return func(a *cron.Ask) { a.Paused = &paused }
}

func (r *rig) setCron(name string, entries ...cron.Ask) cron.Group {
	r.Helper()
	g, err := r.crons.Set(r.Context(), name, cron.GroupAsk{Entries: entries}, ann)
	if err != nil {
		r.Fatal(err)
	}
	return g
}

func (r *rig) cronEntry(group, name string) *job.CronEntry {
	r.Helper()
	c, err := r.crons.Entry(r.Context(), group, name)
	if err != nil {
		r.Fatal(err)
	}
	return c
}

// ticked lists the ticks that jobs stand for, as seconds since the bubble began,
// in the order of the jobs; "run" = asked for by hand.
func (r *rig) ticked(name string) (list []string) {
	r.Helper()
	jobs, err := enginetest.Page(r.Context(), r.Engine, store.Filter{}, 5000)
	if err != nil {
		r.Fatal(err)
	}
	begin := job.Millis(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	for _, l := range jobs {
		if l.Job.Extras == nil {
			continue
		}
		labels := map[string]string{}
		for _, one := range l.Job.Extras.Labels {
			labels[one.Key] = one.Value
		}
		if labels[job.LabelCronEntry] != name {
			continue
		}
		tick, err := strconv.ParseInt(labels[job.LabelCronTick], 10, 64)
		if string(l.Payload) != name || labels[job.LabelCronGroup] == "" || err == nil && job.Millis(tick) > l.Job.Created {
			r.Errorf("job of %s with payload %q and labels %v, created %d", name, l.Payload, labels, l.Job.Created)
		}
		if err != nil {
			list = append(list, "run")
		} else {
			list = append(list, fmt.Sprint((job.Millis(tick) - begin).String()))
		}
	}
	return list
}

func (r *rig) ticksAre(name string, want ...string) {
	r.Helper()
	if got := r.ticked(name); !slices.Equal(got, want) {
		r.Fatalf("%s ticked at %v, want %v", name, got, want)
	}
}

func TestEachTickEnqueuesOneJob(t *testing.T) {
	scenario(t, func(r *rig) {
		g := r.setCron("g", entry("minutes", "* * * * *"), entry("never", "0 0 30 2 *"), entry("seconds", "*/20 * * * * *"))
		if g.Name != "g" || len(g.Entries) != 3 || g.Entries[1].Next != 0 || g.Entries[0].Next != r.Now()+job.Minute {
			t.Fatalf("%+v %+v", g, g.Entries)
		}
		r.Pass(59_999)
		r.ticksAre("minutes")
		r.Pass(1)
		r.ticksAre("minutes", "1m")
		r.Pass(job.Minute)
		r.ticksAre("minutes", "1m", "2m")
		r.ticksAre("seconds", "20s", "40s", "1m", "1m20s", "1m40s", "2m")
		r.ticksAre("never")
		c := r.cronEntry("g", "minutes")
		if c.Last != r.Now() || c.Next != r.Now()+job.Minute || c.LastJob.IsZero() || c.Error != "" {
			t.Errorf("%+v", c)
		}
		if j, _, err := r.Get(r.Context(), c.LastJob); err != nil || j.Queue != "q" || j.Type != "t" || j.State != job.Ready || j.ReadyAt != j.Created {
			t.Errorf("%+v, %v", j, err)
		}
		if s := r.crons.Counts(); s != (cron.Counts{Jobs: 8}) {
			t.Errorf("%+v", s)
		}
	}, utc)
}

func TestATemplateIsKeptWhole(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", func(a *cron.Ask) {
			j := &a.Job.Job
			j.Group, j.Priority, j.RunTimeout, j.Retry = "k", 7, 5000, &job.Retry{Limit: job.LimitOf(2)}
			j.Extras = &job.Extras{Labels: []job.Label{{Key: "cron_tick", Value: "mine"}, {Key: "team", Value: "x"}}, Traceparent: "00-1-1-00"}
			a.Job.Place = job.PlaceFront
		}))
		r.Restart(0)
		r.Pass(job.Minute)
		r.ticksAre("e", "1m")
		j, _, err := r.Get(r.Context(), r.cronEntry("g", "e").LastJob)
		if err != nil || j.Group != "k" || j.Priority != 7 || j.RunTimeout != 5000 || j.Retry == nil || j.Band != job.BandFront ||
			j.Extras.Traceparent != "00-1-1-00" || len(j.Extras.Labels) != 4 || j.Extras.Labels[3].Value != "x" {
			t.Errorf("%+v %+v, %v", j, j.Extras, err)
		}
	}, utc)
}

// Whatever a power cut keeps, each tick has one job.
func TestNoTickComesTwiceOrNotAtAllOverPowerCuts(t *testing.T) {
	for seed := range uint64(10) {
		scenario(t, func(r *rig) {
			r.setCron("g", entry("e", "*/3 * * * * *", missing(job.MissedAll)))
			var want []string
			for i := range 40 {
				r.Pass(job.Second * 7)
				switch i % 4 {
				case 0:
					r.PowerCut()
				case 1:
					r.WorstPowerCut()
				case 2:
					r.Restart(10 * job.Second)
				}
			}
			r.Pass(3 * job.Second)
			for s := job.Millis(3); s*job.Second <= r.Now()-946684800000; s += 3 {
				want = append(want, (s * job.Second).String())
			}
			r.ticksAre("e", want...)
		}, utc, func(r *rig) { r.Seed = seed })
	}
}

func TestMissedTicks(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("all", "*/10 * * * *", missing(job.MissedAll)), entry("once", "*/10 * * * *"), entry("skip", "*/10 * * * *", missing(job.MissedSkip)))
		r.Restart(35 * job.Minute)
		r.Pass(0)
		r.ticksAre("all", "10m", "20m", "30m")
		r.ticksAre("once", "30m")
		r.ticksAre("skip")
		if s := r.crons.Counts(); s.Jobs != 4 || s.Skipped != 5 {
			t.Errorf("%+v", s)
		}
		if c := r.cronEntry("g", "skip"); c.Skipped != 3 || c.Last != 0 || c.Next != r.Now()+5*job.Minute {
			t.Errorf("%+v", c)
		}
		r.Pass(5 * job.Minute)
		for _, name := range []string{"all", "once", "skip"} {
			if got := r.ticked(name); got[len(got)-1] != "40m" {
				t.Errorf("%s goes on with %v", name, got)
			}
		}
		r.jump(job.Hour) // the clock is set forward
		r.ticksAre("once", "30m", "40m", "1h40m")
		r.jump(-30 * job.Minute) // and back
		r.Pass(25 * job.Minute)
		r.ticksAre("once", "30m", "40m", "1h40m")
		r.Pass(15 * job.Minute)
		r.ticksAre("once", "30m", "40m", "1h40m", "1h50m")
	}, utc)
}

func TestAGroupSaysWhatBecomesOfMissedTicks(t *testing.T) {
	scenario(t, func(r *rig) {
		ask := cron.GroupAsk{Missed: job.MissedAll, Entries: []cron.Ask{entry("a", "*/10 * * * *"), entry("b", "*/10 * * * *", missing(job.MissedOnce))}}
		if _, err := r.crons.Set(r.Context(), "g", ask, ann); err != nil {
			t.Fatal(err)
		}
		r.Restart(25 * job.Minute)
		r.Pass(0)
		r.ticksAre("a", "10m", "20m")
		r.ticksAre("b", "20m")
	}, utc)
}

func TestMissedTicksAreMadeUpForWithinABound(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * * *", missing(job.MissedAll)), entry("f", "* * * * * *", missing(job.MissedAll)))
		r.Restart(5000*job.Second + 500)
		r.Pass(0)
		for _, name := range []string{"e", "f"} {
			got := r.ticked(name)
			if first, last := got[0], got[len(got)-1]; len(got) != 1005 || first != (3996*job.Second).String() || last != (5000*job.Second).String() {
				t.Fatalf("%d ticks of %s, from %s to %s", len(got), name, first, last)
			}
		}
	}, utc)
}

func TestWhatIsPausedPassesOverItsTicks(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", missing(job.MissedAll)), entry("other", "* * * * *"))
		r.Pass(job.Minute)
		c, err := r.crons.PauseEntry(r.Context(), "g", "e", true, ann)
		if err != nil || !c.Paused || c.PausedAt != r.Now() || c.ResumedAt != 0 {
			t.Fatalf("%+v, %v", c, err)
		}
		r.Pass(2 * job.Minute)
		if c := r.cronEntry("g", "e"); c.Next != r.Now()+job.Minute {
			t.Errorf("a paused entry goes on: %+v", c)
		}
		r.Restart(10 * job.Minute) // what came while both were down was paused as well
		r.Pass(0)
		if c, err = r.crons.PauseEntry(r.Context(), "g", "e", false, ann); err != nil || c.Paused || c.ResumedAt != r.Now() {
			t.Fatalf("%+v, %v", c, err)
		}
		r.Pass(job.Minute)
		r.ticksAre("e", "1m", "14m")

		g, err := r.crons.Patch(r.Context(), "g", cron.Patch{Paused: new(true)}, ann)
		if err != nil || !g.Paused || g.PausedAt != r.Now() || g.Entries[0].Paused {
			t.Fatalf("%+v, %v", g, err)
		}
		r.Pass(job.Minute)
		if g, err = r.crons.Patch(r.Context(), "g", cron.Patch{Paused: new(false)}, ann); err != nil || g.Paused || g.ResumedAt != r.Now() {
			t.Fatalf("%+v, %v", g, err)
		}
		r.Pass(job.Minute)
		r.ticksAre("e", "1m", "14m", "16m")
		if got := r.ticked("other"); got[len(got)-1] != "16m" || slices.Contains(got, "15m") {
			t.Errorf("%v", got)
		}
		if g, err = r.crons.Patch(r.Context(), "g", cron.Patch{Paused: new(false)}, ann); err != nil || g.ResumedAt == r.Now() {
			t.Errorf("resumed again: %+v, %v", g, err)
		}
		r.audited("ann resume cron 2", "ann pause cron 2", "ann resume cron 1", "ann pause cron 1", "ann set cron 2")
	}, utc)
}

// A tick that falls due in the batch of a command is dealt with by the settings
// that it fell due under.
func TestAChangeComesAfterTheTicksBeforeIt(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "*/2 * * * *"), entry("f", "* * * * *"))
		r.End()
		r.Pass(2 * job.Minute)
		set := &cron.Setting{Name: "g", GroupAsk: cron.GroupAsk{Entries: []cron.Ask{entry("f", "* * * * *", pausedAs(true))}}}
		r.settings = []cron.Setting{*set}
		r.Begin()
		r.Pass(0)
		r.ticksAre("e", "2m")
		r.ticksAre("f")
		set.Entries[0] = entry("f", "* * * * *", pausedAs(false))
		r.settings = []cron.Setting{*set}
		r.Restart(3 * job.Minute)
		r.Pass(0)
		r.ticksAre("f") // it was paused while the server was down
		r.Pass(job.Minute)
		r.ticksAre("f", "6m")
	}, utc)
}

func TestAFailingEntryHoldsUpNobody(t *testing.T) { // defect 38 of reference 9
	scenario(t, func(r *rig) {
		r.queue("full", func(q *job.Queue) { q.MaxJobs = 1 })
		there := r.put("full", "there")
		inFull := func(a *cron.Ask) { a.Job.Job.Queue = "full" }
		r.queue("full too", func(q *job.Queue) { q.MaxJobs = 1 })
		r.put("full too", "there too")
		r.setCron("g", entry("a", "* * * * *", inFull), entry("b", "* * * * *"), entry("s", "* * * * *", missing(job.MissedSkip), func(a *cron.Ask) {
			a.Job.Job.Queue = "full too"
		}))
		r.Pass(2 * job.Minute)
		r.ticksAre("b", "1m", "2m")
		r.ticksAre("a")
		c := r.cronEntry("g", "a")
		if !strings.Contains(c.Error, "full") || c.ErrorAt == 0 || c.Failures < 4 || c.Failures > 8 || c.Last != 0 || c.Retry <= r.Now() {
			t.Errorf("%+v", c)
		}
		if s := r.crons.Counts(); s.Refused < 8 || s.Refused > 20 {
			t.Errorf("%+v", s)
		}
		if c := r.cronEntry("g", "s"); c.Error == "" || c.Skipped == 0 {
			t.Errorf("%+v", c)
		}
		r.Pass(30 * job.Second)
		if _, err := r.desk.Do(r.Context(), ann, desk.Delete, there); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		if got := r.ticked("a"); len(got) != 1 || r.cronEntry("g", "a").Last == 0 {
			t.Errorf("%v", got)
		}
		r.queue("full", func(q *job.Queue) { q.MaxJobs = 0 })
		r.Pass(2 * job.Minute)
		if c = r.cronEntry("g", "a"); c.Error != "" || c.ErrorAt != 0 || c.Failures != 0 || c.Retry != 0 || c.Next != r.Now()+30*job.Second {
			t.Errorf("it works again: %+v", c)
		}
	}, utc)
}

func TestADiskBelowItsReserveHoldsTicksBack(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *"))
		r.Room.Store(50)
		r.Pass(90 * job.Second)
		r.ticksAre("e")
		if c := r.cronEntry("g", "e"); !strings.Contains(c.Error, "disk") {
			t.Errorf("%+v", c)
		}
		r.Room.Store(1000)
		r.Pass(20 * job.Second)
		r.ticksAre("e", "1m")
	}, utc, func(r *rig) { r.Opts.Reserve = engine.Reserve{Bytes: 100} })
}

func TestSettingAnEntryAgain(t *testing.T) { // defect 21 of reference 9
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "0 12 * * *"), entry("gone", "0 12 * * *"))
		noon := r.Now() + 12*job.Hour
		r.Pass(12 * job.Hour)
		same := func(what string, next job.Millis, paused bool, edits ...func(*cron.Ask)) {
			t.Helper()
			c, err := r.crons.SetEntry(r.Context(), "g", entry("e", "0 12 * * *", edits...), ann)
			if err != nil || c.Next != next || c.Last != noon || c.Paused != paused {
				t.Errorf("%s: %+v, %v; want next %d", what, c, err, next)
			}
		}
		same("unchanged", noon+job.Day, false)
		same("another zone", noon+18*job.Hour+15*job.Minute, false, inZone("Asia/Kathmandu"))
		same("its own zone again", noon+job.Day, false, inZone("UTC"))
		same("the server's zone again", noon+job.Day, false)
		same("paused", noon+job.Day, true, pausedAs(true))
		same("left out keeps the pause", noon+job.Day, true)
		same("resumed", noon+job.Day, false, pausedAs(false))
		c, err := r.crons.SetEntry(r.Context(), "g", entry("e", "0 13 * * *"), ann)
		if err != nil || c.Next != noon+job.Hour || c.Last != noon {
			t.Errorf("another expression: %+v, %v", c, err)
		}
		inNewYork := cron.GroupAsk{Zone: "America/New_York", Entries: []cron.Ask{entry("e", "0 13 * * *"), entry("own", "0 13 * * *", inZone("UTC"))}}
		g, err := r.crons.Set(r.Context(), "g", inNewYork, ann)
		if err != nil || len(g.Entries) != 2 || g.Entries[0].Next != noon+6*job.Hour || g.Entries[1].Next != noon+job.Hour {
			t.Errorf("the group's zone: %+v, %v", g.Entries[0], err)
		}
		if g, err = r.crons.Set(r.Context(), "g", inNewYork, ann); err != nil || g.Entries[0].Next != noon+6*job.Hour {
			t.Errorf("the same again: %+v, %v", g.Entries[0], err)
		}
		inNewYork.Zone = ""
		if g, err = r.crons.Set(r.Context(), "g", inNewYork, ann); err != nil || g.Zone != "" || g.Entries[0].Next != noon+job.Hour {
			t.Errorf("without the group's zone: %+v, %v", g.Entries[0], err)
		}
		audits, err := r.audit.List(r.Context(), job.ID{}, 100)
		if err != nil || len(audits) != 9 {
			t.Errorf("%d entries of the audit log, %v", len(audits), err)
		}
	}, utc)
}

func TestTheServersZoneIsTheDefault(t *testing.T) {
	scenario(t, func(r *rig) {
		g := r.setCron("g", entry("e", "0 3 * * *"))
		if want := r.Now() + 2*job.Hour; g.Entries[0].Next != want {
			t.Errorf("next is %d, want %d", g.Entries[0].Next, want)
		}
	}, func(r *rig) { r.zone = time.FixedZone("here", 3600) })
}

func TestCronIsRefused(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *"))
		ctx := r.Context()
		refused := func(what string, kind job.Kind, text string, err error) {
			t.Helper()
			if err == nil || job.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v, want kind %d and %q", what, err, kind, text)
			}
		}
		_, err := r.crons.AddEntry(ctx, "g", entry("e", "* * * * *"), ann)
		refused("adding one that is there", job.Exists, "cron entry 'e' already exists in group 'g'", err)
		_, err = r.crons.AddEntry(ctx, "new", entry("e", "61 * * * *"), ann)
		refused("a bad expression", job.Invalid, "expression", err)
		_, err = r.crons.Set(ctx, "g", cron.GroupAsk{Zone: "Nowhere"}, ann)
		refused("a bad zone of a group", job.Invalid, `timezone "Nowhere" is not known`, err)
		_, err = r.crons.SetEntry(ctx, "g", entry("x", "* * * * *", inZone("Nowhere")), ann)
		refused("a bad zone", job.Invalid, "timezone", err)
		_, err = r.crons.Get(ctx, "new")
		refused("a group that was not made", job.NotFound, "cron group 'new' not found", err)
		_, err = r.crons.Entry(ctx, "new", "e")
		refused("an entry of no group", job.NotFound, "cron group 'new' not found", err)
		_, err = r.crons.Entry(ctx, "g", "x")
		refused("no entry", job.NotFound, "cron entry 'x' not found in group 'g'", err)
		_, err = r.crons.Patch(ctx, "new", cron.Patch{Paused: new(true)}, ann)
		refused("pausing no group", job.NotFound, "cron group 'new' not found", err)
		_, err = r.crons.PauseEntry(ctx, "g", "x", true, ann)
		refused("pausing no entry", job.NotFound, "cron entry 'x'", err)
		_, _, err = r.crons.Run(ctx, "g", "x", ann)
		refused("running no entry", job.NotFound, "cron entry 'x'", err)
		refused("deleting no group", job.NotFound, "cron group 'new'", r.crons.Delete(ctx, "new", ann))
		refused("deleting no entry", job.NotFound, "cron entry 'x'", r.crons.DeleteEntry(ctx, "g", "x", ann))
		if g, err := r.crons.Get(ctx, "g"); err != nil || len(g.Entries) != 1 {
			t.Errorf("what was refused changed something: %+v, %v", g, err)
		}
		r.audited("ann set cron 1")
		many := make([]cron.Ask, 9_999)
		for i := range many {
			many[i] = entry(strconv.Itoa(i), "0 0 1 1 *")
		}
		_, err = r.crons.Set(ctx, "many", cron.GroupAsk{Entries: many}, ann)
		refused("too many", job.OverLimit, "10000", err)
		r.setCron("many", many[:9_997]...)
		_, err = r.crons.AddEntry(ctx, "g", entry("x", "* * * * *"), ann)
		refused("one more", job.OverLimit, "10000", err)
		r.Restart(0)
		_, err = r.crons.AddEntry(ctx, "g", entry("x", "* * * * *"), ann)
		refused("one more after a restart", job.OverLimit, "10000", err)
		if err := r.crons.DeleteEntry(ctx, "g", "e", ann); err != nil {
			t.Fatal(err)
		}
		if _, err = r.crons.AddEntry(ctx, "g", entry("x", "* * * * *"), ann); err != nil {
			t.Error(err)
		}
	}, utc, func(r *rig) { r.Twice = false })
}

func TestDeletingCron(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("a", entry("e", "* * * * *"), entry("f", "* * * * *"))
		r.setCron("ab", entry("e", "0 * * * *"))
		r.setCron("empty")
		if names, err := r.crons.List(r.Context()); err != nil || !slices.Equal(names, []string{"a", "ab", "empty"}) {
			t.Fatalf("%v, %v", names, err)
		}
		if g, err := r.crons.Get(r.Context(), "a"); err != nil || len(g.Entries) != 2 {
			t.Fatalf("%+v, %v", g, err)
		}
		if err := r.crons.DeleteEntry(r.Context(), "a", "f", ann); err != nil {
			t.Fatal(err)
		}
		if err := r.crons.Delete(r.Context(), "ab", ann); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		r.ticksAre("e", "1m")
		r.ticksAre("f")
		if n, err := r.crons.DeleteAll(r.Context(), ann); err != nil || n != 2 {
			t.Fatalf("%d, %v", n, err)
		}
		if n, err := r.crons.DeleteAll(r.Context(), ann); err != nil || n != 0 {
			t.Fatalf("%d, %v", n, err)
		}
		r.Pass(job.Hour)
		r.ticksAre("e", "1m") // what was enqueued stays
		if r.rows(job.CronGroups) != 0 || r.rows(job.CronEntries) != 0 {
			t.Error("rows are left")
		}
		r.audited("ann delete cron 2", "ann delete cron 1", "ann delete cron 1", "ann set cron 0", "ann set cron 1", "ann set cron 2")
	}, utc)
}

func TestRunningAnEntryNow(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("e", "* * * * *", pausedAs(true)))
		r.Pass(90 * job.Second)
		before := r.cronEntry("g", "e")
		a, _, err := r.crons.Run(r.Context(), "g", "e", ann)
		if err != nil || a.Job.State != job.Ready || a.Job.Queue != "q" {
			t.Fatalf("%+v, %v", a, err)
		}
		r.ticksAre("e", "run")
		if after := r.cronEntry("g", "e"); !reflect.DeepEqual(after, before) {
			t.Errorf("%+v became %+v", before, after)
		}
		r.queue("q", func(q *job.Queue) { q.MaxJobs = 1 })
		if _, _, err := r.crons.Run(r.Context(), "g", "e", ann); job.KindOf(err) != job.OverLimit {
			t.Errorf("in a full queue: %v", err)
		}
	}, utc)
}

func TestCronOfTheConfiguration(t *testing.T) {
	scenario(t, func(r *rig) {
		r.setCron("g", entry("api", "* * * * *"), entry("both", "* * * * *"))
		r.Pass(job.Minute)
		r.settings = []cron.Setting{
			{Name: "g", GroupAsk: cron.GroupAsk{Zone: "UTC", Entries: []cron.Ask{entry("both", "*/5 * * * *"), entry("file", "* * * * *")}}},
			{Name: "new", GroupAsk: cron.GroupAsk{Entries: []cron.Ask{entry("n", "* * * * *")}}},
		}
		r.Restart(0)
		r.Pass(4 * job.Minute)
		r.ticksAre("api", "1m", "2m", "3m", "4m", "5m")
		r.ticksAre("both", "1m", "5m")
		r.ticksAre("file", "2m", "3m", "4m", "5m")
		r.ticksAre("n", "2m", "3m", "4m", "5m")
		r.End()
		r.settings[0].Entries[0] = entry("both", "never")
		r.startFails(job.Invalid)
	}, utc)
}

func TestTheLogTellsOnceThatAnEntryIsRefusedAndOnceThatItWorksAgain(t *testing.T) {
	var lines strings.Builder
	scenario(t, func(r *rig) {
		r.End()
		r.Opts.Parts = r.parts()
		r.Engine = engine.New(r.Mem, r.Clock, enginetest.Dice(9).Uint64, slog.New(slog.NewTextHandler(&lines, nil)), r.Opts)
		if err := r.Start(r.Context()); err != nil {
			t.Fatal(err)
		}
		r.Ended = false
		r.queue("full", func(q *job.Queue) { q.MaxJobs = 1 })
		r.put("full", "there")
		r.setCron("g", entry("e", "* * * * *", func(a *cron.Ask) { a.Job.Job.Queue = "full" }))
		r.Pass(10 * job.Minute)
		r.queue("full", func(q *job.Queue) { q.MaxJobs = 0 })
		r.Pass(10 * job.Minute)
		r.End()
	}, utc)
	if text := lines.String(); strings.Count(text, "entry=g/e") != 2 || strings.Count(text, "was refused") != 1 || strings.Count(text, "works again") != 1 {
		t.Errorf("the log says:\n%s", text)
	}
}

func TestAGroupInAnotherZoneCountsAnew(t *testing.T) {
	scenario(t, func(r *rig) {
		g := r.setCron("g", entry("group's", "0 3 * * *"), entry("own", "0 3 * * *", inZone("Asia/Tokyo")))
		own := g.Entries[1].Next
		g, err := r.crons.Patch(r.Context(), "g", cron.Patch{Zone: new("Europe/Berlin"), Missed: new(job.MissedSkip)}, ann)
		if err != nil || g.Zone != "Europe/Berlin" || g.Missed != job.MissedSkip || g.Entries[0].Next != r.Now()+2*job.Hour || g.Entries[1].Next != own {
			t.Fatalf("%+v %+v %+v, %v", g, g.Entries[0], g.Entries[1], err)
		}
		_, err = r.crons.Patch(r.Context(), "g", cron.Patch{Zone: new("Mars/Base")}, ann)
		r.isRefused(job.Invalid, err)
		r.Pass(2 * job.Hour)
		r.ticksAre("group's", "2h")
	}, utc)
}

func TestACronEntryHoldsItsBudgets(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		uses := func(cost int64, create ...job.Budget) func(*cron.Ask) {
			return func(a *cron.Ask) {
				a.Job.Job.Extras = &job.Extras{Budgets: []job.BudgetUse{{Key: "k", Cost: cost}}}
				a.Job.Create = create
			}
		}
		_, err := r.crons.Set(ctx, "g", cron.GroupAsk{Entries: []cron.Ask{entry("e", "* * * * *", uses(1))}}, ann)
		r.isRefused(job.Unprocessable, err)
		_, err = r.crons.AddEntry(ctx, "g", entry("e", "* * * * *", uses(5, job.Budget{Name: "k", Allocation: 4})), ann)
		r.isRefused(job.Unprocessable, err)
		if _, err = r.budgets.Get(ctx, "k"); job.KindOf(err) != job.NotFound {
			t.Errorf("a refused entry made a budget: %v", err)
		}
		r.setCron("g", entry("e", "* * * * *", uses(3, job.Budget{Name: "k", Allocation: 4})))
		r.isRefused(job.Exists, r.budgets.Delete(ctx, "k", ann))
		_, err = r.budgets.Set(ctx, job.Budget{Name: "k", Allocation: 2}, ann)
		r.isRefused(job.Unprocessable, err)
		if _, err = r.budgets.Set(ctx, job.Budget{Name: "k", Allocation: 3}, ann); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		r.ticksAre("e", "1m")
		if err := r.crons.Delete(ctx, "g", ann); err != nil {
			t.Fatal(err)
		}
		r.isRefused(job.Exists, r.budgets.Delete(ctx, "k", ann)) // the job waits for its worker
	}, utc)
}

// What a cron entry enqueues could be in no session and no inbox: each tick would fail.
func TestACronEntryIsForPlainQueues(t *testing.T) {
	scenario(t, func(r *rig) {
		ctx := r.Context()
		refused := func(what string, kind job.Kind, field, text string, err error) {
			t.Helper()
			bad, ok := errors.AsType[*job.Error](err)
			if !ok || bad.Kind != kind || bad.Field != field || !strings.Contains(bad.Text, text) {
				t.Errorf("%s: %v, want kind %d, field %q and %q", what, err, kind, field, text)
			}
		}
		into := func(queue string) cron.Ask {
			return entry("e", "* * * * *", func(a *cron.Ask) { a.Job.Job.Queue = queue })
		}
		inbox := func(name string) error {
			return r.desk.SetDoor(ctx, job.DoorSetting{Door: job.DoorInbox, Name: name, Body: []byte("{}")}, func(q *job.Queue) error {
				q.Order, q.Turns, q.OnDead = job.OrderStrict, true, job.DeadBlock
				q.Protection.Fair = &job.FairShare{}
				return nil
			}, func(b []byte) string { return string(b) }, ann)
		}
		if err := inbox("in"); err != nil {
			t.Fatal(err)
		}
		session := func(name string) error {
			q := *job.NewQueue(name)
			q.RetainDone = job.MaxMillis
			q.Grid = &job.Grid{Profile: job.ProfileSeed, Weight: job.GridWeightDefault, EvictedPlace: job.PlaceBack, CopyPlace: job.PlaceBack, MaxCopies: 2}
			_, err := r.grid.OpenSession(ctx, grid.NewSession{Queue: q}, ann)
			return err
		}
		if err := session("s"); err != nil {
			t.Fatal(err)
		}
		for queue, text := range map[string]string{
			"in": `cron entry 'e': queue "in" is an inbox`,
			"s":  `cron entry 'e': queue "s" is a session`,
		} {
			_, err := r.crons.Set(ctx, "g", cron.GroupAsk{Entries: []cron.Ask{into(queue)}}, ann)
			refused("a group for "+queue, job.WrongState, "queue", text, err)
			_, err = r.crons.AddEntry(ctx, "g", into(queue), ann)
			refused("an entry for "+queue, job.WrongState, "queue", text, err)
			_, err = r.crons.SetEntry(ctx, "g", into(queue), ann)
			refused("setting an entry for "+queue, job.WrongState, "queue", text, err)
		}
		if _, err := r.crons.Get(ctx, "g"); job.KindOf(err) != job.NotFound {
			t.Errorf("a refused entry made a group: %v", err)
		}

		r.setCron("g", into("q"))
		refused("a session over it", job.Exists, "name", "cron entry g/e enqueues into \"q\"", session("q"))
		refused("an inbox over it", job.Exists, "name", "cron entry g/e enqueues into \"q\"", inbox("q"))
		if err := inbox("in"); err != nil {
			t.Errorf("setting an inbox again: %v", err)
		}
		if err := r.crons.Delete(ctx, "g", ann); err != nil {
			t.Fatal(err)
		}
		if err := inbox("q"); err != nil {
			t.Errorf("without the entry: %v", err)
		}

		// The configuration may say it, as it could before: a tick that fails keeps no server from starting.
		r.settings = []cron.Setting{{Name: "file", GroupAsk: cron.GroupAsk{Entries: []cron.Ask{into("q")}}}}
		r.Restart(0)
		r.Pass(job.Minute)
		if c := r.cronEntry("file", "e"); !strings.Contains(c.Error, `queue "q" is an inbox`) {
			t.Errorf("the entry of the file says %q", c.Error)
		}
	}, utc)
}
