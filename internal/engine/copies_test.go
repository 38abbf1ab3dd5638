package engine_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

func copies(n uint8) func(*engine.NewJob) { return func(j *engine.NewJob) { j.Job.Copies = n } }

func TestEveryWantedCopyGoesToAHolderOfItsOwn(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		x, y, z := r.Anonymous(9), r.Anonymous(9), r.Anonymous(9)
		r.Add("q", "a", copies(2))
		x.Gets("a")
		y.Gets("a")
		z.Gets()
		r.Operate("a", rule.Command{Verb: rule.Offer})
		z.Gets("a")
		if j := r.Job("a"); j.Reschedules != 1 || len(j.Leases) != 3 {
			r.Errorf("%+v", j)
		}
	})
}

func TestTheFirstOKWinsAndTheOthersAreTold(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		x, y := r.Anonymous(1), r.Anonymous(1)
		r.Add("q", "a", copies(2))
		x.Gets("a")
		y.Gets("a")
		r.Refused(job.TokenNeeded, engine.Settle{ID: r.IDs["a"]})
		x.OK("a")
		for _, o := range []job.Outcome{job.OK, job.Retried, job.Died, job.Released} {
			r.Refused(job.Superseded, engine.Settle{ID: r.IDs["a"], Token: y.Held["a"].Lease.Token, Outcome: o})
		}
		if j := r.Expect("a", job.Done); j.Attempts != 0 || len(j.Leases) != 0 {
			r.Errorf("%+v", j)
		}
		r.AddAll("q", "b", "c")
		x.Gets("b")
		y.Gets("c") // the room of the superseded copy came back
	})
}

func TestTwoOKsInOneCallHaveOneWinner(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		x, y := r.Anonymous(1), r.Anonymous(1)
		r.Add("q", "a", copies(2))
		x.Gets("a")
		y.Gets("a")
		verdicts, err := r.Settle(r.Context(), []engine.Settle{
			{ID: r.IDs["a"], Token: x.Held["a"].Lease.Token}, {ID: r.IDs["a"], Token: y.Held["a"].Lease.Token},
		})
		if err != nil || verdicts[0].Err != nil || job.KindOf(verdicts[1].Err) != job.Superseded {
			r.Errorf("%+v, %v", verdicts, err)
		}
	})
}

func TestTheLastLiveCopyDecides(t *testing.T) { // core.md section 5, attempts
	scenario(t, func(r *rig) {
		x, y, z := r.Anonymous(1), r.Anonymous(1), r.Anonymous(1)
		r.Add("q", "a", copies(2), limited(0, nil))
		x.Gets("a")
		y.Gets("a")
		if v := x.Fails("a"); v.State != job.Leased || v.Job.Attempts != 1 {
			r.Errorf("%+v", v)
		}
		z.Gets() // not put in line
		if v := y.Fails("a"); v.State != job.Dead || v.Job.Attempts != 2 {
			r.Errorf("%+v", v)
		}
	})
}

func TestALostCopyIsReplaced(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y := r.Anonymous(1), r.Anonymous(1)
		r.Add("q", "a", copies(2))
		x.Gets("a")
		y.Gets("a")
		x.End()
		z := r.Anonymous(1)
		z.Gets("a")
		z.OK("a")
		r.Expect("a", job.Done)
	})
}

// TestTheLastCopyMakesWayForItsGroup: a group stands in line with one member.
// When the last wanted copy of that is out, whoever has one gets the next.
func TestTheLastCopyMakesWayForItsGroup(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Add("q", "a", grouped("g"), func(n *engine.NewJob) { n.Job.Copies = 2 })
		r.Add("q", "b", grouped("g"))
		w := r.Named("w", 2)
		w.Gets("a")
		r.Leased(engine.LeaseOptions{Max: 1, For: job.Minute}, "a")
		w.Gets("b")
	})
}
