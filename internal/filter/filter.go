// Package filter holds the filters of a pipeline: what looks at each event and
// keeps, changes or drops it, or puts it in again under another tag. Their
// settings have the original's names and meanings.
//
// A filter decides about one event at a time and waits for nothing; the time is
// an argument. All filters may be used by many goroutines.
package filter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// Verdict is what becomes of an event.
type Verdict uint8

// The verdicts.
const (
	Keep    Verdict = iota // it stays as it is
	Changed                // what was appended to Output.Events takes its place
	Dropped
)

// Filter looks at events.
type Filter interface {
	// Filter looks at one event, which it may not write to or keep.
	Filter(in Input, out *Output) Verdict
}

// whole is a filter that looks at all events of a chunk together.
type whole interface {
	// chunk writes what is left of the events to out.
	chunk(now time.Time, chunk []byte, out *Output) (Counts, error)
}

// Input is an event and where it comes from.
type Input struct {
	Now time.Time
	Tag string
	*record.Event
}

// Output is where filters write to.
type Output struct {
	Events  []byte   // one behind another
	Again   []Tagged // to be put in at the beginning of the pipeline
	Trouble error    // the last thing that went wrong with an event that was kept as it was
}

// Tagged is an event under a new tag. It must not come to the filter that made
// it again, or it may go round for ever.
type Tagged struct {
	Tag   string
	Event []byte
}

// Counts are what a filter did to a chunk.
type Counts struct {
	Records, Dropped, Added int
}

// Run lets a filter look at all events of a chunk. The result is the chunk
// itself if nothing has changed, else it is appended to out.Events, which is
// emptied first. What is broken in a chunk is an error, and what stands before
// that is the result.
func Run(f Filter, now time.Time, tag string, chunk []byte, out *Output) (result []byte, counts Counts, err error) {
	out.Events = out.Events[:0]
	if w, ok := f.(whole); ok {
		counts, err = w.chunk(now, chunk, out)
		return out.Events, counts, err
	}
	r := record.NewReader(chunk)
	in := Input{Now: now, Tag: tag, Event: &r.Event}
	changed := false
	for begin := 0; r.Next(); begin = r.Offset() {
		counts.Records++
		before := len(out.Events)
		verdict := f.Filter(in, out)
		if verdict == Keep {
			if out.Events = out.Events[:before]; changed {
				out.Events = append(out.Events, r.Raw...)
			}
			continue
		}
		written := out.Events[before:]
		if verdict == Dropped {
			written = nil
		}
		n, _, err := record.Count(written)
		if err != nil {
			return nil, counts, fmt.Errorf("a filter wrote what is no event: %w", err)
		}
		counts.Added += max(n-1, 0)
		counts.Dropped += max(1-n, 0)
		if out.Events = out.Events[:before+len(written)]; !changed { // what stands before goes in front
			out.Events = slices.Insert(out.Events, 0, chunk[:begin]...)
			changed = true
		}
	}
	if changed {
		return out.Events, counts, r.Err()
	}
	return chunk[:r.Offset()], counts, r.Err()
}

// scratch is what filters need while they change a body.
type scratch struct {
	body record.Body
	raw  []byte
	text []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// parse takes the body of an event apart.
func (s *scratch) parse(e *record.Event) bool {
	var err error
	s.body, err = record.ParseBody(s.body, e.Body)
	return err == nil
}

// emit appends the event with the body as it is now.
func (s *scratch) emit(out *Output, t record.Time, e *record.Event) Verdict {
	s.raw = s.body.Append(s.raw[:0])
	out.Events = record.AppendEvent(out.Events, t, e.Meta, s.raw)
	return Changed
}

// plain is the value at a path as people read it, and whether there is one.
func (s *scratch) plain(e *record.Event, path record.Path) ([]byte, bool) {
	value := path.Find(e.Body)
	if value == nil {
		return nil, false
	}
	return s.textOf(value), true
}

func (s *scratch) textOf(value []byte) []byte {
	if text, ok := record.Text(value); ok {
		return text
	}
	s.text = record.AppendPlain(s.text[:0], value)
	return s.text
}

// matches tries an expression; one that takes too long does not match.
func matches(e *parser.Expr, text []byte, out *Output) bool {
	ok, err := e.Match(text)
	if err != nil {
		out.Trouble = err
	}
	return ok
}

// cutKey cuts a key, in which spaces may stand between quotes, from what follows.
func cutKey(text string) (key, rest string) {
	text = strings.TrimSpace(text)
	quote := byte(0)
	for i := range len(text) {
		switch c := text[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' && i == 0, (c == '"' || c == '\'') && i > 0 && text[i-1] == '[':
			quote = c
		case c == ' ' || c == '\t':
			return unquote(text[:i]), strings.TrimSpace(text[i:])
		}
	}
	return unquote(text), ""
}

// unquote takes the double quotes around a text away.
func unquote(text string) string {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		return text[1 : n-1]
	}
	return text
}

// pair reads `key value`, of which both have to be there.
func pair(name, text string) (key, value string, err error) {
	if key, value = cutKey(text); key == "" || value == "" {
		return "", "", fmt.Errorf("%s %q is not: key value", name, text)
	}
	return key, unquote(value), nil
}

func rawText(text string) []byte { return msgp.AppendString(nil, text) }

// named puts the name of a filter in front of its problems.
func named(name string, problems []error) error {
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("filter %s: %w", name, err)
	}
	return nil
}
