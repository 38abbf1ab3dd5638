package storetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// questions are what is asked of a reader. The answers of two stores with the
// same history must be equal, and so must those before and after Reopen.
type questions struct {
	now     job.Millis
	ids     []job.ID // jobs, some of them gone
	queues  []string
	groups  []string
	holders []string
	keys    []string // of rows
	seekers []rule.Seeker
	filters []store.Filter
	sizes   []int // how much to ask for
}

// answer is what a reader said, and to what.
type answer struct {
	question string
	args     []any
	got      any
}

func (a answer) String() string { return fmt.Sprintf("%s%v: %s", a.question, a.args, show(a.got)) }

// answers collects them; the first error ends the asking.
type answers struct {
	store.Reader
	questions
	list []answer
	err  error
}

// ask asks everything.
func (q questions) ask(r store.Reader) ([]answer, error) {
	a := &answers{Reader: r, questions: q}
	a.jobs()
	a.lines()
	a.lists()
	a.rows()
	return a.list, a.err
}

func (a *answers) note(err error, got any, question string, args ...any) {
	if err != nil && a.err == nil {
		a.err = fmt.Errorf("%s%v: %w", question, args, err)
	}
	a.list = append(a.list, answer{question, args, plain(got)})
}

func (a *answers) jobs() {
	for _, id := range a.ids {
		j, err := a.Get(id)
		a.note(err, j, "Get", id)
		for _, desc := range []bool{false, true} {
			list, err := a.Failures(id, 0, desc, 100)
			a.note(err, list, "Failures", id, desc)
			list, err = a.Failures(id, 2, desc, 1)
			a.note(err, list, "Failures", id, 2, desc, 1)
		}
	}
	highest, err := store.MaxID(a)
	a.note(err, highest, "MaxID")
	for _, key := range keysAsked {
		id, ok := a.Owner(key)
		a.note(nil, id, "Owner", key)
		a.note(nil, ok, "Owner is there", key)
	}
}

func (a *answers) lines() {
	for _, s := range a.seekers {
		for _, n := range a.sizes {
			list, err := a.Ready(nil, s, n)
			a.note(err, list, "Ready", "all", s, n)
			list, err = a.Ready(a.queues[:1+n%len(a.queues)], s, n)
			a.note(err, list, "Ready", a.queues[:1+n%len(a.queues)], s, n)
		}
	}
	for h := range rule.Hands {
		a.note(nil, a.Next(h), "Next", h)
		for _, n := range a.sizes {
			for _, until := range []job.Millis{a.now, job.MaxMillis} {
				ids, err := a.IDs(store.Due(h, until), n)
				a.note(err, ids, "Due", h, until, n)
			}
		}
	}
	names, err := store.Holders(a)
	a.note(err, names, "Holders")
	for _, holder := range a.holders {
		ids, err := a.IDs(store.Held(holder), store.All)
		a.note(err, ids, "Held", holder)
	}
	for _, q := range a.queues {
		for _, n := range a.sizes {
			ids, err := a.IDs(store.Finished(q, int64(n)), n)
			a.note(err, ids, "Finished", q, n)
		}
		for _, g := range a.groups {
			a.note(nil, a.GroupDepth(q, g), "GroupDepth", q, g)
			for _, n := range a.sizes {
				ids, err := a.IDs(store.Members(q, g), n)
				a.note(err, ids, "Members", q, g, n)
			}
		}
		a.turns(q)
	}
}

func (a *answers) lists() {
	for _, f := range a.filters {
		for _, n := range a.sizes {
			list, err := a.List(f, n)
			a.note(err, list, "List", f, n)
		}
		n, err := a.Count(f)
		a.note(err, n, "Count", f)
	}
	for _, list := range []job.State{job.Ready, job.Leased, job.Scheduled} {
		for _, from := range []int64{-1, 0, 2, pageMax} {
			jobs, total, err := a.Slice(list, from, 5)
			a.note(err, jobs, "Slice", list, from)
			a.note(err, total, "Slice's total", list, from)
		}
		for _, id := range a.ids {
			at, ok, err := a.Place(list, id)
			a.note(err, at, "Place", list, id)
			a.note(nil, ok, "Place is there", list, id)
		}
	}
	for _, q := range a.queues {
		a.note(nil, a.Depth(q), "Depth", q)
	}
	names, err := a.Names()
	a.note(err, names, "Names")
	for _, edges := range [][]job.Millis{nil, {a.now - job.Hour, a.now - job.Minute, a.now}} {
		groups, err := a.Groups(edges)
		a.note(err, groups, "Groups", edges)
	}
	for _, n := range a.sizes {
		ids, err := a.IDs(store.Parked("needs/x"), n)
		a.note(err, ids, "Parked", n)
	}
}

func (a *answers) rows() {
	for t := range job.Tables {
		for _, n := range a.sizes {
			list, err := a.Rows(t, "", n)
			a.note(err, list, "Rows", t, n)
			for _, until := range []job.Millis{a.now, job.MaxMillis} {
				list, err = a.DueRows(t, until, n)
				a.note(err, list, "DueRows", t, until, n)
			}
		}
		for _, key := range a.keys {
			row, err := a.Row(t, key)
			a.note(err, row, "Row", t, key)
			list, err := a.Rows(t, key, 3)
			a.note(err, list, "Rows", t, key, 3)
		}
		a.note(nil, a.NextRow(t), "NextRow", t)
	}
}

// plain makes answers comparable that mean the same: no list and an empty one.
func plain(v any) any {
	switch t := v.(type) {
	case *job.Job:
		if t == nil {
			return nil
		}
		j := *t
		j.Leases, j.Ended, j.Requires = nothing(j.Leases), nothing(j.Ended), nothing(j.Requires)
		return j
	case []*job.Job:
		list := make([]any, 0, len(t))
		for _, j := range t {
			list = append(list, plain(j))
		}
		return list
	case []job.ID:
		return nothing(t)
	case []string:
		return nothing(t)
	case []store.Standing:
		return nothing(t)
	case []job.Row:
		return nothing(t)
	case []job.Failure:
		return nothing(t)
	}
	return v
}

func nothing[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// show writes an answer for people.
func show(v any) string {
	switch t := v.(type) {
	case *job.Job:
		if t == nil {
			return "no job"
		}
		return fmt.Sprintf("%+v", *t)
	case []*job.Job:
		return fmt.Sprint(plain(t))
	case []job.Row:
		var list []string
		for _, r := range t {
			list = append(list, show(r))
		}
		return fmt.Sprint(list)
	}
	if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && !r.IsNil() {
		return fmt.Sprintf("%+v", r.Elem().Interface())
	}
	return fmt.Sprintf("%+v", v)
}

// difference returns the first answer that two stores do not give alike.
func difference(a, b []answer) (x, y answer, differs bool) {
	for i := range min(len(a), len(b)) {
		if !reflect.DeepEqual(a[i].got, b[i].got) {
			return a[i], b[i], true
		}
	}
	return x, y, len(a) != len(b)
}

// everything asks about all that a store holds.
func everything(r store.Reader, now job.Millis) (questions, error) {
	m, err := newModel(r)
	if err != nil {
		return questions{}, err
	}
	q := questions{
		now: now, ids: idsOf(m.jobs), holders: sortedKeys(m.held()), seekers: m.seekers(),
		queues:  append(m.names(func(j *job.Job) string { return j.Queue }), "a queue without jobs"),
		groups:  m.names(func(j *job.Job) string { return j.Group }),
		filters: []store.Filter{{}, {Desc: true}, {Alive: now}},
		sizes:   []int{0, 1, 3, pageMax},
	}
	for st := range job.States {
		q.filters = append(q.filters, store.Filter{States: []job.State{st}})
	}
	for st := range rule.Statuses {
		q.filters = append(q.filters, store.Filter{Statuses: []rule.Status{st}})
	}
	return q, nil
}

// randomFilter selects some of the jobs that are asked about.
func (q *questions) randomFilter(rng *rand.Rand, types []string) store.Filter {
	f := store.Filter{Desc: rng.IntN(2) == 0}
	some := func() bool { return rng.IntN(3) == 0 }
	if some() {
		f.States = []job.State{job.State(rng.IntN(int(job.States))), job.State(rng.IntN(int(job.States)))}
	}
	if some() {
		f.Statuses = []rule.Status{rule.Status(rng.IntN(int(rule.Statuses))), rule.Status(rng.IntN(int(rule.Statuses)))}
	}
	if some() {
		f.Queues = []string{q.queues[rng.IntN(len(q.queues))], q.queues[rng.IntN(len(q.queues))]}
	}
	if some() {
		f.Types = []string{types[rng.IntN(len(types))]}
	}
	if some() && len(q.ids) > 0 {
		f.IDs = slices.Clone(q.ids[:1+rng.IntN(len(q.ids))])
	}
	if some() && len(q.ids) > 0 {
		f.From = q.ids[rng.IntN(len(q.ids))]
	}
	if some() {
		f.Alive = q.now
	}
	if some() {
		f.Prints = []job.Fingerprint{failedPrint(types[rng.IntN(len(types))]), failedPrint(types[0]), 0}[rng.IntN(2):]
	}
	return f
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
