package account

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// What becomes of a result that comes late, or twice (grid.md 8; the table of
// reference section 3), as a table: the docs are written from it, and a test of
// rule holds Step to every line of it.

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

// LateRow is one line: a result of a run and a task in these states, and its answer.
type LateRow struct {
	Success bool
	Run     []RunState  // nil = any
	Task    []TaskState // nil = any
	Answer  string      // as rule.Answer is written
	Note    string
}

// LateTable is read from above: the first line that fits decides.
var LateTable = []LateRow{
	{true, []RunState{RunLive}, []TaskState{TaskActive, TaskCommitting}, "accepted", "the task is completed; its other runs are superseded, a copy in line leaves it"},
	{true, []RunState{RunLost}, []TaskState{TaskWaiting}, "accepted", "the task leaves the line; nothing further is charged"},
	{true, []RunState{RunLost}, []TaskState{TaskActive}, "accepted", "the run that replaced it is superseded"},
	{true, []RunState{RunWon}, []TaskState{TaskCompleted}, "repeat", "the same result told again"},
	{true, nil, nil, "superseded", "thrown away and counted as late; of two successes the first wins"},
	{false, []RunState{RunLive}, []TaskState{TaskActive, TaskCommitting}, "accepted", "charged; the task runs again, runs on in another copy, or is given up"},
	{false, []RunState{RunErred}, []TaskState{TaskWaiting, TaskActive, TaskCommitting, TaskCompleted, TaskFailed}, "repeat", "the same failure told again"},
	{false, nil, nil, "ignored", "never charged, and no engine is excluded for it: to be stopped is no failure"},
}

// Late is the answer to a result: a success or a failure, of a run and a
// task in these states. never is late_ok: never of the session.
func Late(success bool, run RunState, task TaskState, never bool) (answer, note string) {
	for _, row := range LateTable {
		switch {
		case row.Success != success || row.Run != nil && !slices.Contains(row.Run, run) || row.Task != nil && !slices.Contains(row.Task, task):
		case never && run == RunLost && row.Answer == "accepted":
		default:
			return row.Answer, row.Note
		}
	}
	return "ignored", ""
}

// Markdown writes the table of late results for the docs.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| Arrives | Its run is | The task is | Answer | |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range LateTable {
		what := "failure"
		if row.Success {
			what = "success"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", what, namesOf(row.Run), namesOf(row.Task), row.Answer, row.Note)
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
