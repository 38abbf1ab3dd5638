package listen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
)

// SyslogOptions are what an input for syslog accepts. Their names are those of the original.
type SyslogOptions struct {
	Address
	Tag               string
	Mode              string      // unix_udp, unix_tcp, udp or tcp; "" = unix_udp
	Path              string      // of the socket
	UnixPerm          fs.FileMode // of the socket; 0 = 0644
	BufferChunkSize   int         // bytes; 0 = 32768
	BufferMaxSize     int         // bytes of the longest message; 0 = BufferChunkSize
	ReceiveBufferSize int         // bytes that the system keeps of datagrams; 0 = as it likes
	Format            string      // newline or octet_counting, of streams; "" = newline
	SourceAddressKey  string      // "" = none

	// Lines makes the events of one sender: the parser, and what the record keeps of a
	// message that is none. nil makes each message the field log.
	Lines func() connect.Lines
}

// Syslog takes messages that come as datagrams or over connections.
type Syslog struct{ o SyslogOptions }

// NewSyslog makes a source. The error names all options that are wrong.
func NewSyslog(o SyslogOptions) (*Syslog, error) {
	var f faults
	o.faults(f.add)
	o.Mode, o.Format = strings.ToLower(o.Mode), strings.ToLower(o.Format)
	switch o.Mode {
	case "":
		o.Mode = "unix_udp"
	case "unix_udp", "unix_tcp", "udp", "tcp":
	default:
		f.add("mode: %q is not unix_udp, unix_tcp, udp or tcp", o.Mode)
	}
	if strings.HasPrefix(o.Mode, "unix") && o.Path == "" {
		f.add("path: it is not set; the mode %s needs the path of a socket", o.Mode)
	}
	switch o.Format {
	case "":
		o.Format = "newline"
	case "newline", "octet_counting":
	default:
		f.add("format: %q is not newline or octet_counting", o.Format)
	}
	if o.UnixPerm > 0o777 {
		f.add("unix_perm: %o is not between 0001 and 0777", o.UnixPerm)
	}
	f.size("buffer_chunk_size", &o.BufferChunkSize, 32768, 64<<20)
	f.size("buffer_max_size", &o.BufferMaxSize, o.BufferChunkSize, 64<<20)
	if o.ReceiveBufferSize < 0 {
		f.add("receive_buffer_size: %d bytes is less than nothing", o.ReceiveBufferSize)
	}
	if o.Lines == nil {
		o.Lines = func() connect.Lines { return plain{"log"} }
	}
	return &Syslog{o}, f.err()
}

// Run takes messages until ctx ends.
func (s *Syslog) Run(ctx context.Context, into connect.Intake) error {
	switch s.o.Mode {
	case "udp", "unix_udp":
		c, err := s.packets(ctx)
		if err != nil {
			return err
		}
		return s.datagrams(ctx, c, into)
	case "tcp":
		l, err := s.o.open(ctx, connectionsMost)
		if err != nil {
			return err
		}
		return serve(ctx, l, s.o.Log, func(ctx context.Context, c net.Conn) error { return s.handle(ctx, c, into) })
	default:
		l, err := s.o.openUnix(ctx, s.o.Path, s.o.UnixPerm)
		if err != nil {
			return fmt.Errorf("path: %w", err)
		}
		return serve(ctx, l, s.o.Log, func(ctx context.Context, c net.Conn) error { return s.handle(ctx, c, into) })
	}
}

// packets listens for datagrams.
func (s *Syslog) packets(ctx context.Context) (net.PacketConn, error) {
	kind, at, name := "udp", s.o.text(), "listen"
	if s.o.Mode == "unix_udp" {
		kind, at, name = "unixgram", s.o.Path, "path"
		if err := freeSocket(at); err != nil {
			return nil, fmt.Errorf("path: %w", err)
		}
	}
	c, err := new(net.ListenConfig).ListenPacket(ctx, kind, at)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if kind == "unixgram" {
		err = permit(at, s.o.UnixPerm)
	}
	if b, ok := c.(interface{ SetReadBuffer(bytes int) error }); ok && s.o.ReceiveBufferSize > 0 && err == nil {
		err = b.SetReadBuffer(s.o.ReceiveBufferSize)
	}
	if err != nil {
		_ = c.Close() // nothing has come
		return nil, err
	}
	if s.o.Opened != nil {
		s.o.Opened(c.LocalAddr())
	}
	return c, nil
}

// datagram is one with who has sent it.
type datagram struct {
	text []byte
	from net.Addr
}

// datagramsMost wait while others are taken. Then the system keeps some, and drops the rest:
// a datagram has no other way.
const datagramsMost = 1024

func (s *Syslog) datagrams(ctx context.Context, c net.PacketConn, into connect.Intake) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	come, ended := make(chan datagram, datagramsMost), make(chan error, 1)
	go func() { // the end of ctx closes the socket, which ends it
		defer close(come)
		block := make([]byte, 64<<10)
		for {
			n, from, err := c.ReadFrom(block)
			if err != nil {
				if ctx.Err() != nil || !pause(ctx, err) {
					ended <- err
					return
				}
				continue
			}
			select {
			case come <- datagram{bytes.Clone(block[:min(n, s.o.BufferMaxSize)]), from}:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	err := s.gather(ctx, come, into)
	gone := ctx.Err() != nil
	cancel()
	_ = c.Close() // what is in it was not taken
	if s.o.Mode == "unix_udp" {
		_ = os.Remove(s.o.Path) // the next run would do it
	}
	if e := <-ended; err == nil && !gone {
		err = fmt.Errorf("listen: %w", e)
	}
	if gone {
		return nil
	}
	return err
}

// gather takes all that has come at once.
func (s *Syslog) gather(ctx context.Context, come <-chan datagram, into connect.Intake) error {
	st := &stream{Bundle: connect.Bundle{Records: connect.Records{Tag: s.o.Tag}, Into: into}, lines: s.o.Lines(), now: s.o.Now}
	for d := range come {
		for more := true; more; {
			if err := s.message(st, d.text, d.from, "udp"); err != nil {
				return err
			}
			if more = !st.Full(); more {
				select {
				case d, more = <-come:
				default:
					more = false
				}
			}
		}
		if err := errors.Join(st.rest(), st.Take(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// message makes the events of one message.
func (s *Syslog) message(st *stream, text []byte, from net.Addr, kind string) error {
	if text = bytes.TrimRight(text, "\r\n\x00"); len(text) == 0 {
		return nil
	}
	if s.o.SourceAddressKey != "" && from != nil && from.String() != "" {
		st.fields = field(s.o.SourceAddressKey, kind+"://"+from.String())
	}
	return st.line(text)
}

func (s *Syslog) handle(ctx context.Context, c net.Conn, into connect.Intake) error {
	st := &stream{Bundle: connect.Bundle{Records: connect.Records{Tag: s.o.Tag}, Into: into}, lines: s.o.Lines(), now: s.o.Now}
	most := s.o.BufferMaxSize
	return st.read(ctx, c, most, func(in *bufio.Reader) error {
		var line []byte
		var err error
		if s.o.Format == "octet_counting" {
			line, err = counted(in, most)
		} else {
			line, err = separated(in, []byte("\n"), most)
		}
		return errors.Join(s.message(st, line, c.RemoteAddr(), "tcp"), err)
	})
}
