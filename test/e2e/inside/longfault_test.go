package inside

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// stacks counts the goroutines that are in a function.
func stacks(function string) int {
	b := make([]byte, 16<<20)
	b = b[:runtime.Stack(b, true)]
	n := 0
	for g := range strings.SplitSeq(string(b), "\n\n") {
		if strings.Contains(g, function) {
			n++
		}
	}
	return n
}

// TestADiskThatStaysBrokenLeavesNoWorkBehind keeps a disk from taking anything
// while the server tries to open its store again and again. Once it heals, no
// earlier try goes on in the background, in vain and for ever. It does not run
// beside others, whose goroutines it would see.
func TestADiskThatStaysBrokenLeavesNoWorkBehind(t *testing.T) {
	for _, c := range []struct {
		name, kind string
		fails      func(n int) bool
		leftBehind int // tries that Pebble cannot end: they wait, and do nothing
	}{
		{"no file can be made", opCreate, func(int) bool { return true }, 0},
		{"nothing can be written", opWrite, func(int) bool { return true }, 0},
		{"half of a table is written", opTorn, func(n int) bool { return n%4 == 0 }, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			const tries = 2
			faults, l := newPlan(), newLedger()
			s := start(t, options{fs: &faultFS{vfs.NewMem(), faults}})
			before := stacks("openPebble")
			leave := l.work(s, rand.New(rand.NewPCG(*seed, 3)))
			wait(t, "the load begins", l.answers.after(50))
			faults.arm(step{opSync, 1, func(int) bool { return true }}, step{c.kind, tries, c.fails})
			wait(t, "some tries to open the store fail", faults.over)
			faults.disarm(c.kind)
			s.ready()
			wait(t, "the load goes on", l.answers.after(50))
			leave()
			quiet := 0
			until(t, "nobody flushes in vain", func() (bool, string) {
				n := stacks("pebble/v2.(*DB).flush(")
				if quiet++; n > 0 {
					quiet = 0
				}
				return quiet == 30, fmt.Sprintf("%d goroutines do", n)
			})
			if n := stacks("openPebble") - before; n > 2*c.leftBehind {
				t.Errorf("%d goroutines wait for a store to open that never will", n)
			}
			l.audit(s)
		})
	}
}
