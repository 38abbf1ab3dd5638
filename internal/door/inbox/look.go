package inbox

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/histogram"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/meter"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// Messages is a page of an inbox.
func (d *Door) Messages(ctx context.Context, x *Inbox, q *Query, room engine.Room) (*wire.InboxPage, error) {
	page := &wire.InboxPage{Messages: []wire.InboxMessage{}}
	s := q.search(x.Name)
	s.Payload, s.Room = true, room
	bytes := 0
	err := d.engine.Each(ctx, s, func(l query.Listed) (bool, error) {
		if n := len(page.Messages); n == q.limit || n > 0 && bytes+l.Bytes() > engine.PageBytes {
			page.Next = page.Messages[n-1].ID
			return false, nil
		}
		bytes += l.Bytes()
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
		if j, _, err := d.engine.Get(ctx, id); err == nil && j.Queue == x.Name {
			return id, nil
		}
	}
	id = job.ID{}
	s := query.Search{
		Filter: engine.Filter{Queues: []string{x.Name}},
		Where:  func(j *job.Job) bool { return MessageIDOf(j) == text },
	}
	err = d.engine.Each(ctx, s, func(l query.Listed) (bool, error) { id = l.Job.ID; return false, nil })
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
	m, counted, err := d.engine.Meter.Queue(ctx, x.Name)
	if err != nil {
		return nil, err
	}
	out := &wire.Inbox{}
	if err := json.Unmarshal(x.masked().Append(nil), &out.InboxSettings); err != nil {
		return nil, err
	}
	out.Name, out.Ordered, out.Paused, out.Problem = x.Name, x.Ordered(), q.Paused, x.problem
	out.Messages, out.Groups = countsOf(m.Depth)
	is := &m.StatusAges
	out.Oldest = wire.InboxAges{
		InProgress: int64(is[rule.StatusWaiting]), Delivering: int64(is[rule.StatusRunning]), Retrying: int64(is[rule.StatusRetrying]),
		Paused: int64(is[rule.StatusPaused]), Blocking: int64(is[rule.StatusBlocking]), Dead: int64(is[rule.StatusDead]),
		Delivered: int64(is[rule.StatusDone]),
	}
	if counted {
		t := &m.Turns
		out.SinceStart = &wire.InboxPast{
			Latency: spread(&t.Latency, &histogram.Spans), AttemptsDelivered: spread(&t.Done, &meter.Tries), AttemptsExhausted: spread(&t.Exhausted, &meter.Tries),
		}
	}
	return out, nil
}

// spread writes a histogram for people: what there is of it.
func spread(h *histogram.Histogram, edges *histogram.Edges) (s wire.InboxSpread) {
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if s.UpTo == nil {
			s.UpTo = map[string]uint64{}
		}
		upTo := "+Inf"
		if i < len(edges) {
			upTo = strconv.FormatInt(edges[i], 10)
		}
		s.UpTo[upTo] = n
		s.Count += n
	}
	if s.Count > 0 {
		s.Mean = float64(h.Sum) / float64(s.Count)
	}
	return s
}

// countsOf tells what an inbox holds. Each message and each group is counted
// once.
func countsOf(d engine.Depth) (m wire.InboxCounts, g wire.InboxGroups) {
	n := &d.Status
	m = wire.InboxCounts{
		InProgress: n[rule.StatusWaiting], Delivering: n[rule.StatusRunning], Retrying: n[rule.StatusRetrying], Paused: n[rule.StatusPaused],
		Blocking: n[rule.StatusBlocking], Dead: n[rule.StatusDead], Delivered: n[rule.StatusDone],
	}
	for _, some := range n {
		m.Total += some
	}
	g = wire.InboxGroups{
		Ready: d.Groups[rule.GroupReady], Delivering: d.Groups[rule.GroupRunning], BackingOff: d.Groups[rule.GroupBackingOff],
		Paused: d.Groups[rule.GroupPaused], Blocked: d.Groups[rule.GroupBlocked], Parked: d.Groups[rule.GroupParked], Held: d.Groups[rule.GroupHeld],
	}
	for _, some := range d.Groups {
		g.Total += some
	}
	return m, g
}

// groupStates are the conditions of groups in our words.
var groupStates = [rule.Conditions]string{
	rule.GroupReady: "ready", rule.GroupRunning: "delivering", rule.GroupBackingOff: "backing_off", rule.GroupPaused: "paused",
	rule.GroupBlocked: "blocked", rule.GroupParked: "parked", rule.GroupHeld: "held",
}

// Groups is a page of the groups of an inbox, by name.
func (d *Door) Groups(ctx context.Context, x *Inbox, raw string) (*wire.InboxGroupPage, error) {
	values, err := strict.Params(raw, "", "state", "from", "limit")
	if err != nil {
		return nil, err
	}
	limit, err := strict.Whole(values, "limit", pageDefault, 1, pageLargest)
	if err != nil {
		return nil, err
	}
	var is []rule.Condition
	for _, name := range strict.Names(values.Get("state")) {
		at := slices.Index(groupStates[:], name)
		if at < 0 {
			return nil, refuse("state", "state must be of "+strings.Join(groupStates[:], ", ")+", not "+strconv.Quote(shorten(name)))
		}
		is = append(is, rule.Condition(at))
	}
	list, err := d.engine.Turns.Groups(ctx, x.Name, is, values.Get("from"), limit+1)
	if err != nil {
		return nil, err
	}
	page := &wire.InboxGroupPage{Groups: []wire.InboxGroup{}}
	for i, s := range list {
		if i == limit {
			page.Next = list[i-1].Group
			break
		}
		g := wire.InboxGroup{Group: s.Group, State: groupStates[s.Is], Messages: s.Members}
		if s.Head != nil {
			head := Show(s.Head, nil)
			g.Head = &head
		}
		page.Groups = append(page.Groups, g)
	}
	return page, nil
}
