package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	// readBufferBytes holds a whole answer to a bulk of 50, or a burst of some
	// two hundred jobs of a take stream, so that one read serves them.
	readBufferBytes = 64 << 10
	// bodyKeptBytes is how much of an answer too long for the read buffer is
	// kept for error messages. The rest is read and dropped.
	bodyKeptBytes = 4 << 10
	headBytesMax  = 16 << 10
)

// conn is one HTTP/1.1 connection. It belongs to one goroutine at a time;
// only close may come from another.
type conn struct {
	net     net.Conn
	buf     []byte
	r, w    int    // unread bytes are buf[r:w]
	kept    []byte // start of a body that did not fit the buffer
	release func() bool
}

// dial connects, and closes the connection when ctx ends, which is how a
// goroutine blocked in a read is stopped.
func dial(ctx context.Context, addr site) (*conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	nc, err := d.DialContext(ctx, "tcp", addr.host)
	if err == nil && addr.tls != nil {
		nc, err = handshake(ctx, nc, addr)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	c := newConn(nc)
	c.release = context.AfterFunc(ctx, func() { _ = nc.Close() })
	return c, nil
}

// handshake begins TLS on a connection.
func handshake(ctx context.Context, nc net.Conn, addr site) (net.Conn, error) {
	c := addr.tls.Clone()
	c.ServerName, _, _ = net.SplitHostPort(addr.host)
	secure := tls.Client(nc, c)
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = nc.Close()
		return nil, err
	}
	return secure, nil
}

func newConn(nc net.Conn) *conn {
	return &conn{net: nc, buf: make([]byte, readBufferBytes), release: func() bool { return true }}
}

func (c *conn) close() {
	c.release()
	_ = c.net.Close()
}

// response is an answer without its header fields.
type response struct {
	status int
	body   []byte // at most bodyKeptBytes of a chunked or very long body; valid until the next call
}

// unexpected reports an answer with the wrong status.
func (r response) unexpected(call string) error {
	return fmt.Errorf("%s answered %d: %s", call, r.status, clip(r.body))
}

func clip(text []byte) string {
	const bytesMax = 300
	text = bytes.TrimSpace(text)
	if len(text) > bytesMax {
		return string(text[:bytesMax]) + "..."
	}
	return string(text)
}

// roundTrip sends a whole request and reads the whole answer.
func (c *conn) roundTrip(request []byte) (response, error) {
	if _, err := c.net.Write(request); err != nil {
		return response{}, fmt.Errorf("sending: %w", err)
	}
	h, err := c.readHead()
	if err != nil {
		return response{}, err
	}
	body, err := c.readBody(h)
	if err != nil {
		return response{}, fmt.Errorf("reading the body of a %d answer: %w", h.status, err)
	}
	return response{status: h.status, body: body}, nil
}

// open sends a request whose answer does not end and returns its body.
func (c *conn) open(request []byte) (*stream, error) {
	if _, err := c.net.Write(request); err != nil {
		return nil, fmt.Errorf("sending: %w", err)
	}
	h, err := c.readHead()
	if err != nil {
		return nil, err
	}
	if h.status != 200 {
		body, _ := c.readBody(h) // the status is the error; the body only explains it
		return nil, response{h.status, body}.unexpected("opening the take stream")
	}
	return &stream{body: newBody(c, h)}, nil
}

// readBody returns the body in the read buffer where it fits, so that small
// answers are never copied.
func (c *conn) readBody(h head) ([]byte, error) {
	if !h.chunked && h.length <= int64(len(c.buf)) {
		n := int(h.length)
		if err := c.need(n); err != nil {
			return nil, err
		}
		body := c.buf[c.r : c.r+n]
		c.r += n
		return body, nil
	}
	c.kept = c.kept[:0]
	b := newBody(c, h)
	for {
		piece, err := b.next()
		if errors.Is(err, io.EOF) {
			return c.kept, nil
		}
		if err != nil {
			return nil, err
		}
		c.kept = append(c.kept, piece[:min(len(piece), bodyKeptBytes-len(c.kept))]...)
	}
}

// need waits until n unread bytes are in the buffer; n must not exceed it.
func (c *conn) need(n int) error {
	for c.w-c.r < n {
		if err := c.fill(); err != nil {
			return err
		}
	}
	return nil
}

// fill reads once, after making room.
func (c *conn) fill() error {
	switch {
	case c.r == c.w:
		c.r, c.w = 0, 0
	case c.w == len(c.buf) && c.r == 0:
		return errors.New("the answer does not fit the read buffer")
	case c.w == len(c.buf):
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	n, err := c.net.Read(c.buf[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// head is what matters of a status line and its header fields.
type head struct {
	status  int
	length  int64 // 0 when the status allows no body
	chunked bool
}

// readHead reads up to the blank line, skipping interim (1xx) answers.
func (c *conn) readHead() (head, error) {
	for {
		end := bytes.Index(c.buf[c.r:c.w], []byte("\r\n\r\n"))
		if end < 0 {
			if c.w-c.r > headBytesMax {
				return head{}, errors.New("the answer has a header of more than 16 KiB")
			}
			if err := c.fill(); err != nil {
				return head{}, fmt.Errorf("reading an answer: %w", err)
			}
			continue
		}
		h, err := parseHead(c.buf[c.r : c.r+end])
		c.r += end + 4
		if err != nil || h.status >= 200 {
			return h, err
		}
	}
}

func parseHead(text []byte) (head, error) {
	line, fields, _ := bytes.Cut(text, []byte("\r\n"))
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return head{}, fmt.Errorf("not an HTTP/1.1 answer: %q", clip(line))
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return head{}, fmt.Errorf("status line %q: %w", clip(line), err)
	}
	h := head{status: status, length: -1}
	for len(fields) > 0 {
		line, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		if err := h.field(line); err != nil {
			return head{}, err
		}
	}
	if status < 200 || status == 204 || status == 304 {
		h.length, h.chunked = 0, false
	}
	if h.length < 0 && !h.chunked {
		return head{}, fmt.Errorf("the %d answer has neither Content-Length nor chunks", status)
	}
	return h, nil
}

// field takes note of the two header fields that frame a body. Their lengths
// sort out nearly all others without a comparison of text.
func (h *head) field(line []byte) error {
	const contentLength, transferEncoding = "Content-Length", "Transfer-Encoding"
	colon := bytes.IndexByte(line, ':')
	switch {
	case colon == len(contentLength) && bytes.EqualFold(line[:colon], []byte(contentLength)):
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line[colon+1:])), 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("header field %q is not a length", clip(line))
		}
		h.length = n
	case colon == len(transferEncoding) && bytes.EqualFold(line[:colon], []byte(transferEncoding)):
		h.chunked = bytes.EqualFold(bytes.TrimSpace(line[colon+1:]), []byte("chunked"))
	}
	return nil
}
