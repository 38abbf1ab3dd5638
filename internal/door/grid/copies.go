package grid

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
)

// The options of copies of tasks that take long are kept together, and only
// where a session has a strategy: without one it has none of them.

// copiesOf are those of a session, or what they are where it has none.
func copiesOf(q *job.Queue) *job.Redundancy {
	if r := q.Grid.Redundancy; r != nil {
		return r
	}
	r := job.DefaultRedundancy()
	r.Strategies = 0
	return &r
}

// changeCopies never changes what queues share.
func changeCopies(q *job.Queue, change func(*job.Redundancy)) {
	r := *copiesOf(q)
	change(&r)
	q.Grid.Redundancy = &r
}

// ofCopies is the place of one of them.
func ofCopies[T any](p func(*job.Redundancy) *T) field[T] {
	return field[T]{
		func(q *job.Queue) T { return *p(copiesOf(q)) },
		func(q *job.Queue, v T) { changeCopies(q, func(r *job.Redundancy) { *p(r) = v }) },
	}
}

// settle drops what copies cost and when they are made where there are none.
func settle(q *job.Queue) {
	if r := q.Grid.Redundancy; r != nil && (r.Strategies == 0 || q.NonIdempotent) {
		q.Grid.Redundancy = nil
	}
}

// aboutCopies reports whether an option is kept with the copies.
func aboutCopies(name string) bool {
	first := slices.IndexFunc(Options, func(o Option) bool { return o.Name == redundancy })
	last := slices.IndexFunc(Options, func(o Option) bool { return o.Name == "clone_copies" })
	at := slices.IndexFunc(Options, func(o Option) bool { return o.Name == name })
	return at > first && at <= last
}

func strategies() []string {
	return job.RedundancySet(1<<job.RedundancyStrategies - 1).Names()
}

func readStrategies(v jsontext.Value) (set job.RedundancySet, err error) {
	var names []string
	if v.Kind() != '[' || json.Unmarshal(v, &names) != nil {
		return 0, errors.New("must be a list of " + strings.Join(strategies(), ", "))
	}
	if len(names) > 0 {
		set, err = job.ParseRedundancy(names)
	}
	return set, err
}

func showStrategies(set job.RedundancySet) any {
	if set == 0 {
		return []string{}
	}
	return set.Names()
}
