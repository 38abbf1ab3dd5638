package sim_test

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// The laws of cron (docs/cron.md), written without package cron: whoever
// enqueues for an entry, at which ticks, and how far the entry has come then.

// cronPut is a job that came in for a tick, before the row of its entry.
type cronPut struct {
	entry  string     // key
	tick   job.Millis // 0 = it went into another job, and only the row says which tick it was
	id     job.ID     // its own, or that of the job it went into
	folded bool
}

// tickAfter finds the next tick by looking at every second, for the few
// expressions that histories have. Histories are in UTC.
func tickAfter(expression string, after job.Millis) job.Millis {
	fields := strings.Fields(expression)
	fits := func(field string, value int64) bool {
		if step, ok := strings.CutPrefix(field, "*/"); ok {
			n, _ := strconv.ParseInt(step, 10, 64)
			return value%n == 0
		}
		return field == "*" || field == strconv.FormatInt(value, 10)
	}
	for s := int64(after/job.Second) + 1; ; s++ {
		if fits(fields[0], s%60) && fits(fields[1], s/60%60) {
			return job.Millis(s) * job.Second
		}
	}
}

// ticksOf are the ticks that a look at a time must bring a job for.
func (x *judge) ticksOf(e *job.CronEntry, now job.Millis) (list []job.Millis, missed int) {
	g, _ := x.book.rows[rowKey{job.CronGroups, e.Group}].(*job.CronGroup)
	if g == nil {
		broken("I1", "entry %s has no group", e.Name)
	}
	if e.Paused || g.Paused {
		return nil, 0
	}
	rule := g.Missed
	if e.Missed != nil {
		rule = *e.Missed
	}
	var late, fresh []job.Millis
	for at := e.Next; at <= now; at = tickAfter(e.Expression, at) {
		if now-at > 5*job.Second {
			late = append(late, at)
		} else {
			fresh = append(fresh, at)
		}
	}
	missed = len(late)
	switch {
	case rule == job.MissedSkip, rule == job.MissedOnce && len(fresh) > 0:
		late = nil
	case rule == job.MissedOnce && len(late) > 0:
		late = late[len(late)-1:]
	}
	if missed > 0 {
		x.coverage.feature("ticks were missed: " + rule.String())
	}
	return append(late, fresh...), missed - len(late)
}

// cronJob is the put that a job of cron must come from: a tick, or a run that
// was asked for (then the request is returned too).
func (s *scene) cronJob(ch *change) (put, req *request) {
	j := s.new
	labels := map[string]string{}
	if j.Extras == nil || len(j.Extras.Labels) == 0 { // others have keys at most
		return nil, nil
	}
	for _, l := range j.Extras.Labels {
		labels[l.Key] = l.Value
	}
	key := job.CronKey(labels[job.LabelCronGroup], labels[job.LabelCronEntry])
	e, _ := s.book.rows[rowKey{job.CronEntries, key}].(*job.CronEntry)
	if e == nil || string(e.Payload) != string(ch.body) {
		broken("I1", "a job with the labels %v and payload %q came in, and the entry is %+v", labels, ch.body, e)
	}
	put = &request{text: "cron"}
	put.put.Job, put.put.Place = *e.Job, e.Place
	put.put.Job.State = job.None
	x := job.Extras{Labels: []job.Label{{Key: job.LabelCronEntry, Value: e.Name}, {Key: job.LabelCronGroup, Value: e.Group}}}
	if e.Job.Extras != nil {
		x.Batch = e.Job.Extras.Batch
	}
	text, ticked := labels[job.LabelCronTick]
	if ticked {
		tick, _ := strconv.ParseInt(text, 10, 64)
		if at := job.Millis(tick); at > s.now {
			broken("I6", "entry %s enqueued at %d for its tick at %d", e.Name, s.now, at)
		}
		put.label = e.Name + "@" + text + "#" + strconv.Itoa(len(s.labels))
		s.cronPuts = append(s.cronPuts, cronPut{entry: key, tick: job.Millis(tick), id: j.ID})
		x.Labels = slices.Insert(x.Labels, 2, job.Label{Key: job.LabelCronTick, Value: text})
	} else {
		if req = s.cronRun(e); req == nil {
			broken("I1", "entry %s was run and nobody asked for it", e.Name)
		}
		put.label = req.label
	}
	put.put.Job.Extras = &x
	s.w.bodies[put.label] = string(ch.body)
	return put, req
}

// cronRun is who asked for a run of an entry; nil = nobody.
func (x *judge) cronRun(e *job.CronEntry) *request {
	for _, r := range x.asked {
		if r.kind == askCron && r.cron.run && r.cron.entry == e.Name && r.commit == 0 && !r.lost {
			x.coverage.feature("a cron entry run")
			return r
		}
	}
	return nil
}

// cron holds the row of an entry against what came in for it.
func (x *judge) cron(c *commit, old, row *job.CronEntry) {
	key := ""
	if row != nil {
		key = row.Key()
	}
	var puts []cronPut
	x.cronPuts = slices.DeleteFunc(x.cronPuts, func(p cronPut) bool {
		mine := p.entry == key
		if mine {
			puts = append(puts, p)
		}
		return mine
	})
	due := row != nil && old != nil && old.Due() > 0 && old.Due() <= c.now
	if row != nil && old != nil && (due || x.planned(old)) {
		t := x.turned(c, old, row, puts)
		if t.wrong == "" && !reflect.DeepEqual(&t.want, row) {
			t.wrong = fmt.Sprintf("it must be %+v and is %+v", t.want, *row)
		}
		if t.wrong == "" {
			x.cronTurned(c, key, &t)
			return
		}
		if due || len(puts) > 0 {
			broken("docs/cron.md", "entry %s at %d: %s", old.Name, c.now, t.wrong)
		}
	}
	if len(puts) > 0 {
		broken("I6", "a job came in for a tick at %d, and the entry was %+v", c.now, old)
	}
	x.cronAsked(c, old, row)
}

// limited reports whether a queue may be full.
func (x *judge) limited(queue string) bool {
	q := x.book.queue(queue)
	return q.MaxJobs > 0 || q.MaxBytes > 0
}

// cronTurn is what a look at an entry makes of it.
type cronTurn struct {
	want  job.CronEntry
	ticks []job.Millis // that were enqueued for
	left  bool         // the next is to be folded
	first job.Millis   // where the entry was
	stats figures
	seen  []string
	wrong string // it cannot be
}

// turned is what a look at an entry must make of it, with what came in for it.
// What the row says tells only whether the next tick was refused, or is planned.
func (x *judge) turned(c *commit, old, row *job.CronEntry, puts []cronPut) (t cronTurn) {
	ticks, skipped := x.ticksOf(old, c.now)
	t.want, t.first = *old, old.Next
	t.want.Retry, t.want.Next = 0, tickAfter(old.Expression, c.now)
	t.want.Skipped += int64(skipped)
	t.stats.Crons.Skipped = uint64(skipped)
	for i, p := range puts {
		if i >= len(ticks) || p.tick != ticks[i] && !p.folded {
			t.wrong = fmt.Sprintf("it enqueued for %v; its ticks from %d on are %v", puts, old.Next, ticks)
			return t
		}
		t.want.Last, t.want.LastJob, t.want.Error, t.want.ErrorAt, t.want.Failures = ticks[i], p.id, "", 0, 0
		t.ticks = append(t.ticks, ticks[i])
		if t.seen = append(t.seen, "a cron tick"); p.folded {
			t.seen = append(t.seen, "a cron tick folded in")
		} else {
			t.stats.Crons.Jobs++
		}
	}
	if len(puts) == len(ticks) {
		return t
	}
	t.want.Next = ticks[len(puts)]
	if folds(old) && row.Failures == t.want.Failures && row.Error == t.want.Error {
		t.want.Retry, t.left = c.now+job.Second, true
		return t
	}
	if !x.w.low && !x.limited(old.Job.Queue) && !x.mayFail(old) || row.Error == "" {
		t.wrong = fmt.Sprintf("it enqueued for %d of the ticks %v, and nothing forbids the next: %+v", len(puts), ticks, row)
		return t
	}
	t.want.Error, t.want.ErrorAt = row.Error, c.now
	t.want.Failures++
	wait := job.Minute
	if t.want.Failures < 7 {
		wait = job.Second << (t.want.Failures - 1)
	}
	t.want.Retry = c.now + wait
	t.stats.Crons.Refused++
	t.seen = append(t.seen, "a cron tick refused")
	return t
}

// cronAsked holds a change of an entry against what somebody asked for.
func (x *judge) cronAsked(c *commit, old, row *job.CronEntry) {
	for _, r := range x.asked {
		if r.kind != askCron || r.commit != 0 || r.lost || r.cron.run {
			continue
		}
		a := r.cron
		var want *job.CronEntry
		switch {
		case row == nil:
			if !a.gone || old == nil || a.entry != old.Name {
				continue
			}
		case a.entry != row.Name || a.gone:
			continue
		case a.set != nil:
			want = new(*a.set)
			if old != nil {
				want.Paused, want.PausedAt, want.ResumedAt = old.Paused, old.PausedAt, old.ResumedAt
				want.Last, want.LastJob, want.Skipped = old.Last, old.LastJob, old.Skipped
			}
			if old != nil && old.Expression == want.Expression {
				want.Next, want.Error, want.ErrorAt, want.Failures = old.Next, old.Error, old.ErrorAt, old.Failures
			} else {
				want.Next = tickAfter(want.Expression, max(c.now, want.Last))
			}
		case old != nil:
			want = new(*old)
		}
		if want != nil && a.paused != nil && want.Paused != *a.paused {
			if want.Paused = *a.paused; want.Paused {
				want.PausedAt = c.now
			} else {
				want.ResumedAt = c.now
			}
		}
		if reflect.DeepEqual(want, row) {
			r.commit = c.number
			if row == nil {
				x.cronGone(old.Key())
			}
			x.coverage.feature("cron changed")
			return
		}
	}
	broken("I1", "at %d nobody asked for entry %+v to be %+v", c.now, old, row)
}

// cronGroupAsked does so with the row of a group.
func (x *judge) cronGroupAsked(c *commit, old, row *job.CronGroup) {
	if old == nil && row != nil && *row == (job.CronGroup{Name: cronGroup}) {
		return // comes with its first entry
	}
	for _, r := range x.asked {
		if r.kind != askCron || r.commit != 0 || r.lost || r.cron.entry != "" || old == nil || row == nil {
			continue
		}
		want := *old
		if want.Paused = *r.cron.paused; want.Paused {
			want.PausedAt = c.now
		} else {
			want.ResumedAt = c.now
		}
		if want == *row && want != *old {
			r.commit = c.number
			return
		}
	}
	broken("I1", "at %d nobody asked for the cron group %+v to be %+v", c.now, old, row)
}
