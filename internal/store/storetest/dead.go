package storetest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var deads = []subject{
	{"groups are what their jobs make them, before and after Reopen", deadGroups},
	{"lists and counts select by fingerprint", deadLists},
	{"parked jobs are found by their label", parkedJobs},
}

// failedPrint is the fingerprint of a failure of a type in the histories.
func failedPrint(kind string) job.Fingerprint {
	return rule.Fingerprint(&job.Failure{Type: kind, Message: "it broke at 1"})
}

// deadGroups is what Groups must answer.
func (m *model) deadGroups(edges []job.Millis) []store.Group {
	all := map[job.Fingerprint]store.Group{}
	for _, j := range m.jobs {
		e := m.entries[j.ID].Dead
		if !e.Is {
			continue
		}
		g, known := all[e.Print]
		if !known {
			g = store.Group{Print: e.Print, First: e.At, Queues: map[string]int64{}, Trend: make([]int64, len(edges))}
		}
		g.Queues[j.Queue]++
		if g.First = min(g.First, e.At); e.At >= g.Last {
			g.Last, g.Sample = e.At, j.ID
		}
		for i, edge := range edges {
			if e.At >= edge && (i == len(edges)-1 || e.At < edges[i+1]) {
				g.Trend[i]++
			}
		}
		all[e.Print] = g
	}
	var out []store.Group
	for _, print := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[print])
	}
	return out
}

// groups holds the dead set and what is parked against the list of jobs.
func (c *checker) groups() {
	var deaths []job.Millis
	parked := map[string][]job.ID{"unheard of": nil}
	for _, j := range c.m.jobs {
		if e := c.m.entries[j.ID]; e.Dead.Is {
			deaths = append(deaths, e.Dead.At)
		} else if e.Park != "" {
			parked[e.Park] = append(parked[e.Park], j.ID)
		}
	}
	slices.Sort(deaths)
	for _, edges := range [][]job.Millis{nil, {0}, deaths[:len(deaths)/2], slices.Compact(slices.Clone(deaths))} {
		got, err := c.Groups(edges)
		want := c.m.deadGroups(edges)
		if err != nil || len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			c.wrong("Groups(%v): got %+v, want %+v (%v)", edges, got, want, err)
		}
	}
	for _, g := range c.m.deadGroups(nil) {
		n, err := c.Count(store.Filter{Prints: []job.Fingerprint{g.Print}})
		same(c, n, err, g.Count(), "Count(%s)", g.Print)
	}
	for label, ids := range parked {
		slices.SortFunc(ids, func(a, b job.ID) int {
			if c.m.entries[a].Pos.Before(c.m.entries[b].Pos) {
				return -1
			}
			return 1
		})
		for _, n := range []int{len(ids) + 1, 1} {
			got, err := c.IDs(store.Parked(label), n)
			same(c, got, err, ids[:min(n, len(ids))], "Parked(%q, %d)", label, n)
		}
	}
}

// diedOf brings a job in that died of a failure of a type.
func (x *site) diedOf(queue, name, kind string) *job.Job {
	x.Helper()
	j := x.take(x.put(queue, name, kept(0, job.Hour)), "h")
	return x.do(j, rule.Command{Verb: rule.SettleDead, Token: j.Leases[0].Token, Failure: job.Failure{Type: kind, Message: "it broke at 1"}})
}

func deadGroups(x *site) {
	edges := []job.Millis{x.now, x.now + 10, x.now + 20}
	expect := func(when, want string) {
		x.Helper()
		var lines []string
		x.view(func(r store.Reader) error {
			groups, err := r.Groups(edges)
			lines = nil
			for _, g := range groups {
				sample, _ := r.Get(g.Sample)
				lines = append(lines, fmt.Sprintf("%v %d..%d %s %v", g.Queues, g.First-edges[0], g.Last-edges[0], sample.Type, g.Trend))
			}
			return err
		})
		slices.Sort(lines) // fingerprints say nothing here
		x.expect(when, strings.Join(lines, ", "), want)
	}
	expect("nothing", "")
	a := x.diedOf("q1", "a", "E")
	x.now += 10
	x.diedOf("q2", "b", "E")
	c := x.diedOf("q1", "c", "E")
	x.now += 15
	d := x.diedOf("q3", "d", "F")
	const all = "map[q1:2 q2:1] 0..10 c [1 2 0], map[q3:1] 25..25 d [0 0 1]"
	expect("four dead", all)
	x.reopen()
	expect("four dead, reopened", all)
	x.do(a, rule.Command{Verb: rule.Purge})
	x.do(d, rule.Command{Verb: rule.Revive})
	expect("the first of one and the only one of the other left", "map[q1:1 q2:1] 10..10 c [0 2 0]")
	x.do(c, rule.Command{Verb: rule.Revive})
	expect("the last one left", "map[q2:1] 10..10 b [0 1 0]")
}

func deadLists(x *site) {
	e, f := []job.Fingerprint{failedPrint("E")}, []job.Fingerprint{failedPrint("F")}
	x.diedOf("q1", "a", "E")
	b := x.diedOf("q1", "b", "F")
	x.diedOf("q2", "c", "E")
	x.do(x.diedOf("q1", "alive again", "E"), rule.Command{Verb: rule.Revive})
	type F = store.Filter
	for _, t := range []struct {
		f    F
		want string
	}{
		{F{Prints: e}, "a c"},
		{F{Prints: e, Desc: true}, "c a"},
		{F{Prints: append(e, f[0], e[0])}, "a b c"},
		{F{Prints: e, Queues: []string{"q2"}}, "c"},
		{F{Prints: e, Types: []string{"a", "b"}}, "a"},
		{F{Prints: f, IDs: []job.ID{b.ID}}, "b"},
		{F{Prints: e, IDs: []job.ID{b.ID}}, ""},
		{F{Prints: []job.Fingerprint{7}}, ""},
		{F{Prints: e, States: []job.State{job.Ready}}, ""},
	} {
		x.expect(fmt.Sprintf("%+v", t.f), x.list(t.f, 9), t.want)
		x.view(func(r store.Reader) error {
			n, err := r.Count(t.f)
			if want := len(strings.Fields(t.want)); int(n) != want {
				x.Errorf("Count(%+v): got %d, want %d", t.f, n, want)
			}
			return err
		})
	}
}

func parkedJobs(x *site) {
	park := func(label string) rule.Command {
		return rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = label }}
	}
	expect := func(when, label string, n int, want string) {
		x.Helper()
		var list []*job.Job
		x.view(func(r store.Reader) error {
			ids, err := r.IDs(store.Parked(label), n)
			list = nil
			for _, id := range ids {
				j, _ := r.Get(id)
				list = append(list, j)
			}
			return err
		})
		x.expect(when, names(list), want)
	}
	a, b := x.put("q1", "a"), x.put("q2", "b")
	expect("nobody", "budget/k", 9, "")
	b = x.do(b, park("budget/k"))
	x.do(a, park("budget/k"))
	x.do(x.put("q1", "c"), park("other"))
	expect("two", "budget/k", 9, "a b")
	expect("one of them", "budget/k", 1, "a")
	b = x.do(b, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Priority-- }})
	expect("in line order", "budget/k", 9, "b a")
	expect("the foremost", "budget/k", 1, "b")
	x.reopen()
	expect("reopened", "budget/k", 9, "b a")
	x.do(b, park(""))
	expect("one came back", "budget/k", 9, "a")
	expect("no label", "", 9, "")
}
