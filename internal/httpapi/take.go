package httpapi

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

// bodyIgnored is how much of a body is skipped where none is looked at.
const bodyIgnored = 64 << 10

// take is GET /jobs/take: a frame per job until either side ends it, and a
// heartbeat after each silence.
func (h *handler) take(w http.ResponseWriter, r *http.Request, _, _ string) {
	frames := takeFormat(r.Header["Accept"])
	if frames == nil {
		notAcceptable(w, supportedStreams)
		return
	}
	o, err := takeOptions(r)
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
	stream, err := h.engine.Stream(r.Context(), o)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	defer stream.Close()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := newLine(w, r, frames, h.heartbeat, cancel)
	defer out.close()
	if !out.write(nil) { // the headers: a client is connected once it has them
		return
	}
	for {
		list, err := stream.Next(ctx)
		if err != nil {
			return // the client left, or the server ends the stream
		}
		s := scratches.Get().(*scratch)
		for i := range list {
			s.out = frames.job(s.out, &list[i], o.Name != "")
		}
		ok := out.write(s.out)
		s.release(false)
		if !ok {
			return
		}
	}
}

// takeOptions reads query and headers of a take.
func takeOptions(r *http.Request) (o engine.StreamOptions, err error) {
	values, err := jobs.Params(r.URL.RawQuery, "prop", "prefetch", "queue", "lease")
	if err != nil {
		return o, err
	}
	o.Prefetch = 1
	if text := values.Get("prefetch"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return o, job.Errorf(job.Invalid, "prefetch must be a whole number from 0 to 2147483647")
		}
		o.Prefetch = int(n)
	}
	o.Queues = jobs.Names(values.Get("queue"))
	for _, prop := range values["prop"] {
		name, value, ok := strings.Cut(prop, ":")
		if !ok || name == "" {
			return o, job.Errorf(job.Invalid, "prop must be of the form name:value")
		}
		if o.Properties == nil {
			o.Properties = map[string]string{}
		}
		o.Properties[name] = value
	}
	switch lease := values.Get("lease"); lease {
	case "":
		return o, nil
	case "token":
		o.Name = r.Header.Get("Worker-Id")
		if err := jobs.CheckName("the header Worker-Id", o.Name); err != nil {
			return o, job.Errorf(job.Invalid, "lease=token needs to know who holds the leases: %v", err)
		}
		return o, nil
	}
	return o, job.Errorf(job.Invalid, "lease must be token")
}

// line is the writing side of a take. The timer is re-armed by each write, so
// it fires after a silence only.
type line struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	h2    bool
	every time.Duration
	timer *time.Timer

	mu     sync.Mutex // guards the writer: a heartbeat has a goroutine of its own
	closed bool
}

// newLine begins the answer. broken is called when a heartbeat finds nobody.
func newLine(w http.ResponseWriter, r *http.Request, frames *framing, every time.Duration, broken func()) *line {
	l := &line{w: w, rc: http.NewResponseController(w), h2: r.ProtoMajor == 2, every: every}
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.rc.SetReadDeadline(time.Time{}) // a take outlives every request's time
	frames.head(w)
	l.timer = time.AfterFunc(every, func() {
		if !l.mu.TryLock() {
			return // a write that is under way will arm the timer again
		}
		defer l.mu.Unlock()
		if !l.put(frames.beat) {
			broken()
		}
	})
	return l
}

// write sends bytes as one piece.
func (l *line) write(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.put(b)
}

// put gives up a reader that stalls for writeMax. The caller holds mu.
func (l *line) put(b []byte) bool {
	if l.closed {
		return false
	}
	_ = l.rc.SetWriteDeadline(time.Now().Add(writeMax))
	_, err := l.w.Write(b)
	if err == nil {
		err = l.rc.Flush()
	}
	if l.h2 { // there a deadline that passes resets the stream, whether it writes or not
		_ = l.rc.SetWriteDeadline(time.Time{})
	}
	l.timer.Reset(l.every)
	return err == nil
}

// close stops the heartbeat: the writer is gone when the handler returns.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.timer.Stop()
}
