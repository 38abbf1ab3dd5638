package embedded

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Lines of jobs that are for some holders only are kept by holder, and only while
// there is something in them: who takes sees no others, however many there are.
// They are not among the heads: only sessions have them, which are taken from by
// name.

// own returns such a line, made on first sight.
func (x *index) own(q *queue, c rule.Class, requires []job.Requirement) *line {
	holders := c.Engines()
	for _, l := range q.own[holders[0]] {
		if l.class == c {
			return l
		}
	}
	l := &line{x: x, queue: q, class: c, requires: requires}
	if q.own == nil {
		q.own = map[string][]*line{}
	}
	for _, name := range holders {
		q.own[name] = append(q.own[name], l)
	}
	return l
}

// disown drops a line that is empty.
func (l *line) disown() {
	own := l.queue.own
	for _, name := range l.class.Engines() {
		if own[name] = slices.DeleteFunc(own[name], func(o *line) bool { return o == l }); len(own[name]) == 0 {
			delete(own, name)
		}
	}
}
