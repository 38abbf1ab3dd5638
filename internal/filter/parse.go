package filter

import (
	"errors"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// ParserOptions are the settings of the filter parser.
type ParserOptions struct {
	KeyName     string           // the field that is parsed, a record accessor
	Parsers     []*parser.Parser // the first that fits is used
	PreserveKey bool             // the field stays
	ReserveData bool             // all other fields stay
	UnescapeKey bool             // the text is unescaped before
}

type parse struct {
	path record.Path
	o    ParserOptions
}

// NewParser makes the filter that takes the text of a field apart. An event of
// which the text fits no parser stays as it is.
func NewParser(o ParserOptions) (Filter, error) {
	p := &parse{o: o}
	var problems []error
	if o.KeyName == "" {
		problems = append(problems, errors.New("key_name is missing: it names the field that is parsed"))
	} else {
		var err error
		if p.path, err = record.ParsePath(o.KeyName); err != nil {
			problems = append(problems, err)
		}
	}
	if len(o.Parsers) == 0 {
		problems = append(problems, errors.New("parser is missing: it names a [PARSER]"))
	}
	return p, named("parser", problems)
}

func (p *parse) Filter(in Input, out *Output) Verdict {
	text, ok := record.Text(p.path.Find(in.Body))
	if !ok {
		return Keep
	}
	if p.o.UnescapeKey {
		text = parser.Unescape(text)
	}
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for _, with := range p.o.Parsers {
		parsed, t, err := with.Parse(nil, text, in.Time)
		if err == nil {
			return p.replace(s, in, parsed, t, out)
		} else if !errors.Is(err, parser.ErrNoFit) {
			out.Trouble = err
		}
	}
	return Keep
}

// replace puts the fields that were parsed in front of those that stay.
func (p *parse) replace(s *scratch, in Input, parsed []byte, t record.Time, out *Output) Verdict {
	body, err := record.ParseBody(nil, parsed)
	if err != nil || !s.parse(in.Event) {
		return Keep
	}
	for _, f := range s.body {
		isKey := !p.path.Nested() && string(f.Key) == p.path.Key()
		stays := p.o.ReserveData && !isKey || p.o.PreserveKey && isKey
		if stays && body.Index(string(f.Key)) < 0 {
			body = append(body, f)
		}
	}
	s.body = append(s.body[:0], body...)
	return s.emit(out, t, in.Event)
}
