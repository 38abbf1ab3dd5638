package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// body hands out the decoded bytes of one answer piece by piece, straight from
// the read buffer of its connection.
type body struct {
	conn    *conn
	chunked bool
	left    int64 // bytes to come: of the body, or of the chunk being read
	inside  bool  // a chunk was read and its closing CRLF is still due
	done    bool
}

func newBody(c *conn, h head) body {
	if h.chunked {
		return body{conn: c, chunked: true}
	}
	return body{conn: c, left: h.length}
}

// next returns the bytes at hand, at least one, or io.EOF after the last. They
// are valid until the next call.
func (b *body) next() ([]byte, error) {
	if b.left == 0 {
		if err := b.advance(); err != nil {
			return nil, err
		}
	}
	if err := b.conn.need(1); err != nil {
		return nil, err
	}
	n := min(b.left, int64(b.conn.w-b.conn.r))
	piece := b.conn.buf[b.conn.r : b.conn.r+int(n)]
	b.conn.r += int(n)
	b.left -= n
	return piece, nil
}

// advance reads the framing up to the next chunk that has bytes.
func (b *body) advance() error {
	if !b.chunked || b.done {
		return io.EOF
	}
	if b.inside {
		line, err := b.line()
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return fmt.Errorf("a chunk is longer than it said: %q follows it", clip(line))
		}
	}
	line, err := b.line()
	if err != nil {
		return err
	}
	size, _, _ := bytes.Cut(line, []byte(";")) // what follows is an extension
	n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("chunk size %q is not a number", clip(line))
	}
	if n > 0 {
		b.left, b.inside = n, true
		return nil
	}
	b.done = true
	for { // trailer fields, then a blank line
		line, err := b.line()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
	}
}

// line reads one line of framing without its end.
func (b *body) line() ([]byte, error) {
	c := b.conn
	for {
		if end := bytes.IndexByte(c.buf[c.r:c.w], '\n'); end >= 0 {
			line := c.buf[c.r : c.r+end]
			c.r += end + 1
			return bytes.TrimSuffix(line, []byte("\r")), nil
		}
		if c.w-c.r > headBytesMax {
			return nil, errors.New("a line of chunk framing has no end")
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}
