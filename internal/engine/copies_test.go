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
		x, y, z := r.anonymous(9), r.anonymous(9), r.anonymous(9)
		r.put("q", "a", copies(2))
		x.gets("a")
		y.gets("a")
		z.gets()
		r.operate("a", rule.Command{Verb: rule.Offer})
		z.gets("a")
		if j := r.job("a"); j.Reschedules != 1 || len(j.Leases) != 3 {
			r.Errorf("%+v", j)
		}
	})
}

func TestTheFirstOKWinsAndTheOthersAreTold(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		x, y := r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2))
		x.gets("a")
		y.gets("a")
		r.refused(job.TokenNeeded, engine.Settle{ID: r.ids["a"]})
		x.ok("a")
		for _, o := range []job.Outcome{job.OK, job.Retried, job.Died, job.Released} {
			r.refused(job.Superseded, engine.Settle{ID: r.ids["a"], Token: y.held["a"].Lease.Token, Outcome: o})
		}
		if j := r.expect("a", job.Done); j.Attempts != 0 || len(j.Leases) != 0 {
			r.Errorf("%+v", j)
		}
		r.puts("q", "b", "c")
		x.gets("b")
		y.gets("c") // the room of the superseded copy came back
	})
}

func TestTwoOKsInOneCallHaveOneWinner(t *testing.T) { // I3
	scenario(t, func(r *rig) {
		x, y := r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2))
		x.gets("a")
		y.gets("a")
		verdicts, err := r.Settle(r.Context(), []engine.Settle{
			{ID: r.ids["a"], Token: x.held["a"].Lease.Token}, {ID: r.ids["a"], Token: y.held["a"].Lease.Token},
		})
		if err != nil || verdicts[0].Err != nil || job.KindOf(verdicts[1].Err) != job.Superseded {
			r.Errorf("%+v, %v", verdicts, err)
		}
	})
}

func TestTheLastLiveCopyDecides(t *testing.T) { // core.md section 5, attempts
	scenario(t, func(r *rig) {
		x, y, z := r.anonymous(1), r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2), limited(0, nil))
		x.gets("a")
		y.gets("a")
		if v := x.fail("a"); v.State != job.Leased || v.Job.Attempts != 1 {
			r.Errorf("%+v", v)
		}
		z.gets() // not put in line
		if v := y.fail("a"); v.State != job.Dead || v.Job.Attempts != 2 {
			r.Errorf("%+v", v)
		}
	})
}

func TestALostCopyIsReplaced(t *testing.T) {
	scenario(t, func(r *rig) {
		x, y := r.anonymous(1), r.anonymous(1)
		r.put("q", "a", copies(2))
		x.gets("a")
		y.gets("a")
		x.close()
		z := r.anonymous(1)
		z.gets("a")
		z.ok("a")
		r.expect("a", job.Done)
	})
}

// TestTheLastCopyMakesWayForItsGroup: a group stands in line with one member.
// When the last wanted copy of that is out, whoever has one gets the next.
func TestTheLastCopyMakesWayForItsGroup(t *testing.T) {
	scenario(t, func(r *rig) {
		r.put("q", "a", grouped("g"), func(n *engine.NewJob) { n.Job.Copies = 2 })
		r.put("q", "b", grouped("g"))
		w := r.named("w", 2)
		w.gets("a")
		r.lease(engine.LeaseOptions{Max: 1, For: job.Minute}, "a")
		w.gets("b")
	})
}
