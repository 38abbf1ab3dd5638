package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

var (
	oneInbox     = &resource{get: (*handler).showInbox, put: (*handler).setInbox, del: (*handler).deleteInbox}
	allMessages  = &resource{get: (*handler).messages, post: (*handler).accept}
	bulkMessages = &resource{post: (*handler).acceptBulk}
	oneMessage   = &resource{get: (*handler).showMessage, patch: (*handler).editMessage, del: (*handler).deleteMessage}
	inboxGroups  = &resource{get: (*handler).groupsOfInbox}
	inboxActions = &resource{post: (*handler).actOnInbox}
	inboxLease   = &resource{post: (*handler).leaseTurn, waits: true}
	inboxPreview = &resource{get: (*handler).previewInbox, post: (*handler).previewSettings}
)

// inInboxes finds what a path below /inboxes means.
func inInboxes(seg []string) (res *resource, name, sub string) {
	last := seg[len(seg)-1]
	switch {
	case len(seg) == 3:
		return oneInbox, seg[2], ""
	case len(seg) == 4 && last == "messages":
		return allMessages, seg[2], ""
	case len(seg) == 4 && last == "groups":
		return inboxGroups, seg[2], ""
	case len(seg) == 4 && last == "actions":
		return inboxActions, seg[2], ""
	case len(seg) == 4 && last == "lease":
		return inboxLease, seg[2], ""
	case len(seg) == 4 && last == "preview":
		return inboxPreview, seg[2], ""
	case len(seg) == 5 && seg[3] == "messages" && last == "bulk":
		return bulkMessages, seg[2], ""
	case len(seg) == 5 && seg[3] == "messages":
		return oneMessage, seg[2], last
	}
	return nil, "", ""
}

// errNoInboxes is what a server answers that has no such door.
var errNoInboxes = job.Errorf(job.NotFound, "this server has no inboxes")

// anInbox returns the inbox of a path.
func (h *handler) anInbox(name string) (*inbox.Inbox, error) {
	if h.inboxes == nil {
		return nil, errNoInboxes
	}
	return h.inboxes.Find(name)
}

// listInboxes is GET /inboxes.
func (h *handler) listInboxes(w http.ResponseWriter, r *http.Request, _, _ string) {
	list := wire.InboxList{Inboxes: []wire.Inbox{}}
	if h.inboxes != nil {
		g := h.limited(r)
		for _, x := range h.inboxes.List() {
			if g != nil && !g.Reaches(x.Name) {
				continue
			}
			shown, err := h.inboxes.Show(r.Context(), x)
			if err != nil {
				h.problem(w, r, err)
				return
			}
			list.Inboxes = append(list.Inboxes, *shown)
		}
	}
	h.sendPlain(w, r, list, nil)
}

// showInbox is GET /inboxes/{name}.
func (h *handler) showInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	x, err := h.anInbox(name)
	var shown *wire.Inbox
	if err == nil {
		shown, err = h.inboxes.Show(r.Context(), x)
	}
	h.sendPlain(w, r, shown, err)
}

// setInbox is PUT /inboxes/{name}; it answers as GET does.
func (h *handler) setInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		if h.inboxes == nil {
			return errNoInboxes
		}
		if err := jobs.CheckName("the name of the inbox", name); err != nil {
			return err
		}
		settings, err := inbox.ReadSettings(s.Body.Bytes())
		if err != nil {
			return oneRefusal(err)
		}
		if err := h.inboxes.Set(r.Context(), name, settings, by); err != nil {
			return err
		}
		h.showInbox(w, r, name, "")
		return nil
	})
}

// previewInbox is GET /inboxes/{name}/preview: by the settings it has.
func (h *handler) previewInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	x, err := h.anInbox(name)
	var rows *wire.InboxPreview
	if err == nil {
		rows, err = inbox.ShowPreview(x.Settings)
	}
	h.sendPlain(w, r, rows, err)
}

// previewSettings is POST /inboxes/{name}/preview: by settings that PUT would
// take. Nothing is kept of them, and there need be no such inbox.
func (h *handler) previewSettings(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		if err := jobs.CheckName("the name of the inbox", name); err != nil {
			return err
		}
		settings, err := inbox.ReadSettings(s.Body.Bytes())
		if err != nil {
			return oneRefusal(err)
		}
		rows, err := inbox.ShowPreview(settings)
		h.sendPlain(w, r, rows, err)
		return nil
	})
}

// deleteInbox is DELETE /inboxes/{name}.
func (h *handler) deleteInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	by, err := actorOf(r)
	if err == nil {
		_, err = h.anInbox(name)
	}
	if err == nil {
		err = h.inboxes.Delete(r.Context(), name, by)
	}
	h.gone(w, r, err)
}

// accept is POST /inboxes/{name}/messages: the body is the payload, headers of
// the request are those of the message. 201 for a new one, 200 for a duplicate.
func (h *handler) accept(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		x, err := h.anInbox(name)
		if err != nil {
			return err
		}
		in := x.NewIntake(r.Context(), []inbox.Message{inbox.Single(r.Header, x.Settings, s.Body.Bytes())}, h.engine.Now())
		if err := h.takeIn(r, in); err != nil {
			return err
		}
		if err := in.Out[0].Err; err != nil {
			return err
		}
		h.sendPlainAs(w, r, acceptedStatus(in), inbox.ShowAccepted(in, 0))
		return nil
	})
}

// acceptBulk is POST /inboxes/{name}/messages/bulk. Each message is accepted or
// refused by itself, and told of in its place.
func (h *handler) acceptBulk(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		x, err := h.anInbox(name)
		if err != nil {
			return err
		}
		list, err := inbox.ReadBulk(s.Body.Bytes())
		if err != nil {
			return err
		}
		in := x.NewIntake(r.Context(), list, h.engine.Now())
		if err := h.takeIn(r, in); err != nil {
			return err
		}
		s.out = in.Append(s.out, func(err error) string { return jobs.FaultOf(err).Code })
		send(w, acceptedStatus(in), s.out)
		return nil
	})
}

func (h *handler) takeIn(r *http.Request, in *inbox.Intake) error {
	carryTrace(r, in.Jobs)
	return in.Put(r.Context(), h.put)
}

// acceptedStatus is 201 when something new was taken in, else 200.
func acceptedStatus(in *inbox.Intake) int {
	if in.New() {
		return http.StatusCreated
	}
	return http.StatusOK
}

// messages is GET /inboxes/{name}/messages.
func (h *handler) messages(w http.ResponseWriter, r *http.Request, name, _ string) {
	x, err := h.anInbox(name)
	var page *wire.InboxPage
	room := h.room(r)
	defer room.leave()
	if err == nil {
		var q *inbox.Query
		if q, err = inbox.ReadQuery(r.URL.RawQuery); err == nil {
			page, err = h.inboxes.Messages(r.Context(), x, q, room.take)
		}
	}
	h.sendPlain(w, r, page, err)
}

// showMessage is GET /inboxes/{name}/messages/{id}.
func (h *handler) showMessage(w http.ResponseWriter, r *http.Request, name, id string) {
	x, err := h.anInbox(name)
	var m *wire.InboxMessage
	if err == nil {
		m, err = h.inboxes.Message(r.Context(), x, id)
	}
	h.sendPlain(w, r, m, err)
}

// editMessage is PATCH /inboxes/{name}/messages/{id}; it answers as GET does.
func (h *handler) editMessage(w http.ResponseWriter, r *http.Request, name, id string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		x, err := h.anInbox(name)
		var edit wire.InboxEdit
		if err == nil {
			err = plain(s.Body.Bytes(), &edit, true)
		}
		if err == nil {
			err = h.inboxes.Edit(r.Context(), x, id, &edit, by)
		}
		if err != nil {
			return err
		}
		h.showMessage(w, r, name, id)
		return nil
	})
}

// deleteMessage is DELETE /inboxes/{name}/messages/{id}.
func (h *handler) deleteMessage(w http.ResponseWriter, r *http.Request, name, id string) {
	by, err := actorOf(r)
	var x *inbox.Inbox
	if err == nil {
		x, err = h.anInbox(name)
	}
	if err == nil {
		_, err = h.inboxes.Act(r.Context(), x, &wire.InboxAct{Action: "delete", Message: id}, by)
	}
	h.gone(w, r, err)
}

// groupsOfInbox is GET /inboxes/{name}/groups.
func (h *handler) groupsOfInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	x, err := h.anInbox(name)
	var page *wire.InboxGroupPage
	if err == nil {
		page, err = h.inboxes.Groups(r.Context(), x, r.URL.RawQuery)
	}
	h.sendPlain(w, r, page, err)
}

// actOnInbox is POST /inboxes/{name}/actions.
func (h *handler) actOnInbox(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		x, err := h.anInbox(name)
		var act wire.InboxAct
		if err == nil {
			err = plain(s.Body.Bytes(), &act, true)
		}
		if err != nil {
			return err
		}
		done, err := h.inboxes.Act(r.Context(), x, &act, by)
		h.sendPlain(w, r, done, err)
		return nil
	})
}

// leaseTurn is POST /inboxes/{name}/lease, with a long poll.
func (h *handler) leaseTurn(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		x, err := h.anInbox(name)
		ask := wire.InboxLease{LeaseMS: int64(engine.LeaseDefault)}
		if err == nil {
			err = plain(s.Body.Bytes(), &ask, true)
		}
		err = cmp.Or(err,
			within("lease_ms", ask.LeaseMS, 1, int64(job.Day)),
			within("wait_ms", ask.WaitMS, 0, leaseWaitMax.Milliseconds()),
		)
		if err == nil && ask.Worker != "" {
			err = jobs.CheckName("worker", ask.Worker)
		}
		if err != nil {
			return err
		}
		// The body is read: only the client's leaving ends the wait early.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		ctx, cancel := context.WithTimeout(r.Context(), max(time.Duration(ask.WaitMS)*time.Millisecond, leaseWaitMin))
		defer cancel()
		room := h.room(r)
		defer room.leave()
		turn, err := h.inboxes.Lease(engine.WithRoom(ctx, room.patient(r.Context())), x, h.worker(r, ask.Worker), job.Millis(ask.LeaseMS))
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		h.sendPlain(w, r, turn, nil)
		return nil
	})
}
