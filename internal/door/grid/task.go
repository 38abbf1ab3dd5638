package grid

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// Bounds of one submit, and of one task.
const (
	TasksMax    = 10_000
	requiresMax = 32
)

// SeqMax is the highest number a client may give a task: what every language
// reads exactly from JSON.
const SeqMax = 1<<53 - 1

// TypeDefault is the type of a task that names none.
const TypeDefault = "task"

// Tasks makes jobs of the tasks that a client submits, those that others need
// before them. One that is wrong refuses them all, by its place in the list.
func (c *Config) Tasks(session string, ask wire.Tasks) ([]engine.NewJob, error) {
	if len(ask.Tasks) == 0 {
		return nil, refuse("tasks", "tasks must hold at least one task")
	}
	if len(ask.Tasks) > TasksMax {
		return nil, refuse("tasks", "tasks holds %d tasks, and one call takes at most %d; send them in several calls", len(ask.Tasks), TasksMax)
	}
	out := make([]engine.NewJob, len(ask.Tasks))
	seen := make(map[int64]int, len(out))
	for i := range ask.Tasks {
		t, at := &ask.Tasks[i], "tasks["+strconv.Itoa(i)+"]"
		if err := c.task(&out[i], t, at); err != nil {
			return nil, err
		}
		if first, twice := seen[t.Seq]; twice {
			return nil, refuse(at+".seq", "%s.seq %d is that of tasks[%d] too; number each task once", at, t.Seq, first)
		}
		seen[t.Seq] = i
		out[i].Job.Queue = session
	}
	return ordered(out, ask.Tasks, seen)
}

// ordered puts tasks behind those of the same submit that they need; others stay
// in their order. Who waits for itself is refused.
func ordered(list []engine.NewJob, tasks []wire.Task, places map[int64]int) ([]engine.NewJob, error) {
	needs := func(i int) (inside []int) {
		for _, seq := range tasks[i].Needs {
			if at, here := places[seq]; here {
				inside = append(inside, at)
			}
		}
		return inside
	}
	if !slices.ContainsFunc(tasks, func(t wire.Task) bool { return len(t.Needs) > 0 }) {
		return list, nil
	}
	if err := rule.CheckDependencies(len(tasks), needs, func(i int) string { return list[i].Key }); err != nil {
		return nil, err
	}
	out, placed := make([]engine.NewJob, 0, len(list)), make([]bool, len(list))
	var path []int // that wait for what stands behind them
	for i := range list {
		path = append(path[:0], i)
		for len(path) > 0 {
			top := path[len(path)-1]
			next := slices.IndexFunc(needs(top), func(at int) bool { return !placed[at] })
			switch {
			case placed[top]:
				path = path[:len(path)-1]
			case next >= 0:
				path = append(path, needs(top)[next])
			default:
				out, placed[top], path = append(out, list[top]), true, path[:len(path)-1]
			}
		}
	}
	return out, nil
}

func (c *Config) task(n *engine.NewJob, t *wire.Task, at string) error {
	in, unreadable := job.Unreadable(t.Payload)
	switch {
	case t.Seq < 1 || t.Seq > SeqMax:
		return refuse(at+".seq", "%s.seq must be a whole number from 1 to %d: your number of the task", at, int64(SeqMax))
	case len(t.Payload) == 0:
		return refuse(at+".payload", "%s.payload is missing; it may be null", at)
	case int64(len(t.Payload)) > c.TaskBytesMax:
		return &job.Error{Kind: job.Invalid, Field: at + ".payload", Text: at + ".payload has " + strconv.Itoa(len(t.Payload)) +
			" bytes, and the broker takes at most " + strconv.FormatInt(c.TaskBytesMax, 10) + " (task_bytes_max); keep large data elsewhere and send where it is"}
	case unreadable != "":
		return refuse(at+".payload"+in, "%s.payload%s %s", at, in, unreadable)
	case len(t.Requires) > requiresMax:
		return refuse(at+".requires", "%s.requires must not have more than %d conditions", at, requiresMax)
	}
	j := &n.Job
	j.Door, j.Type = job.DoorGrid, cmp.Or(t.Type, TypeDefault)
	j.Priority, j.Copies = job.PriorityDefault, 1
	j.RetainDone, j.RetainDead = job.Unset, job.Unset
	if err := checkName(at+".type", j.Type); err != nil {
		return err
	}
	switch t.Place {
	case "", job.PlaceBack.String():
	case job.PlaceFront.String():
		n.Place = job.PlaceFront
	default:
		return refuse(at+".place", "%s.place must be front or back, not %s", at, quote(t.Place))
	}
	if len(t.Needs) > job.DependenciesMax {
		return refuse(at+".needs", "%s.needs must not name more than %d tasks", at, job.DependenciesMax)
	}
	for _, seq := range t.Needs {
		if seq < 1 || seq > SeqMax {
			return refuse(at+".needs", "%s.needs must be numbers of tasks, from 1 on", at)
		}
		n.Needs = append(n.Needs, strconv.FormatInt(seq, 10))
	}
	var err error
	if n.OnDepFail, err = job.ParseOnDepFail(t.OnDepFail); err != nil {
		return refuse(at+".on_dep_fail", "%s.on_dep_fail must be fail or run, not %s", at, quote(t.OnDepFail))
	}
	if j.Requires, err = conditions(at+".requires", t.Requires); err != nil {
		return err
	}
	n.Key = strconv.FormatInt(t.Seq, 10)
	j.Extras = &job.Extras{Labels: []job.Label{{Key: wire.LabelTaskSeq, Value: n.Key}}}
	if j.Extras.Budgets, err = budgets(at+".budgets", t.Budgets); err != nil {
		return err
	}
	if t.Affinity != "" {
		if err := checkName(at+".affinity", t.Affinity); err != nil {
			return err
		}
		j.Extras.Affinity = &job.Affinity{Tag: t.Affinity}
	}
	n.Payload = oneLine(t.Payload)
	return nil
}

// conditions reads what a task asks of its engine.
func conditions(field string, list []string) (out []job.Requirement, err error) {
	for i, text := range list {
		one, bad := rule.ParseRequirement(text)
		if bad != nil || len(text) > nameBytesMax {
			return nil, refuse(field, `%s[%d]: %s is no condition; write it as "cpuMHz > 350", with one of = != < <= > >=`, field, i, quote(text))
		}
		out = append(out, one)
	}
	return rule.SortRequirements(out), nil
}

// oneLine takes line breaks out of JSON, where they can only be white space: in
// a stream each task is a line.
func oneLine(raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') >= 0 || bytes.IndexByte(raw, '\r') >= 0 {
		_ = (*jsontext.Value)(&raw).Compact() // what was just read is well formed
	}
	return raw
}

// SeqOf is the client's number of a task; 0 = it has none.
func SeqOf(j *job.Job) int64 {
	n, _ := strconv.ParseInt(j.Label(wire.LabelTaskSeq), 10, 64)
	return n
}

// Added tells which tasks were taken in, and which were here before, in the order
// of the request. list are the answers to the jobs that Tasks made.
func Added(asked []wire.Task, jobs []engine.NewJob, list []engine.Added) wire.TasksAdded {
	answers := make(map[string]*engine.Added, len(list))
	for i := range list {
		answers[jobs[i].Key] = &list[i]
	}
	out := wire.TasksAdded{Tasks: make([]wire.TaskAdded, len(asked))}
	for i, t := range asked {
		a := answers[strconv.FormatInt(t.Seq, 10)]
		out.Tasks[i] = wire.TaskAdded{Seq: t.Seq, ID: a.ID.String(), Duplicate: a.Duplicate}
		if a.Duplicate {
			out.Duplicates++
		} else {
			out.Added++
		}
	}
	return out
}
