package httpapi

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/msgpack"
	"github.com/reprisehq/reprise/wire"
)

// scratch is the memory one request with a body needs.
type scratch struct {
	jobs.Reader
	meter bodyReader
	out   []byte
}

var scratches = sync.Pool{New: func() any { return &scratch{out: make([]byte, 0, 1024)} }}

// withBody receives the body of a request, runs do, which answers or says why
// not, and gives the memory back.
func (h *core) withBody(w http.ResponseWriter, r *http.Request, do func(s *scratch) error) {
	s, whole := scratches.Get().(*scratch), false
	s.Count, s.FoldMax = h.live.now.Load().BackoffCount, h.bodyMax
	s.Unknown = func(path, why string) error { return h.tell(w, r, path, why) }
	s.meter = bodyReader{from: r.Body, h: h, w: w, r: r, enqueue: isEnqueue(r)}
	s.Memory = &s.meter
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

func (h *core) receive(r *http.Request, s *scratch) error {
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
	s.Body.Grow(int(min(max(r.ContentLength, 0), meterFree)) + bytes.MinRead)
	if _, err = s.Body.ReadFrom(&s.meter); err == nil {
		s.meter.whole()
	}
	if _, ours := err.(*refusal); err != nil && !ours { //nolint:errorlint // made here and never wrapped
		return &refusal{http.StatusBadRequest, wire.CodeInvalid, "the body ended early: " + err.Error()}
	}
	if err == nil && packed && s.Body.Len() > 0 {
		err = h.unpack(s)
	}
	return err
}

// unpack puts JSON in the place of a MessagePack body. What it is as JSON is
// what is kept, so the limits of a body hold for that too.
func (h *core) unpack(s *scratch) (err error) {
	most := max(0, min(h.bodyMax, s.meter.left()))
	s.out, err = msgpack.AppendJSON(s.out, s.Body.Bytes(), int(most))
	switch {
	case errors.Is(err, msgpack.ErrTooLarge) && most == h.bodyMax:
		return h.tooLarge()
	case errors.Is(err, msgpack.ErrTooLarge):
		return errBusy
	case err != nil:
		return job.Errorf(job.Invalid, "invalid MessagePack: %s", err)
	}
	if err := s.meter.count(len(s.out)); err != nil {
		return err
	}
	s.Body.Reset()
	s.Body.Write(s.out)
	s.out = s.out[:0]
	return nil
}

func (s *scratch) release(lent bool) {
	const bytesMax = 1 << 20
	s.meter.leave()
	s.meter = bodyReader{}
	s.Unknown, s.Memory = nil, nil
	s.Reset(lent)
	if cap(s.out) > bytesMax {
		s.out = nil
	}
	s.out = s.out[:0]
	scratches.Put(s)
}

func (h *core) tooLarge() error {
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

var errSlow = &refusal{
	http.StatusRequestTimeout, wire.CodeTooSlow,
	"the body came too slowly (min_upload_rate); send it again, over a faster line or in smaller pieces",
}

const (
	// meterFree is what a body has without being counted, about as much as its
	// connection has anyway.
	meterFree = 4 << 10
	// settleFree is what a call of a worker may have whatever others hold: what
	// it says gives memory back.
	settleFree = 64 << 10
)

// bodyReader reads a body within its limits and counts it, and what becomes of it, as
// in work.
type bodyReader struct {
	from    io.Reader
	h       *core
	w       http.ResponseWriter
	r       *http.Request
	enqueue bool

	size  int64 // that was read
	used  int64 // with what became of it
	held  int64 // of that counted, as of who
	who   string
	quota int64 // that has to come until the deadline of the connection; 0 = it has none of ours
}

// Grow is count for the reader of the body.
func (m *bodyReader) Grow(bytes int) error { return m.count(bytes) }

// count notes so many more bytes in memory.
func (m *bodyReader) count(n int) error {
	if m.used += int64(n); m.used <= meterFree {
		return nil
	}
	if m.who == "" {
		m.who = m.h.whose(m.r)
	}
	if !m.h.bodies.take(m.who, m.used-m.held, m.held, m.bounds()) {
		return errBusy
	}
	m.held = m.used
	return nil
}

func (m *bodyReader) bounds() bounds {
	b := m.h.bounds()
	switch {
	case m.enqueue:
	case m.used <= settleFree:
		b = bounds{math.MaxInt64, m.h.inflightMax}
	default:
		b.all *= 2
	}
	return b
}

// left is how many more bytes may become of a body.
func (m *bodyReader) left() int64 {
	s := &m.h.bodies
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left(m.who, m.held, m.bounds())
}

func (m *bodyReader) leave() {
	if m.held > 0 {
		m.h.bodies.give(m.who, m.held)
	}
}

func (m *bodyReader) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if m.size += int64(n); m.size > m.h.bodyMax {
		return n, m.h.tooLarge()
	}
	if busy := m.count(n); busy != nil {
		return n, busy
	}
	if err == nil && m.size > meterFree && m.h.upload.Bytes > 0 {
		m.hurry(int64(n))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errSlow
	}
	return n, err
}

// hurry gives the next piece of a large body a deadline when the one before has
// come.
func (m *bodyReader) hurry(n int64) {
	if m.quota -= n; m.quota <= 0 {
		m.quota = m.h.upload.Bytes
		_ = http.NewResponseController(m.w).SetReadDeadline(time.Now().Add(m.h.upload.Within))
	}
}

// whole lifts the deadline: nothing more has to come.
func (m *bodyReader) whole() {
	if m.quota != 0 {
		_ = http.NewResponseController(m.w).SetReadDeadline(time.Time{})
	}
}
