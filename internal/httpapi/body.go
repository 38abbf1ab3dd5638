package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/msgpack"
	"github.com/reprisehq/reprise/wire"
)

// scratch is the memory one request with a body needs.
type scratch struct {
	jobs.Reader
	meter meter
	out   []byte
}

var scratches = sync.Pool{New: func() any { return &scratch{out: make([]byte, 0, 1024)} }}

// withBody receives the body of a request, runs do, which answers or says why
// not, and gives the memory back.
func (h *handler) withBody(w http.ResponseWriter, r *http.Request, do func(s *scratch) error) {
	s, whole := scratches.Get().(*scratch), false
	s.Count, s.FoldMax = h.live.now.Load().count, h.bodyMax
	s.Unknown = func(path, why string) error { return h.tell(w, r, path, why) }
	s.meter = meter{from: r.Body, h: h, limit: 2 * h.inflightMax}
	if isEnqueue(r) {
		s.meter.limit = h.inflightMax
	}
	defer func() { s.release(!whole) }() // a call that was broken off may still read what was parsed
	err := h.receive(r, s)
	if err == nil {
		err = do(s)
	}
	if err != nil {
		h.problem(w, r, err)
	}
	whole = err == nil
}

func (h *handler) receive(r *http.Request, s *scratch) error {
	packed, ok := bodyFormat(r.Header["Content-Type"])
	if !ok {
		return errMedia
	}
	if r.ContentLength > h.bodyMax {
		return h.tooLarge()
	}
	done, err := s.meter.inflate(r.Header["Content-Encoding"])
	defer done()
	if err != nil {
		return err
	}
	// A length is a claim: memory for more than a little comes with the bytes.
	s.Body.Grow(int(min(max(r.ContentLength, 0), 64<<10)) + bytes.MinRead)
	_, err = s.Body.ReadFrom(&s.meter)
	if _, ours := err.(*refusal); err != nil && !ours { //nolint:errorlint // made here and never wrapped
		return &refusal{http.StatusBadRequest, wire.CodeInvalid, "the body ended early: " + err.Error()}
	}
	if err == nil && packed {
		err = h.unpack(s)
	}
	return err
}

// unpack puts JSON in the place of a MessagePack body. What it is as JSON is
// what is kept, so the limits of a body hold for that too.
func (h *handler) unpack(s *scratch) (err error) {
	most := max(0, min(h.bodyMax, s.meter.limit-h.inflight.Load()))
	s.out, err = msgpack.AppendJSON(s.out, s.Body.Bytes(), int(most))
	switch {
	case errors.Is(err, msgpack.ErrTooLarge) && most == h.bodyMax:
		return h.tooLarge()
	case errors.Is(err, msgpack.ErrTooLarge):
		return errBusy
	case err != nil:
		return job.Errorf(job.Invalid, "invalid MessagePack: %s", err)
	}
	s.meter.count(len(s.out) - s.Body.Len())
	s.Body.Reset()
	s.Body.Write(s.out)
	s.out = s.out[:0]
	return nil
}

func (s *scratch) release(lent bool) {
	const bytesMax = 1 << 20
	if s.meter.held > 0 {
		s.meter.h.inflight.Add(-s.meter.held)
	}
	s.meter = meter{}
	s.Unknown = nil
	s.Reset(lent)
	if cap(s.out) > bytesMax {
		s.out = nil
	}
	s.out = s.out[:0]
	scratches.Put(s)
}

func (h *handler) tooLarge() error {
	return &refusal{http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the body is larger than " + itoa(h.bodyMax) + " bytes"}
}

var errAnswers = &refusal{
	http.StatusServiceUnavailable, wire.CodeUnavailable,
	"too many large answers are being read at once (max_inflight_bytes); ask again in a moment, or for fewer at a time",
}

var errBusy = &refusal{
	http.StatusServiceUnavailable, wire.CodeUnavailable,
	"too many requests are in work at once (max_inflight_bytes); send it again in a moment",
}

// meter reads a body within its limits and counts it as in flight.
type meter struct {
	from  io.Reader
	h     *handler
	held  int64
	limit int64
}

// count changes what is in flight and returns all of it.
func (m *meter) count(n int) (all int64) {
	m.held += int64(n)
	return m.h.inflight.Add(int64(n))
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	switch all := m.count(n); {
	case m.held > m.h.bodyMax:
		return n, m.h.tooLarge()
	case all > m.limit:
		return n, errBusy
	}
	return n, err
}
