package engine_test

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
				up[i].gets(name)
				up[i].starts(name)
			}
			g.beating(10*job.Second, up...)
			for i := range 3 {
				up[i].ok(fmt.Sprint("t", i))
			}
			slow, idle := up[3], up[0]
			g.beating(10*job.Second, up...)
			idle.gets()
			g.counters("t3", counts{"live": 1})
			g.beating(1, up...)
			if any {
				idle.gets("t3")
				idle.ok("t3")
				slow.gets("t3: supersede")
				g.expect("t3", job.Done)
				return
			}
			g.beating(20*job.Second, up...)
			for _, m := range up[:3] {
				m.gets()
			}
			g.counters("t3", counts{"live": 1})
			g.why("t3", rule.CopyHost)
			if got := g.obstacle("t3").Is.String(); got != "no_eligible_host" {
				g.Errorf("explain says %s", got)
			}
			if s := g.state("s"); s.Redundant.Suppressed["no_eligible_host"] != 1 {
				g.Errorf("%+v", s.Redundant)
			}
			other := g.engine("far", 1, onHost("g"))
			other.gets("t3")
			g.counters("t3", counts{"live": 2, "reschedules": 1})
		})
	}
}
