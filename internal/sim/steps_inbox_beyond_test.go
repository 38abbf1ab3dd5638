package sim_test

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
)

// What an operator does to messages that are not the heads of their groups, to all of
// a group and to all of an inbox (inbox.md, decision 10).

// beyondHeads does one of them, if there is an inbox. Whoever else is there keeps its
// place.
func (w *world) beyondHeads() bool {
	queue := w.inbox()
	if queue == "" || !w.sure() {
		return false
	}
	before := w.standingIn(queue)
	group := pick(w, groupNames)
	var meant []job.ID
	switch w.dice.IntN(5) {
	case 0:
		meant = w.actOnMany("inbox "+queue, queue, func(*job.Job) bool { return true })
	case 1:
		meant = w.actOnMany("group "+queue+"/"+group, queue, func(j *job.Job) bool { return j.Group == group })
	default:
		var list []*job.Job
		for _, j := range w.judge.book.sorted() {
			if j.Queue == queue && j.Group != "" && w.judge.headOf(j) != j.ID && !w.hidden(j) {
				list = append(list, j)
			}
		}
		if len(list) == 0 {
			w.putMessages()
			return true
		}
		j := pick(w, list)
		meant = []job.ID{j.ID}
		w.actOnOne(j)
		w.judge.coverage.feature("an act on a message behind the head")
	}
	w.settle()
	w.stand(queue, before, meant)
	return true
}

// hidden reports whether nobody sees a job any more: it is past its retention, and
// purged when the clock is trusted again (core.md 8).
func (w *world) hidden(j *job.Job) bool {
	return j.State.Terminal() && j.PurgeAt > 0 && j.PurgeAt <= w.now()
}

// actOnOne skips a message, calls it up, edits or deletes it.
func (w *world) actOnOne(j *job.Job) {
	name := w.judge.name(j.ID)
	switch w.dice.IntN(5) {
	case 0:
		r := w.skipOf(j)
		w.operated(r, func() (engine.Verdict, error) { return w.e.Desk.Do(w.ctx, job.Actor{}, desk.Skip, j.ID) })
	case 1:
		r := &request{kind: askOperate, id: j.ID, command: rule.Command{Verb: rule.Revive}, text: "retry now of " + name}
		w.operated(r, func() (engine.Verdict, error) { return w.e.Desk.Do(w.ctx, job.Actor{}, desk.RetryNow, j.ID) })
	case 2:
		w.remove(j)
	default:
		w.editOne(j)
	}
}

func (w *world) skipOf(j *job.Job) *request {
	r := &request{kind: askOperate, id: j.ID, skips: true, text: "skip " + w.judge.name(j.ID)}
	r.command = rule.Command{Verb: rule.Cancel, Reason: job.Killed, Failure: job.Failure{Type: "Skipped", Message: "skipped by an operator"}}
	if j.State == job.Dead {
		r.command.Failure, r.command.Reason = job.Failure{}, j.Reason
	}
	return r
}

// editOne gives a message another payload, other dates, or both. A dead one goes back
// in line with its new payload.
func (w *world) editOne(j *job.Job) {
	w.names++
	r := &request{kind: askOperate, id: j.ID}
	body := fmt.Sprintf("%s|edit %d", w.judge.name(j.ID), w.names)
	if j.State == job.Dead && keyOf(j) == "" {
		r.body, r.command = body, rule.Command{Verb: rule.Revive, Allow: j.BlocksGroup}
		r.text = "payload " + body + " of " + w.judge.name(j.ID) + ", which is dead"
		w.operated(r, func() (engine.Verdict, error) {
			return w.e.Dead.Revive(w.ctx, j.ID, deadset.Revival{Payload: []byte(body), Allow: j.BlocksGroup}, job.Actor{})
		})
		return
	}
	edit, text := w.dates()
	p := desk.Patch{Edit: func(j *job.Job, _ job.Millis) { edit(j) }}
	if keyOf(j) == "" && !w.oneIn(3) {
		r.body, p.Payload, text = body, []byte(body), text+", payload "+body
	}
	r.command, r.text = rule.Command{Verb: rule.Patch, Edit: edit}, text+" of "+w.judge.name(j.ID)
	w.operated(r, func() (engine.Verdict, error) { return w.e.Desk.Do(w.ctx, job.Actor{}, p.Verb(), j.ID) })
}

// dates draws when a message is due, or expires. What waits for a budget stands
// elsewhere then.
func (w *world) dates() (edit func(*job.Job), text string) {
	at, due := w.now()+w.between(-2*job.Second, 9*job.Second), w.oneIn(2)
	return func(j *job.Job) {
		if waitsFor(j) != "" {
			j.Park = ""
		}
		if due {
			j.ReadyAt = at
		} else {
			j.ExpiresAt = at
		}
	}, fmt.Sprintf("date %s, when due %t", stamp(at), due)
}

// actOnMany does to all that are chosen what it would to each. The heads of all groups
// can be skipped so, too.
func (w *world) actOnMany(what, queue string, chosen func(*job.Job) bool) (meant []job.ID) {
	s := query.Search{Filter: engine.Filter{Queues: []string{queue}}}
	paused := func(j *job.Job) bool { return j.State.Open() && j.Park != "" }
	var call func() (int64, int64, error)
	var drafts func(*job.Job) *request
	fits := func(*job.Job) bool { return true }
	operates := func(c rule.Command) func(*job.Job) *request {
		return func(j *job.Job) *request { return &request{kind: askOperate, id: j.ID, command: c} }
	}
	switch act := w.dice.IntN(7); act {
	case 0, 1:
		what, drafts = "skip of "+what, w.skipOf
		fits = func(j *job.Job) bool { return j.State.Open() || j.BlocksGroup }
		if act == 1 {
			what += ", the heads"
			s.Filter.IDs = w.headsOf(queue)
			all := chosen
			chosen = func(j *job.Job) bool { return all(j) && slices.Contains(s.Filter.IDs, j.ID) }
		}
		call = func() (int64, int64, error) { return w.e.Desk.DoAll(w.ctx, desk.Skip, s) }
	case 2:
		what, drafts = "retry now of "+what, operates(rule.Command{Verb: rule.Revive})
		fits = func(j *job.Job) bool { return (j.State == job.Scheduled || j.State == job.Dead) && !paused(j) }
		call = func() (int64, int64, error) { return w.e.Desk.DoAll(w.ctx, desk.RetryNow, s) }
	case 3:
		what = "pause of " + what
		drafts = operates(rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "pause" }})
		fits = func(j *job.Job) bool { return j.State.Open() && !paused(j) }
		call = func() (int64, int64, error) { return w.e.Desk.DoAll(w.ctx, desk.Pause, s) }
	case 4:
		what, drafts = "resume of "+what, operates(rule.Command{Verb: rule.Patch, Edit: w.resumes})
		fits = func(j *job.Job) bool { return j.State.Open() && j.Park == "pause" }
		call = func() (int64, int64, error) { return w.e.Desk.DoAll(w.ctx, desk.Resume, s) }
	case 5:
		edit, text := w.dates()
		what, drafts = text+" of "+what, operates(rule.Command{Verb: rule.Patch, Edit: edit})
		fits = func(j *job.Job) bool { return j.State.Open() }
		p := desk.Patch{Edit: func(j *job.Job, _ job.Millis) { edit(j) }}
		call = func() (int64, int64, error) { return w.e.Desk.DoAll(w.ctx, p.Verb(), s) }
	default:
		what, drafts = "delete of "+what, func(j *job.Job) *request { return &request{kind: askDelete, id: j.ID} }
		call = func() (int64, int64, error) { n, _, err := w.e.Desk.DoAll(w.ctx, desk.Delete, s); return n, 0, err }
	}
	s.Where = func(j *job.Job) bool { return chosen(j) && fits(j) && keyOf(j) == "" }
	var reqs []*request
	for _, j := range w.judge.book.sorted() {
		if j.Queue == queue && s.Where(j) {
			r := drafts(j)
			r.text = what + ", such as " + w.judge.name(j.ID)
			w.foretell(r, true)
			reqs, meant = append(reqs, r), append(meant, j.ID)
		}
	}
	w.say("    %s, %d messages", what, len(reqs))
	w.startMany(what, reqs, call)
	return meant
}

// resumes brings a message back that was paused.
func (w *world) resumes(j *job.Job) {
	if j.Park != "pause" {
		return
	}
	if j.Park = ""; w.judge.book.mark(j.Print).Paused {
		j.Park = "fingerprint/" + j.Print.String()
	}
}

// headsOf is the first message of each group, as the engine tells.
func (w *world) headsOf(queue string) (ids []job.ID) {
	list, err := w.e.Turns.Groups(w.ctx, queue, nil, "", 99)
	if err != nil {
		broken("answers", "the groups of %s: %v", queue, err)
	}
	for _, g := range list {
		ids = append(ids, g.Head.ID)
	}
	return append(ids, job.ID{}) // none is not all
}
