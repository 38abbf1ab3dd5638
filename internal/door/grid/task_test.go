package grid

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

func tasks(t *testing.T, text string) ([]engine.NewJob, error) {
	t.Helper()
	var ask wire.Tasks
	if err := json.Unmarshal([]byte(text), &ask); err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig()
	c.TaskBytesMax = 40
	return c.Tasks("s", ask)
}

func TestTasksBecomeJobsOfTheirSession(t *testing.T) {
	list, err := tasks(t, `{"tasks":[
		{"seq":7,"payload":{"a":
			1}},
		{"seq":8,"payload":null,"type":"price","place":"front","affinity":"book-7","requires":["os = linux","cpuMHz > 350","os = linux"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	first, second := list[0], list[1]
	if first.Key != "7" || first.Job.Queue != "s" || first.Job.Type != TypeDefault || first.Job.Door != job.DoorGrid ||
		first.Place != job.PlaceUnset || string(first.Payload) != `{"a":1}` || SeqOf(&first.Job) != 7 {
		t.Errorf("%+v", first)
	}
	want := []job.Requirement{{Property: "cpuMHz", Op: ">", Value: "350"}, {Property: "os", Op: "=", Value: "linux"}}
	if second.Place != job.PlaceFront || second.Job.Type != "price" || second.Job.Affinity().Tag != "book-7" || first.Job.Affinity() != nil || string(second.Payload) != "null" ||
		len(second.Job.Requires) != 2 || second.Job.Requires[0] != want[0] || second.Job.Requires[1] != want[1] {
		t.Errorf("%+v", second)
	}
	added := Added([]wire.Task{{Seq: 7}, {Seq: 8}}, []engine.NewJob{{Key: "8"}, {Key: "7"}}, []engine.Added{{Duplicate: true}, {}})
	if added.Added != 1 || added.Duplicates != 1 || added.Tasks[1].Seq != 8 || !added.Tasks[1].Duplicate || added.Tasks[0].Duplicate {
		t.Errorf("%+v", added)
	}
}

func TestATaskThatIsWrongRefusesTheCallByItsPlace(t *testing.T) {
	one := func(rest string) string { return `{"tasks":[{"seq":1,"payload":1},{"seq":2,` + rest + `}]}` }
	for _, c := range []struct{ text, field, want string }{
		{`{"tasks":[]}`, "tasks", "at least one task"},
		{`{}`, "tasks", "at least one task"},
		{`{"tasks":[{"payload":1}]}`, "tasks[0].seq", "must be a whole number from 1 to 9007199254740991"},
		{`{"tasks":[{"seq":-1,"payload":1}]}`, "tasks[0].seq", "must be a whole number"},
		{`{"tasks":[{"seq":9007199254740992,"payload":1}]}`, "tasks[0].seq", "must be a whole number"},
		{`{"tasks":[{"seq":1,"payload":1},{"seq":1,"payload":1}]}`, "tasks[1].seq", "tasks[1].seq 1 is that of tasks[0] too"},
		{`{"tasks":[{"seq":1}]}`, "tasks[0].payload", "is missing; it may be null"},
		{one(`"payload":"` + strings.Repeat("x", 40) + `"`), "tasks[1].payload", "has 42 bytes, and the broker takes at most 40"},
		{one(`"payload":1,"type":"a,b"`), "tasks[1].type", "must not contain ','"},
		{`{"tasks":[{"seq":1,"payload":1,"needs":[1]}]}`, "tasks[0].needs", "wait for each other and could never run: 1 -> 1"},
		{`{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":1,"needs":[3]},{"seq":3,"payload":1,"needs":[2,1]}]}`, "tasks[1].needs", "could never run: 2 -> 3 -> 2"},
		{one(`"payload":1,"needs":[0]`), "tasks[1].needs", "must be numbers of tasks"},
		{one(`"payload":1,"needs":[` + strings.Repeat("7,", 64) + `7]`), "tasks[1].needs", "more than 64"},
		{one(`"payload":1,"needs":[1],"on_dep_fail":"wait"`), "tasks[1].on_dep_fail", `must be fail or run, not "wait"`},
		{one(`"payload":1,"affinity":"a,b"`), "tasks[1].affinity", "must not contain ','"},
		{one(`"payload":1,"place":"middle"`), "tasks[1].place", `must be front or back, not "middle"`},
		{one(`"payload":1,"requires":["cpuMHz > 350","fast"]`), "tasks[1].requires", `requires[1]: "fast" is no condition`},
		{one(`"payload":1,"requires":["` + strings.Repeat("x", 300) + ` = 1"]`), "tasks[1].requires", "is no condition"},
		{one(`"payload":1,"requires":[` + strings.Repeat(`"a = 1",`, 32) + `"a = 1"]`), "tasks[1].requires", "more than 32"},
	} {
		_, err := tasks(t, c.text)
		own, ok := errors.AsType[*job.Error](err)
		if !ok || own.Kind != job.Invalid || own.Field != c.field || !strings.Contains(own.Text, c.want) {
			t.Errorf("%.80s: %v, not %q at %s", c.text, err, c.want, c.field)
		}
	}
	many := DefaultConfig()
	if _, err := many.Tasks("s", wire.Tasks{Tasks: make([]wire.Task, TasksMax+1)}); err == nil || !strings.Contains(err.Error(), "in several calls") {
		t.Error(err)
	}
}

func TestAJobThatIsNoTaskHasNoNumber(t *testing.T) {
	for _, j := range []*job.Job{{}, {Extras: &job.Extras{}}, {Extras: &job.Extras{Labels: []job.Label{{Key: "a", Value: "1"}}}}} {
		if n := SeqOf(j); n != 0 {
			t.Errorf("%+v has number %d", j, n)
		}
	}
}

func TestTasksStandBehindThoseThatTheyNeed(t *testing.T) {
	list, err := tasks(t, `{"tasks":[{"seq":1,"payload":1,"needs":[3,9]},{"seq":2,"payload":1},{"seq":3,"payload":1,"needs":[2,4]},{"seq":4,"payload":1,"on_dep_fail":"run"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	order := ""
	for _, n := range list {
		order += n.Key
	}
	if order != "2431" || strings.Join(list[3].Needs, ",") != "3,9" || list[1].OnDepFail != job.DepRun {
		t.Errorf("%s, %+v", order, list[3])
	}
}
