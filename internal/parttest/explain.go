package parttest

import (
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// Why wants a job to be explained by exactly these obstacles.
func (r *Rig) Why(name string, want ...rule.Obstacle) query.Explanation {
	r.Helper()
	e, err := r.Explain(r.Context(), r.IDs[name])
	if err != nil {
		r.Fatal(err)
	}
	var got, words []string
	for _, reason := range e.Reasons {
		got = append(got, reason.Is.String())
	}
	for _, o := range want {
		words = append(words, o.String())
	}
	if strings.Join(got, " ") != strings.Join(words, " ") {
		r.Fatalf("%s: %v, want %v", name, got, words)
	}
	r.Lists(name, e)
	return e
}

// Lists wants a list to tell of a job what comes first in its explanation.
func (r *Rig) Lists(name string, e query.Explanation) {
	r.Helper()
	want := rule.InLine
	if e.Job.State == job.Ready && e.Job.Park == "" {
		switch is := e.Reasons[0].Is; is {
		case rule.NoWorker, rule.NoFittingWorker, rule.NoFreeWorker:
		default:
			want = is
		}
	}
	list, err := r.List(r.Context(), engine.Filter{IDs: []job.ID{r.IDs[name]}}, 1)
	if err == nil {
		err = r.Obstacles(r.Context(), list)
	}
	if err != nil || len(list) != 1 || list[0].Is != want {
		r.Fatalf("%s is listed as %v (%v), and it is %v", name, list, err, want)
	}
}
