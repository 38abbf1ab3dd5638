package grid_test

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// A16: one host with four slots, each an engine of its own, and a straggler.
func TestA16OnASingleHostOnlyTheRuleOfEnginesCopiesAStraggler(t *testing.T) {
	for _, any := range []bool{false, true} { // copies_on: other_host, other_engine
		grid(t, func(g *gridRig) {
			g.session("s", redundant(), func(q *job.Queue) { q.Grid.AnyHost, q.Grid.Redundancy.MinSamples = any, 3 })
			var up []*machine
			for i := range 4 {
				up = append(up, g.engine(fmt.Sprint("w", i), 1, onHost("h")))
				name := fmt.Sprint("t", i)
				g.tasks("s", name)
				up[i].Gets(name)
				up[i].starts(name)
			}
			g.beating(10*job.Second, up...)
			for i := range 3 {
				up[i].OK(fmt.Sprint("t", i))
			}
			slow, idle := up[3], up[0]
			g.beating(10*job.Second, up...)
			idle.Gets()
			g.counters("t3", counts{"live": 1})
			g.beating(1, up...)
			if any {
				idle.Gets("t3")
				idle.OK("t3")
				slow.Gets("t3: supersede")
				g.Expect("t3", job.Done)
				return
			}
			g.beating(20*job.Second, up...)
			for _, m := range up[:3] {
				m.Gets()
			}
			g.counters("t3", counts{"live": 1})
			g.Why("t3", rule.CopyHost)
			if got := g.obstacle("t3").Is.String(); got != "no_eligible_host" {
				g.Errorf("explain says %s", got)
			}
			if s := g.state("s"); s.Redundant.Suppressed["no_eligible_host"] != 1 {
				g.Errorf("%+v", s.Redundant)
			}
			other := g.engine("far", 1, onHost("g"))
			other.Gets("t3")
			g.counters("t3", counts{"live": 2, "reschedules": 1})
		})
	}
}
