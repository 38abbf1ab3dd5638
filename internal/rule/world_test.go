package rule

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// dawn is when every test begins; times in tests count from here.
const dawn = 1000 * job.Second

// world is one queue on paper: its jobs, its gates and a clock. Nothing moves
// in it but by Step, and every step is held against the invariants.
type world struct {
	testing.TB
	now    job.Millis
	steady job.Millis // runs with now; a test may move it apart
	queue  *job.Queue
	gates  map[string]*job.Gate
	server Server
	jobs   map[string]*job.Job // by name; what is gone has left
	ids    *job.IDs
	seq    int64
	start  uint32
	dice   float64
	drawn  uint64
	tokens map[job.Token]bool // all that were ever granted
	last   Effect
	paused func(job.Fingerprint) bool
	loose  bool // more tokens end at once than a job remembers
}

func newWorld(t testing.TB, edits ...func(*job.Queue)) *world {
	w := &world{
		TB: t, now: dawn, steady: dawn, queue: job.NewQueue("q"), gates: map[string]*job.Gate{},
		server: DefaultServer(), jobs: map[string]*job.Job{}, start: 3, tokens: map[job.Token]bool{},
	}
	w.server.RetainDone = job.Hour // so that done jobs can be looked at
	w.ids = job.NewIDs(job.ID{}, w.random)
	for _, edit := range edits {
		edit(w.queue)
	}
	return w
}

// random counts; tokens and ids only have to be different.
func (w *world) random() uint64 { w.drawn++; return w.drawn << 20 }

// tick moves the clock on, and ends the holds that are over then.
func (w *world) tick(span job.Millis) {
	w.now += span
	w.steady += span
	if q, err := WakeQueue(w.queue, w.now); err == nil {
		w.queue = q
	}
	for group, g := range w.gates {
		if awake, err := WakeGate(g, w.now); err == nil {
			w.gates[group] = awake
		}
	}
}

func (w *world) view(j *job.Job) View {
	v := View{
		Now: w.now, Steady: w.steady, Job: j, Queue: w.queue, Server: &w.server, Start: w.start,
		Paused: w.paused, Rand: func() float64 { return w.dice },
		Seq: func() int64 { w.seq++; return w.seq },
	}
	if j != nil && j.Group != "" {
		v.Gate = w.gate(j.Group)
		v.Head = w.head(j)
	}
	v.Owner = w.otherOwner(j)
	return v
}

// head reports whether no member of its group stands before the job.
func (w *world) head(j *job.Job) bool {
	for _, other := range w.jobs {
		e := EntriesOf(other)
		if other.Group == j.Group && e.Member && e.Inner.Before(EntriesOf(j).Inner) {
			return false
		}
	}
	return true
}

func (w *world) gate(group string) *job.Gate {
	if g := w.gates[group]; g != nil {
		return g
	}
	return &job.Gate{Queue: "q", Group: group}
}

// put takes a job in under a name.
func (w *world) put(name string, edits ...func(*job.Job)) *job.Job {
	w.Helper()
	return w.putAt(job.PlaceUnset, name, edits...)
}

func (w *world) putAt(p job.Place, name string, edits ...func(*job.Job)) *job.Job {
	w.Helper()
	j := &job.Job{
		ID: w.ids.Next(w.now), Queue: "q", Type: "t", Priority: job.PriorityDefault,
		RetainDone: job.Unset, RetainDead: job.Unset,
	}
	for _, edit := range edits {
		edit(j)
	}
	v := w.view(nil)
	if j.Group != "" {
		v.Gate = w.gate(j.Group)
	}
	e, err := Step(v, Command{Verb: Put, New: j, Place: p})
	if err != nil {
		w.Fatalf("putting %s: %v", name, err)
	}
	w.succeed(e.Job)
	w.apply(name, Put, nil, e)
	return w.jobs[name]
}

// do applies a command that must be accepted.
func (w *world) do(name string, c Command) *job.Job {
	w.Helper()
	if err := w.try(name, c); err != nil {
		w.Fatalf("%s of %s: %v", c.Verb, name, err)
	}
	return w.jobs[name]
}

// try applies a command. A refusal must have no effect, and no step may
// change what it looked at.
func (w *world) try(name string, c Command) error {
	w.Helper()
	j := w.jobs[name]
	if j == nil {
		w.Fatalf("there is no job %s", name)
	}
	v := w.view(j)
	before, queue, gate := deep(j), *w.queue, job.Gate{}
	if v.Gate != nil {
		gate = *v.Gate
	}
	e, err := Step(v, c)
	if !reflect.DeepEqual(before, j) || *w.queue != queue || v.Gate != nil && *v.Gate != gate {
		w.Fatalf("%s of %s changed what it looked at", c.Verb, name)
	}
	w.last = e
	if err != nil {
		if _, ok := errors.AsType[*job.Error](err); !ok || !reflect.DeepEqual(e, Effect{}) {
			w.Fatalf("%s of %s was refused with %T and an effect %+v", c.Verb, name, err, e)
		}
		return err
	}
	if e.Repeat {
		if e.Job != j || e.Gate != nil || e.Ended != nil || e.Failures != nil {
			w.Fatalf("a repeated %s of %s has an effect: %+v", c.Verb, name, e)
		}
		return nil
	}
	w.apply(name, c.Verb, before, e)
	return nil
}

// deep copies a job with all that a step could reach through it.
func deep(j *job.Job) *job.Job {
	c := j.Clone()
	c.Requires = slices.Clone(j.Requires)
	return c
}

func (w *world) apply(name string, v Verb, old *job.Job, e Effect) {
	w.Helper()
	if err := w.lawful(v, old, e); err != nil {
		w.Fatalf("%s of %s: %v\nold %+v\nnew %+v", v, name, err, old, e.Job)
	}
	w.last = e
	if e.Gate != nil {
		w.gates[e.Gate.Group] = e.Gate
	}
	if e.Queue != nil {
		w.queue = e.Queue
	}
	if e.Job == nil {
		delete(w.jobs, name)
		return
	}
	w.jobs[name] = e.Job
	w.oneOwner(name)
}

// refused applies a command that must be refused with an error of a kind.
func (w *world) refused(kind job.Kind, name string, c Command) {
	w.Helper()
	if err := w.try(name, c); err == nil || job.KindOf(err) != kind {
		w.Fatalf("%s of %s: %v, want an error of kind %d", c.Verb, name, err, kind)
	}
}

// take leases a job to a holder of a kind and returns the token.
func (w *world) take(name, holder string, edits ...func(*job.Lease)) job.Token {
	w.Helper()
	l := w.lease(holder, edits...)
	w.do(name, Command{Verb: Take, Lease: l})
	return l.Token
}

func (w *world) lease(holder string, edits ...func(*job.Lease)) *job.Lease {
	l := &job.Lease{Token: job.NewToken(w.start, w.random), Holder: holder}
	if j := w.jobs[holder]; j != nil {
		w.Fatalf("%s is a job", holder)
	}
	for _, edit := range edits {
		edit(l)
	}
	return l
}

// fail and ok settle under a token; the zero token is none.
func (w *world) fail(name string, token job.Token, edits ...func(*Command)) *job.Job {
	w.Helper()
	c := Command{Verb: SettleRetry, Token: token, Failure: job.Failure{Type: "E", Message: "boom"}}
	for _, edit := range edits {
		edit(&c)
	}
	return w.do(name, c)
}

func (w *world) ok(name string, token job.Token) *job.Job {
	w.Helper()
	return w.do(name, Command{Verb: SettleOK, Token: token})
}

// failure is the latest record of the last step; nil if it made none.
func (w *world) failure() *job.Failure {
	if n := len(w.last.Failures); n > 0 {
		return &w.last.Failures[n-1]
	}
	return nil
}

// lose ends all leases of a holder on a job.
func (w *world) lose(name, holder string, how job.Ending) *job.Job {
	w.Helper()
	return w.do(name, Command{Verb: Lapse, Holder: holder, Ending: how})
}

// due takes a job whose wait is over.
func (w *world) due(name, holder string) job.Token {
	w.Helper()
	if j := w.jobs[name]; j.State == job.Scheduled {
		w.tick(max(j.ReadyAt-w.now, 0))
		w.do(name, Command{Verb: Promote})
	}
	return w.take(name, holder)
}

// line returns the names of the jobs a seeker may take, in their order, as a
// store finds them.
func (w *world) line(s Seeker) (names []string) {
	groups := w.groups()
	for name, j := range w.jobs {
		e := EntriesOf(j)
		if !e.Wants || !Open(w.queue) || j.HeldBy(s.Holder) || !Fits(e.Class, j.Requires, s) {
			continue
		}
		if e.Member && (!Stands(*groups[j.Group]) || *groups[j.Group].Wanting != e.Inner) {
			continue
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return order(EntriesOf(w.jobs[a]).Pos, EntriesOf(w.jobs[b]).Pos)
	})
	return names
}

func order(a, b Pos) int {
	switch {
	case Pick(a, b):
		return -1
	case Pick(b, a):
		return 1
	}
	return 0
}

// groups is what a store knows of the groups.
func (w *world) groups() map[string]*Group {
	all := map[string]*Group{}
	for _, j := range w.jobs {
		e := EntriesOf(j)
		if !e.Member {
			continue
		}
		g := all[j.Group]
		if g == nil {
			g = &Group{Gate: w.gate(j.Group), Order: w.queue.Order, Limit: w.queue.Concurrency}
			all[j.Group] = g
		}
		g.Live += len(j.Leases)
		if !j.State.Open() {
			g.Blockers++
		}
		inner := e.Inner
		if g.First == nil || inner.Before(*g.First) {
			g.First = &inner
		}
		if e.Wants && (g.Wanting == nil || inner.Before(*g.Wanting)) {
			g.Wanting = &inner
		}
	}
	return all
}

// expect compares a job, as told by tell, with a line of text.
func (w *world) expect(name, want string) {
	w.Helper()
	if got := w.tell(name); got != want {
		w.Errorf("%s: %s\nwant %s", name, got, want)
	}
}

func (w *world) expectLine(want ...string) {
	w.Helper()
	if got := w.line(Seeker{Holder: "anybody"}); !slices.Equal(got, want) {
		w.Errorf("in line: %v, want %v", got, want)
	}
}

// tell describes a job: its state, when, and every counter that is not zero.
func (w *world) tell(name string) string {
	j := w.jobs[name]
	if j == nil {
		return "gone"
	}
	s := j.State.String()
	if j.State == job.Dead {
		s += " " + j.Reason.String()
	}
	if j.State == job.Scheduled {
		s += " due " + (j.ReadyAt - w.now).String()
	}
	for _, c := range []struct {
		name string
		n    uint32
	}{
		{"leases", uint32(len(j.Leases))},
		{"attempts", j.Attempts},
		{"losses", j.Losses},
		{"evictions", j.Evictions},
		{"reschedules", j.Reschedules},
		{"suppressed", j.Suppressed},
		{"overrides", j.Overrides},
		{"releases", j.Releases},
	} {
		if c.n > 0 {
			s += fmt.Sprintf(" %s %d", c.name, c.n)
		}
	}
	if j.Isolated {
		s += " alone"
	}
	return s
}

func (w *world) namesByID() []string {
	return slices.SortedFunc(maps.Keys(w.jobs), func(a, b string) int {
		return w.jobs[a].ID.Compare(w.jobs[b].ID)
	})
}

// Edits that many tests use.

func retry(r job.Retry) func(*job.Job) { return func(j *job.Job) { j.Retry = &r } }

func wait(span job.Millis) *job.Curve { return &job.Curve{Kind: job.CurveConstant, Delay: span} }

func grouped(g string) func(*job.Job) { return func(j *job.Job) { j.Group = g } }

func strict(q *job.Queue) { q.Order = job.OrderStrict }

func of(kind job.HolderKind) func(*job.Lease) { return func(l *job.Lease) { l.Kind = kind } }
