package client

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Message is one for an inbox, which finds its group in the payload or in a
// header, as its settings say.
type Message struct {
	// ID makes sending it again harmless: the same id and content is a duplicate
	// for a day, other content is refused. "" = each is a message of its own.
	ID      string
	Payload any // becomes JSON; a json.RawMessage is sent as it is

	Timestamp time.Time      // when it came about; zero = not said
	TTL       *time.Duration // errors so long after its receipt are not noted; nil = as the inbox says
	ExpiresAt time.Time      // not delivered from then on; zero = never
	Type      string         // its full name, such as com.example.Reserved
	Headers   map[string]string
}

func (m *Message) body() (wire.InboxPut, error) {
	payload, err := encode(m.Payload)
	if err != nil {
		return wire.InboxPut{}, fmt.Errorf("payload: %w", err)
	}
	p := wire.InboxPut{Payload: json.RawMessage(payload[:len(payload)-1]), Headers: map[string]string{}}
	for name, value := range m.Headers {
		p.Headers[name] = value
	}
	set := func(name, value string) {
		if value != "" {
			p.Headers[name] = value
		}
	}
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	set(wire.CorrelateID, m.ID)
	set(wire.CorrelateType, m.Type)
	set(wire.CorrelateTimestamp, date(m.Timestamp))
	set(wire.CorrelateExpiration, date(m.ExpiresAt))
	if m.TTL != nil {
		set(wire.CorrelateTTL, "PT"+strconv.FormatFloat(m.TTL.Seconds(), 'f', -1, 64)+"S")
	}
	return p, nil
}

func inboxPath(name, rest string) string { return "/inboxes/" + url.PathEscape(name) + rest }

// Send puts one message into an inbox. When it returns without an error, the
// message is safe on the server's disk. With an ID it is repeated while the
// server cannot be reached.
func (c *Client) Send(ctx context.Context, inbox string, m Message) (*wire.InboxAccepted, error) {
	in, err := c.SendBulk(ctx, inbox, []Message{m})
	if err != nil {
		return nil, err
	}
	if a := in.Messages[0]; a.Code != "" {
		status := 400
		if a.Code == wire.CodeExists {
			status = 409
		}
		return nil, fmt.Errorf("sending to inbox %s: %w", inbox, &Error{Status: status, Code: a.Code, Message: a.Error})
	}
	return &in.Messages[0], nil
}

// SendBulk puts messages into an inbox, each by itself: the answer tells of
// each, in order, what became of it. Those of a group are delivered in the order
// in which they stand, unless the inbox sorts them otherwise.
func (c *Client) SendBulk(ctx context.Context, inbox string, list []Message) (*wire.InboxIntake, error) {
	body := struct {
		Messages []wire.InboxPut `json:"messages"`
	}{make([]wire.InboxPut, len(list))}
	safe := true // to repeat
	for i := range list {
		var err error
		if body.Messages[i], err = list[i].body(); err != nil {
			return nil, fmt.Errorf("sending to inbox %s: message %d: %w", inbox, i, err)
		}
		safe = safe && body.Messages[i].Headers[wire.CorrelateID] != ""
	}
	in, err := repeated[wire.InboxIntake](ctx, c, safe, "POST", inboxPath(inbox, "/messages/bulk"), body, "sending to inbox %s", inbox)
	if err == nil && len(in.Messages) != len(list) {
		return nil, fmt.Errorf("sending to inbox %s: %d messages were answered with %d results", inbox, len(list), len(in.Messages))
	}
	return in, err
}

// Inboxes lists the inboxes by name, with what they hold.
func (c *Client) Inboxes(ctx context.Context) ([]wire.Inbox, error) {
	var out wire.InboxList
	err := c.ask(ctx, "GET", "/inboxes", nil, &out, "listing inboxes")
	return out.Inboxes, err
}

// PreviewInbox tells when an inbox tries a message that no receiver takes, run by
// run: by the settings it has, or by others that are not set (nil = its own).
func (c *Client) PreviewInbox(ctx context.Context, name string, settings any) (*wire.InboxPreview, error) {
	method := "POST"
	if settings == nil {
		method = "GET"
	}
	return answer[wire.InboxPreview](ctx, c, method, inboxPath(name, "/preview"), settings, "previewing inbox %s", name)
}

// Inbox reads the settings of an inbox, and what it holds.
func (c *Client) Inbox(ctx context.Context, name string) (*wire.Inbox, error) {
	return answer[wire.Inbox](ctx, c, "GET", inboxPath(name, ""), nil, "reading inbox %s", name)
}

// SetInbox makes an inbox, or replaces its settings: a wire.InboxSettings, or
// anything that is the same JSON.
func (c *Client) SetInbox(ctx context.Context, name string, settings any) (*wire.Inbox, error) {
	return answer[wire.Inbox](ctx, c, "PUT", inboxPath(name, ""), settings, "setting inbox %s", name)
}

// DeleteInbox forgets an inbox that has no unfinished message.
func (c *Client) DeleteInbox(ctx context.Context, name string) error {
	return c.ask(ctx, "DELETE", inboxPath(name, ""), nil, nil, "deleting inbox %s", name)
}

// MessageFilter chooses messages of an inbox; what is left out chooses all.
type MessageFilter struct {
	Statuses []string // wire.InboxStatuses
	Types    []string
	Group    *string
	Desc     bool // newest first
	Limit    int  // messages in one request; 0 = 50
}

func (f *MessageFilter) query() url.Values {
	q := queryOf(map[string][]string{"status": f.Statuses, "type": f.Types}, nil)
	if f.Group != nil {
		q.Set("group", *f.Group)
	}
	if f.Desc {
		q.Set("order", "desc")
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// Messages reads messages of an inbox, page by page as the loop asks for them. It stops
// at the first error, which is its last pair.
func (c *Client) Messages(ctx context.Context, inbox string, f MessageFilter) iter.Seq2[wire.InboxMessage, error] {
	list, q := inboxPath(inbox, "/messages?"), f.query()
	of := func(p *wire.InboxPage) ([]wire.InboxMessage, string) {
		return p.Messages, behind(list, q, "from", p.Next)
	}
	return pages(ctx, c, list+q.Encode(), of, "listing messages of inbox %s", inbox)
}

// Message reads one message, by the id of its sender or of the job that it is.
func (c *Client) Message(ctx context.Context, inbox, id string) (*wire.InboxMessage, error) {
	return answer[wire.InboxMessage](ctx, c, "GET", inboxPath(inbox, "/messages/"+url.PathEscape(id)), nil, "reading message %s of inbox %s", id, inbox)
}

// EditMessage changes a message that is not being delivered. One that is dead
// takes a payload only, and goes back in line with it.
func (c *Client) EditMessage(ctx context.Context, inbox, id string, edit wire.InboxEdit) (*wire.InboxMessage, error) {
	return answer[wire.InboxMessage](ctx, c, "PATCH", inboxPath(inbox, "/messages/"+url.PathEscape(id)), edit, "changing message %s of inbox %s", id, inbox)
}

// InboxGroups reads the groups of an inbox by name, those in one of the states (none =
// any), perPage in one request (0 = 50), page by page as the loop asks for them. It stops
// at the first error, which is its last pair.
func (c *Client) InboxGroups(ctx context.Context, inbox string, perPage int, states ...string) iter.Seq2[wire.InboxGroup, error] {
	list, q := inboxPath(inbox, "/groups?"), queryOf(map[string][]string{"state": states}, nil)
	if perPage > 0 {
		q.Set("limit", strconv.Itoa(perPage))
	}
	of := func(p *wire.InboxGroupPage) ([]wire.InboxGroup, string) {
		return p.Groups, behind(list, q, "from", p.Next)
	}
	return pages(ctx, c, list+q.Encode(), of, "listing groups of inbox %s", inbox)
}

// ActOnInbox pauses, resumes, retries, skips or deletes a message, a group,
// some messages or the whole of an inbox.
func (c *Client) ActOnInbox(ctx context.Context, inbox string, act wire.InboxAct) (*wire.InboxActed, error) {
	return answer[wire.InboxActed](ctx, c, "POST", inboxPath(inbox, "/actions"), act, "%s in inbox %s", act.Action, inbox)
}

// LeaseTurn leases messages of one group of an inbox, in their order; none if
// nothing is due within the wait. Each is settled by Settle and kept by Extend.
// An InboxWorker does all that by itself.
func (c *Client) LeaseTurn(ctx context.Context, inbox string, ask wire.InboxLease) (*wire.InboxTurn, error) {
	return answer[wire.InboxTurn](ctx, c, "POST", inboxPath(inbox, "/lease"), ask, "leasing from inbox %s", inbox)
}
