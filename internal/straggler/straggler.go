// Package straggler runs a session of the grid on paper: tasks on engines, some
// runs of which take far longer than others, and copies of those by the
// strategies of grid.md 7. Nothing sleeps: it is a simulation of discrete
// events, whose clock jumps from one to the next.
//
// When a run is a straggler, and whether a copy of it may run, is decided by
// package rule, as in the server. What the simulation leaves out: tasks are all
// there from the start, engines never fail, a slot is given the next task at
// once, and a copy may run in any free slot.
package straggler

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
)

// Limits of a simulation.
const (
	TasksMax = 100_000
	SlotsMax = 10_000
)

// historyRuns is how many runs of the type are known from earlier sessions.
const historyRuns = 200

// Options say what to simulate.
type Options struct {
	Tasks      int             // 1 to TasksMax
	Slots      int             // runs at once, 1 to SlotsMax
	Run        job.Millis      // how long a run takes
	Spread     float64         // runs differ by up to this share of it, either way
	SlowShare  float64         // share of the runs that take
	Slow       float64         // so many times as long
	Redundancy *job.Redundancy // nil = no copies
	Copies     int             // runs of a task at once, at most (max_copies)
	Seed       uint64          // the same seed gives the same run; first runs do not depend on the copies

	takes func(task int, copied bool) job.Millis // in tests: how long a run takes
}

// Default is the simulation of "reprise grid simulate" without flags.
func Default() Options {
	return Options{Tasks: 1000, Slots: 50, Run: 10 * job.Second, Spread: 0.2, SlowShare: 0.01, Slow: 50, Copies: 2, Seed: 1}
}

// Validate names everything that is wrong.
func (o Options) Validate() error {
	var found job.Problems
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			found = append(found, &job.Error{Kind: job.Invalid, Field: field, Text: field + ": " + fmt.Sprintf(format, args...)})
		}
	}
	check(o.Tasks >= 1 && o.Tasks <= TasksMax, "tasks", "must be from 1 to %d", TasksMax)
	check(o.Slots >= 1 && o.Slots <= SlotsMax, "slots", "must be from 1 to %d", SlotsMax)
	check(o.Run >= 1 && o.Run <= job.Day, "run", "must be from 1ms to a day")
	check(o.Spread >= 0 && o.Spread <= 1, "spread", "must be a number from 0 to 1")
	check(o.SlowShare >= 0 && o.SlowShare <= 1, "slow-share", "must be a number from 0 to 1")
	check(o.Slow >= 1 && o.Slow <= 1000, "slow", "must be a number from 1 to 1000")
	check(o.Copies >= 1 && o.Copies <= 255, "copies", "must be from 1 to 255")
	if o.Redundancy != nil {
		if err := o.Redundancy.Check("redundancy"); err != nil {
			found = append(found, &job.Error{Kind: job.Invalid, Text: err.Error()})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &job.Error{Kind: job.Invalid, Text: "simulation refused", Cause: found}
}

// Report is how it went. Its JSON is that of "reprise grid simulate --json".
type Report struct {
	End       job.Millis     `json:"end_ms"`    // when the last task was done
	Copies    int            `json:"copies"`    // runs beside the first of a task
	By        map[string]int `json:"by"`        // of them, by strategy
	Won       int            `json:"won"`       // tasks whose result is that of a copy
	Withdrawn int            `json:"withdrawn"` // copies that were taken away because the budget was used up
	Useful    job.Millis     `json:"useful_ms"` // time of the runs whose result counts
	Spent     job.Millis     `json:"spent_ms"`  // time of runs beside the first live one of a task
	Barred    map[string]int `json:"barred"`    // how often a copy was put off, by reason
	Marks     []Mark         `json:"-"`         // the course of it, at each end of a task
	Least     job.Millis     `json:"-"`         // the least that the budget ever had left
	Most      int            `json:"-"`         // copies at once
}

// Mark is where a session stands at a time.
type Mark struct {
	At        job.Millis
	Done      int
	Running   int
	Threshold job.Millis // above this age a run is a straggler; 0 = none is
}

// Run simulates.
func Run(o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	s := newSession(o)
	for s.work.Done < o.Tasks {
		s.start()
		next := s.copies()
		if s.red != nil {
			next = sooner(next, s.spend.Dry(s.red, s.now))
		}
		s.pass(sooner(next, s.ends.soonest()))
		s.end()
		s.withdraw()
	}
	s.report.End = s.now
	return s.report, nil
}

// session is a run of the simulation.
type session struct {
	o      Options
	red    *job.Redundancy
	firsts *rand.Rand
	others *rand.Rand
	now    job.Millis
	free   int
	work   plan.Work
	own    plan.Durations
	kind   plan.Durations
	spend  plan.Spend
	tasks  []task
	oldest int   // no task before it runs without a copy
	cloned []int // tasks that are to have copies from the start, once for each copy
	ends   ends
	report *Report
}

// task is a task; its live runs, the first one first.
type task struct {
	runs []run
	done bool
	asks int // copies asked for
}

type run struct {
	number      int // of all runs
	since, ends job.Millis
	copied      bool
}

func newSession(o Options) *session {
	s := &session{
		o: o, red: o.Redundancy, free: o.Slots, work: plan.Work{Total: o.Tasks, Waiting: o.Tasks}, tasks: make([]task, o.Tasks),
		firsts: rand.New(rand.NewPCG(o.Seed, 1)), others: rand.New(rand.NewPCG(o.Seed, 2)),
		report: &Report{By: map[string]int{}, Barred: map[string]int{}, Least: job.MaxMillis},
	}
	history := rand.New(rand.NewPCG(o.Seed, 3))
	for i := range historyRuns {
		s.kind.Add(s.draw(history), job.Millis(i))
	}
	if s.red == nil {
		return s
	}
	clones := plan.Clones(s.red, o.Tasks, s.kind.Slow(s.red.MedianFactor), job.Millis(s.kind.Median()), s.spend.Left(s.red, 0))
	for c := min(clones, o.Copies); c > 1; c-- {
		for i := range o.Tasks {
			s.cloned = append(s.cloned, i)
		}
	}
	return s
}

// draw is how long a run takes.
func (s *session) draw(dice *rand.Rand) job.Millis {
	ms := float64(s.o.Run) * (1 + s.o.Spread*(2*dice.Float64()-1))
	if dice.Float64() < s.o.SlowShare {
		ms *= s.o.Slow
	}
	return job.Millis(max(1, math.Round(ms)))
}

// start gives free slots to tasks that wait.
func (s *session) start() {
	for s.free > 0 && s.work.Waiting > 0 {
		s.begin(s.o.Tasks-s.work.Waiting, false)
		s.work.Waiting--
	}
	for s.free > 0 && len(s.cloned) > 0 {
		i := s.cloned[0]
		if s.cloned = s.cloned[1:]; !s.tasks[i].done {
			s.copy(i, job.RedundantClone)
		}
	}
}

func (s *session) begin(i int, copied bool) {
	takes := s.draw(s.firsts)
	switch {
	case s.o.takes != nil:
		takes = s.o.takes(i, copied)
	case copied:
		takes = s.draw(s.others)
	}
	t := &s.tasks[i]
	s.free--
	s.ends.numbers++
	r := run{s.ends.numbers, s.now, s.now + takes, copied}
	t.runs = append(t.runs, r)
	heap.Push(&s.ends, end{r.ends, r.number, i})
}

func (s *session) copy(i int, by job.RedundancyStrategy) {
	s.begin(i, true)
	s.tasks[i].asks++
	s.spend.Start(s.now)
	s.report.Copies++
	s.report.By[by.String()]++
	s.report.Most = max(s.report.Most, s.spend.Copies)
}

// copies copies who is a straggler now, and returns when somebody will be one;
// 0 = not before something else happens.
func (s *session) copies() (next job.Millis) {
	if s.red == nil {
		return 0
	}
	if age, by, ok := plan.Threshold(s.red, &s.own, &s.kind, s.work); ok {
		for ; s.oldest < len(s.tasks) && !s.alone(s.oldest); s.oldest++ {
		}
		for i := s.oldest; i < s.o.Tasks-s.work.Waiting; i++ {
			if !s.alone(i) {
				continue
			}
			if at := plan.StragglesAt(s.tasks[i].runs[0].since, age); at > s.now {
				next = at
				break
			}
			if !s.may() {
				return 0
			}
			s.copy(i, by)
		}
	}
	return sooner(next, s.last())
}

// pass lets time go by. What copies cost is counted here once more, by the slots
// that are taken: the rules are held against it.
func (s *session) pass(to job.Millis) {
	running, begun := s.o.Slots-s.free, s.o.Tasks-s.work.Waiting-s.work.Done
	s.report.Spent += job.Millis(running-begun) * (to - s.now)
	s.now = to
	if s.red != nil {
		allowed := s.red.SecondsBurst + job.Millis(s.red.SecondsShare*float64(s.report.Useful))
		s.report.Least = min(s.report.Least, allowed-s.report.Spent)
	}
}

// alone reports whether a task runs and can have a copy yet.
func (s *session) alone(i int) bool {
	t := &s.tasks[i]
	return !t.done && len(t.runs) == 1 && t.asks < s.o.Copies-1
}

// may asks what bars a copy.
func (s *session) may() bool {
	running := s.o.Slots - s.free
	bar := s.spend.Bar(s.red, s.now, job.Millis(s.own.Median()), s.spend.Copies, running, s.free-s.work.Waiting, false)
	if bar == plan.RedundancyFree && s.free == 0 {
		bar = plan.BarBusy
	}
	if bar != plan.RedundancyFree {
		s.report.Barred[bar.String()]++
	}
	return bar == plan.RedundancyFree
}

// last copies the run that ends last by its progress, which grows evenly, and
// returns when to look again.
func (s *session) last() job.Millis {
	if !s.red.Strategies.Has(job.RedundantTimeLeft) || s.own.Len() < s.red.MinSamples || s.free-s.work.Waiting <= 0 {
		return 0
	}
	mean, _ := s.own.Mean()
	for {
		var list []plan.Headway
		var which []int
		for i := s.oldest; i < s.o.Tasks-s.work.Waiting; i++ {
			if s.alone(i) {
				r := s.tasks[i].runs[0]
				list = append(list, plan.Headway{Age: s.now - r.since, Fraction: float64(s.now-r.since) / float64(r.ends-r.since)})
				which = append(which, i)
			}
		}
		i := plan.EndsLast(s.red, list, mean, s.own.Len())
		if i < 0 || !s.may() {
			return 0
		}
		s.copy(which[i], job.RedundantTimeLeft)
	}
}

// end ends the runs whose time has come. The first of a task that is done is
// its result.
func (s *session) end() {
	for len(s.ends.list) > 0 && s.ends.list[0].at <= s.now {
		e := heap.Pop(&s.ends).(end)
		t := &s.tasks[e.task]
		k := slices.IndexFunc(t.runs, func(r run) bool { return r.number == e.run })
		if k < 0 { // superseded, or taken away
			continue
		}
		won := t.runs[k]
		for range t.runs[1:] {
			s.spend.End(s.now)
		}
		s.free += len(t.runs)
		t.runs, t.done = nil, true
		s.work.Done++
		s.own.Add(s.now-won.since, s.now)
		s.spend.Earn(s.now - won.since)
		s.report.Useful += s.now - won.since
		if won.copied {
			s.report.Won++
		}
		s.mark()
	}
}

func (s *session) mark() {
	m := Mark{At: s.now, Done: s.work.Done, Running: s.o.Slots - s.free}
	if s.red != nil {
		m.Threshold, _, _ = plan.Threshold(s.red, &s.own, &s.kind, s.work)
	}
	s.report.Marks = append(s.report.Marks, m)
}

// withdraw takes the youngest copies away when they have spent what they may.
func (s *session) withdraw() {
	if s.red == nil {
		return
	}
	for s.spend.Copies > 0 && s.spend.Dry(s.red, s.now) == s.now {
		youngest, number := -1, 0
		for i := range s.tasks {
			if n := len(s.tasks[i].runs); n > 1 && s.tasks[i].runs[n-1].number > number {
				youngest, number = i, s.tasks[i].runs[n-1].number
			}
		}
		t := &s.tasks[youngest]
		t.runs = t.runs[:len(t.runs)-1]
		s.spend.End(s.now)
		s.free++
		s.report.Withdrawn++
	}
}

func sooner(a, b job.Millis) job.Millis {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// ends are the ends of runs, soonest first; some of the runs are gone by then.
type ends struct {
	list    []end
	numbers int
}

type end struct {
	at        job.Millis
	run, task int
}

func (e *ends) soonest() job.Millis {
	if len(e.list) == 0 {
		return 0
	}
	return e.list[0].at
}

func (e *ends) Len() int { return len(e.list) }
func (e *ends) Less(i, j int) bool {
	return e.list[i].at < e.list[j].at || e.list[i].at == e.list[j].at && e.list[i].run < e.list[j].run
}
func (e *ends) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *ends) Push(x any)    { e.list = append(e.list, x.(end)) }
func (e *ends) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}
