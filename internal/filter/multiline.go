package filter

import (
	"errors"
	"time"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// MultilineOptions are the settings of the filter multiline.
type MultilineOptions struct {
	Parsers    []*parser.Multiline // the first that takes a record is used
	KeyContent string              // the field that is joined; "" = what each parser says
}

type multiline struct {
	parsers []*parser.Multiline
}

// NewMultiline makes the filter that joins records which belong together. It
// joins what comes in together, in one chunk, and keeps nothing back: a record
// that waited for its next one in memory would be lost with the process. So
// multiline.parser of an input, which waits, joins more.
func NewMultiline(o MultilineOptions) (Filter, error) {
	m := &multiline{}
	var problems []error
	if len(o.Parsers) == 0 {
		problems = append(problems, errors.New("multiline.parser is missing: it names a multiline parser, such as java"))
	}
	for _, p := range o.Parsers {
		if o.KeyContent != "" {
			p = p.Joining(o.KeyContent)
		}
		if p.KeyContent() == "" {
			problems = append(problems, errors.New("multiline.key_content is missing: it names the field that is joined, most often log"))
		}
		m.parsers = append(m.parsers, p)
	}
	return m, named("multiline", problems)
}

// Filter keeps the event: alone it belongs to no other.
func (*multiline) Filter(Input, *Output) Verdict { return Keep }

// chunk joins the events of a chunk. What is joined has the time of its first
// event, and no metadata.
func (m *multiline) chunk(now time.Time, chunk []byte, out *Output) (counts Counts, err error) {
	joiner, err := parser.NewJoiner("", m.parsers...)
	if err != nil {
		return counts, err
	}
	r := record.NewReader(chunk)
	left := 0
	emit := func(t record.Time, body []byte) {
		left++
		if len(body) > 0 && &body[0] == &r.Body[0] { // it was not taken
			out.Events = append(out.Events, r.Raw...)
			return
		}
		out.Events = record.AppendEvent(out.Events, t, nil, body)
	}
	for ; r.Next(); counts.Records++ {
		joiner.Record(now, r.Time, r.Body, emit)
	}
	joiner.Flush(emit)
	counts.Dropped = max(counts.Records-left, 0)
	counts.Added = max(left-counts.Records, 0)
	return counts, r.Err()
}
