// Package outage runs a retry policy on paper against a target that is down
// for a while: jobs arrive, each attempt is made the moment it is due, the
// target refuses all during the outage and what is beyond its capacity at any
// time, and refused attempts are retried by the policy. Nothing sleeps: it is
// a simulation of discrete events, whose clock jumps from one to the next.
//
// What a job does next is decided by rule.Step, the function that decides it
// in the server, so delays, limit and max_age are the real ones. What the
// simulation leaves out: a run takes no time, there are always enough workers,
// and nothing but the policy protects the target. Rules of the policy are not
// looked at: that an attempt was refused is all that is known of it.
package outage

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Limits of a simulation, so that it ends within a minute.
const (
	JobsMax     = 1_000_000
	AttemptsMax = 10_000_000
)

// Options say what to simulate. Times count from the first moment.
type Options struct {
	Retry    job.Retry  // what it leaves open is the server's default
	Jobs     int        // how many arrive, 1 to JobsMax
	Arrival  float64    // jobs per second, at random (Poisson); 0 = all at once at 0
	From, To job.Millis // the outage; equal = none
	Capacity int        // attempts the target takes in each second, at least 1
	Seed     uint64     // the same seed gives the same run; arrivals do not depend on the policy
}

// Default is the simulation of "reprise policy simulate" without flags.
func Default() Options {
	return Options{
		Jobs: 10_000, Arrival: 50, Capacity: 100,
		From: job.Minute, To: 6 * job.Minute, Seed: 1,
	}
}

// Validate names everything that is wrong.
func (o Options) Validate() error {
	var found job.Problems
	check := func(ok bool, field, text string) {
		if !ok {
			found = append(found, &job.Error{Kind: job.Invalid, Field: field, Text: field + ": " + text})
		}
	}
	check(o.Jobs >= 1 && o.Jobs <= JobsMax, "jobs", fmt.Sprintf("must be from 1 to %d", JobsMax))
	check(o.Arrival == 0 || o.Arrival >= 0.001 && o.Arrival <= 1e6, "arrival", "must be jobs per second from 0.001 to 1000000, or 0 for all at once")
	check(o.From >= 0 && o.From <= o.To && o.To < job.MaxMillis/2, "outage", "must end after it begins")
	check(o.Capacity >= 1, "capacity", "must be at least 1 attempt per second")
	if len(found) == 0 {
		return nil
	}
	return &job.Error{Kind: job.Invalid, Text: "simulation refused", Cause: found}
}

// Report is how it went. Its JSON is that of "reprise policy simulate --json".
type Report struct {
	Jobs     int `json:"jobs"`
	Done     int `json:"done"`
	Dead     int `json:"dead"`     // limit or max_age used up
	Attempts int `json:"attempts"` // all runs

	// Wasted are attempts that failed: during the outage, or because the
	// target was given more than its capacity.
	Wasted         int `json:"wasted_attempts"`
	WastedOutage   int `json:"wasted_in_outage"`
	WastedOverload int `json:"wasted_by_overload"`

	// PeakRetries is the most retries made in one second, the one that begins
	// at PeakAt. PeakAfter is the most in one second since the outage, which is
	// what the target has to bear while it recovers.
	PeakRetries int        `json:"peak_retries_per_second"`
	PeakAt      job.Millis `json:"peak_at_ms"`
	PeakAfter   int        `json:"peak_retries_per_second_after_outage"`

	// Recovery is how long after the end of the outage the last job that had
	// arrived before was done or dead; nil = there was no outage, or it met no job.
	Recovery *job.Millis `json:"recovery_ms"`

	// Waits of the jobs that got done, from arrival to success.
	WaitMedian job.Millis `json:"wait_median_ms"`
	WaitP99    job.Millis `json:"wait_p99_ms"`
	WaitMax    job.Millis `json:"wait_max_ms"`

	End   job.Millis `json:"end_ms"` // when the last job was done or dead
	Slots []Slot     `json:"slots"`  // the whole time in equal parts, at most slotsMax

	options Options
}

// Run simulates. It fails if the options are wrong, or after AttemptsMax
// attempts: such a policy would not end.
func Run(o Options) (*Report, error) { return run(o, AttemptsMax) }

func run(o Options, attemptsMax int) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o.Retry = o.Retry.Over(job.DefaultRetry())
	o.Retry.Rules = nil
	s := newSimulation(o)
	for s.line.Len() > 0 || s.arriving < o.Jobs {
		if s.report.Attempts >= attemptsMax {
			return nil, job.Errorf(job.OverLimit,
				"after %d attempts, at %s, %d of %d jobs are still open: the policy asks too often for a target of this capacity",
				attemptsMax, s.now, o.Jobs-s.report.Done-s.report.Dead, o.Jobs)
		}
		s.next()
	}
	s.finish()
	return &s.report, nil
}

// simulation is a run under way.
type simulation struct {
	options  Options
	server   rule.Server
	queue    *job.Queue
	arrivals *rand.Rand
	dice     *rand.Rand
	seq      int64

	now      job.Millis
	line     line // jobs that wait for their next attempt
	arriving int  // jobs that have arrived
	nextAt   float64

	report  Report
	seconds []second // those in which something happened
	waits   []job.Millis
	last    job.Millis // when the last job of before the outage's end was through
}

// second is one second of the target.
type second struct {
	at       job.Millis // its beginning
	attempts int
	retries  int
	open     int // jobs that have arrived and are neither done nor dead, at its end
}

func newSimulation(o Options) *simulation {
	s := &simulation{
		options: o, server: rule.DefaultServer(), queue: job.NewQueue("outage"),
		arrivals: rand.New(rand.NewPCG(o.Seed, 1)), dice: rand.New(rand.NewPCG(o.Seed, 2)),
		last: -1,
	}
	s.server.Retry = o.Retry
	s.report.Jobs, s.report.options = o.Jobs, o
	s.pace()
	return s
}

// pace draws when the next job arrives.
func (s *simulation) pace() {
	if s.options.Arrival > 0 {
		s.nextAt += s.arrivals.ExpFloat64() / s.options.Arrival * float64(job.Second)
	}
}

// next goes on to what happens next: a job arrives, or one is due.
func (s *simulation) next() {
	due := job.Millis(s.nextAt)
	if s.arriving < s.options.Jobs && (s.line.Len() == 0 || due <= s.line[0].ReadyAt) {
		s.now = due
		s.arriving++
		s.pace()
		s.attempt(s.step(nil, rule.Command{Verb: rule.Put, New: &job.Job{Queue: s.queue.Name}}))
		return
	}
	j := heap.Pop(&s.line).(*job.Job)
	s.now = j.ReadyAt
	if j.State == job.Scheduled {
		j = s.step(j, rule.Command{Verb: rule.Promote})
	}
	s.attempt(j)
}

// step applies a verb as the engine does. A refusal or a job that leaves in
// any other way than by SettleOK would be a defect of this package.
func (s *simulation) step(j *job.Job, c rule.Command) *job.Job {
	e, err := rule.Step(rule.View{
		Now: s.now, Steady: s.now, Job: j, Queue: s.queue, Server: &s.server,
		Rand: s.dice.Float64, Seq: func() int64 { s.seq++; return s.seq },
	}, c)
	if err != nil {
		panic(fmt.Sprintf("outage: %s refused: %v", c.Verb, err))
	}
	return e.Job
}

// attempt runs a ready job once.
func (s *simulation) attempt(j *job.Job) {
	slot := s.second()
	slot.attempts++
	s.report.Attempts++
	if j.Attempts > 0 {
		slot.retries++
	}
	down := s.now >= s.options.From && s.now < s.options.To
	overload := !down && slot.attempts > s.options.Capacity
	created := j.Created
	j = s.step(j, rule.Command{Verb: rule.Take, Lease: &job.Lease{Holder: "target"}})
	if !down && !overload {
		s.step(j, rule.Command{Verb: rule.SettleOK})
		s.report.Done++
		s.waits = append(s.waits, s.now-created)
		s.through(created)
	} else {
		if down {
			s.report.WastedOutage++
		} else {
			s.report.WastedOverload++
		}
		j = s.step(j, rule.Command{Verb: rule.SettleRetry, Failure: job.Failure{Message: "refused"}})
		if j != nil && j.State.Open() {
			heap.Push(&s.line, j)
		} else {
			s.report.Dead++
			s.through(created)
		}
	}
	slot.open = s.arriving - s.report.Done - s.report.Dead
}

// through notes that a job is done or dead.
func (s *simulation) through(created job.Millis) {
	s.report.End = s.now
	if created < s.options.To {
		s.last = s.now
	}
}

// second is the one we are in.
func (s *simulation) second() *second {
	at := s.now - s.now%job.Second
	if n := len(s.seconds); n == 0 || s.seconds[n-1].at != at {
		s.seconds = append(s.seconds, second{at: at})
	}
	return &s.seconds[len(s.seconds)-1]
}

// line is a heap of jobs by due time; those due together go by their place in
// the line, as in a queue.
type line []*job.Job

func (l line) Len() int      { return len(l) }
func (l line) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l *line) Push(x any)   { *l = append(*l, x.(*job.Job)) }

func (l line) Less(i, j int) bool {
	a, b := l[i], l[j]
	switch {
	case a.ReadyAt != b.ReadyAt:
		return a.ReadyAt < b.ReadyAt
	case a.Band != b.Band:
		return a.Band < b.Band
	}
	return a.Seq < b.Seq
}

func (l *line) Pop() any {
	last := len(*l) - 1
	j := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	return j
}
