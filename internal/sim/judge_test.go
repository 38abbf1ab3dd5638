package sim_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/internal/rule"
)

// violation ends a history: something happened that must not.
type violation struct {
	law  string // I1 to I9, or the section of core.md
	text string
}

func (v *violation) String() string { return v.law + ": " + v.text }

func broken(law, format string, args ...any) {
	panic(&violation{law, fmt.Sprintf(format, args...)})
}

// books are jobs and rows as the writes so far make them.
type books struct {
	jobs map[job.ID]*job.Job
	rows map[rowKey]job.Row
}

func newBooks() books { return books{map[job.ID]*job.Job{}, map[rowKey]job.Row{}} }

func (b books) clone() books { return books{maps.Clone(b.jobs), maps.Clone(b.rows)} }

func (b books) apply(c change) {
	key := rowKey{c.table, c.key}
	switch {
	case c.row != nil:
		b.rows[key] = c.row
	case c.new != nil:
		b.jobs[c.new.ID] = c.new
	case c.old != nil:
		delete(b.jobs, c.old.ID)
	default:
		delete(b.rows, key)
	}
}

func (b books) differs(c *content) string {
	for id, j := range b.jobs {
		if c.jobs[id] == nil {
			return "job " + id.String() + " is gone"
		}
		if !reflect.DeepEqual(plain(j), plain(c.jobs[id])) {
			return "job " + id.String() + ": " + apart(plain(c.jobs[id]), plain(j))
		}
	}
	for id := range c.jobs {
		if b.jobs[id] == nil {
			return "job " + id.String() + " is there"
		}
	}
	if !maps.EqualFunc(b.rows, c.rows, func(x, y job.Row) bool { return reflect.DeepEqual(x, y) }) {
		return fmt.Sprintf("rows are %v, not %v", slices.Collect(maps.Values(c.rows)), slices.Collect(maps.Values(b.rows)))
	}
	return ""
}

func (b books) queue(name string) *job.Queue {
	if q, ok := b.rows[rowKey{job.Queues, name}].(*job.Queue); ok {
		return q
	}
	return job.NewQueue(name)
}

func (b books) gate(queue, group string) job.Gate {
	if g, ok := b.rows[rowKey{job.Gates, job.GateKey(queue, group)}].(*job.Gate); ok {
		return *g
	}
	return job.Gate{Queue: queue, Group: group}
}

// sorted returns the jobs by id.
func (b books) sorted() []*job.Job {
	return slices.SortedFunc(maps.Values(b.jobs), func(x, y *job.Job) int { return x.ID.Compare(y.ID) })
}

// judge knows what was asked, sees what was written, and holds the one against
// the other.
type judge struct {
	w    *world
	book books // as written
	base books // what is on disk for sure
	log  []*commit

	asked   []*request
	labels  map[job.ID]string // what clients call a job
	born    map[job.ID]int    // number of the commit that brought it
	touched map[job.ID]int    // number of the commit that wrote it last
	known   map[string][]receipt

	// Never taken back, not even by a power cut.
	tokens map[job.Token]grant
	seq    int64
	fence  int64 // highest fencing number
	epoch  int   // starts and recoveries so far
	start  uint32

	carried  map[string]int // the life in which a lock was carried into it
	gate     *job.Gate      // must be set next
	queue    *job.Queue     // the same
	counted  *figures       // what the commit at hand must count
	strides  map[job.ID]*stride
	measured measured
	cronPuts []cronPut // of the commit at hand, whose entries have not been written yet
	crons    cronBook
	turnBook
	gridBook
	instant  job.Millis // now, on the steady clock
	stats    figures
	unsure   bool // an unanswered call may have counted a duplicate
	blurred  bool // nobody can tell which of two reasons was counted
	coverage *coverage
}

// grant is where a token came from.
type grant struct {
	epoch, commit int
	synced        bool // it may be told only when it is on disk
}

// receipt is what a client knows of an idempotency key.
type receipt struct {
	content int // what was asked for
	id      job.ID
	commit  int
	expires job.Millis
}

func newJudge(w *world, c *coverage) *judge {
	return &judge{
		w: w, book: newBooks(), base: newBooks(), labels: map[job.ID]string{}, born: map[job.ID]int{},
		touched: map[job.ID]int{}, known: map[string][]receipt{}, tokens: map[job.Token]grant{}, coverage: c,
		strides: map[job.ID]*stride{}, carried: map[string]int{}, measured: newMeasured(), crons: newCronBook(), turnBook: newTurnBook(),
	}
}

// hear judges what the disk saw.
func (x *judge) hear(list []event) {
	for _, e := range list {
		if e.reopen != nil {
			x.reopened(e)
			continue
		}
		x.judge(e.commit)
	}
}

// reopened finds out how much a store that lost its power kept: always the
// first commits, and all that were known to be safe (I5).
func (x *judge) reopened(e event) {
	held := e.reopen
	x.epoch++
	x.measured = newMeasured()
	x.settleLog(e.safe)
	found, state := -1, x.base.clone()
	var kept books
	why := state.differs(held)
	if why == "" {
		found, kept = 0, state.clone()
	}
	for i, c := range x.log {
		for _, ch := range c.changes {
			state.apply(ch)
		}
		if differs := state.differs(held); differs == "" {
			found, kept = i+1, state.clone()
		}
	}
	if found < 0 {
		broken("I5", "what was safe is not there after the store was opened again: %s", why)
	}
	lost := x.log[found:]
	x.w.say("  the store kept %d of %d unsafe commits", found, len(x.log))
	for _, c := range lost {
		x.cronLost(c.number)
		for _, r := range x.asked {
			if r.commit == c.number {
				if r.acked {
					broken("I5", "%s was acknowledged, and is lost", r)
				}
				r.commit, r.lost = 0, true
			}
		}
		for key, list := range x.known {
			x.known[key] = slices.DeleteFunc(list, func(r receipt) bool { return r.commit == c.number })
		}
	}
	x.book, x.base, x.log = kept, kept.clone(), nil
}

// settleLog moves what is on disk into the base.
func (x *judge) settleLog(safe int) {
	for len(x.log) > 0 && x.log[0].number <= safe {
		for _, c := range x.log[0].changes {
			x.base.apply(c)
		}
		x.log = x.log[1:]
	}
}

// judge holds one commit against the laws, change by change.
func (x *judge) judge(c *commit) {
	var counted figures
	x.counted, x.instant = &counted, c.steady
	for i := range c.changes {
		ch := &c.changes[i]
		if x.gate != nil {
			if !ch.setsGate(x.gate) {
				broken("core.md 2", "the gate must be set to %+v; written was %+v", *x.gate, ch)
			}
			x.gate = nil
		} else if x.queue != nil {
			if !ch.setsQueue(x.queue) {
				broken("retry.md 4", "the queue must be set to %+v; written was %+v", *x.queue, ch)
			}
			x.queue = nil
		} else if ch.old == nil && ch.new == nil {
			x.row(c, ch)
		}
		if ch.old != nil || ch.new != nil {
			x.explain(c, ch, c.changes[i+1:], &counted)
		}
		x.book.apply(*ch)
	}
	if x.gate != nil {
		broken("core.md 2", "the gate must be set to %+v and was not", *x.gate)
	}
	if x.queue != nil {
		broken("retry.md 4", "the queue must be set to %+v and was not", *x.queue)
	}
	for id, did := range x.strides {
		if did.n > 0 {
			broken("retry.md 3", "run %s did %d and did not say so", id, did.n)
		}
		delete(x.strides, id)
	}
	if len(x.cronPuts) > 0 {
		broken("docs/cron.md", "jobs came in for %v, and the entries do not know", x.cronPuts)
	}
	x.turnsEnd()
	x.stopped()
	if !c.failed {
		x.stats = x.stats.plus(counted)
	}
	x.log = append(x.log, c)
}

// explain finds the reason of one write of a job. That there is none, or that
// the reason makes something else of it, is a violation.
func (x *judge) explain(c *commit, ch *change, later []change, counted *figures) {
	if x.task(c, ch) {
		return
	}
	s := &scene{judge: x, commit: c, old: ch.old, new: ch.new, later: later}
	if s.old != nil && !reflect.DeepEqual(plain(s.old), plain(x.book.jobs[s.old.ID])) {
		broken("I1", "%s was written over, as if it had been %s", x.name(s.old.ID), apart(plain(s.old), plain(x.book.jobs[s.old.ID])))
	}
	q := cmpOr(s.new, s.old)
	if s.old != nil {
		q = s.old
	}
	s.q, s.g = x.book.queue(q.Queue), x.book.gate(q.Queue, q.Group)
	list := s.keyed(s.outcomes(ch), ch)
	for _, o := range list {
		forgetBudget(o)
	}
	// Many reasons make the same of a job. Those come first that make of its
	// group and of its queue what is written next, and draw what is new.
	slices.SortStableFunc(list, func(a, b *outcome) int { return s.strays(a) - s.strays(b) })
	best := ""
	for i, o := range list {
		if difference := apart(plain(o.want), plain(s.new)); difference == "" {
			x.accept(c, s, o, counted)
			for _, other := range list[i+1:] {
				x.blurred = x.blurred || other.stats != o.stats && apart(plain(other.want), plain(s.new)) == ""
			}
			x.credit(s, o, list)
			if o.req != nil {
				o.req.rivals = map[*request]job.State{}
				for _, other := range list[i+1:] {
					if other.req != nil && other.req != o.req && apart(plain(other.want), plain(s.new)) == "" {
						o.req.rivals[other.req] = other.state
					}
				}
				o.req.doubted = slices.ContainsFunc(list[i+1:], func(other *outcome) bool {
					return other.req == nil && apart(plain(other.want), plain(s.new)) == ""
				})
			}
			return
		} else if best == "" || len(difference) < len(best) {
			best = fmt.Sprintf("%s would make it other: %s", o.why, difference)
		}
	}
	if best == "" {
		best = "nobody asked for it and no clock was due"
	}
	broken(lawOf(list), "%s at %d (steady %d) went from %s to %s: %s", x.name(q.ID), c.now, c.steady, brief(s.old), brief(s.new), best)
}

// strays is 0 if the rows that an outcome asks for are written next, and the
// numbers it draws are new, else 1.
func (s *scene) strays(o *outcome) int {
	next := change{}
	if len(s.later) > 0 {
		next = s.later[0]
	}
	if o.gate != nil && !next.setsGate(o.gate) || o.queue != nil && !next.setsQueue(o.queue) {
		return 1
	}
	if slices.ContainsFunc(o.draws, func(n int64) bool { return n <= s.seq }) {
		return 1
	}
	return 0
}

func lawOf(list []*outcome) string {
	if len(list) == 0 {
		return "I1"
	}
	switch list[0].verb {
	case rule.Take:
		return "I2, I3"
	case rule.SettleRetry, rule.SettleDead, rule.SettleRelease, rule.Lapse:
		return "I4, core.md 5 and 6"
	case rule.SettleOK:
		return "I2, core.md 4"
	case rule.Promote, rule.Expire, rule.Purge:
		return "I6"
	default:
		return "the table of transitions"
	}
}

// accept books a write that has a reason.
func (x *judge) accept(c *commit, s *scene, o *outcome, counted *figures) {
	from := job.None
	if s.old != nil {
		from = s.old.State
	}
	to := job.None
	if s.new != nil {
		to = s.new.State
	}
	if o.verb < rule.Verbs { // else it changed nothing but its key, or its payload
		x.coverage.pair(o.verb, from, to)
	}
	for _, n := range o.draws {
		if n <= x.seq {
			broken("core.md 4", "number %d was drawn for %s after %d", n, x.name(cmpOr(s.new, s.old).ID), x.seq)
		}
		x.seq = n
	}
	if o.req != nil {
		o.req.commit, o.req.state = c.number, o.state
	}
	if o.body != "" && s.new != nil {
		x.w.folded[s.new.Payload] = o.body
	}
	x.turnLaws(s, o)
	*counted = counted.plus(o.stats)
	x.gate, x.queue = o.gate, o.queue
	if apart(plain(s.old), plain(s.new)) != "" { // not by a heartbeat of what has no end
		x.touched[cmpOr(s.new, s.old).ID] = c.number
	}
	for _, f := range o.seen {
		x.coverage.feature(f)
	}
}

// name is what a person reads instead of an id.
func (x *judge) name(id job.ID) string {
	if label := x.labels[id]; label != "" {
		return label
	}
	return id.String()
}

func brief(j *job.Job) string {
	if j == nil {
		return "none"
	}
	s := j.State.String()
	if j.State == job.Dead {
		s += " (" + j.Reason.String() + ")"
	}
	for _, l := range j.Leases {
		s += " by " + l.Holder
	}
	return s
}

// plain is a job in which nothing and empty are the same.
func plain(j *job.Job) *job.Job {
	if j == nil {
		return nil
	}
	c := *j
	if len(c.Leases) == 0 {
		c.Leases = nil
	}
	if len(c.Ended) == 0 {
		c.Ended = nil
	}
	return &c
}

// apart names the fields in which two jobs differ; "" = they do not.
func apart(want, got *job.Job) string {
	if want == nil || got == nil {
		switch want {
		case got:
			return ""
		case nil:
			return "it must be gone"
		}
		return "it is gone and must be " + brief(want)
	}
	if reflect.DeepEqual(want, got) {
		return ""
	}
	var list []string
	a, b := reflect.ValueOf(*want), reflect.ValueOf(*got)
	for i := range a.NumField() {
		if x, y := a.Field(i).Interface(), b.Field(i).Interface(); !reflect.DeepEqual(x, y) {
			list = append(list, fmt.Sprintf("%s must be %+v and is %+v", a.Type().Field(i).Name, x, y))
		}
	}
	return strings.Join(list, ", ")
}

// figures are what the engine and its parts count.
type figures struct {
	engine.Stats
	Crons          cron.Counts
	Folded, Opened uint64
}

func (a figures) plus(b figures) figures {
	add(reflect.ValueOf(&a).Elem(), reflect.ValueOf(b))
	return a
}

func add(a, b reflect.Value) {
	for i := range a.NumField() {
		if a, b := a.Field(i), b.Field(i); a.Kind() == reflect.Struct {
			add(a, b)
		} else {
			a.SetUint(a.Uint() + b.Uint())
		}
	}
}

func cmpOr(a, b *job.Job) *job.Job {
	if a != nil {
		return a
	}
	return b
}
