package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// preempt ends runs of sessions above their share where urgent ones are below
// theirs and no slot is free for them (grid.md 9). What it ends is given back
// without blame, and its engine is told. It costs nothing without an urgent
// session.
func (r *run) preempt() error {
	if t := r.c.roster; t != nil && t.urgent == 0 {
		return nil // and nobody waits for a run to be protected no more
	}
	if at := r.c.preemptAt; !r.stirred && (at == 0 || at > r.steady) {
		r.preemptAt = at
		return nil
	}
	t, err := r.roster()
	if err != nil {
		return err
	}
	need := 0
	if t.urgent > 0 {
		need = t.rota.Short(true)
	}
	if need == 0 {
		return nil
	}
	list, runs, err := r.preemptible(t)
	if err != nil {
		return err
	}
	victims, again := rule.Victims(list, need, r.steady)
	r.preemptAt = again
	for _, i := range victims {
		if err := r.endLeases(runs[i].holder, []job.ID{runs[i].id}, job.ByPreempt); err != nil {
			return err
		}
		r.fed = true // the slot is for another one
	}
	return nil
}

// victim is a run that may be ended.
type victim struct {
	holder string
	id     job.ID
}

func (r *run) preemptible(t *roster) (list []rule.Preemptible, runs []victim, err error) {
	for _, share := range t.rota.Targets() {
		if share.Urgent || share.Running <= share.Target {
			continue
		}
		jobs, err := r.tx.List(store.Filter{Queues: []string{share.Name}, States: []job.State{job.Leased}}, share.Running)
		if err != nil {
			return nil, nil, err
		}
		expected := job.Millis(0)
		if s := r.c.paces.of[share.Name]; s != nil {
			expected = s.own.Quantile(0.5)
		}
		for _, j := range jobs {
			for _, l := range j.Leases {
				list = append(list, rule.Preemptible{
					Share: share, Since: r.steady - max(0, r.now-l.Since), Expected: expected, Preempted: j.Evictions,
				})
				runs = append(runs, victim{l.Holder, j.ID})
			}
		}
	}
	return list, runs, nil
}
