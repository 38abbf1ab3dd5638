package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// putUnderKeys puts jobs with unique keys and batches.
func (w *world) putUnderKeys() { w.putThem(true) }

// drawKey gives a job a unique key or a batch. A payload with "!" cannot be
// taken in by another job.
func (w *world) drawKey(n *engine.NewJob) {
	switch w.dice.IntN(5) {
	case 0, 1:
		u := job.Unique{Key: fmt.Sprint("u", w.dice.IntN(2)), While: job.UniqueScope(w.dice.IntN(int(job.UniqueScopes)))}
		n.Job.Extras = &job.Extras{Unique: &u}
	case 2, 3:
		n.Job.Extras = &job.Extras{Batch: &job.Batch{Key: fmt.Sprint("b", w.dice.IntN(2)), When: fmt.Sprint(w.dice.IntN(60)), Fold: "+"}}
		if w.oneIn(12) {
			n.Payload = append(n.Payload, '!')
		}
	}
}

// joined is what the expressions of a batch say: a payload shorter than When
// takes in another one.
func joined(_ context.Context, b *job.Batch, existing, newcomer []byte) ([]byte, bool, error) {
	switch {
	case !takesIn(b, string(existing)):
		return nil, false, nil
	case strings.Contains(string(newcomer), "!"):
		return nil, false, job.Errorf(job.Unprocessable, "a bad payload")
	}
	return []byte(string(existing) + b.Fold + string(newcomer)), true, nil
}

func takesIn(b *job.Batch, existing string) bool {
	most, err := strconv.Atoi(b.When)
	return err == nil && len(existing) < most
}

// partsOf are the payloads that one was made of.
func partsOf(body string) []string { return strings.Split(body, "+") }

func bad(c *call) bool {
	for _, r := range c.reqs {
		if strings.Contains(string(r.put.Payload), "!") {
			return true
		}
	}
	return false
}

func keyed(c *call) bool {
	for _, r := range c.reqs {
		if hasKey(&r.put.Job) {
			return true
		}
	}
	return false
}

// bodyOf is the payload that a job must have.
func (w *world) bodyOf(j *job.Job, name string) string {
	if body, ok := w.folded[j.Payload]; ok {
		return body
	}
	return w.bodies[name]
}

// keyAnswer judges that nothing was added: another job has the key, or took
// the newcomer in.
func (w *world) keyAnswer(r *request, a engine.Added) string {
	x := w.judge
	name := x.name(a.ID)
	if a.Job == nil || a.Job.ID != a.ID || a.Duplicate == a.Folded {
		broken("answers", "%s was told %+v", r, a)
	}
	if a.Duplicate {
		u := r.put.Job.Extras.Unique
		switch own := a.Job.Extras; {
		case r.commit > 0:
			broken("core.md 7", "%s was told that %s has its key, and is there", r, name)
		case u == nil || own == nil || own.Unique == nil || own.Unique.Key != u.Key || !a.Job.HoldsKey:
			broken("core.md 7", "%s was turned away for %s, which does not have its key: %+v", r, name, a.Job)
		case !covers(u.While, a.Job.State):
			broken("zizq.md 1.15", "%s was turned away for %s, which is %s", r, name, a.Job.State)
		case x.born[a.ID] > w.disk.safeNow():
			broken("I5", "%s was turned away for %s, which is not on disk", r, name)
		}
		x.stats.Duplicates++
		x.coverage.feature("a unique key in the way")
		return r.label + " met " + name
	}
	w.accepted(r, false)
	if r.into != a.ID {
		broken("zizq.md 1.16", "%s went into %s and was told of %s", r, x.name(r.into), name)
	}
	return r.label + " into " + name
}

// covered is the table of zizq.md 1.15.
var covered = [job.UniqueScopes]string{"scheduled ready", "scheduled ready leased", "scheduled ready leased done dead"}

// covers reports whether a scope covers a state.
func covers(scope job.UniqueScope, s job.State) bool {
	return slices.Contains(strings.Fields(covered[scope]), s.String())
}
