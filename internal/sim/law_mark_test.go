package sim_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/rule"
)

// markPrint pauses the fingerprint of a job there is, or resumes one.
func (w *world) markPrint() {
	for _, r := range w.judge.asked {
		if r.kind == askMark {
			w.say("    (one is on its way)") // which is which could not be told
			return
		}
	}
	var prints []job.Fingerprint
	for _, j := range w.judge.book.sorted() {
		if j.Print != 0 && !slices.Contains(prints, j.Print) {
			prints = append(prints, j.Print)
		}
	}
	var held []job.Fingerprint
	for _, row := range w.judge.book.rows {
		if m, ok := row.(*job.Mark); ok && m.Paused {
			held = append(held, m.Print)
		}
	}
	slices.SortFunc(held, func(a, b job.Fingerprint) int { return cmp.Compare(a, b) })
	paused := len(held) == 0 || len(prints) > 0 && w.oneIn(3)
	if !paused {
		prints = held
	}
	if len(prints) == 0 {
		w.say("    (nothing failed)")
		return
	}
	print := pick(w, prints)
	r := &request{kind: askMark, name: print.String(), paused: paused}
	r.text = fmt.Sprintf("pause of fingerprint %s: %t", print, paused)
	w.say("    %s", r)
	changes := w.judge.book.mark(print).Paused != paused
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			return w.refusal("mark", err)
		}
		if changes {
			w.accepted(r, false)
		}
		return "marked"
	}
	w.start(c, func() { _, err = w.e.Dead.Mark(w.ctx, print, deadset.MarkEdit{Paused: &paused}, job.Actor{}) })
}

func (b books) mark(print job.Fingerprint) job.Mark {
	if m, ok := b.rows[rowKey{job.Marks, print.String()}].(*job.Mark); ok {
		return *m
	}
	return job.Mark{Print: print}
}

// held is retry.md 3: whoever would be tried again is held if its fingerprint
// is paused.
func (s *scene) held(o *outcome, j *job.Job) {
	if j.Print != 0 && j.Park == "" && s.book.mark(j.Print).Paused {
		j.Park = "fingerprint/" + j.Print.String()
		o.note("held for its fingerprint")
	}
}

// letGo is what the end of a pause makes of a job that was held.
func (s *scene) letGo() []*outcome {
	print, is := strings.CutPrefix(s.old.Park, "fingerprint/")
	m, _ := s.book.rows[rowKey{job.Marks, print}].(*job.Mark)
	if !is || m == nil || m.Paused || m.Releasing == 0 || m.Releasing > s.now {
		return nil
	}
	o := &outcome{why: "the end of the pause of " + print, verb: rule.Patch}
	s.patched(o, s.old.Clone(), &request{command: rule.Command{Edit: func(j *job.Job) { j.Park = "" }}})
	o.state = o.want.State
	o.note("let go by a resume")
	return []*outcome{o}
}

// marked holds the row of a fingerprint against who asked for it. A pause is
// over only when nobody is held any more.
func (x *judge) marked(c *commit, ch *change) {
	before, _ := x.book.rows[rowKey{job.Marks, ch.key}].(*job.Mark)
	var old, row job.Mark
	if before != nil {
		old = *before
	}
	if m, ok := ch.row.(*job.Mark); ok {
		row = *m
	}
	for _, r := range x.asked {
		if r.kind == askMark && r.name == ch.key && r.commit == 0 && !r.lost && r.paused == row.Paused && old.Paused != row.Paused {
			if r.commit = c.number; !row.Paused && row.Releasing == 0 {
				broken("retry.md 3", "the pause of %s ended and nobody lets its jobs go", ch.key)
			}
			return
		}
	}
	if old.Paused != row.Paused {
		broken("I1", "the pause of fingerprint %s went to %t and nobody asked for it", ch.key, row.Paused)
	}
	for _, j := range x.book.jobs {
		if old.Releasing != 0 && row.Releasing == 0 && !row.Paused && j.Park == "fingerprint/"+ch.key {
			broken("retry.md 3", "the pause of %s is over and %s is held", ch.key, x.name(j.ID))
		}
	}
}

// heldByNobody looks for jobs that wait for the end of a pause that is over.
func (w *world) heldByNobody() {
	for _, j := range w.judge.book.jobs {
		print, is := strings.CutPrefix(j.Park, "fingerprint/")
		m, _ := w.judge.book.rows[rowKey{job.Marks, print}].(*job.Mark)
		if is && (m == nil || !m.Paused && m.Releasing == 0) {
			broken("I1", "%s is held for fingerprint %s, which is not paused", w.judge.name(j.ID), print)
		}
	}
}
