package sim_test

import (
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
	entry string // key
	tick  job.Millis
	id    job.ID
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
	if j.Extras == nil {
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
	text, ticked := labels[job.LabelCronTick]
	if ticked {
		tick, _ := strconv.ParseInt(text, 10, 64)
		if at := job.Millis(tick); at > s.now {
			broken("I6", "entry %s enqueued at %d for its tick at %d", e.Name, s.now, at)
		}
		put.label = e.Name + "@" + text + "#" + strconv.Itoa(len(s.labels))
		s.cronPuts = append(s.cronPuts, cronPut{key, job.Millis(tick), j.ID})
		x.Labels = slices.Insert(x.Labels, 2, job.Label{Key: job.LabelCronTick, Value: text})
	} else {
		at := slices.IndexFunc(s.asked, func(r *request) bool {
			return r.kind == askCron && r.cron.run && r.cron.entry == e.Name && r.commit == 0 && !r.lost
		})
		if at < 0 {
			broken("I1", "entry %s was run and nobody asked for it", e.Name)
		}
		req = s.asked[at]
		put.label = req.label
		s.coverage.feature("a cron entry run")
	}
	put.put.Job.Extras = &x
	s.w.bodies[put.label] = string(ch.body)
	return put, req
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
	if row == nil || old == nil || old.Due() == 0 || old.Due() > c.now {
		if len(puts) > 0 {
			broken("I6", "a job came in for a tick at %d, and the entry was %+v", c.now, old)
		}
		x.cronAsked(c, old, row)
		return
	}
	ticks, skipped := x.ticksOf(old, c.now)
	want := *old
	want.Retry, want.Next = 0, tickAfter(old.Expression, c.now)
	for i, p := range puts {
		if i >= len(ticks) || p.tick != ticks[i] {
			broken("docs/cron.md", "entry %s enqueued at %d for %v; its ticks from %d on are %v", old.Name, c.now, puts, old.Next, ticks)
		}
		want.Last, want.LastJob, want.Error, want.ErrorAt, want.Failures = p.tick, p.id, "", 0, 0
		x.counted.CronJobs++
		x.coverage.feature("a cron tick")
	}
	if len(puts) < len(ticks) {
		q := x.book.queue(old.Job.Queue)
		if !x.w.low && q.MaxJobs == 0 && q.MaxBytes == 0 || row.Error == "" {
			broken("docs/cron.md", "entry %s enqueued for %d of the ticks %v at %d, and nothing forbids the next: %+v", old.Name, len(puts), ticks, c.now, row)
		}
		want.Next, want.Error, want.ErrorAt = ticks[len(puts)], row.Error, c.now
		want.Failures++
		wait := job.Minute
		if want.Failures < 7 {
			wait = job.Second << (want.Failures - 1)
		}
		want.Retry = c.now + wait
		x.counted.CronRefused++
		x.coverage.feature("a cron tick refused")
	}
	want.Skipped += int64(skipped)
	x.counted.CronSkipped += uint64(skipped)
	if !reflect.DeepEqual(&want, row) {
		broken("docs/cron.md", "entry %s must be %+v at %d and is %+v", old.Name, want, c.now, *row)
	}
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
