package model

import (
	"cmp"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// The model of the grid: sessions, their tasks, and engines, called machines
// here. It is written from spec/grid.md and its reference, as dumb as the model
// of jobs: a task is a value with counters and a list of its runs, and whoever
// is next is found by looking at all of them.

// lostAfter is for how long an engine may be silent, as the server has it by
// default.
const lostAfter = 15 * job.Second

// grid is what the engine should be to drivers and engines.
type grid struct {
	now      job.Millis
	start    uint32
	places   int64 // drawn
	moment   int   // counts what happened, so that tasks finish in an order
	sessions map[string]*session
	machines map[string]*machine
	tasks    map[job.ID]*task // also those that are forgotten
	over     []*task          // that ended, and who waits for them was not told
	swept    bool             // the clock cancelled tasks in this step

	able map[string]bool // who could be given tasks when it was last looked at, and is fast
}

type session struct {
	name           string
	set            *job.Queue
	state          job.SessionState
	created, ended job.Millis
	heard          job.Millis // of its client
	collected      int64
	forgotten      int64 // of what was collected
	dropped        bool

	strikes []*strike // by name
	judge   bool      // whom to exclude is to be looked at
	stuck   bool      // all who may run its tasks failed too often
}

type task struct {
	id        job.ID
	session   *session
	key, body string
	fast      bool // wants an engine with more than one cpu
	needs     []*task
	onFail    job.OnDepFail
	aside     *task // waits for it

	state  job.State
	reason job.Reason
	gone   bool
	fate   fate
	end    int // moment at which it was finished
	number int64

	front bool
	place int64
	due   job.Millis
	want  int // runs side by side
	alone bool

	retries, losses, reschedules, evictions, given uint32

	runs   []*attempt
	past   []*attempt // in the order in which they ended
	result []byte
}

// fate is what became of a task, of which a session counts each once.
type fate int

const (
	open fate = iota
	done
	failed
	cancelled
)

type attempt struct {
	token                  job.Token
	machine, host          string
	number                 uint32
	copy, alone, commits   bool
	since, started         job.Millis
	runEnd, startBy, ended job.Millis
	how                    job.Ending
	why                    job.AttemptEnd
	charged                job.Charge
	heard                  bool // its engine was told, if it had to be
}

type machine struct {
	name, host string
	slots      int
	fast       bool
	epoch      int64
	until      job.Millis // silent for so long it is lost; a lost one is forgotten then
	stopping   []job.Token

	lost, draining, awaited, polls bool
}

func newGrid(now job.Millis) *grid {
	return &grid{now: now, start: 1, sessions: map[string]*session{}, machines: map[string]*machine{}, tasks: map[job.ID]*task{}}
}

// list is the tasks that are there and asked for, oldest first.
func (g *grid) list(want func(*task) bool) (list []*task) {
	for _, t := range g.tasks {
		if !t.gone && want(t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *task) int { return a.id.Compare(b.id) })
	return list
}

func (t *task) live(token job.Token) *attempt {
	for _, r := range t.runs {
		if r.token == token {
			return r
		}
	}
	return nil
}

func (t *task) runsOn(m *machine) bool {
	return slices.ContainsFunc(t.runs, func(r *attempt) bool { return r.machine == m.name })
}

// inLine reports whether a task wants an engine, be it for a copy.
func (t *task) inLine() bool {
	return !t.gone && t.aside == nil && (t.state == job.Ready || t.state == job.Leased && len(t.runs) < t.want)
}

func foremost(a, b *task) int {
	if a.front != b.front {
		if a.front {
			return -1
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.place, b.place), a.id.Compare(b.id))
}

func (g *grid) draw() int64 { g.places++; return g.places }

// put puts a task where it shall stand; where it stood if nothing is said.
func (g *grid) put(t *task, p job.Place) {
	switch p {
	case job.PlaceBack:
		t.front, t.place = false, g.draw()
	case job.PlaceFront:
		t.front = true
		if t.session.set.FrontOrder == job.FrontLIFO {
			t.place = -g.draw()
		}
	case job.PlaceUnset, job.PlaceKeep:
	}
}

// take gives a task to a machine, under the token that the engine drew.
func (g *grid) take(t *task, m *machine, token job.Token) {
	t.given++
	r := &attempt{token: token, machine: m.name, host: m.host, number: t.given, copy: len(t.runs) > 0, alone: t.alone, since: g.now}
	if s := t.session.set.StartTimeout; s > 0 {
		r.startBy = g.now + s
	} else if g.running(m) < m.slots { // it may never say that it began
		r.runEnd = g.overrun(t.session, g.now)
	}
	t.state, t.runs = job.Leased, append(slices.Clone(t.runs), r)
}

// overrun is when a run that began at a time has taken too long, 0 = never: its engine
// ends it by itself at its time, or a sweep finds it.
func (g *grid) overrun(s *session, began job.Millis) job.Millis {
	limit, every := s.set.RunTimeout, s.set.Grid.PollPeriod
	switch {
	case limit == 0:
		return 0
	case every > 0:
		return (began + limit + every - 1) / every * every
	case s.set.Grid.OnTimeout == job.TimeoutRetry:
		return began + limit + s.set.Grid.TimeoutSlack
	}
	return began + limit
}

// returns is a machine that is heard for the first time after a restart: the clocks of
// its runs have gone on, but for a second to tell of what ended meanwhile.
func (g *grid) returns(m *machine) {
	if m == nil || !m.awaited {
		return
	}
	for _, t := range g.list(func(t *task) bool { return len(t.runs) > 0 }) {
		for _, r := range t.runs {
			if r.machine == m.name && r.runEnd > 0 {
				r.runEnd = min(r.runEnd, max(g.overrun(t.session, max(r.since, r.started)), g.now+job.Second))
			}
		}
	}
}

// begin is the word started.
func (g *grid) begin(t *task, r *attempt) {
	if r.started == 0 {
		r.started, r.startBy, r.runEnd = g.now, 0, g.overrun(t.session, g.now)
	}
}

// finish ends a run.
func (g *grid) finish(t *task, r *attempt, how job.Ending, why job.AttemptEnd) {
	t.runs = slices.DeleteFunc(slices.Clone(t.runs), func(o *attempt) bool { return o == r })
	r.how, r.why, r.ended = how, why, g.now
	t.past = append(t.past, r)
}

func (g *grid) supersede(t *task, but *attempt) {
	for _, r := range slices.Backward(slices.Clone(t.runs)) {
		if r != but {
			g.finish(t, r, job.BySupersede, job.AttemptSuperseded)
		}
	}
}

// overWith is the end of a task.
func (g *grid) overWith(t *task, f fate, why job.Reason) {
	if t.state, t.reason = job.Done, why; f != done {
		t.state = job.Dead
	}
	g.moment++
	t.fate, t.end, t.aside = f, g.moment, nil
	s := t.session
	if t.gone = f == done && s.set.RetainDone == 0; s.state < job.SessionCancelling {
		g.over = append(g.over, t)
	}
}

// fails is the end of a task that failed, which may cancel its session.
func (g *grid) fails(t *task, why job.Reason, loading bool) {
	g.overWith(t, failed, why)
	a := t.session.set.Grid.AutoCancel
	if t.session.state < job.SessionCancelling && (a == job.AutoCancelAlways || a == job.AutoCancelLibload && loading) {
		t.session.state = job.SessionCancelling
	}
}

func (t *task) spent() bool {
	limit, _ := t.session.set.Retry.LimitValue()
	return int64(t.retries) > limit
}

// charge counts a failed attempt.
func (t *task) charge(r *attempt) {
	t.retries++
	r.charged = job.ChargedRetry
}

// again is what follows a failed attempt: nothing while another run lives, else a
// retry at its place, or the end.
func (g *grid) again(t *task, loading bool, place job.Place) {
	if t.want = max(1, len(t.runs)); len(t.runs) > 0 {
		return
	}
	if t.spent() {
		g.fails(t, job.Exhausted, loading)
		return
	}
	g.put(t, place)
	t.state, t.due = job.Ready, g.now
	if c := t.session.set.Retry.Curve; c.Kind == job.CurveLinear {
		t.state, t.due = job.Scheduled, g.now+c.Base+c.Step*job.Millis(t.retries-1)
	}
}

// back returns a task without blame. While another run of it lives, the one that
// ended is not wanted again; one that failed past its limit beside it is over.
func (g *grid) back(t *task, p job.Place) {
	if len(t.runs) > 0 {
		t.want = max(1, t.want-1, len(t.runs))
		return
	}
	if t.want = 1; t.spent() {
		g.fails(t, job.Exhausted, false)
		return
	}
	t.state, t.due = job.Ready, g.now
	g.put(t, p)
}

// fence keeps a task that must not run twice out of line for a while: its last run
// was ended by the server, and may go on where it was.
func (g *grid) fence(t *task) {
	set := t.session.set
	if set.NonIdempotent && set.Grid.FenceWait > 0 && (t.state == job.Ready || t.state == job.Scheduled) {
		t.state, t.due = job.Scheduled, max(t.due, g.now+set.Grid.FenceWait)
	}
}

// barred reports why no further copy of a task may be wanted.
func (t *task) barred() bool {
	set := t.session.set
	committed := slices.ContainsFunc(t.runs, func(r *attempt) bool { return r.commits })
	return t.want >= int(set.Grid.MaxCopies) || committed || t.reschedules >= set.Grid.MaxReschedules || set.NonIdempotent || t.spent()
}

func (g *grid) oneMore(t *task) {
	t.want++
	t.reschedules++
	g.put(t, t.session.set.Grid.CopyPlace)
}
