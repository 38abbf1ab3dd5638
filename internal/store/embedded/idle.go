package embedded

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// idleMax is how many queues, types and lines come, and lines become empty, before
// the index looks for those that nothing has; as many more as there are in use.
const idleMax = 256

// sweep gives back what has not been needed since, if enough came and went. It
// comes between transactions: in one of them a job that changes is nowhere for a
// moment. settings are the rows of queues.
func (x *index) sweep(settings map[string]job.Row) {
	if x.idle > idleMax+x.inUse {
		x.giveBack(settings)
	}
}

// giveBack forgets lines, queues and types that nothing has, and gives their
// numbers to others, so that names which are used once do not stay for ever.
func (x *index) giveBack(settings map[string]job.Row) {
	x.clean() // then no empty line is among the heads
	for name, q := range x.queues {
		q.lines = slices.DeleteFunc(q.lines, x.dropLine)
		if len(q.lines) == 0 {
			q.lines, q.class = nil, nil
		}
		if len(q.gates) == 0 && !some(q.depth.States) && settings[name] == nil {
			delete(x.queues, name)
			x.order[q.num] = nil
		}
	}
	x.latest = nil
	for n, states := range x.types {
		if !some(*states) {
			delete(x.types, n)
		}
	}
	x.names.keep(func(n uint32) bool { return x.types[n] != nil || int(n) < len(x.order) && x.order[n] != nil })
	x.idle, x.inUse = 0, len(x.queues)+len(x.types)+len(x.lines)-len(x.vacant)
}

// dropLine forgets a line, unless it has jobs or members of groups are noted with it.
func (x *index) dropLine(l *line) bool {
	if l.jobs.len() > 0 || l.wanting > 0 {
		return false
	}
	delete(l.queue.class, l.class)
	x.lines[l.num] = nil
	x.vacant = append(x.vacant, l.num)
	return true
}

func some(counts [job.States]int64) bool { return counts != [job.States]int64{} }
