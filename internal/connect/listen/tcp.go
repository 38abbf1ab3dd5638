package listen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// TCPOptions are what an input for streams accepts. Their names are those of the original.
type TCPOptions struct {
	Address
	Tag              string
	Format           string // json or none; "" = json
	Separator        string // of records of the format none; "" = \n
	ChunkSize        int    // KiB; 0 = 32
	BufferSize       int    // KiB of the longest record; 0 = ChunkSize
	SourceAddressKey string // "" = none

	// Lines makes the events of one connection of the format none; nil makes each record the
	// field log.
	Lines func() connect.Lines
}

// TCP takes records that come over connections.
type TCP struct{ o TCPOptions }

// NewTCP makes a source. The error names all options that are wrong.
func NewTCP(o TCPOptions) (*TCP, error) {
	var f faults
	o.faults(f.add)
	switch o.Format {
	case "":
		o.Format = "json"
	case "json", "none":
	default:
		f.add("format: %q is not json or none", o.Format)
	}
	if o.Separator == "" {
		o.Separator = "\n"
	}
	f.size("chunk_size", &o.ChunkSize, 32, 1<<20)
	f.size("buffer_size", &o.BufferSize, o.ChunkSize, 1<<20)
	if len(o.Separator) > 256 {
		f.add("separator: %d bytes is more than 256", len(o.Separator))
	}
	if o.Lines == nil {
		o.Lines = func() connect.Lines { return plain{"log"} }
	}
	return &TCP{o}, f.err()
}

// Run takes connections until ctx ends.
func (s *TCP) Run(ctx context.Context, into connect.Intake) error {
	l, err := s.o.open(ctx, connectionsMost)
	if err != nil {
		return err
	}
	return serve(ctx, l, s.o.Log, func(ctx context.Context, c net.Conn) error { return s.handle(ctx, c, into) })
}

func (s *TCP) handle(ctx context.Context, c net.Conn, into connect.Intake) error {
	st := &stream{Bundle: connect.Bundle{Records: connect.Records{Tag: s.o.Tag}, Into: into}, now: s.o.Now}
	if s.o.SourceAddressKey != "" {
		st.fields = field(s.o.SourceAddressKey, c.RemoteAddr().Network()+"://"+c.RemoteAddr().String())
	}
	most := s.o.BufferSize << 10
	if s.o.Format == "none" {
		st.lines = s.o.Lines()
		separator := []byte(unescape(s.o.Separator))
		return st.read(ctx, c, most+len(separator), func(in *bufio.Reader) error {
			line, err := separated(in, separator, most)
			if len(separator) == 1 && separator[0] == '\n' {
				line = bytes.TrimSuffix(line, []byte("\r"))
			}
			if len(line) == 0 {
				return err
			}
			return errors.Join(st.line(line), err)
		})
	}
	var texts *record.Texts
	bad := func(err error) error {
		if st.bad++; st.bad == 1 {
			s.o.Log.Warn("a text is no event and is left out, as others of this connection may be", "remote", remote(c), "error", err)
		}
		return nil
	}
	return st.read(ctx, c, most, func(in *bufio.Reader) error {
		if texts == nil {
			texts = record.NewTexts(in, most)
		}
		text, err := texts.Next()
		if errors.Is(err, record.ErrJSON) {
			return bad(err)
		} else if err != nil {
			return err
		}
		begin := len(st.Events)
		out, err := record.AppendEventFromJSON(st.Events, record.At(s.o.Now()), text)
		if err != nil {
			return bad(err)
		}
		return st.add(out, begin, 1)
	})
}

// unescape makes a separator of a text such as \r\n.
func unescape(text string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00", `\\`, `\`).Replace(text)
}
