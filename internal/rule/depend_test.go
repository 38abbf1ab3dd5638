package rule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
)

// graph is tasks that depend on others, run as an engine would.
type graph struct {
	needs map[job.ID][]job.ID
	on    job.OnDepFail
	state map[job.ID]job.State
	park  map[job.ID]string
	ended map[job.ID]int // how often a task came to its end
}

func newGraph(on job.OnDepFail, needs ...[]byte) *graph {
	g := &graph{map[job.ID][]job.ID{}, on, map[job.ID]job.State{}, map[job.ID]string{}, map[job.ID]int{}}
	for i, list := range needs {
		for _, n := range list {
			g.needs[job.ID{byte(i)}] = append(g.needs[job.ID{byte(i)}], job.ID{n})
		}
		g.state[job.ID{byte(i)}] = job.Ready
	}
	for i := range needs {
		g.look(job.ID{byte(i)})
	}
	return g
}

func (g *graph) look(id job.ID) {
	v, which := Depends(g.needs[id], g.on, func(id job.ID) job.State { return g.state[id] })
	delete(g.park, id)
	switch v {
	case NeedsWait:
		g.park[id] = NeedsPark(which)
	case NeedsFail:
		g.end(id, job.Dead)
	case NeedsNothing:
	}
}

// end ends a task, and looks at those that wait for it.
func (g *graph) end(id job.ID, s job.State) {
	g.state[id] = s
	g.ended[id]++
	for i := range len(g.state) {
		if w := (job.ID{byte(i)}); g.park[w] == NeedsPark(id) {
			g.look(w)
		}
	}
}

// inLine are the tasks that may run.
func (g *graph) inLine() (list []byte) {
	for i := range len(g.state) {
		if id := (job.ID{byte(i)}); g.state[id] == job.Ready && g.park[id] == "" {
			list = append(list, byte(i))
		}
	}
	return list
}

func TestA38AFailureIsPassedOnOnceOrNotAtAll(t *testing.T) {
	for on, want := range map[job.OnDepFail][]byte{job.DepFail: {4}, job.DepRun: {1, 4}} {
		// 1 needs 0; 2 needs 1 and 0; 3 needs 2, 1 and 0; 4 needs nothing; 5 needs 4 and 3.
		g := newGraph(on, nil, []byte{0}, []byte{1, 0}, []byte{2, 1, 0}, nil, []byte{4, 3})
		if got := g.inLine(); !slices.Equal(got, []byte{0, 4}) {
			t.Fatalf("in line at first: %v", got)
		}
		g.end(job.ID{0}, job.Dead)
		if got := g.inLine(); !slices.Equal(got, want) {
			t.Errorf("on_dep_fail %s: in line are %v, want %v", on, got, want)
		}
		for i := range byte(6) {
			ended := oneIf(i == 0 || on == job.DepFail && i < 4)
			if g.ended[job.ID{i}] != ended {
				t.Errorf("on_dep_fail %s: task %d ended %d times, want %d", on, i, g.ended[job.ID{i}], ended)
			}
		}
		for len(g.inLine()) > 0 {
			last := job.ID{slices.Max(g.inLine())}
			for _, n := range g.needs[last] {
				if g.state[n].Open() {
					t.Errorf("on_dep_fail %s: task %d is in line before task %d is over", on, last[0], n[0])
				}
			}
			g.end(last, job.Done)
		}
		last := map[job.OnDepFail]job.State{job.DepFail: job.Dead, job.DepRun: job.Done}[on]
		if g.state[job.ID{5}] != last || g.ended[job.ID{5}] != 1 {
			t.Errorf("on_dep_fail %s: task 5 is %s", on, g.state[job.ID{5}])
		}
	}
	if v, _ := Depends([]job.ID{{1}}, job.DepFail, func(job.ID) job.State { return job.None }); v != NeedsNothing {
		t.Error("it waits for what is forgotten")
	}
}

func TestCircularDependenciesAreRefused(t *testing.T) {
	name := func(i int) string { return fmt.Sprint("#", i+1) }
	for text, c := range map[string]struct {
		needs [][]int
		field string
		says  string
	}{
		"none":     {[][]int{nil, {0}, {0, 1}, {2, 0}}, "", ""},
		"itself":   {[][]int{nil, {1}}, "tasks[1].needs", "#2 -> #2"},
		"two":      {[][]int{{1}, {0}}, "tasks[0].needs", "#1 -> #2 -> #1"},
		"behind":   {[][]int{{1}, {2}, {3}, {1}}, "tasks[1].needs", "#2 -> #3 -> #4 -> #2"},
		"long":     {[][]int{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {0}}, "tasks[0].needs", "#8 -> 2 others -> #1"},
		"of nine":  {[][]int{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {0}}, "tasks[0].needs", "#8 -> #9 -> #1"},
		"the most": {[][]int{nil, make([]int, job.DependenciesMax)}, "", ""},
		"too many": {[][]int{nil, make([]int, job.DependenciesMax+1)}, "tasks[1].needs", "must not name more than 64 tasks"},
	} {
		err := CheckDependencies(len(c.needs), func(i int) []int { return c.needs[i] }, name)
		refused, _ := errors.AsType[*job.Error](err)
		if (err == nil) != (c.field == "") || err != nil && (refused.Field != c.field || refused.Kind != job.Invalid || !strings.HasSuffix(err.Error(), c.says)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const many = 10_000 // a chain is no circle, and a look at it is no stack of calls
	chain := make([][]int, many)
	for i := range many - 1 {
		chain[i] = []int{i + 1}
	}
	if err := CheckDependencies(many, func(i int) []int { return chain[i] }, name); err != nil {
		t.Error(err)
	}
	if chain[many-1] = []int{0}; CheckDependencies(many, func(i int) []int { return chain[i] }, name) == nil {
		t.Error("a circle of all tasks was taken in")
	}
}

// A submit is refused exactly if some task of it could never run.
func TestWhatIsNotACircleCanRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		needs := make([][]int, n)
		for i := range needs {
			needs[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 2).Draw(t, "needs")
		}
		over, left := make([]bool, n), n
		for again := true; again; {
			again = false
			for i := range needs {
				if !over[i] && !slices.ContainsFunc(needs[i], func(k int) bool { return !over[k] }) {
					over[i], again = true, true
					left--
				}
			}
		}
		circle := circleOf(n, func(i int) []int { return needs[i] })
		if (circle == nil) != (left == 0) {
			t.Fatalf("%d tasks cannot run, the circle is %v", left, circle)
		}
		for k, i := range circle {
			if !slices.Contains(needs[i], circle[(k+1)%len(circle)]) {
				t.Fatalf("%v is no circle", circle)
			}
		}
	})
}

func TestA25ConditionsOnEngines(t *testing.T) {
	workers := map[string]map[string]string{"350": {"cpuMHz": "350"}, "351": {"cpuMHz": "351"}, "none": {"os": "linux"}}
	for text, want := range map[string][]string{
		"cpuMHz > 350":   {"351"},
		"cpuMHz >? 350":  {"351", "none"},
		"cpuMHz<=?350":   {"350", "none"},
		"cpuMHz =? 350":  {"350", "none"},
		"cpuMHz != 350":  {"351", "none"},
		"cpuMHz !=? 350": {"351", "none"},
		"os =? windows":  {"350", "351"},
		"os = ?":         nil, // a text as any other
	} {
		r, err := ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for name, has := range workers {
			if Fits(Class{}, []job.Requirement{r}, Seeker{Properties: has}) {
				got = append(got, name)
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
		if again, err := ParseRequirement(r.Property + " " + r.Op + " " + r.Value); err != nil || again != r {
			t.Errorf("%s: written out and read again it is %+v, %v", text, again, err)
		}
	}
	for _, bad := range []string{"a !? 1", "a >?", "a >?= 1"} {
		if r, err := ParseRequirement(bad); err == nil {
			t.Errorf("%s was read as %+v", bad, r)
		}
	}
}
