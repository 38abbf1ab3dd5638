package inbox

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/wire"
)

// actEdit changes one message, the head of a group, or the dates of several.
func (d *Door) actEdit(ctx context.Context, x *Inbox, a *wire.InboxAct, by job.Actor) (*wire.InboxActed, error) {
	which := a.Message
	if which == "" && a.Group != nil && len(a.Statuses)+len(a.Types) == 0 {
		head, err := d.engine.Turns.Members(ctx, x.Name, *a.Group, 1)
		if err != nil {
			return nil, err
		}
		if len(head) == 0 {
			return nil, job.Errorf(job.NotFound, "group %q of inbox %q has no messages", shorten(*a.Group), x.Name)
		}
		which = head[0].ID.String()
	}
	if which != "" {
		if err := d.Edit(ctx, x, which, &a.InboxEdit, by); err != nil {
			return nil, err
		}
		return &wire.InboxActed{Changed: 1}, nil
	}
	if err := checkEdit(&a.InboxEdit); err != nil {
		return nil, err
	}
	if a.Payload != nil {
		return nil, refuse("payload", "payload is given to one message, or to the head of a group; name it by message or group")
	}
	s, err := searchOf(x, a)
	if err != nil {
		return nil, err
	}
	return d.actMany(ctx, x, a, s, by)
}

// checkEdit refuses dates that are none, and an edit that changes nothing.
func checkEdit(edit *wire.InboxEdit) error {
	for _, date := range []struct {
		name string
		at   *int64
	}{{"next_due", edit.NextDue}, {"expires_at", edit.ExpiresAt}} {
		if date.at != nil && (*date.at < 0 || *date.at > int64(job.MaxMillis)) {
			return refuse(date.name, date.name+" must be a date in milliseconds since the epoch")
		}
	}
	if edit.Payload == nil && edit.NextDue == nil && edit.ExpiresAt == nil {
		return refuse("", "nothing is to be changed; give payload, next_due or expires_at")
	}
	if at, why := job.Unreadable(edit.Payload); why != "" {
		return refuse("payload"+at, "payload"+at+" "+why)
	}
	return nil
}

// edited gives a message other dates.
func edited(edit *wire.InboxEdit) func(*job.Job, job.Millis) {
	return func(j *job.Job, _ job.Millis) {
		if edit.NextDue != nil {
			j.ReadyAt = job.Millis(*edit.NextDue)
		}
		if edit.ExpiresAt != nil {
			j.ExpiresAt = job.Millis(*edit.ExpiresAt)
		}
	}
}

// Edit changes a message that is not being delivered. A dead one goes back in
// line with its new payload.
func (d *Door) Edit(ctx context.Context, x *Inbox, text string, edit *wire.InboxEdit, by job.Actor) error {
	if err := checkEdit(edit); err != nil {
		return err
	}
	id, err := d.find(ctx, x, text)
	var j *job.Job
	if err == nil {
		j, _, err = d.engine.Get(ctx, id)
	}
	switch {
	case err != nil:
	case j.State == job.Dead && edit.Payload != nil && edit.NextDue == nil && edit.ExpiresAt == nil:
		_, err = d.engine.Dead.Revive(ctx, id, deadset.Revival{Payload: edit.Payload, Allow: j.BlocksGroup}, by)
	case j.State == job.Dead:
		err = job.Errorf(job.WrongState, "message %q is dead (%s); it goes back in line with a new payload, or by the action retry", shorten(text), j.Reason)
	default:
		p := desk.Patch{Payload: edit.Payload, Edit: edited(edit)}
		_, err = d.engine.Desk.Do(ctx, by, p.Verb(), id)
	}
	return d.noMessage(err, x, text)
}
