package grid_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Among sessions that are equally far below their shares the older one is next
// (reference section 6), whatever their names, and also of a server that was
// started anew and learns of them again.
func TestAmongEqualSessionsTheOlderOneIsNextAlsoAfterARestart(t *testing.T) {
	for _, life := range []string{"as it is", "after a restart"} {
		t.Run(life, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				for _, name := range []string{"b", "a", "c"} {
					g.session(name)
					g.Pass(job.Second)
					g.tasks(name, name+"1")
				}
				if life != "as it is" {
					g.Restart(job.Second)
				}
				g.tasks("b", "b2") // the session changes in the first transaction that asks who is next
				m := g.engine("w", 1)
				for _, name := range []string{"b1", "b2", "a1", "c1"} {
					m.Gets(name)
					m.OK(name)
				}
			})
		})
	}
}
