package parttest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/store"
)

// Ann is an operator.
var Ann = job.Actor{Name: "ann", From: "::1"}

// Dies takes jobs in and lets each die of a failure of its own number.
func (r *Rig) Dies(queue string, f job.Failure, names []string, edits ...func(*engine.NewJob)) {
	r.Helper()
	for _, name := range names {
		r.Add(queue, name, edits...)
	}
	w := r.Opened(engine.StreamOptions{Queues: []string{queue}, Prefetch: 1})
	for _, name := range names {
		w.Gets(name)
		r.Settled(w.Held[name], job.Died, func(s *engine.Settle) { s.Failure = f })
	}
	w.End()
}

// Numbered are so many names that sort by their numbers.
func Numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%03d", prefix, i))
	}
	return names
}

// Boom is a failure.
var Boom = job.Failure{Type: "E", Message: "boom 7"}

// StartReplay begins a run that must be accepted.
func (r *Rig) StartReplay(ask job.Replay) job.ID {
	r.Helper()
	ask.By = Ann
	p, err := r.Part.Dead.StartReplay(r.Context(), ask, nil)
	if err != nil {
		r.Fatal(err)
	}
	return p.ID
}

// Replay reads a run of dead jobs.
func (r *Rig) Replay(id job.ID) *job.Replay {
	r.Helper()
	p, err := r.Part.Dead.Replay(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// Ends wants a run to be over, with these counts.
func (r *Rig) Ends(id job.ID, done, refused, guarded, gone int64) *job.Replay {
	r.Helper()
	r.Pass(0)
	p := r.Replay(id)
	if p.Progress != job.Finished || p.Done != done || p.Refused != refused || p.Guarded != guarded || p.Gone != gone {
		r.Fatalf("want %d done, %d refused, %d guarded, %d gone: %+v", done, refused, guarded, gone, p)
	}
	return p
}

// CountOf is how many jobs a filter chooses.
func (r *Rig) CountOf(f store.Filter) int64 {
	r.Helper()
	n, err := r.Count(r.Context(), f)
	if err != nil {
		r.Fatal(err)
	}
	return n
}

// DeadOf chooses the dead jobs of a queue.
func DeadOf(queue string) store.Filter {
	return store.Filter{Queues: []string{queue}, States: []job.State{job.Dead}}
}

// Audited wants exactly these entries in the audit log: who, what, how many.
func (r *Rig) Audited(want ...string) {
	r.Helper()
	list, err := r.Part.Audit.List(r.Context(), job.ID{}, 100)
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprintf("%s %s %d", a.By.Name, a.Action, a.Count))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		r.Fatalf("the audit log is %q, want %q", got, want)
	}
}

// Patches changes what a search finds.
func (r *Rig) Patches(s query.Search, p desk.Patch, want, refused int64) {
	r.Helper()
	if n, no, err := r.Part.Desk.DoAll(r.Context(), p.Verb(), s); err != nil || n != want || no != refused {
		r.Fatalf("patched %d, refused %d, %v; want %d and %d", n, no, err, want, refused)
	}
}
