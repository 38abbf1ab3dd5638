package fluent

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/plugin"
)

// readParsers reads the files of parsers that the configuration names, and the parsers in
// its YAML.
func (l *loader) readParsers(conf *fluentconf.Config) *parser.Table {
	list := slices.Clone(conf.Sections)
	for _, s := range l.service.All("parsers_file") {
		list = append(list, conf.Parsers(s.Value, s.At, l.From, l.Report)...)
	}
	for _, path := range l.Flags.Parsers {
		list = append(list, conf.Parsers(path, fluentconf.CommandLine, l.From, l.Report)...)
	}
	return parser.ReadTable(list, l.Report)
}

// parsersOf are the parsers that a property names. A problem says which are not there.
func (l *loader) parsersOf(v *plugin.Values, property string) (list []*parser.Parser) {
	for _, name := range v.List(property) {
		p, err := l.parsers.Parser(name)
		if err != nil {
			l.Problem(v.Place(property), "%s: %v", property, err)
			continue
		}
		if text := p.Notice(); text != "" {
			l.Notice(v.Place(property), "parser %s: %s", name, text)
		}
		list = append(list, p)
	}
	return list
}

// linesOf makes events of the lines of an input by the parsers that it names; nil = each
// line is a field.
func (l *loader) linesOf(v *plugin.Values, key string) func() connect.Lines {
	if v.Plugin.Property("multiline.parser") != nil && v.Has("multiline.parser") {
		return l.joined(v, key)
	}
	list := l.parsersOf(v, "parser")
	if list == nil {
		return nil
	}
	return func() connect.Lines { return parser.NewLines(key, list...) }
}

func (l *loader) joined(v *plugin.Values, key string) func() connect.Lines {
	list := l.multilinesOf(v)
	if _, err := parser.NewJoinedLines(key, list...); err != nil {
		l.Problem(v.Place("multiline.parser"), "multiline.parser: %v", err)
		return nil
	}
	return func() connect.Lines {
		lines, _ := parser.NewJoinedLines(key, list...) // tried above
		return lines
	}
}

func (l *loader) multilinesOf(v *plugin.Values) (list []*parser.Multiline) {
	for _, name := range v.List("multiline.parser") {
		m, err := l.parsers.Multiline(strings.TrimSpace(name))
		if err != nil {
			l.Problem(v.Place("multiline.parser"), "multiline.parser: %v", err)
			continue
		}
		list = append(list, m)
	}
	return list
}
