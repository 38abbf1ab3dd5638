package grid

import (
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/wire"
)

// ResultsMax bounds one page of results.
const ResultsMax = 10_000

// ResultOf tells what became of a task. body is what it made, nil if nothing.
func ResultOf(r grid.Result, body []byte) wire.TaskResult {
	j := r.Job
	out := wire.TaskResult{
		Cursor: r.Number, ID: j.ID.String(), Seq: SeqOf(j), State: stateOf(j, r.Failure), Result: body, Error: errorOf(r.Failure),
		Retries: j.Attempts, Losses: j.Losses, Reschedules: j.Reschedules, Evictions: j.Evictions,
	}
	if out.State == wire.TaskFailed {
		out.Attempts = attemptsOf(j)
	}
	return out
}

// attemptsOf tells the attempts of a task: those that are over and kept, then
// those that run.
func attemptsOf(j *job.Job) (list []wire.Attempt) {
	for _, a := range j.History() {
		list = append(list, wire.Attempt{
			Number: a.Number, Engine: engineOf(a.Holder), Host: a.Host, Copy: a.Copy, Committed: a.Committed,
			SinceAt: int64(a.Since), StartedAt: int64(a.Started), EndedAt: int64(a.Ended),
			Reason: a.Why.String(), Charged: a.Charged.String(), Error: a.Failure,
		})
	}
	for i := range j.Leases {
		l := &j.Leases[i]
		list = append(list, wire.Attempt{
			Number: l.Number, Engine: engineOf(l.Holder), Host: l.Host, Copy: l.Copy, Committed: l.Commits,
			SinceAt: int64(l.Since), StartedAt: int64(l.Started),
		})
	}
	return list
}

// StateOf is the state of a task that is not cancelled, in the words of this
// door.
func StateOf(s job.State) string { return stateOf(&job.Job{State: s}, nil) }

// cancelled is the error type of a task that was given up with its session.
const cancelled = "Cancelled"

// stateOf is the state of a task in the words of this door. latest is its latest
// failure, nil if it has none.
func stateOf(j *job.Job, latest *job.Failure) string {
	switch j.State {
	case job.Leased:
		return wire.TaskActive
	case job.Done:
		return wire.TaskDone
	case job.Dead:
		if j.Reason == job.ReasonCancelled || latest != nil && j.Reason == job.Killed && latest.Type == cancelled {
			return wire.TaskCancelled
		}
		return wire.TaskFailed
	case job.None, job.Scheduled, job.Ready, job.States:
	}
	return wire.TaskWaiting
}

func errorOf(f *job.Failure) *wire.JobError {
	if f == nil {
		return nil
	}
	return &wire.JobError{
		Attempt: f.Number, Message: f.Message, ErrorType: f.Type, Backtrace: f.Backtrace, DequeuedAt: int64(f.Started), FailedAt: int64(f.Failed),
		Status: f.Status, ExitCode: f.ExitCode, Timeout: f.Timeout, Worker: engineOf(f.Holder), Attempts: f.Attempt,
	}
}

// engineOf is the name of a holder without its kind.
func engineOf(holder string) string {
	_, name, _ := strings.Cut(holder, "/")
	return name
}

// TaskOf tells of one task. history are its latest failures, newest first.
func TaskOf(l query.Listed, body []byte, history []job.Failure) wire.TaskState {
	j := l.Job
	var latest *job.Failure
	if len(history) > 0 {
		latest = &history[0]
	}
	t := wire.TaskState{
		ID: j.ID.String(), Seq: SeqOf(j), Type: j.Type, State: stateOf(j, latest), Payload: l.Payload, Result: body,
		Retries: j.Attempts, Losses: j.Losses, Evictions: j.Evictions, Reschedules: j.Reschedules,
		CreatedAt: int64(j.Created), FinishedAt: int64(max(j.CompletedAt, j.DiedAt)),
	}
	t.Attempts = attemptsOf(j)
	t.LeftOut = j.Deliveries - min(j.Deliveries, uint32(len(t.Attempts)))
	for i := range history {
		t.Errors = append(t.Errors, *errorOf(&history[i]))
	}
	if a := j.Affinity(); a != nil {
		t.Affinity = a.Tag
	}
	t.Requires = requiresOf(j)
	return t
}
