package config

import (
	"iter"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Validate checks a configuration that was not loaded. The error is Problems.
func (c Config) Validate() error {
	var ps Problems
	scratch := Default()
	for _, s := range settings {
		text := s.show(&c)
		if text == notThere || text == "" && s.def == "" {
			continue
		}
		// What cannot be read back is out of its bounds.
		if err := s.set(&scratch, []string{text}); err != nil {
			ps.add(s.name, "%s", err)
		}
	}
	if c.Retry.Curve == nil {
		ps.add("retry", "has no curve; start from Default")
	}
	for name, r := range c.policies() {
		if err := r.Validate(); err != nil {
			ps.add(name, "%s", err)
		}
	}
	for _, e := range refusals(c.Grid.Check()) {
		ps.add(e.Field, "%s", e.Text)
	}
	for _, q := range c.Queues {
		for _, e := range refusals(q.Protection.Check()) {
			ps.add(join(join(queuesPath, q.Name), e.Field), "%s", e.Text)
		}
	}
	ps = append(ps, c.contradictions()...)
	return ps.err()
}

// policies goes through all retry policies, by their names.
func (c Config) policies() iter.Seq2[string, job.Retry] {
	return func(yield func(string, job.Retry) bool) {
		more := yield(retryPath, c.Retry)
		each := func(path, name string, r *job.Retry) {
			if r != nil && more {
				more = yield(join(join(path, name), retryPath), *r)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.Types)) {
			each(typesPath, name, c.Types[name])
		}
		for door, r := range c.Doors {
			each(doorsPath, job.Door(door).String(), r)
		}
		for _, q := range c.Queues {
			each(queuesPath, q.Name, &q.Retry)
		}
	}
}
