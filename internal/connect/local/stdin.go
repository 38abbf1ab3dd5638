package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
)

// StdinOptions are what is read from a stream, and how. Their names are those of the
// original.
type StdinOptions struct {
	Tag        string
	BufferSize int // bytes of the longest text or line; 0 = 16000, which is the least

	// Lines makes the events of lines; nil reads JSON texts one behind another.
	Lines func() connect.Lines

	In  io.Reader
	Now func() time.Time
	Log *slog.Logger // nil = nothing is said
}

// Stdin reads a stream to its end.
type Stdin struct{ o StdinOptions }

const bufferSizeLeast = 16000

// NewStdin makes a source. The error names all options that are wrong.
func NewStdin(o StdinOptions) (*Stdin, error) {
	if o.BufferSize == 0 {
		o.BufferSize = bufferSizeLeast
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.BufferSize < bufferSizeLeast || o.BufferSize > 1<<30 {
		return nil, fmt.Errorf("buffer_size: %d bytes is not between %d and %d", o.BufferSize, bufferSizeLeast, 1<<30)
	}
	return &Stdin{o}, nil
}

// Run reads until the stream or ctx ends. What is read ahead when ctx ends is lost with the
// stream, as it is for every reader of one.
func (s *Stdin) Run(ctx context.Context, into connect.Intake) error {
	b := &connect.Bundle{Records: connect.Records{Tag: s.o.Tag}, Into: into}
	p := connect.NewPump(s.o.In, func() error { return b.Take(ctx) })
	defer context.AfterFunc(ctx, func() { p.Stop(ctx.Err()) })()
	read := s.texts
	if s.o.Lines != nil {
		read = s.lines
	}
	err := read(ctx, p, b)
	if ctx.Err() != nil {
		return nil
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return b.Take(ctx)
}

func (s *Stdin) texts(ctx context.Context, in io.Reader, b *connect.Bundle) error {
	t, bad := record.NewTexts(in, s.o.BufferSize), uint(0)
	for {
		text, err := t.Next()
		if err == nil {
			var events []byte
			if events, err = record.AppendEventFromJSON(b.Events, record.At(s.o.Now()), text); err == nil {
				b.Events = events
				b.Count++
			}
		}
		switch {
		case errors.Is(err, record.ErrJSON), errors.Is(err, record.ErrForm), errors.Is(err, record.ErrLong):
			if bad++; bits.OnesCount(bad) == 1 {
				s.o.Log.Warn("a text is no event and is left out", "error", err, "left_out", bad, "buffer_size", s.o.BufferSize)
			}
		case err != nil:
			return err
		}
		if b.Full() {
			if err := b.Take(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *Stdin) lines(ctx context.Context, in io.Reader, b *connect.Bundle) error {
	lines, r := s.o.Lines(), bufio.NewReaderSize(in, s.o.BufferSize)
	for {
		line, err := r.ReadSlice('\n') // a line that is too long comes in pieces
		if line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")); len(line) > 0 {
			out, n, _ := lines.Line(b.Events, line, s.o.Now())
			b.Events, b.Count = out, b.Count+n
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			out, n := lines.Rest(b.Events, s.o.Now())
			b.Events, b.Count = out, b.Count+n
			return err
		}
		if b.Full() {
			if err := b.Take(ctx); err != nil {
				return err
			}
		}
	}
}
