package sim_test

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// The laws of cron entries whose job has a batch, and of ticks as such
// (docs/cron.md). A look of the clock leaves a tick to be folded and comes back
// to it after a second; the fold brings one tick, and leaves the next.

// cronBook is what the judge knows of ticks besides their entries.
type cronBook struct {
	ticks map[cronTick]int    // number of the commit that brought its job
	left  map[string]cronLeft // by entry: to be folded
}

type cronTick struct {
	entry string // key
	at    job.Millis
}

// cronLeft is a tick that was left to be folded.
type cronLeft struct {
	at                  job.Millis
	commit, life, epoch int
}

func newCronBook() cronBook {
	return cronBook{map[cronTick]int{}, map[string]cronLeft{}}
}

// folds reports whether the job of an entry has a batch.
func folds(e *job.CronEntry) bool { return e.Job.Extras != nil && e.Job.Extras.Batch != nil }

// mayFail reports whether the fold of a tick may fail: by its payload, or for
// the queue of the job that it would go into.
func (x *judge) mayFail(e *job.CronEntry) bool {
	if !folds(e) {
		return false
	}
	waits := x.ownerOf(keyOf(e.Job))
	return strings.Contains(string(e.Payload), "!") || waits != nil && x.limited(waits.Queue)
}

// planned reports whether the tick that an entry is at was left to be folded by
// this life of the engine: then it need not be due to come on.
func (x *judge) planned(e *job.CronEntry) bool {
	left, some := x.crons.left[e.Key()]
	return some && left.at == e.Next && left.life == x.w.disk.life
}

// cronTurned books a look at an entry. No tick comes twice.
func (x *judge) cronTurned(c *commit, key string, t *cronTurn) {
	for _, at := range t.ticks {
		tick := cronTick{key, at}
		if first := x.crons.ticks[tick]; first != 0 {
			broken("docs/cron.md", "entry %s enqueued for its tick at %d in commits %d and %d", t.want.Name, at, first, c.number)
		}
		x.crons.ticks[tick] = c.number
	}
	if left, some := x.crons.left[key]; some && left.at == t.first {
		switch {
		case left.life != c.life:
			x.coverage.feature("a tick left before a restart")
		case left.epoch != x.epoch:
			x.coverage.feature("a tick left before a recovery")
		case left.commit < c.number-1:
			x.coverage.feature("a tick left for a while")
		}
	}
	if delete(x.crons.left, key); t.left {
		x.crons.left[key] = cronLeft{t.want.Next, c.number, c.life, x.epoch}
	}
	*x.counted = x.counted.plus(t.stats)
	for _, f := range t.seen {
		x.coverage.feature(f)
	}
}

// cronGone forgets an entry: one that is made anew may have its ticks again,
// when the date was set back.
func (x *judge) cronGone(key string) {
	for tick := range x.crons.ticks {
		if tick.entry == key {
			delete(x.crons.ticks, tick)
		}
	}
	delete(x.crons.left, key)
}

// cronLost forgets what a power cut took back.
func (x *judge) cronLost(number int) {
	for tick, n := range x.crons.ticks {
		if n == number {
			delete(x.crons.ticks, tick)
		}
	}
}

// newcomer finds who put what went into another job: a client, whoever asked
// for a run of an entry, or a tick. It returns what was put, too.
func (s *scene) newcomer(part string, into job.ID) (*request, *job.Job) {
	if r := s.outstanding(part); r != nil {
		return r, &r.put.Job
	}
	for _, name := range cronNames {
		e, _ := s.book.rows[rowKey{job.CronEntries, job.CronKey(cronGroup, name)}].(*job.CronEntry)
		if e == nil || string(e.Payload) != part {
			continue
		}
		ticked := slices.ContainsFunc(s.later, func(ch change) bool {
			row, ok := ch.row.(*job.CronEntry)
			return ok && row.Key() == e.Key() && row.Last != e.Last
		})
		if !ticked {
			return s.cronRun(e), e.Job
		}
		s.cronPuts = append(s.cronPuts, cronPut{entry: e.Key(), id: into, folded: true})
		return &request{text: "a tick of " + e.Name}, e.Job
	}
	return nil, nil
}

// unfolded looks for ticks that were left to be folded and came to nothing.
// Only what was left before a recovery may wait for the clock to look again.
func (w *world) unfolded(date job.Millis) {
	for key, left := range w.judge.crons.left {
		e, _ := w.judge.book.rows[rowKey{job.CronEntries, key}].(*job.CronEntry)
		if e != nil && e.Next == left.at && e.Next <= date && left.life == w.disk.life && left.epoch == w.judge.epoch {
			broken("docs/cron.md", "the tick of entry %s at %d was left to be folded, and nothing came of it: %+v", e.Name, left.at, e)
		}
	}
}
