package listen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// stream takes the records of one connection.
type stream struct {
	connect.Bundle
	lines  connect.Lines
	fields []byte // raw, one more of each event; nil = none
	now    func() time.Time
	bad    int // texts that are no events
}

// line makes the events of one line.
func (s *stream) line(line []byte) error {
	begin := len(s.Events)
	out, n, _ := s.lines.Line(s.Events, line, s.now())
	return s.add(out, begin, n)
}

// rest makes the event that waits.
func (s *stream) rest() error {
	if s.lines == nil {
		return nil
	}
	begin := len(s.Events)
	out, n := s.lines.Rest(s.Events, s.now())
	return s.add(out, begin, n)
}

// add counts events that were appended.
func (s *stream) add(out []byte, begin, n int) error {
	if s.Events = out; n > 0 && s.fields != nil {
		more, err := record.AppendFields(nil, out[begin:], s.fields, 1)
		if err != nil {
			return err
		}
		s.Events = append(out[:begin], more...)
	}
	s.Count += n
	return nil
}

// plain makes each line an event of one field.
type plain struct{ key string }

func (p plain) Line(dst, line []byte, now time.Time) ([]byte, int, int) {
	return record.AppendText(dst, record.At(now), p.key, line), 1, 0
}

func (plain) Rest(dst []byte, _ time.Time) ([]byte, int) { return dst, 0 }

// patient reads from a connection that may be silent for a while, but not for ever, and that
// no web page has opened.
type patient struct {
	net.Conn
	began bool
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.SetReadDeadline(deadline(silenceMost)); err != nil {
		return 0, err
	}
	n, err := p.Conn.Read(b)
	if !p.began && request.Match(b[:n]) {
		return 0, errRequest
	}
	p.began = p.began || n > 0
	return n, err
}

// request is how a browser begins, whatever it is made to send.
var request = regexp.MustCompile(`^[A-Z]+ \S+ HTTP/1\.[01]\r\n[A-Za-z-]+:`)

var errRequest = errors.New("an HTTP request came to an input of another kind; send it to one of the kind http")

// deadline is so long from now, by the clock of the system: a connection knows no other.
func deadline(d time.Duration) time.Time {
	return time.Now().Add(d) //nolint:forbidigo // not the time of anything that is kept
}

// read takes what comes over a connection until it ends, by a function that reads the next
// event into the bundle.
func (s *stream) read(ctx context.Context, c net.Conn, size int, next func(in *bufio.Reader) error) error {
	p := connect.NewPump(&patient{Conn: c}, func() error { return s.Take(ctx) })
	defer p.Stop(io.ErrClosedPipe)
	in := bufio.NewReaderSize(p, max(size, 16)+4)
	for {
		err := next(in)
		if err != nil {
			if err2 := errors.Join(s.rest(), s.Take(ctx)); err2 != nil {
				return err2
			} else if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if s.Full() {
			if err := s.Take(ctx); err != nil {
				return err
			}
		}
	}
}

var errLine = errors.New("a line is longer than the buffer; raise buffer_size (tcp) or buffer_max_size (syslog)")

// separated reads what ends with a separator.
func separated(in *bufio.Reader, separator []byte, most int) ([]byte, error) {
	for at := 0; ; {
		have, err := in.Peek(max(in.Buffered(), at+1))
		from := max(0, at-len(separator)+1)
		if i := bytes.Index(have[from:], separator); i >= 0 && from+i <= most {
			line := have[:from+i]
			_, err = in.Discard(len(line) + len(separator)) // it is in the buffer
			return line, err
		} else if len(have) >= most+len(separator) || errors.Is(err, bufio.ErrBufferFull) {
			return nil, errLine
		} else if at = len(have); err != nil {
			_, _ = in.Discard(len(have)) // it is in the buffer
			return have, err
		}
	}
}

// counted reads what has its length in front (RFC 6587, octet counting).
func counted(in *bufio.Reader, most int) ([]byte, error) {
	digits, err := in.ReadSlice(' ')
	if err != nil {
		if len(bytes.TrimSpace(digits)) == 0 && errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, errCount
	}
	n, err := strconv.ParseUint(string(bytes.TrimLeft(digits[:len(digits)-1], "\r\n")), 10, 31)
	if err != nil {
		return nil, errCount
	} else if n > uint64(most) {
		return nil, errLine
	}
	line, err := in.Peek(int(n))
	if err != nil {
		return nil, errCount
	}
	_, err = in.Discard(int(n)) // it is in the buffer
	return line, err
}

var errCount = errors.New("a message begins with no length, or ends before it; octet counting expects LENGTH SPACE MESSAGE")
