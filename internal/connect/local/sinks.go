package local

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// TypeFile is the type of the failure of a file, or the standard output, that takes nothing.
const TypeFile = "file"

func failed(text string) connect.Result {
	return connect.Result{Outcome: job.Retried, Failure: job.Failure{Type: TypeFile, Message: text}}
}

// Null takes everything and does nothing with it. It implements connect.Sink.
type Null struct{}

// Deliver implements connect.Sink.
func (Null) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	return make([]connect.Result, len(b.Messages)) // OK is the zero outcome
}

// Close implements connect.Sink.
func (Null) Close() error { return nil }

// Counter writes a line for each chunk: how many records it had, and all so
// far. It implements connect.Sink.
type Counter struct {
	out io.Writer
	now func() time.Time

	mu    sync.Mutex // guards what follows, and is held while a line is written
	total uint64
}

// NewCounter writes to out.
func NewCounter(out io.Writer, now func() time.Time) *Counter {
	return &Counter{out: out, now: now}
}

// Deliver implements connect.Sink.
func (c *Counter) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	m := b.Chunk()
	records, whole, err := record.Count(m.Body)
	if err != nil {
		return []connect.Result{connect.Broken(m.Body, whole, err)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	total := c.total + uint64(records)
	line := append([]byte(`{"ts":`), seconds(nil, record.At(c.now()))...)
	line = fmt.Appendf(line, `,"serialized_events":%d,"log_records":%d,"total":%d}`+"\n", records, records, total)
	if _, err := c.out.Write(line); err != nil {
		return []connect.Result{failed("the count cannot be written: " + err.Error())}
	}
	c.total = total
	return []connect.Result{{Outcome: job.OK}}
}

// Close implements connect.Sink.
func (*Counter) Close() error { return nil }

// StdoutOptions describe a Stdout. The comments name the properties.
type StdoutOptions struct {
	Out           io.Writer
	Format        string          // format: "" = text for people, json, json_lines, json_stream or msgpack
	DateKey       string          // json_date_key; "" and false = no date
	DateForm      record.DateForm // json_date_format
	EscapeUnicode bool            // json.escape_unicode
}

// DefaultStdout has the defaults of Fluent Bit.
func DefaultStdout(out io.Writer) StdoutOptions {
	return StdoutOptions{Out: out, DateKey: "date", DateForm: record.Double, EscapeUnicode: true}
}

// Stdout writes chunks for people or programs to read. It implements connect.Sink.
type Stdout struct {
	o StdoutOptions

	mu   sync.Mutex // guards what follows, and is held while a chunk is written
	json *record.JSONWriter
	text []byte
}

// NewStdout makes a sink, or tells all that is wrong with the options.
func NewStdout(o StdoutOptions) (*Stdout, error) {
	var faults connect.Faults
	switch o.Format {
	case "", string(record.Array), string(record.Lines), string(record.Stream), formatMsgpack:
	default:
		faults.Add("format", "is %q; it must be json, json_lines, json_stream or msgpack, or not be there", o.Format)
	}
	switch o.DateForm {
	case record.Double, record.Epoch, record.EpochMillis, record.ISO8601, record.JavaSQL:
	default:
		faults.Add("json_date_format", "is %q; it must be double, epoch, epoch_ms, iso8601 or java_sql_timestamp", o.DateForm)
	}
	if o.DateKey == "false" || o.DateKey == "off" {
		o.DateKey = ""
	}
	return &Stdout{o: o, json: record.NewJSONWriter(record.Layout(o.Format), o.DateKey, o.DateForm, o.EscapeUnicode)}, faults.Err()
}

// Deliver implements connect.Sink. What was written of a chunk before a fault
// stays written, and the chunk is tried again.
func (s *Stdout) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	m := b.Chunk()
	if _, whole, err := record.Count(m.Body); err != nil {
		return []connect.Result{connect.Broken(m.Body, whole, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.o.Format {
	case "":
		s.text = appendLines(s.text[:0], m.Type, m.Body)
	case formatMsgpack:
		s.text = append(s.text[:0], m.Body...)
	default:
		s.text, _, _ = s.json.AppendChunk(s.text[:0], m.Body) // was counted
		if s.o.Format != string(record.Lines) {
			s.text = append(s.text, '\n')
		}
	}
	if _, err := s.o.Out.Write(s.text); err != nil {
		return []connect.Result{failed("the standard output takes nothing: " + err.Error())}
	}
	return []connect.Result{{Outcome: job.OK}}
}

// Close implements connect.Sink.
func (*Stdout) Close() error { return nil }

// appendLines appends [0] tag: [[seconds, metadata], body] for each record.
func appendLines(dst []byte, tag string, chunk []byte) []byte {
	i := 0
	for r := record.NewReader(chunk); r.Next(); i++ {
		dst = strconv.AppendInt(append(dst, '['), int64(i), 10)
		dst = append(append(append(dst, "] "...), tag...), ": [["...)
		dst = append(nanoseconds(dst, r.Time), ", "...)
		if r.Meta == nil {
			dst = append(dst, "{}"...)
		} else {
			dst = appendRuby(dst, r.Meta, 0)
		}
		dst = append(appendRuby(append(dst, "], "...), r.Body, 0), "]\n"...)
	}
	return dst
}

// seconds appends a time with six digits behind the point.
func seconds(dst []byte, t record.Time) []byte {
	return fmt.Appendf(dst, "%d.%06d", t.Sec, t.Nsec/1000)
}

// nanoseconds appends a time with nine digits behind the point.
func nanoseconds(dst []byte, t record.Time) []byte {
	return fmt.Appendf(dst, "%d.%09d", t.Sec, t.Nsec)
}
