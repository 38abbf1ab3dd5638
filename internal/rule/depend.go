package rule

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Tasks that depend on others (reference section 6, Dependencies). A task is put
// aside under NeedsPark of one task that it waits for, the first of its list that
// is not over; when that one is over, Depends says what is next. So one place in
// an index is enough, however many it depends on, and whoever fails fails once.

// NeedsPark is the label of tasks that wait for a task (core.md section 3).
func NeedsPark(id job.ID) string { return needsPark + id.String() }

const needsPark = "needs/"

// NeededBy is the task that a task under this label waits for; ok is false if
// the label is of another kind.
func NeededBy(park string) (id job.ID, ok bool) {
	name, ok := strings.CutPrefix(park, needsPark)
	if !ok {
		return id, false
	}
	id, err := job.ParseID(name)
	return id, err == nil
}

// Verdict is what becomes of a task that depends on others.
type Verdict uint8

// The verdicts.
const (
	NeedsNothing Verdict = iota // it stands in line
	NeedsWait                   // it stays aside
	NeedsFail                   // it fails: Cancel it with a failure of type job.DependencyFailed
)

// Depends looks at the tasks that a task depends on. which is the one it waits
// for, or the one it fails because of. state tells the state of a task; None is
// one that is over and forgotten: had it failed, those that waited for it would
// have been told.
func Depends(needs []job.ID, on job.OnDepFail, state func(job.ID) job.State) (v Verdict, which job.ID) {
	for _, id := range needs {
		switch s := state(id); {
		case s == job.Dead && on == job.DepFail:
			return NeedsFail, id
		case s.Open() && v == NeedsNothing:
			v, which = NeedsWait, id
		}
	}
	return v, which
}

// CheckDependencies refuses tasks of one submit that could never run: who waits
// for itself, by however many others. n is the number of tasks, needs the places
// in the submit of those that task i depends on; what was submitted before
// cannot depend on what comes now and is left out. name is what a task is called
// in the error, whose field is that of the first task of the circle below
// tasks[i]. It looks at each dependency once.
func CheckDependencies(n int, needs func(i int) []int, name func(i int) string) error {
	for i := range n {
		if len(needs(i)) > job.DependenciesMax {
			return badDependency(i, "tasks[%d].needs must not name more than %d tasks", i, job.DependenciesMax)
		}
	}
	circle := circleOf(n, needs)
	if circle == nil {
		return nil
	}
	const shown = 8
	var b strings.Builder
	for k, i := range circle {
		if k == shown && len(circle) > shown+1 {
			fmt.Fprintf(&b, "%d others -> ", len(circle)-shown)
			break
		}
		b.WriteString(name(i) + " -> ")
	}
	return badDependency(circle[0], "tasks[%d].needs: the tasks wait for each other and could never run: %s%s", circle[0], b.String(), name(circle[0]))
}

func badDependency(i int, format string, args ...any) error {
	return &job.Error{Kind: job.Invalid, Field: fmt.Sprintf("tasks[%d].needs", i), Text: fmt.Sprintf(format, args...)}
}

// circleOf finds tasks each of which needs the next and the last the first; nil
// if there are none. It walks without recursion: a chain may be as long as a
// submit.
func circleOf(n int, needs func(i int) []int) []int {
	const (
		unseen = iota
		onPath
		clear
	)
	mark := make([]uint8, n)
	var path, next []int // the tasks on the path, and how many needs of each were followed
	for start := range n {
		if mark[start] != unseen {
			continue
		}
		path, next = append(path[:0], start), append(next[:0], 0)
		for mark[start] = onPath; len(path) > 0; {
			top := len(path) - 1
			list := needs(path[top])
			if next[top] == len(list) {
				mark[path[top]] = clear
				path, next = path[:top], next[:top]
				continue
			}
			to := list[next[top]]
			switch next[top]++; mark[to] {
			case unseen:
				mark[to] = onPath
				path, next = append(path, to), append(next, 0)
			case onPath:
				for path[0] != to {
					path = path[1:]
				}
				return path
			}
		}
	}
	return nil
}
