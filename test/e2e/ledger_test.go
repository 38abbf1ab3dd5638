package e2e

import (
	"fmt"
	"sync"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// ledger is the memory of everybody outside the server: what was asked, what
// was answered, what was received. It notes every request before it is sent
// and every answer after it came, so that a crash leaves three kinds of
// requests: answered, refused, and unknown.
type ledger struct {
	mu     sync.Mutex // guards everything below
	tasks  map[int64]*task
	ids    map[string]*task
	groups map[string]*group
	bulks  [][]*task // in which something is unknown
	last   int64     // number of the latest task
	past   totals    // of tasks that were forgotten

	wrong    []string // what must not happen and did
	acks     int      // answers so far, of all kinds
	closed   bool     // nothing new is enqueued any more
	open     int      // accepted and, as far as is known, not finished
	target   int      // acks at which reached is closed
	reached  chan struct{}
	progress chan struct{} // somebody may go on: open fell
}

// task is one job as seen from outside.
type task struct {
	n        int64 // its number, which is its payload
	body     map[string]any
	queue    string
	group    string
	key      string
	id       string // "" = not known yet
	accepted bool   // its enqueue was answered
	ok, dead end
	failed   end   // retries, charged as attempts
	overAt   int64 // when it was known to be over; 0 = it is not
	counted  bool  // in ledger.open
}

// end counts settles of one kind: unknown are those without an answer.
type end struct{ unknown, acked int }

func (e end) maybe() bool { return e.unknown+e.acked > 0 }

// mayBeOver and mustBeOver tell whether it may have been, and whether it was,
// settled for good.
func (t *task) mayBeOver() bool  { return t.ok.maybe() || t.dead.maybe() }
func (t *task) mustBeOver() bool { return t.ok.acked+t.dead.acked > 0 }

// group is a strictly ordered group.
type group struct {
	members []*task // in the order of their enqueues
	live    string  // token of the turn that is out; "" = none that is known
}

func newLedger() *ledger {
	return &ledger{
		tasks: map[int64]*task{}, ids: map[string]*task{}, groups: map[string]*group{},
		progress: make(chan struct{}, 1),
	}
}

// violation notes what must not happen. l.mu is held.
func (l *ledger) violation(format string, args ...any) {
	if len(l.wrong) < 20 {
		l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
	}
}

func (l *ledger) report(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.violation(format, args...)
}

// until returns a channel that is closed after so many more answers.
func (l *ledger) until(acks int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.target, l.reached = l.acks+acks, make(chan struct{})
	return l.reached
}

// ack counts an answer. l.mu is held.
func (l *ledger) ack(n int) {
	l.acks += n
	if l.reached != nil && l.acks >= l.target {
		close(l.reached)
		l.reached = nil
	}
}

// ask notes a job that is about to be enqueued.
func (l *ledger) ask(queue, inGroup, key string) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	t := &task{n: l.last, queue: queue, group: inGroup, key: key}
	t.body = map[string]any{"type": "test", "queue": queue, "payload": t.n}
	if inGroup != "" {
		t.body["group"] = inGroup
		g := l.groups[inGroup]
		if g == nil {
			g = &group{}
			l.groups[inGroup] = g
		}
		g.members = append(g.members, t)
	}
	if key != "" {
		t.body["idempotency_key"] = key
	}
	l.tasks[t.n] = t
	return t
}

// accepted notes the answer to an enqueue.
func (l *ledger) accepted(t *task, answer wire.Enqueued) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ack(1)
	switch {
	case t.key == "" && answer.Duplicate:
		l.violation("job %d has no key and was answered as a duplicate", t.n)
	case t.accepted && !answer.Duplicate:
		l.violation("job %d with key %s was taken in twice: %s and %s", t.n, t.key, t.id, answer.ID)
	}
	l.identify(t, answer.ID)
	t.accepted = true
	l.recount(t)
}

// identify notes the id of a task. l.mu is held.
func (l *ledger) identify(t *task, id string) {
	switch {
	case t.id == "":
		t.id = id
	case t.id != id:
		l.violation("job %d has two ids, %s and %s", t.n, t.id, id)
		return
	}
	if other := l.ids[id]; other != nil && other != t {
		l.violation("jobs %d and %d have the same id %s", other.n, t.n, id)
	}
	l.ids[id] = t
}

// recount keeps the number of open tasks. l.mu is held.
func (l *ledger) recount(t *task) {
	open := t.id != "" && !t.mayBeOver()
	switch {
	case open && !t.counted:
		l.open++
	case !open && t.counted:
		l.open--
		select {
		case l.progress <- struct{}{}:
		default:
		}
	}
	t.counted = open
}

// openTasks is how much there is to do.
func (l *ledger) openTasks() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// delivered notes a job that a worker received, and checks that it may come.
func (l *ledger) delivered(j wire.Job) *task {
	var n int64
	if _, err := fmt.Sscan(string(j.Payload), &n); err != nil {
		l.report("job %s came with payload %.100q", j.ID, j.Payload)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.tasks[n]
	if t == nil {
		l.violation("job %s came with number %d, which nobody enqueued", j.ID, n)
		return nil
	}
	l.identify(t, j.ID)
	l.recount(t)
	if j.Queue != t.queue || j.Group != t.group || j.Status != wire.InFlight {
		l.violation("job %d came as %s of queue %q, group %q; it is of %q, %q", n, j.Status, j.Queue, j.Group, t.queue, t.group)
	}
	// An answer may overtake a delivery that was on its way already.
	if t.overAt != 0 && j.DequeuedAt > t.overAt {
		l.violation("job %d was given out at %d; that it was settled had been acknowledged by %d", n, j.DequeuedAt, t.overAt)
	}
	l.checkAttempts(t, j)
	if t.group != "" {
		l.checkTurn(t, j)
	}
	return t
}

// checkAttempts holds the counter against what workers told (I4). l.mu is held.
func (l *ledger) checkAttempts(t *task, j wire.Job) {
	least, most := t.failed.acked, t.failed.acked+t.failed.unknown
	if j.Status == wire.Dead || t.dead.maybe() {
		most += t.dead.acked + t.dead.unknown
	}
	if int(j.Attempts) < least || int(j.Attempts) > most {
		l.violation("job %d is %s with %d attempts; %d failures were acknowledged, %d may have been",
			t.n, j.Status, j.Attempts, least, most)
	}
}

// checkTurn holds a delivery against the order of its group (I7). l.mu is held.
func (l *ledger) checkTurn(t *task, j wire.Job) {
	g := l.groups[t.group]
	for _, m := range g.members {
		if m == t {
			break
		}
		if !m.mayBeOver() {
			l.violation("group %s: job %d came before %d was settled", t.group, t.n, m.n)
		}
	}
	if g.live != "" && g.live != j.Lease {
		l.violation("group %s: job %d came under %s while %s was out", t.group, t.n, j.Lease, g.live)
	}
	g.live = j.Lease
}

// settling notes a settle that is about to be sent.
func (l *ledger) settling(t *task, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := t.end(outcome); e != nil {
		e.unknown++
	}
	if t.group != "" {
		l.groups[t.group].live = ""
		l.trim(t.group)
	}
	l.recount(t)
}

// trim forgets the members at the head that are settled for certain. l.mu is
// held.
func (l *ledger) trim(name string) {
	g := l.groups[name]
	for len(g.members) > 0 && g.members[0].mustBeOver() {
		g.members = g.members[1:]
	}
}

// settled notes the answer to a settle: it was accepted, or changed nothing.
func (l *ledger) settled(t *task, outcome string, accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ack(1)
	if e := t.end(outcome); e != nil {
		e.unknown--
		if accepted {
			e.acked++
		}
	}
	if t.overAt == 0 && t.mustBeOver() {
		t.overAt = time.Now().UnixMilli()
	}
	l.recount(t)
}

// end returns the counter of an outcome; a release has none.
func (t *task) end(outcome string) *end {
	switch outcome {
	case wire.OutcomeOK:
		return &t.ok
	case wire.OutcomeDead:
		return &t.dead
	case wire.OutcomeRetry:
		return &t.failed
	}
	return nil
}

// sample returns up to n tasks that keep, for looking at one by one.
func (l *ledger) sample(n int, keep func(*task) bool) (out []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.tasks { // maps have no order of their own
		if len(out) == n {
			break
		}
		if keep(t) {
			out = append(out, t)
		}
	}
	return out
}

// doubt notes a bulk whose outcome is unknown.
func (l *ledger) doubt(tasks []*task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bulks = append(l.bulks, tasks)
}

// isClosed tells producers to go home.
func (l *ledger) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// totals are for the report.
type totals struct{ accepted, done, dead, failed int }

func (s *totals) add(t *task) {
	if t.accepted {
		s.accepted++
	}
	s.done += min(t.ok.acked, 1)
	s.dead += min(t.dead.acked, 1)
	s.failed += t.failed.acked
}

func (l *ledger) summary() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sum := l.past
	for _, t := range l.tasks {
		sum.add(t)
	}
	return fmt.Sprintf("%d asked for, %d acknowledged, %d completed, %d dead, %d failures on the way, 0 lost",
		l.last, sum.accepted, sum.done, sum.dead, sum.failed)
}

// forget drops tasks that are gone for certain, while nobody works. Should one
// of them ever come up again, it is a job that nobody enqueued. l.mu is held.
func (l *ledger) forget() {
	for n, t := range l.tasks {
		if t.ok.acked > 0 && t.queue != "kept" {
			l.past.add(t)
			delete(l.tasks, n)
			delete(l.ids, t.id)
		}
	}
}

// wait blocks until there is less to do, or stop is closed.
func (l *ledger) wait(stop <-chan struct{}) {
	select {
	case <-l.progress:
	case <-stop:
	case <-time.After(patience):
	}
}

func (l *ledger) faults() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.wrong
	l.wrong = nil
	return out
}
