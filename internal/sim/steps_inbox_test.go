package sim_test

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// operateInbox is what an operator does to groups and their heads.
func (w *world) operateInbox() {
	queue := w.inbox()
	if queue == "" {
		w.operate()
		return
	}
	if w.oneIn(2) && w.beyondHeads() {
		return
	}
	group := pick(w, groupNames)
	var head *job.Job
	var all []*job.Job
	for _, j := range w.judge.book.sorted() {
		if j.Queue == queue && member(j, j) && j.Group == group && !w.hidden(j) {
			if all = append(all, j); head == nil || w.judge.ahead(j, head) {
				head = j
			}
		}
	}
	paused := w.judge.book.gate(queue, group).Paused
	what := w.dice.IntN(8)
	if paused && what > 1 && w.oneIn(2) {
		what = 0
	}
	switch {
	case what < 2 || head == nil:
		w.pauseGroup(queue, group, !paused)
	case what < 6 && w.sure():
		w.operateHead(head, what < 4)
	default:
		w.pauseOne(pick(w, all))
	}
}

func (w *world) pauseGroup(queue, group string, paused bool) {
	r := &request{kind: askPauseGroup, name: job.GateKey(queue, group), paused: paused, text: fmt.Sprintf("pause of group %s/%s: %t", queue, group, paused)}
	w.say("    %s", r)
	sure := w.sure()
	var err error
	c := &call{reqs: []*request{r}}
	c.finish = func() string {
		if err != nil {
			return w.refusal("pause group", err)
		}
		if r.commit > 0 || sure {
			w.accepted(r, false)
		}
		w.judge.coverage.feature("a group paused or resumed")
		return "done"
	}
	w.start(c, func() {
		if paused {
			err = w.e.Desk.PauseGroup(w.ctx, job.Actor{}, queue, group, true)
		} else {
			err = w.e.Desk.PauseGroup(w.ctx, job.Actor{}, queue, group, false)
		}
	})
}

// operateHead skips the head of a group, or calls it up.
func (w *world) operateHead(head *job.Job, skip bool) {
	r := &request{kind: askOperate, id: head.ID, command: rule.Command{Verb: rule.Revive}}
	r.text = "retry now of the head " + w.judge.name(head.ID)
	if skip {
		r = w.skipOf(head)
		r.text = "skip the head " + w.judge.name(head.ID)
	}
	w.operated(r, func() (engine.Verdict, error) {
		if skip {
			return w.e.Desk.DoHead(w.ctx, job.Actor{}, desk.Skip, head.Queue, head.Group)
		}
		return w.e.Desk.DoHead(w.ctx, job.Actor{}, desk.RetryNow, head.Queue, head.Group)
	})
}

// pauseOne pauses a message, or lets it go on.
func (w *world) pauseOne(j *job.Job) {
	r := &request{kind: askOperate, id: j.ID, text: "pause " + w.judge.name(j.ID)}
	act := desk.Pause
	r.command = rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Park = "pause" }}
	if j.Park == "pause" {
		r.text, act = "resume "+w.judge.name(j.ID), desk.Resume
		r.command.Edit = w.resumes
	}
	w.operated(r, func() (engine.Verdict, error) { return w.e.Desk.Do(w.ctx, job.Actor{}, act, j.ID) })
}

// standings compares what is told of groups with the books.
func (w *world) standings() {
	for key, row := range w.judge.book.rows {
		g, _ := row.(*job.Gate)
		if g == nil {
			continue
		}
		id, parked := strings.CutPrefix(g.Park, "dead/")
		head, err := job.ParseID(id)
		if j := w.judge.book.jobs[head]; parked && (err != nil || j == nil || j.State != job.Dead || !j.BlocksGroup) {
			broken("core.md 2, I1", "group %q is parked for %s, which is not dead in it", key.key, w.judge.name(head))
		}
	}
	want := w.judge.groups()
	for _, queue := range inboxNames {
		w.members(queue)
		list, err := w.e.Turns.Groups(w.ctx, queue, nil, "", 99)
		if err != nil || len(list) != len(want[queue]) {
			broken("inbox.md, groups", "%s has %d groups, and %d are told of (%v)", queue, len(want[queue]), len(list), err)
		}
		for _, g := range list {
			is := want[queue][g.Group]
			if g.Is != is.is || g.Members != is.members || is.head == nil || g.Head == nil || g.Head.ID != is.head.ID {
				broken("inbox.md, groups", "group %s/%s is told to be %s with %d members and must be %+v", queue, g.Group, g.Is, g.Members, is)
			}
		}
	}
}
