package httpapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/strict"
)

// bodyIgnored is how much of a body is skipped where none is looked at.
const bodyIgnored = 64 << 10

// take is GET /jobs/take: a frame per job until either side ends it, and a
// heartbeat after each silence.
func (h *workRoom) take(w http.ResponseWriter, r *http.Request, _, _ string) {
	frames := takeFormat(r.Header["Accept"])
	if frames == nil {
		notAcceptable(w, supportedStreams)
		return
	}
	o, epoch, err := takeOptions(r)
	if r.ContentLength != 0 { // unread, a body would hide that the client left
		_, _ = io.CopyN(io.Discard, r.Body, bodyIgnored)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	o.Name = h.worker(r, o.Name)
	if r.Method == http.MethodHead {
		frames.head(w)
		return
	}
	stream, err := h.open(r.Context(), o, epoch)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	defer stream.Close()
	room := h.room(r)
	defer room.leave()
	stream.Room = room.patient(r.Context())
	out := newLine(w, r, frames)
	defer out.close()
	if !out.write(nil) { // the headers: a client is connected once it has them
		return
	}
	h.pulse.watch(out)
	left := r.Context().Done()
	for {
		list, err := stream.Poll()
		if err != nil {
			return // the server ends the stream
		}
		if len(list) > 0 {
			s := scratches.Get().(*scratch)
			for i := range list {
				s.out = frames.job(s.out, &list[i], o.Name != "")
			}
			ok := out.write(s.out)
			s.release(false)
			room.leave()
			if !ok {
				return
			}
			continue
		}
		select {
		case <-stream.Bell():
		case <-out.silent:
			if !out.write(frames.beat.plain) {
				return
			}
		case <-left:
			return // the client left
		}
	}
}

// open registers whoever takes; epoch is the login of an engine, 0 = it is none.
func (h *workRoom) open(ctx context.Context, o engine.StreamOptions, epoch int64) (*engine.Stream, error) {
	if epoch > 0 {
		return h.engine.Grid.EngineStream(ctx, o.Name, epoch, o.Prefetch, o.Queues)
	}
	return h.engine.Stream(ctx, o)
}

// takeOptions reads query and headers of a take.
func takeOptions(r *http.Request) (o engine.StreamOptions, epoch int64, err error) {
	values, err := strict.Params(r.URL.RawQuery, "prop", "prefetch", "queue", "lease", "engine", "epoch")
	if err != nil {
		return o, 0, err
	}
	if o.Name, epoch, err = engineOf(values); err != nil {
		return o, 0, err
	}
	if o.Prefetch = 1; epoch > 0 {
		o.Prefetch = 0 // its slots
	}
	if text := values.Get("prefetch"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return o, 0, job.Errorf(job.Invalid, "prefetch must be a whole number from 0 to 2147483647")
		}
		o.Prefetch = int(n)
	}
	if o.Queues, err = jobs.QueueNames(values.Get("queue")); err != nil {
		return o, 0, err
	}
	if epoch > 0 && (values.Has("prop") || values.Has("lease")) {
		return o, 0, job.Errorf(job.Invalid, "prop and lease are not for an engine: its properties come with its login, and it always has lease tokens")
	}
	for _, prop := range values["prop"] {
		name, value, ok := strings.Cut(prop, ":")
		if !ok || name == "" {
			return o, 0, job.Errorf(job.Invalid, "prop must be of the form name:value")
		}
		if o.Properties == nil {
			o.Properties = map[string]string{}
		}
		o.Properties[name] = value
	}
	if err := asked(o.Queues, o.Properties); err != nil {
		return o, 0, err
	}
	switch lease := values.Get("lease"); lease {
	case "":
		return o, epoch, nil
	case "token":
		o.Name = r.Header.Get("Worker-Id")
		if err := jobs.CheckName("the header Worker-Id", o.Name); err != nil {
			return o, 0, job.Errorf(job.Invalid, "lease=token needs to know who holds the leases: %v", err)
		}
		return o, epoch, nil
	}
	return o, 0, job.Errorf(job.Invalid, "lease must be token")
}
