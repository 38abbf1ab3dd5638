package parser

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// The limits of what a joiner holds. A message that reaches one is emitted as
// it is, and what follows is another.
const (
	JoinBytesMax  = 2 << 20
	JoinLinesMax  = 10_000
	joinGroupsMax = 64
)

// Emit gets each record that is ready. The body is valid during the call only.
type Emit func(t record.Time, body []byte)

// Joiner joins the lines of one stream: one file, or one tag. The time is an
// argument of each call; one goroutine uses it at a time.
type Joiner struct {
	parsers []*Multiline
	key     string // of a line that is only a text
	open    []*message
	seen    int // lines and records that were taken
	body    record.Body
	parsed  []byte
	out     []byte
}

// message is what waits for its next line.
type message struct {
	by    *Multiline
	group string
	state string
	first int         // of what the joiner has seen, its first line
	time  record.Time // of that
	body  []byte      // of its first record; nil = it was a text
	text  []byte
	lines int
	due   time.Time
}

// NewJoiner makes a joiner by the multiline parsers of which the first that
// takes a line is used. A line without a parser becomes the field key.
func NewJoiner(key string, parsers ...*Multiline) (*Joiner, error) {
	if len(parsers) == 0 {
		return nil, errors.New("no multiline parser is given")
	}
	return &Joiner{parsers: parsers, key: key}, nil
}

// Line takes one line of a file, without the end of the line.
func (j *Joiner) Line(now time.Time, t record.Time, line []byte, emit Emit) {
	j.seen++
	taken := j.first(func(m *Multiline) bool {
		if m.parser == nil {
			return j.take(m, now, t, nil, line, emit)
		}
		parsed, at, err := m.parser.Parse(j.parsed[:0], line, t)
		j.parsed = parsed
		return err == nil && j.record(m, now, at, parsed, emit)
	})
	if !taken {
		j.Flush(emit)
		j.emitText(t, line, j.parsers[0].options.Type == "regex", emit)
	}
}

// Record takes one record.
func (j *Joiner) Record(now time.Time, t record.Time, body []byte, emit Emit) {
	j.seen++
	if !j.first(func(m *Multiline) bool { return j.record(m, now, t, body, emit) }) {
		j.Flush(emit)
		emit(t, body)
	}
}

// first asks the multiline parsers that have begun a message, then the others,
// until one takes what it is asked about.
func (j *Joiner) first(takes func(*Multiline) bool) bool {
	for _, begun := range [...]bool{true, false} {
		for _, m := range j.parsers {
			if begun == slices.ContainsFunc(j.open, func(open *message) bool { return open.by == m }) && takes(m) {
				return true
			}
		}
	}
	return false
}

// record gives the content of a record to a multiline parser.
func (j *Joiner) record(m *Multiline, now time.Time, t record.Time, body []byte, emit Emit) bool {
	var err error
	if j.body, err = record.ParseBody(j.body, body); err != nil {
		return false
	}
	i := j.body.Index(m.options.KeyContent)
	if i < 0 {
		return false
	}
	text, ok := record.Text(j.body[i].Value)
	return ok && j.take(m, now, t, body, text, emit)
}

// take gives a text to a multiline parser, and reports whether that wanted it.
func (j *Joiner) take(m *Multiline, now time.Time, t record.Time, body, text []byte, emit Emit) bool {
	group := ""
	if body != nil {
		group = j.field(m.options.KeyGroup)
	}
	at := j.find(m, group)
	if m.options.Type != "regex" {
		pattern := text
		if body != nil && m.options.KeyPattern != "" {
			pattern = []byte(j.field(m.options.KeyPattern))
		}
		if at < 0 {
			at = j.begin(m, group, now, t, body, emit)
		}
		if j.add(at, now, text, emit) && m.ends(pattern) {
			j.end(at, emit)
		}
		return true
	}
	if at >= 0 {
		if next, ok := m.next(j.open[at].state, text); ok {
			j.open[at].state = next
			if j.add(at, now, text, emit) && next == startState {
				j.end(at, emit)
			}
			return true
		}
		j.end(at, emit)
	}
	next, ok := m.next(startState, text)
	if !ok {
		return false
	}
	at = j.begin(m, group, now, t, body, emit)
	j.open[at].state = next
	if j.add(at, now, text, emit) && next == startState {
		j.end(at, emit)
	}
	return true
}

// field is the text of a field of the record at hand.
func (j *Joiner) field(key string) string {
	if i := j.body.Index(key); i >= 0 && key != "" {
		text, _ := record.Text(j.body[i].Value)
		return string(text)
	}
	return ""
}

func (j *Joiner) find(m *Multiline, group string) int {
	for i, open := range j.open {
		if open.by == m && open.group == group {
			return i
		}
	}
	return -1
}

func (j *Joiner) begin(m *Multiline, group string, now time.Time, t record.Time, body []byte, emit Emit) int {
	if len(j.open) == joinGroupsMax {
		j.end(0, emit)
	}
	j.open = append(j.open, &message{by: m, group: group, first: j.seen, time: t, body: bytes.Clone(body), due: now.Add(m.options.FlushTimeout)})
	return len(j.open) - 1
}

// add adds a text to a message, and reports whether that is still open.
func (j *Joiner) add(at int, now time.Time, text []byte, emit Emit) bool {
	open := j.open[at]
	open.text = append(open.text, text...)
	if open.by.options.Type == "regex" && !bytes.HasSuffix(text, []byte{'\n'}) {
		open.text = append(open.text, '\n')
	}
	open.lines++
	open.due = now.Add(open.by.options.FlushTimeout)
	if len(open.text) < JoinBytesMax && open.lines < JoinLinesMax {
		return true
	}
	state, by, group, t, body := open.state, open.by, open.group, open.time, open.body
	j.end(at, emit)
	if by.options.Type == "regex" && state != startState { // what follows goes on
		j.open = append(j.open, &message{by: by, group: group, state: state, first: j.seen + 1, time: t, body: body, due: now.Add(by.options.FlushTimeout)})
	}
	return false
}

// end emits a message.
func (j *Joiner) end(at int, emit Emit) {
	open := j.open[at]
	j.open = append(j.open[:at], j.open[at+1:]...)
	if open.lines == 0 {
		return
	}
	if open.body == nil {
		j.emitText(open.time, open.text, false, emit)
		return
	}
	body, err := record.ParseBody(nil, open.body)
	if err != nil { // it was read before
		return
	}
	body = body.Set(open.by.options.KeyContent, msgp.AppendStringFromBytes(nil, open.text))
	j.out = body.Append(j.out[:0])
	emit(open.time, j.out)
}

// emitText emits a text as a record of one field.
func (j *Joiner) emitText(t record.Time, text []byte, breakLine bool, emit Emit) {
	j.out = msgp.AppendString(msgp.AppendMapHeader(j.out[:0], 1), j.key)
	if breakLine && !bytes.HasSuffix(text, []byte{'\n'}) {
		text = append(bytes.Clone(text), '\n')
	}
	j.out = msgp.AppendStringFromBytes(j.out, text)
	emit(t, j.out)
}

// Held is how many of the last lines have to come again, if what waits is lost.
func (j *Joiner) Held() (held int) {
	for _, open := range j.open {
		held = max(held, j.seen-open.first+1)
	}
	return held
}

// Due is when Expire has to be called next; zero = nothing waits.
func (j *Joiner) Due() (due time.Time) {
	for _, open := range j.open {
		if due.IsZero() || open.due.Before(due) {
			due = open.due
		}
	}
	return due
}

// Expire emits what has waited too long for its next line.
func (j *Joiner) Expire(now time.Time, emit Emit) {
	for i := 0; i < len(j.open); {
		if j.open[i].due.After(now) {
			i++
			continue
		}
		j.end(i, emit)
	}
}

// Flush emits all that waits.
func (j *Joiner) Flush(emit Emit) {
	for len(j.open) > 0 {
		j.end(0, emit)
	}
}
