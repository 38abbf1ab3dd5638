package inbox

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Messages is a page of an inbox.
func (d *Door) Messages(ctx context.Context, x *Inbox, q *Query) (*wire.InboxPage, error) {
	page := &wire.InboxPage{Messages: []wire.InboxMessage{}}
	s := q.search(x.Name)
	s.Payload = true
	err := d.engine.Each(ctx, s, func(l engine.Listed) (bool, error) {
		if len(page.Messages) == q.limit {
			page.Next = page.Messages[q.limit-1].ID
			return false, nil
		}
		page.Messages = append(page.Messages, Show(l.Job, l.Payload))
		return true, nil
	})
	return page, err
}

// Message returns one message with the latest error that was noted.
func (d *Door) Message(ctx context.Context, x *Inbox, text string) (*wire.InboxMessage, error) {
	id, err := d.find(ctx, x, text)
	if err != nil {
		return nil, err
	}
	j, payload, err := d.engine.Get(ctx, id)
	if err != nil {
		return nil, d.noMessage(err, x, text)
	}
	m := Show(j, payload)
	list, err := d.engine.Failures(ctx, id, 0, true, 1)
	if err == nil && len(list) > 0 {
		m.Error = ShowError(&list[0])
	}
	return &m, d.noMessage(err, x, text)
}

// find returns the job that a message is, by its own id or that of its sender.
// The latter is looked up by its receipt, and among all messages of the inbox
// when that is not there any more.
func (d *Door) find(ctx context.Context, x *Inbox, text string) (job.ID, error) {
	if id, err := job.ParseID(text); err == nil {
		if j, _, err := d.engine.Get(ctx, id); err == nil && j.Queue == x.Name {
			return id, nil
		}
	}
	id, err := d.engine.Recall(ctx, job.DoorInbox, x.Name, text)
	if err != nil {
		return id, err
	}
	if !id.IsZero() {
		if _, _, err = d.engine.Get(ctx, id); err == nil {
			return id, nil
		}
	}
	id = job.ID{}
	s := engine.Search{
		Filter: engine.Filter{Queues: []string{x.Name}},
		Where:  func(j *job.Job) bool { return MessageIDOf(j) == text },
	}
	err = d.engine.Each(ctx, s, func(l engine.Listed) (bool, error) { id = l.Job.ID; return false, nil })
	if err == nil && id.IsZero() {
		err = d.noMessage(job.Errorf(job.NotFound, ""), x, text)
	}
	return id, err
}

// noMessage says in the words of the door that there is no such message.
func (d *Door) noMessage(err error, x *Inbox, text string) error {
	if err != nil && job.KindOf(err) == job.NotFound {
		return job.Errorf(job.NotFound, "inbox %q has no message %q; one that was delivered is forgotten", x.Name, shorten(text))
	}
	return err
}

// Show is an inbox with its settings and what it holds.
func (d *Door) Show(ctx context.Context, x *Inbox) (*wire.Inbox, error) {
	q, _, err := d.engine.Queue(ctx, x.Name)
	if err != nil {
		return nil, err
	}
	out := &wire.Inbox{}
	if err := json.Unmarshal(x.masked().Append(nil), &out.InboxSettings); err != nil {
		return nil, err
	}
	out.Name, out.Ordered, out.Paused = x.Name, x.Ordered(), q.Paused
	err = d.count(ctx, x, out)
	return out, err
}

func (d *Door) count(ctx context.Context, x *Inbox, out *wire.Inbox) error {
	m := &out.Messages
	at := [statuses]*int64{
		InProgress: &m.InProgress, Delivering: &m.Delivering, Retrying: &m.Retrying, Paused: &m.Paused,
		MaxRetriesReached: &m.MaxRetriesReached, Expired: &m.Expired, Rejected: &m.Rejected, Delivered: &m.Delivered,
	}
	return d.engine.Each(ctx, engine.Search{Filter: engine.Filter{Queues: []string{x.Name}}}, func(l engine.Listed) (bool, error) {
		*at[StatusOf(l.Job)]++
		m.Total++
		return true, nil
	})
}
