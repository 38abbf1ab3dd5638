package fluent

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/plugin"
	"github.com/reprisehq/reprise/internal/record"
	"github.com/reprisehq/reprise/internal/spell"
)

// parsers are those that sections can name.
type parsers struct {
	options map[string]parser.Options
	at      map[string]fluentconf.Place // of those that the configuration defines
	made    map[string]*parser.Parser
}

// readParsers reads the files of parsers, and the parsers in YAML.
func (l *loader) readParsers(conf *fluentconf.Config, service *plugin.Values) *parsers {
	p := &parsers{map[string]parser.Options{}, map[string]fluentconf.Place{}, map[string]*parser.Parser{}}
	for _, o := range parser.BuiltIn() {
		p.options[o.Name] = o
	}
	list := slices.Clone(conf.Sections)
	for _, s := range service.All("parsers_file") {
		list = append(list, conf.Parsers(s.Value, s.At, l.From, l.Report)...)
	}
	for _, path := range l.Flags.Parsers {
		list = append(list, conf.Parsers(path, fluentconf.CommandLine, l.From, l.Report)...)
	}
	for _, s := range list {
		switch s.Kind {
		case fluentconf.Parser:
			l.define(p, s)
		case fluentconf.MultilineParser:
			l.Notice(s.At, "multiline parsers of a configuration's own are not used yet")
		}
	}
	return p
}

// define reads one [PARSER].
func (l *loader) define(p *parsers, s *fluentconf.Section) {
	o := parser.Options{}
	for _, e := range s.Entries {
		flag := func(to *bool, turned bool) {
			on, err := fluentconf.ParseFlag(e.Value)
			if err != nil {
				l.Problem(e.At, "%s: %v", e.Key, err)
			}
			*to = on != turned
		}
		switch e.Key {
		case "name":
			o.Name = e.Value
		case "format":
			o.Format = strings.ToLower(e.Value)
		case "regex":
			o.Regex = e.Value
		case "time_key":
			o.TimeKey = e.Value
		case "time_format":
			o.TimeFormat = e.Value
		case "time_offset":
			o.TimeOffset = e.Value
		case "time_keep":
			flag(&o.TimeKeep, false)
		case "time_strict":
			flag(&o.TimeLenient, true)
		case "time_system_timezone":
			flag(&o.TimeSystemTimezone, false)
		case "types":
			o.Types = e.Value
		case "skip_empty_values":
			flag(&o.KeepEmptyValues, true)
		case "logfmt_no_bare_keys":
			flag(&o.LogfmtNoBareKeys, false)
		case "decode_field", "decode_field_as":
			o.DecodeFields = append(o.DecodeFields, parser.Decoder{As: e.Key == "decode_field_as", Rule: e.Value})
		default:
			l.Problem(e.At, "a parser has no %s%s", strconv.Quote(e.Key), spell.Hint(e.Key, parserKeys))
		}
	}
	if o.Name == "" {
		l.Problem(s.At, "this parser has no name; write one")
		return
	}
	if at, twice := p.at[o.Name]; twice {
		l.Problem(s.At, "the parser %s is defined twice, also at %s; take one out", strconv.Quote(o.Name), at)
		return
	}
	p.at[o.Name], p.options[o.Name] = s.At, o
	p.make(l, o.Name, s.At)
}

var parserKeys = []string{
	"name", "format", "regex", "time_key", "time_format", "time_offset", "time_keep", "time_strict", "time_system_timezone",
	"types", "skip_empty_values", "logfmt_no_bare_keys", "decode_field", "decode_field_as",
}

func (p *parsers) make(l *loader, name string, at fluentconf.Place) *parser.Parser {
	if made, is := p.made[name]; is {
		return made
	}
	o := p.options[name]
	o.System = time.Local
	made, err := parser.New(o)
	if err != nil {
		l.Problem(at, "parser %s: %v", name, err)
	} else if text := made.Notice(); text != "" {
		l.Notice(at, "parser %s: %s", name, text)
	}
	p.made[name] = made
	return made
}

// parser finds one by its name; nil, with a problem, if there is none.
func (l *loader) parser(at fluentconf.Place, name string) *parser.Parser {
	if _, is := l.parsers.options[name]; !is {
		var names []string
		for known := range l.parsers.options {
			names = append(names, known)
		}
		slices.Sort(names)
		l.Problem(at, "there is no parser %s%s; name the file that defines it by Parsers_File in [SERVICE]", strconv.Quote(name), spell.Hint(name, names))
		return nil
	}
	return l.parsers.make(l, name, at)
}

// lines makes events of lines by a parser. A line that does not fit it is kept under the key.
type lines struct {
	parser *parser.Parser
	key    string
	body   []byte
}

func (x *lines) Line(dst, line []byte, now time.Time) (out []byte, events, held int) {
	body, at, err := x.parser.Parse(x.body[:0], line, record.At(now))
	if err != nil {
		return record.AppendText(dst, record.At(now), x.key, line), 1, 0
	}
	x.body = body
	return record.AppendEvent(dst, at, nil, body), 1, 0
}

func (x *lines) Rest(dst []byte, _ time.Time) ([]byte, int) { return dst, 0 }

// joined makes events of lines that belong together.
type joined struct {
	joiner *parser.Joiner
	held   int
}

func (x *joined) Line(dst, line []byte, now time.Time) (out []byte, events, held int) {
	out = dst
	x.held++
	x.joiner.Line(now, record.At(now), line, func(t record.Time, body []byte) {
		out = record.AppendEvent(out, t, nil, body)
		events++
	})
	switch {
	case x.joiner.Due().IsZero():
		x.held = 0
	case events > 0:
		x.held = 1 // the last one begins what comes next
	}
	return out, events, x.held
}

func (x *joined) Rest(dst []byte, _ time.Time) (out []byte, events int) {
	out, x.held = dst, 0
	x.joiner.Flush(func(t record.Time, body []byte) {
		out = record.AppendEvent(out, t, nil, body)
		events++
	})
	return out, events
}

// linesOf are the parsers that an input names; nil = each line is a field.
func (l *loader) linesOf(v *plugin.Values, key string) func() connect.Lines {
	if names := v.List("multiline.parser"); len(names) > 0 {
		return l.joinedBy(v.Place("multiline.parser"), names, key)
	}
	name := v.Text("parser")
	if name == "" {
		return nil
	}
	p := l.parser(v.Place("parser"), name)
	return func() connect.Lines { return &lines{parser: p, key: key} }
}

func (l *loader) joinedBy(at fluentconf.Place, names []string, key string) func() connect.Lines {
	var list []*parser.Multiline
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(parser.BuiltInMultiline(), func(o parser.MultilineOptions) bool { return o.Name == name })
		if i < 0 {
			l.Problem(at, "there is no multiline parser %s; there are %s", strconv.Quote(name), strings.Join(multilineNames(), ", "))
			continue
		}
		m, err := parser.NewMultiline(parser.BuiltInMultiline()[i])
		if err != nil {
			l.Problem(at, "multiline parser %s: %v", name, err)
			continue
		}
		list = append(list, m)
	}
	if _, err := parser.NewJoiner(key, list...); err != nil && len(list) == len(names) {
		l.Problem(at, "multiline.parser: %v", err)
	}
	return func() connect.Lines {
		j, _ := parser.NewJoiner(key, list...) // tried above
		return &joined{joiner: j}
	}
}

func multilineNames() (names []string) {
	for _, o := range parser.BuiltInMultiline() {
		names = append(names, o.Name)
	}
	return names
}
