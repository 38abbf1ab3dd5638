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

// ofExclusion is the place of an option of exclusion, which are kept together
// too: without a number of failures a session has none of them.
func ofExclusion[T any](p func(*job.Exclusion) *T) field[T] {
	of := func(q *job.Queue) job.Exclusion {
		if x := q.Grid.Exclusion; x != nil {
			return *x
		}
		return job.Exclusion{}
	}
	return field[T]{
		func(q *job.Queue) T { x := of(q); return *p(&x) },
		func(q *job.Queue, v T) { x := of(q); *p(&x) = v; q.Grid.Exclusion = &x },
	}
}

// settle drops what copies cost and when they are made where there are none, and
// so with exclusion.
func settle(q *job.Queue) {
	if x := q.Grid.Exclusion; x != nil && x.Failures == 0 {
		q.Grid.Exclusion = nil
	}
	if r := q.Grid.Redundancy; r != nil && (r.Strategies == 0 || q.NonIdempotent) {
		q.Grid.Redundancy = nil
	}
}

// homeless reports whether a session has no place for an option: it is one of
// copies or of exclusion, and there are none.
func homeless(q *job.Queue, name string) bool {
	place := func(name string) int { return slices.IndexFunc(Options, func(o Option) bool { return o.Name == name }) }
	at := place(name)
	if at > place(redundancy) && at <= place("clone_copies") {
		return q.Grid.Redundancy == nil
	}
	return at > place(exclusion) && at <= place("exclusion_share") && q.Grid.Exclusion == nil
}

func strategies() []string { return job.RedundancySet(1<<job.RedundancyStrategies - 1).Names() }

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
