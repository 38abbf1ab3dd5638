package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// stream is a named take stream that is opened again whenever it ends. Its
// leases outlive it (re-attach window), so nothing is given back on the way.
type stream struct {
	client   *Client
	worker   string
	queues   []string
	prefetch int
	times    times
	events   *Events

	engine *engine // logs in before each connection, and names itself; nil = a worker

	connected func()         // the server accepted
	beat      func()         // an empty line: nothing to do
	deliver   func(wire.Job) // a job; may block, which holds the server back
	voided    func(wire.Job) // the news that a lease is over
}

// lineBytesMax bounds one job on the stream.
const lineBytesMax = 128 << 20

// errTokenless ends a worker: without tokens it could not tell its own
// deliveries from later ones.
var errTokenless = errors.New("the server delivers jobs without lease tokens; this worker needs a Reprise server")

// errSilent ends a stream on which even the heartbeats stopped.
var errSilent = errors.New("the stream fell silent")

// run keeps the stream open until ctx ends (nil) or the server refuses it for
// good.
func (s *stream) run(ctx context.Context) error {
	waits := backoff{first: s.times.reconnectFirst, most: s.times.reconnectMost}
	for {
		accepted, err := s.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		refused, ok := errors.AsType[*Error](err)
		if ok && !refused.Temporary() || errors.Is(err, errTokenless) || errors.Is(err, errEngineOver) {
			return fmt.Errorf("taking jobs: %w", err)
		}
		if accepted {
			waits.reset()
		}
		wait := waits.wait()
		if ok {
			wait = max(wait, refused.RetryAfter)
		}
		s.events.Disconnected(err, wait)
		if pause(ctx, wait, nil); ctx.Err() != nil {
			return nil
		}
	}
}

// once opens the stream and reads it to its end.
func (s *stream) once(ctx context.Context) (accepted bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.engine.opens(cancel)
	silence := time.AfterFunc(s.times.silence, func() { cancel(errSilent) })
	defer silence.Stop()

	query, err := s.query(ctx)
	if err != nil {
		return false, err
	}
	req, err := s.client.request(ctx, "GET", "/jobs/take?"+query, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/x-ndjson")
	req.Header.Set("Worker-Id", s.worker)
	resp, err := s.client.takes.Do(req)
	if err != nil {
		return false, s.client.because(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, s.engine.refused(errorOf(resp))
	}
	s.events.Connected()
	s.connected()
	heard := func() { silence.Reset(s.times.silence) }
	lines := bufio.NewReaderSize(&listener{resp.Body, heard}, 64<<10)
	for {
		line, err := readLine(lines)
		if err != nil {
			return true, s.client.because(ctx, err)
		}
		if len(line) <= 1 {
			s.beat()
			continue
		}
		var j wire.Job
		if err := json.Unmarshal(line, &j); err != nil {
			return true, fmt.Errorf("the stream holds a line that is no job: %w", err)
		}
		if j.ID == "" || j.Lease == "" {
			return true, errTokenless
		}
		if j.Voided != "" {
			s.voided(j)
			continue
		}
		silence.Stop() // while we hold the server back, its silence says nothing
		s.deliver(j)
		heard()
	}
}

// query says who takes, and what.
func (s *stream) query(ctx context.Context) (string, error) {
	q := url.Values{"lease": {"token"}, "prefetch": {strconv.Itoa(s.prefetch)}}
	if len(s.queues) > 0 {
		q.Set("queue", strings.Join(s.queues, ","))
	}
	if s.engine != nil {
		epoch, err := s.engine.login(ctx)
		if err != nil {
			return "", err
		}
		q.Del("lease")
		q.Set("engine", s.worker)
		q.Set("epoch", strconv.FormatInt(epoch, 10))
	}
	return q.Encode(), nil
}

// listener tells of every piece that arrives, so that a large job on a slow
// line is not taken for silence.
type listener struct {
	from  io.Reader
	heard func()
}

func (l *listener) Read(b []byte) (int, error) {
	n, err := l.from.Read(b)
	if n > 0 {
		l.heard()
	}
	return n, err
}

// readLine reads up to a line break. The bytes are valid until the next call.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, ended(err)
	}
	whole := append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if len(whole) > lineBytesMax {
			return nil, fmt.Errorf("a job on the stream is larger than %d bytes", lineBytesMax)
		}
		line, err = r.ReadSlice('\n')
		whole = append(whole, line...)
	}
	return whole, ended(err)
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server ended the stream")
	}
	return err
}
