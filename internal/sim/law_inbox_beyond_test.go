package sim_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// The laws of acts on messages of an inbox (inbox.md, decisions 1 and 10): who is meant
// is changed, nobody else is, all keep their order, and what is told counts each once.

// standingIn is the messages of each group of an inbox, in their order.
func (w *world) standingIn(queue string) map[string][]*job.Job {
	groups := map[string][]*job.Job{}
	for _, j := range w.judge.book.sorted() {
		if j.Queue == queue && member(j, j) {
			groups[j.Group] = append(groups[j.Group], j)
		}
	}
	for _, list := range groups {
		slices.SortFunc(list, func(a, b *job.Job) int {
			if w.judge.ahead(a, b) {
				return -1
			}
			return 1
		})
	}
	return groups
}

// stand holds the groups of an inbox after an act against those before it: all that
// are there yet have their order, and who was not meant is as before.
func (w *world) stand(queue string, before map[string][]*job.Job, meant []job.ID) {
	const law = "inbox.md 1 and 10"
	after := w.standingIn(queue)
	for group, list := range before {
		now := after[group]
		at := -1
		for _, j := range list {
			i := slices.IndexFunc(now, func(other *job.Job) bool { return other.ID == j.ID })
			is, touched := w.judge.book.jobs[j.ID], slices.Contains(meant, j.ID)
			switch {
			case i >= 0 && i < at:
				broken(law, "%s stands before one of group %s/%s that it stood behind", w.judge.name(j.ID), queue, group)
			case i < 0 && !touched:
				broken(law, "%s left group %s/%s, and nobody meant it", w.judge.name(j.ID), queue, group)
			case !touched && !sameMessage(j, is):
				broken(law, "%s of group %s/%s was not meant, and went from %+v to %+v", w.judge.name(j.ID), queue, group, *j, *is)
			}
			at = max(at, i)
		}
	}
	w.members(queue)
}

// sameMessage reports whether a message is as it was, whoever may have it now.
func sameMessage(a, b *job.Job) bool {
	for _, j := range []*job.Job{a, b} {
		if strings.HasPrefix(j.Park, "budget/") { // what others have used or given back
			return true
		}
	}
	return a.Payload == b.Payload && a.ReadyAt == b.ReadyAt && a.ExpiresAt == b.ExpiresAt && a.Park == b.Park && a.Attempts == b.Attempts &&
		a.Failures == b.Failures && a.Replays == b.Replays && sortOf(a) == sortOf(b)
}

// members compares what is told of the messages of each group, in their order, with
// the books.
func (w *world) members(queue string) {
	if !w.sure() || w.doomed > 0 {
		return
	}
	for group, want := range w.standingIn(queue) {
		list, err := w.e.Turns.Members(w.ctx, queue, group, 99)
		if err != nil || !slices.EqualFunc(list, want, func(a, b *job.Job) bool { return a.ID == b.ID }) {
			broken("inbox.md, groups", "group %s/%s is told to have %d messages in another order than its %d (%v)", queue, group, len(list), len(want), err)
		}
	}
}

// startMany sends a call over many messages, each of which has a request, and judges
// what it is told: each was changed, or is refused as the call for it alone would be.
func (w *world) startMany(what string, reqs []*request, do func() (int64, int64, error)) {
	var changed, refusals int64
	var err error
	c := &call{reqs: reqs}
	c.finish = func() string {
		if err != nil {
			return w.refusal(what, err)
		}
		blurred := w.judge.blurred
		var did, no int64
		for _, r := range reqs {
			blurred = blurred || r.doubted
			switch {
			case r.told == refused && r.commit > 0 && !r.doubted:
				broken("inbox.md 10", "%s took effect, and must be refused", r)
			case r.told == refused:
				no++
			case r.commit == 0:
				broken("inbox.md 10", "%s was left alone", r)
			default:
				did++
				w.accepted(r, false)
			}
		}
		if (did != changed || no != refusals) && !blurred {
			broken("inbox.md 10", "%s: %d changed and %d were refused, and told is %d and %d", what, did, no, changed, refusals)
		}
		if changed > 1 {
			w.judge.coverage.feature("an act on many messages")
		}
		if refusals > 0 {
			w.judge.coverage.feature("an act refused for some messages")
		}
		return fmt.Sprintf("%d changed, %d refused", changed, refusals)
	}
	w.start(c, func() { changed, refusals, err = do() })
}

// edits makes of a message what an edit says of its payload: it is another one from
// then on, and whoever runs it has the old one.
func (s *scene) edits(o *outcome, j *job.Job, r *request) bool {
	if r.body == "" {
		return true
	}
	if s.old.State == job.Leased {
		return false
	}
	j.Payload, j.PayloadSize, o.body = job.ID{}, uint32(len(r.body)), r.body
	if s.new != nil && s.new.Payload != s.old.Payload && !s.new.Payload.IsZero() {
		j.Payload = s.new.Payload
	}
	o.note("a payload edited")
	return true
}
