package inbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/wire"
)

// What an operator can do.
const (
	actPause  = "pause"
	actResume = "resume"
	actRetry  = "retry"
	actSkip   = "skip"
	actEdit   = "edit"
	actDelete = "delete"
)

// verbs are what the actions do to messages; actEdit does what it is told.
var verbs = map[string]desk.Verb{
	actPause: desk.Pause, actResume: desk.Resume, actRetry: desk.RetryNow, actSkip: desk.Skip, actDelete: desk.Delete,
}

var actions = []string{actPause, actResume, actRetry, actSkip, actEdit, actDelete}

// filters reports whether an action chooses messages by what they are.
func filters(a *wire.InboxAct) bool { return len(a.Statuses) > 0 || len(a.Types) > 0 }

// checkAct refuses what cannot be asked for together.
func checkAct(a *wire.InboxAct) error {
	some := filters(a) || a.Group != nil
	switch {
	case !slices.Contains(actions, a.Action):
		return refuse("action", "action must be one of "+strings.Join(actions, ", ")+spell.Hint(a.Action, actions))
	case a.Message != "" && (some || a.All):
		return refuse("message", "message names one message; leave group, statuses, types and all out")
	case a.All && some:
		return refuse("all", "all means the whole inbox; leave group, statuses and types out")
	case a.Action == actEdit: // which looks at the rest by itself
	case a.Payload != nil || a.NextDue != nil || a.ExpiresAt != nil:
		return refuse("action", "payload, next_due and expires_at are for the action edit")
	case a.AllowOutOfOrder && a.Message == "":
		return refuse("allow_out_of_order", "allow_out_of_order is for the retry of one message; name it by message")
	}
	return nil
}

// Act does what an operator asks for, and notes it in the audit log.
func (d *Door) Act(ctx context.Context, x *Inbox, a *wire.InboxAct, by job.Actor) (*wire.InboxActed, error) {
	if err := checkAct(a); err != nil {
		return nil, err
	}
	switch whole := !filters(a) && a.Group == nil; {
	case a.Action == actEdit:
		return d.actEdit(ctx, x, a, by)
	case a.Message != "":
		return d.actOne(ctx, x, a, by)
	case a.Group != nil && !filters(a):
		return d.actGroup(ctx, x, a, by)
	case whole && (a.Action == actPause || a.Action == actResume):
		pause := func(q *job.Queue) error { q.Paused = a.Action == actPause; return nil }
		_, err := d.engine.Desk.SetQueue(ctx, x.Name, pause, by) // which notes it
		return &wire.InboxActed{Changed: 1}, err
	case whole && !a.All && (a.Action == actSkip || a.Action == actDelete):
		help := map[string]string{actSkip: ", to skip the head of each group"}[a.Action]
		return nil, refuse("all", "to "+a.Action+", give a message, a group, statuses or types; or say \"all\": true"+help)
	case a.Action == actSkip && a.All:
		return d.skipHeads(ctx, x, by)
	}
	s, err := searchOf(x, a)
	if err != nil {
		return nil, err
	}
	return d.actMany(ctx, x, a, s, by)
}

// actOne is about one message.
func (d *Door) actOne(ctx context.Context, x *Inbox, a *wire.InboxAct, by job.Actor) (*wire.InboxActed, error) {
	id, err := d.find(ctx, x, a.Message)
	if err == nil {
		if a.Action == actRetry && a.AllowOutOfOrder {
			_, err = d.engine.Dead.Revive(ctx, id, deadset.Revival{Allow: true}, by)
		} else {
			_, err = d.engine.Desk.Do(ctx, by, verbs[a.Action], id)
		}
	}
	if err != nil {
		return nil, d.noMessage(err, x, a.Message)
	}
	return &wire.InboxActed{Changed: 1}, nil
}

// actGroup is about a group as a whole, or its head.
func (d *Door) actGroup(ctx context.Context, x *Inbox, a *wire.InboxAct, by job.Actor) (*wire.InboxActed, error) {
	group, err := *a.Group, error(nil)
	switch a.Action {
	case actPause, actResume:
		err = d.engine.Desk.PauseGroup(ctx, by, x.Name, group, a.Action == actPause)
	case actRetry, actSkip:
		_, err = d.engine.Desk.DoHead(ctx, by, verbs[a.Action], x.Name, group)
	default:
		q := Query{group: &group}
		return d.actMany(ctx, x, a, q.search(x.Name), by)
	}
	if err != nil {
		return nil, err
	}
	return &wire.InboxActed{Changed: 1}, nil
}

// skipHeads gives up the head of every group, once.
func (d *Door) skipHeads(ctx context.Context, x *Inbox, by job.Actor) (*wire.InboxActed, error) {
	var out wire.InboxActed
	for after, more := "", true; more; {
		groups, err := d.engine.Turns.Groups(ctx, x.Name, nil, after, pageLargest)
		if err != nil {
			return nil, err
		}
		s := query.Search{Filter: engine.Filter{Queues: []string{x.Name}}, Where: skippable}
		for _, g := range groups {
			after = g.Group
			if g.Head != nil {
				s.Filter.IDs = append(s.Filter.IDs, g.Head.ID)
			}
		}
		if more = len(groups) == pageLargest; s.Filter.IDs == nil {
			continue
		}
		done, refused, err := d.engine.Desk.DoAll(ctx, desk.Skip, s)
		if done > 0 {
			err = errors.Join(err, d.engine.Audit.Note(ctx, by, "skip heads", "inbox "+x.Name, done))
		}
		if err != nil {
			return nil, err
		}
		out.Changed, out.Refused = out.Changed+done, out.Refused+refused
	}
	return &out, nil
}

func skippable(j *job.Job) bool { return j.State.Open() || j.BlocksGroup }

// searchOf chooses the messages that an action names by what they are.
func searchOf(x *Inbox, a *wire.InboxAct) (query.Search, error) {
	q := Query{types: a.Types, group: a.Group}
	var err error
	q.statuses, err = parseStatuses("statuses", a.Statuses)
	return q.search(x.Name), err
}

// actMany is about every message that a search chooses.
func (d *Door) actMany(ctx context.Context, x *Inbox, a *wire.InboxAct, s query.Search, by job.Actor) (*wire.InboxActed, error) {
	var out wire.InboxActed
	verb := verbs[a.Action]
	paused := func(j *job.Job) bool { return rule.StatusOf(j) == rule.StatusPaused }
	switch a.Action {
	case actPause:
		s = only(s, func(j *job.Job) bool { return j.State.Open() && !paused(j) })
	case actResume:
		s = only(s, paused)
	case actRetry:
		s = only(s, func(j *job.Job) bool { return (j.State == job.Scheduled || j.State == job.Dead) && !paused(j) })
	case actSkip:
		s = only(s, skippable)
	case actEdit:
		verb = desk.Patch{Edit: edited(&a.InboxEdit)}.Verb()
	}
	var err error
	out.Changed, out.Refused, err = d.engine.Desk.DoAll(ctx, verb, s)
	if out.Changed > 0 {
		err = errors.Join(err, d.engine.Audit.Note(ctx, by, a.Action+" messages", subject(x, a), out.Changed))
	}
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// only narrows a search down.
func only(s query.Search, more func(*job.Job) bool) query.Search {
	if all := s.Where; all != nil {
		s.Where = func(j *job.Job) bool { return all(j) && more(j) }
	} else {
		s.Where = more
	}
	return s
}

// subject says in the audit log what an action was about.
func subject(x *Inbox, a *wire.InboxAct) string {
	text := "inbox " + x.Name
	if a.Group != nil {
		text = "group " + shorten(*a.Group) + " of " + text
	}
	for _, f := range []struct {
		name string
		list []string
	}{{"status", a.Statuses}, {"type", a.Types}} {
		if len(f.list) > 0 {
			text += ", " + f.name + " " + shorten(strings.Join(f.list, ", "))
		}
	}
	return text
}
