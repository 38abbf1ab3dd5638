package rule

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// What becomes of a result that comes late, or twice (grid.md 8; the table of
// reference section 3). The table says it as data: doors answer by it, the docs
// are written from it, and a test holds Step to every line of it.

// Answer is what an engine is told about a result of one of its runs.
type Answer uint8

// The answers.
const (
	AnswerAccepted   Answer = iota // it counts
	AnswerRepeat                   // it was told before: the same answer again
	AnswerSuperseded               // a success that is thrown away: nothing changes
	AnswerIgnored                  // a failure that is thrown away: nothing is charged
	answers
)

func (a Answer) String() string {
	return [answers]string{"accepted", "repeat", "superseded", "ignored"}[a]
}

// RunState is what the server knows of the run that a result is of.
type RunState uint8

// The states of a run.
const (
	RunLive    RunState = iota
	RunLost             // its engine was lost, or the server started anew
	RunOverran          // it took too long, and its engine was logged off
	RunStopped          // superseded or cancelled
	RunErred            // its engine told of a failure
	RunGiven            // given back without blame
	RunWon              // its result is the one of the task
	runStates
)

func (s RunState) String() string {
	return [runStates]string{"live", "lost", "overran", "stopped", "failed", "given back", "won"}[s]
}

// RunStateOf is the state of a run that ended so.
func RunStateOf(how job.Ending) RunState {
	switch how {
	case job.ByLapse, job.ByDisconnect, job.ByRestart, job.ByUndelivered:
		return RunLost
	case job.ByTimeout:
		return RunOverran
	case job.BySupersede, job.ByCancel:
		return RunStopped
	case job.ByRetry, job.ByDead:
		return RunErred
	case job.ByOK:
		return RunWon
	default:
		return RunGiven
	}
}

// TaskState is what a task is when a result of it comes.
type TaskState uint8

// The states of a task.
const (
	TaskWaiting    TaskState = iota // in line, or until it is due
	TaskActive                      // at least one run is live
	TaskCommitting                  // the same, and one has the word that its effects count
	TaskCompleted                   // has a result
	TaskFailed                      // given up, or cancelled
	TaskGone                        // forgotten, with its session or without
	taskStates
)

func (s TaskState) String() string {
	return [taskStates]string{"waiting", "active", "active and committed", "completed", "failed", "gone"}[s]
}

// TaskStateOf is the state of a task; nil is a task that is forgotten.
func TaskStateOf(j *job.Job) TaskState {
	switch {
	case j == nil || j.State == job.None:
		return TaskGone
	case j.State == job.Leased && j.Committed():
		return TaskCommitting
	case j.State == job.Leased:
		return TaskActive
	case j.State.Open():
		return TaskWaiting
	case j.State == job.Done:
		return TaskCompleted
	default:
		return TaskFailed
	}
}

type lateRow struct {
	success bool
	run     []RunState  // nil = any
	task    []TaskState // nil = any
	answer  Answer
	note    string
}

// lateTable is read from above: the first line that fits decides.
var lateTable = []lateRow{
	{true, []RunState{RunLive}, []TaskState{TaskActive, TaskCommitting}, AnswerAccepted, "the task is completed; its other runs are superseded, a copy in line leaves it"},
	{true, []RunState{RunLost}, []TaskState{TaskWaiting}, AnswerAccepted, "the task leaves the line; nothing further is charged"},
	{true, []RunState{RunLost}, []TaskState{TaskActive}, AnswerAccepted, "the run that replaced it is superseded"},
	{true, []RunState{RunWon}, []TaskState{TaskCompleted}, AnswerRepeat, "the same result told again"},
	{true, nil, nil, AnswerSuperseded, "thrown away and counted as late; of two successes the first wins"},
	{false, []RunState{RunLive}, []TaskState{TaskActive, TaskCommitting}, AnswerAccepted, "charged; the task runs again, runs on in another copy, or is given up"},
	{false, []RunState{RunErred}, []TaskState{TaskWaiting, TaskActive, TaskCommitting, TaskCompleted, TaskFailed}, AnswerRepeat, "the same failure told again"},
	{false, nil, nil, AnswerIgnored, "never charged, and no engine is excluded for it: to be stopped is no failure"},
}

// LateAnswer is the answer to a result: a success or a failure, of a run and a
// task in these states. never is late_ok: never of the session.
func LateAnswer(success bool, run RunState, task TaskState, never bool) (a Answer, note string) {
	for _, row := range lateTable {
		switch {
		case row.success != success || !oneOf(row.run, run) || !oneOf(row.task, task):
		case never && run == RunLost && row.answer == AnswerAccepted:
		default:
			return row.answer, row.note
		}
	}
	return AnswerIgnored, ""
}

// Answered is the answer that a settle amounts to, by what Step said of it. ok
// is false for an error that is none of them: bad input, or a fault of ours.
func Answered(success bool, e Effect, err error) (a Answer, ok bool) {
	refused, _ := errors.AsType[*job.Error](err)
	switch {
	case err == nil && e.Repeat:
		return AnswerRepeat, true
	case err == nil:
		return AnswerAccepted, true
	case refused == nil || refused.Kind != job.Superseded && refused.Kind != job.NotFound:
		return 0, false
	case success:
		return AnswerSuperseded, true
	}
	return AnswerIgnored, true
}

// LateMarkdown writes the table for the docs.
func LateMarkdown() string {
	var b strings.Builder
	b.WriteString("| Arrives | Its run is | The task is | Answer | |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range lateTable {
		what := "failure"
		if row.success {
			what = "success"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", what, namesOf(row.run), namesOf(row.task), row.answer, row.note)
	}
	return b.String()
}

func namesOf[T fmt.Stringer](set []T) string {
	if set == nil {
		return "anything else"
	}
	names := make([]string, 0, len(set))
	for _, s := range set {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}
