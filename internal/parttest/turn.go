package parttest

import (
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
)

// FailFirst and ToTheEnd are the settings of an inbox in its two modes.
func FailFirst(q *job.Queue) {
	q.Order, q.Turns, q.OnDead = job.OrderStrict, true, job.DeadBlock
	q.Protection.Fair = &job.FairShare{}
	q.Retry.Curve = Wait(10 * job.Second)
}

// ToTheEnd is described at FailFirst.
func ToTheEnd(q *job.Queue) {
	FailFirst(q)
	q.Order, q.Concurrency = job.OrderStart, 1
}

// BothModes are these two by name.
var BothModes = map[string]func(*job.Queue){"fail_first": FailFirst, "all": ToTheEnd}

// Member puts a message whose group is the first letter of its name.
func (r *Rig) Member(name string, edits ...func(*engine.NewJob)) {
	r.Helper()
	r.Add("in", name, append([]func(*engine.NewJob){Grouped(name[:1])}, edits...)...)
}

// Members puts several.
func (r *Rig) Members(names ...string) {
	r.Helper()
	for _, name := range names {
		r.Member(name)
	}
}

// TurnsNow takes what is there now.
func (r *Rig) TurnsNow(o turn.Options) []turn.Turn {
	r.Helper()
	o.Queue, o.Once = "in", true
	list, err := r.Part.Turns.Lease(r.Context(), o)
	if err != nil {
		r.Fatal(err)
	}
	return list
}

// Took wants these turns, written "a: a1 a2; b: b1", and returns what was given.
func (r *Rig) Took(o turn.Options, want string) map[string]engine.Delivery {
	r.Helper()
	held, got := map[string]engine.Delivery{}, []string(nil)
	for _, turn := range r.TurnsNow(o) {
		text := turn.Group + ":"
		for _, d := range turn.Deliveries {
			name := r.Names[d.Job.ID]
			text += " " + name
			held[name] = d
			if string(d.Payload) != name || d.Lease.Turn != turn.Number || turn.Number == 0 || d.Job.LeaseOf(d.Lease.Token) < 0 {
				r.Errorf("%s came as %+v in turn %d", name, d.Lease, turn.Number)
			}
		}
		got = append(got, text)
	}
	if list := strings.Join(got, "; "); list != want {
		r.Fatalf("took %q, want %q", list, want)
	}
	return held
}

// Whole takes all turns with all their members.
var Whole = turn.Options{Members: -1, Turns: 9, Local: true}
