package model

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// explain asks why a task does not run, or what keeps a copy of it back.
func (w *gridWorld) explain(t *rapid.T) {
	k := w.task(t)
	got, err := w.Explain(w.Context(), k.id)
	if k.gone {
		w.refused("explain", err, job.NotFound)
		return
	}
	w.must(err)
	var told []rule.Obstacle
	for _, r := range got.Reasons {
		told = append(told, r.Is)
		if until := r.Until; r.Is == rule.NotDue && until != k.due {
			w.Fatalf("%s is due at %s, as explained at %s", w.call(k), k.due, until)
		}
	}
	if want := w.reasons(k); !slices.Equal(told, want) {
		w.Fatalf("%s does not run because of %v, want %v", w.call(k), told, want)
	}
}

// serves reports whether an engine has no stream for other sessions only.
func (w *gridWorld) serves(name, session string) bool {
	c := w.conns[name]
	return c == nil || len(c.serves) == 0 || slices.Contains(c.serves, session)
}

// reasons are what keeps a task from running; only where nothing else does it is
// the engines that are there.
func (w *gridWorld) reasons(k *task) (list []rule.Obstacle) {
	g, set := w.grid, k.session.set.Grid
	if k.state == job.Leased && k.inLine() {
		for name, m := range g.machines {
			if w.serves(name, k.session.name) && m.able() && k.fits(m) && !k.session.excludes(m) { // be it busy now
				return nil
			}
		}
		return []rule.Obstacle{rule.CopyHost}
	}
	if k.state != job.Ready && k.state != job.Scheduled {
		return nil
	}
	if k.state == job.Scheduled {
		list = append(list, rule.NotDue)
	}
	if k.aside != nil {
		list = append(list, rule.Parked)
	}
	if set.Weight == 0 || set.Suspended {
		list = append(list, rule.Paused)
	}
	if c := g.claim(k.session); k.state == job.Ready && set.MaxEngines > 0 && c.running >= set.MaxEngines {
		list = append(list, rule.QueueLimit)
	}
	if len(list) > 0 {
		return list
	}
	engines, excluded, fitting, free := 0, 0, 0, 0
	for name, m := range g.machines {
		c := w.conns[name]
		if m.lost || !w.serves(name, k.session.name) {
			continue
		}
		if engines++; !k.fits(m) {
			continue
		}
		if k.session.excludes(m) {
			excluded++
			continue
		}
		if fitting++; (c != nil || m.polls) && g.room(m) > 0 {
			free++
		}
	}
	switch {
	case engines == 0:
		return []rule.Obstacle{rule.NoWorker}
	case fitting == 0 && excluded > 0:
		return []rule.Obstacle{rule.EnginesExcluded}
	case fitting == 0:
		return []rule.Obstacle{rule.NoFittingWorker}
	case free == 0:
		return []rule.Obstacle{rule.NoFreeWorker}
	}
	return []rule.Obstacle{rule.InLine}
}
