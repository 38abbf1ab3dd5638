package parser

import (
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// These make events of the lines of one stream, in the way sources ask for it
// (connect.Lines): each by itself, joined by multiline parsers, or joined by the
// parser of first lines. One goroutine uses one at a time.

// Lines makes an event of each line. A line that fits none of its parsers
// becomes the field key.
type Lines struct {
	key     string
	parsers []*Parser
	body    []byte
}

// NewLines makes what parses each line by the first parser that fits.
func NewLines(key string, parsers ...*Parser) *Lines {
	return &Lines{key: key, parsers: parsers}
}

// Line appends the event of a line.
func (l *Lines) Line(dst, line []byte, now time.Time) (out []byte, events, held int) {
	t, ok := record.At(now), false
	if l.body, t, ok = parseFirst(l.body[:0], line, t, l.parsers); ok {
		return record.AppendEvent(dst, t, nil, l.body), 1, 0
	}
	return record.AppendText(dst, t, l.key, line), 1, 0
}

// Rest appends nothing: no line waits.
func (l *Lines) Rest(dst []byte, _ time.Time) (out []byte, events int) { return dst, 0 }

// parseFirst parses by the first parser that fits.
func parseFirst(dst, text []byte, now record.Time, parsers []*Parser) (out []byte, t record.Time, ok bool) {
	for _, p := range parsers {
		if out, t, err := p.Parse(dst, text, now); err == nil {
			return out, t, true
		}
	}
	return dst, now, false
}

// JoinedLines makes events of the lines that multiline parsers join.
type JoinedLines struct {
	joiner *Joiner
	dst    []byte
	events int
}

// NewJoinedLines makes what joins lines. A line that no parser takes becomes the
// field key.
func NewJoinedLines(key string, parsers ...*Multiline) (*JoinedLines, error) {
	joiner, err := NewJoiner(key, parsers...)
	return &JoinedLines{joiner: joiner}, err
}

// Line appends the events that are whole with a line.
func (l *JoinedLines) Line(dst, line []byte, now time.Time) (out []byte, events, held int) {
	l.dst, l.events = dst, 0
	l.joiner.Line(now, record.At(now), line, l.emit)
	return l.dst, l.events, l.joiner.Held()
}

// Rest appends what waits.
func (l *JoinedLines) Rest(dst []byte, _ time.Time) (out []byte, events int) {
	l.dst, l.events = dst, 0
	l.joiner.Flush(l.emit)
	return l.dst, l.events
}

func (l *JoinedLines) emit(t record.Time, body []byte) {
	l.dst = record.AppendEvent(l.dst, t, nil, body)
	l.events++
}

// FirstLines makes events of lines in the old way of tail: a line that fits the
// parser of first lines begins an event. Of a line behind it each of the other
// parsers may make further fields; one that fits none goes to the end of the
// last text of the event.
type FirstLines struct {
	key    string
	first  *Parser
	others []*Parser

	lines int // of the event that waits
	time  record.Time
	body  record.Body
	last  int    // the field with the last text, or -1
	text  []byte // that text
	raw   []byte
}

// NewFirstLines makes what joins the lines behind a first line to it.
func NewFirstLines(key string, first *Parser, others ...*Parser) *FirstLines {
	return &FirstLines{key: key, first: first, others: others}
}

// Line appends the events that are whole with a line.
func (l *FirstLines) Line(dst, line []byte, now time.Time) (out []byte, events, held int) {
	parsed, t, err := l.first.Parse(nil, line, record.At(now))
	if err != nil && l.lines == 0 {
		return record.AppendText(dst, record.At(now), l.key, line), 1, 0
	}
	if err == nil {
		dst, events = l.Rest(dst, now)
		l.time, l.last = t, -1
		if l.body, err = record.ParseBody(nil, parsed); err != nil { // it was made just now
			return dst, events, 0
		}
		l.add(l.body)
	} else if more, _, ok := parseFirst(nil, line, record.At(now), l.others); ok {
		if fields, err := record.ParseBody(nil, more); err == nil {
			l.add(fields)
		}
	} else {
		l.text = append(append(l.text, '\n'), line...)
	}
	if l.lines++; l.lines >= JoinLinesMax || len(l.text) >= JoinBytesMax {
		var more int
		dst, more = l.Rest(dst, now)
		events += more
	}
	return dst, events, l.lines
}

// add adds fields and finds the last text among them.
func (l *FirstLines) add(fields record.Body) {
	for _, f := range fields {
		l.settle()
		l.body = l.body.Set(string(f.Key), f.Value)
		if text, ok := record.Text(f.Value); ok {
			l.last, l.text = l.body.Index(string(f.Key)), append(l.text[:0], text...)
		}
	}
}

// settle writes the text that grew into its field; without one into a new field.
func (l *FirstLines) settle() {
	switch {
	case l.last >= 0:
		l.body[l.last].Value = msgp.AppendStringFromBytes(nil, l.text)
	case len(l.text) > 0:
		l.body = l.body.Set(l.key, msgp.AppendStringFromBytes(nil, l.text))
	}
	l.last, l.text = -1, l.text[:0]
}

// Rest appends the event that waits.
func (l *FirstLines) Rest(dst []byte, _ time.Time) (out []byte, events int) {
	if l.lines == 0 {
		return dst, 0
	}
	l.settle()
	l.raw = l.body.Append(l.raw[:0])
	l.lines, l.body = 0, nil
	return record.AppendEvent(dst, l.time, nil, l.raw), 1
}
