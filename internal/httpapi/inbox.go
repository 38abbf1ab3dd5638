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

// inboxRoom serves inboxes, of which a server may have none.
type inboxRoom struct{ *core }

func (h *inboxRoom) routes() []route {
	const one, messages = "/inboxes/{name}", "/inboxes/{name}/messages"
	return []route{
		get("/inboxes", reads, ownOnly, h.bare(h.list)),
		get(one, reads, pathQueue, h.bare(h.show)),
		put(one, operates, pathQueue, h.raw(h.set)),
		del(one, operates, pathQueue, h.bare(h.remove)),
		get(messages, reads, pathQueue, h.bare(h.of(h.messages))),
		post(messages, enqueues, pathQueue, h.there(endpoint{serve: h.accept})).as("enqueue"),
		post(messages+"/bulk", enqueues, pathQueue, h.there(endpoint{serve: h.acceptBulk})).as("enqueue"),
		get(messages+"/{id}", reads, pathQueue, h.bare(h.of(h.message))),
		patch(messages+"/{id}", operates, pathQueue, h.there(strictly(h.core, h.edit))),
		del(messages+"/{id}", operates, pathQueue, h.bare(h.of(h.removeMessage))),
		get(one+"/groups", reads, pathQueue, h.bare(h.of(h.groups))),
		post(one+"/actions", operates, pathQueue, h.there(strictly(h.core, h.act))),
		post(one+"/lease", works, pathQueue, h.there(h.raw(h.of(h.lease)))).as("lease").waiting(),
		get(one+"/preview", reads, pathQueue, h.bare(h.of(h.preview))),
		post(one+"/preview", reads, pathQueue, h.raw(h.previewSettings)),
	}
}

// errNoInboxes is what a server answers that has no such door.
var errNoInboxes = job.Errorf(job.NotFound, "this server has no inboxes")

// inbox returns the inbox of a path.
func (h *inboxRoom) inbox(name string) (*inbox.Inbox, error) {
	if h.inboxes == nil {
		return nil, errNoInboxes
	}
	return h.inboxes.Find(name)
}

// there refuses a call on an inbox that is not there, before its body is read.
func (h *inboxRoom) there(e endpoint) endpoint {
	serve := e.serve
	e.serve = func(w http.ResponseWriter, r *http.Request, name, sub string) {
		if _, err := h.inbox(name); err != nil {
			h.problem(w, r, err)
			return
		}
		serve(w, r, name, sub)
	}
	return e
}

// of serves a call on an inbox that is there.
func (h *inboxRoom) of(serve func(c *call, x *inbox.Inbox) (any, error)) served {
	return func(c *call) (any, error) {
		x, err := h.inbox(c.id)
		if err != nil {
			return nil, err
		}
		return serve(c, x)
	}
}

// list is GET /inboxes.
func (h *inboxRoom) list(c *call) (any, error) {
	list := wire.InboxList{Inboxes: []wire.Inbox{}}
	if h.inboxes == nil {
		return list, nil
	}
	g := h.limited(c.Request)
	for _, x := range h.inboxes.List() {
		if g != nil && !g.Reaches(x.Name) {
			continue
		}
		shown, err := h.inboxes.Show(c.Context(), x)
		if err != nil {
			return nil, err
		}
		list.Inboxes = append(list.Inboxes, *shown)
	}
	return list, nil
}

// show is GET /inboxes/{name}.
func (h *inboxRoom) show(c *call) (any, error) {
	x, err := h.inbox(c.id)
	if err != nil {
		return nil, err
	}
	return h.inboxes.Show(c.Context(), x)
}

// settings reads those that PUT takes.
func (h *inboxRoom) settings(c *call) (*inbox.Settings, error) {
	if err := jobs.CheckName("the name of the inbox", c.id); err != nil {
		return nil, err
	}
	s, err := inbox.ReadSettings(c.s.Body.Bytes())
	return s, jobs.OneRefusal(err)
}

// set is PUT /inboxes/{name}; it answers as GET does.
func (h *inboxRoom) set(c *call) (any, error) {
	if h.inboxes == nil {
		return nil, errNoInboxes
	}
	settings, err := h.settings(c)
	if err == nil {
		err = h.inboxes.Set(c.Context(), c.id, settings, c.by)
	}
	if err != nil {
		return nil, err
	}
	return h.show(c)
}

// preview is GET /inboxes/{name}/preview: by the settings it has.
func (h *inboxRoom) preview(_ *call, x *inbox.Inbox) (any, error) {
	return inbox.ShowPreview(x.Settings)
}

// previewSettings is POST /inboxes/{name}/preview: by settings that PUT would
// take. Nothing is kept of them, and there need be no such inbox.
func (h *inboxRoom) previewSettings(c *call) (any, error) {
	settings, err := h.settings(c)
	if err != nil {
		return nil, err
	}
	return inbox.ShowPreview(settings)
}

// remove is DELETE /inboxes/{name}.
func (h *inboxRoom) remove(c *call) (any, error) {
	if _, err := h.inbox(c.id); err != nil {
		return nil, err
	}
	return nil, h.inboxes.Delete(c.Context(), c.id, c.by)
}

// accept is POST /inboxes/{name}/messages: the body is the payload, headers of
// the request are those of the message. 201 for a new one, 200 for a duplicate.
func (h *inboxRoom) accept(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		x, err := h.inbox(name)
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
		return (&call{w: w, status: acceptedStatus(in)}).answer(inbox.ShowAccepted(in, 0))
	})
}

// acceptBulk is POST /inboxes/{name}/messages/bulk. Each message is accepted or
// refused by itself, and told of in its place.
func (h *inboxRoom) acceptBulk(w http.ResponseWriter, r *http.Request, name, _ string) {
	h.withBody(w, r, func(s *scratch) error {
		x, err := h.inbox(name)
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

func (h *inboxRoom) takeIn(r *http.Request, in *inbox.Intake) error {
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
func (h *inboxRoom) messages(c *call, x *inbox.Inbox) (any, error) {
	q, err := inbox.ReadQuery(c.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return h.inboxes.Messages(c.Context(), x, q, c.room.take)
}

// message is GET /inboxes/{name}/messages/{id}.
func (h *inboxRoom) message(c *call, x *inbox.Inbox) (any, error) {
	return h.inboxes.Message(c.Context(), x, c.sub)
}

// edit is PATCH /inboxes/{name}/messages/{id}; it answers as GET does.
func (h *inboxRoom) edit(c *call, body *wire.InboxEdit) (any, error) {
	x, err := h.inbox(c.id)
	if err == nil {
		err = h.inboxes.Edit(c.Context(), x, c.sub, body, c.by)
	}
	if err != nil {
		return nil, err
	}
	return h.message(c, x)
}

// removeMessage is DELETE /inboxes/{name}/messages/{id}.
func (h *inboxRoom) removeMessage(c *call, x *inbox.Inbox) (any, error) {
	_, err := h.inboxes.Act(c.Context(), x, &wire.InboxAct{Action: "delete", Message: c.sub}, c.by)
	return nil, err
}

// groups is GET /inboxes/{name}/groups.
func (h *inboxRoom) groups(c *call, x *inbox.Inbox) (any, error) {
	return h.inboxes.Groups(c.Context(), x, c.URL.RawQuery)
}

// act is POST /inboxes/{name}/actions.
func (h *inboxRoom) act(c *call, body *wire.InboxAct) (any, error) {
	x, err := h.inbox(c.id)
	if err != nil {
		return nil, err
	}
	return h.inboxes.Act(c.Context(), x, body, c.by)
}

// lease is POST /inboxes/{name}/lease, with a long poll.
func (h *inboxRoom) lease(c *call, x *inbox.Inbox) (any, error) {
	ask := wire.InboxLease{LeaseMS: int64(engine.LeaseDefault)}
	wrong := func() error {
		return errors.Join(
			jobs.Within("lease_ms", ask.LeaseMS, 1, int64(job.Day)),
			jobs.Within("wait_ms", ask.WaitMS, 0, leaseWaitMax.Milliseconds()), nameGiven("worker", ask.Worker),
		)
	}
	if err := cmp.Or(plain(c.s, &ask, wrong), jobs.OneRefusal(wrong())); err != nil {
		return nil, err
	}
	// The body is read: only the client's leaving ends the wait early.
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithTimeout(c.Context(), max(time.Duration(ask.WaitMS)*time.Millisecond, leaseWaitMin))
	defer cancel()
	turn, err := h.inboxes.Lease(engine.WithRoom(ctx, c.room.patient(c.Context())), x, h.worker(c.Request, ask.Worker), job.Millis(ask.LeaseMS))
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return turn, err
}
