package parser

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/spell"
)

// Table holds parsers by their names: those of a configuration, and the built-in
// ones that it does not define itself.
type Table struct {
	parsers   map[string]*Parser
	multiline map[string]*Multiline
}

// ReadTable reads the sections [PARSER] and [MULTILINE_PARSER]. What is wrong
// with them goes to the report, and the parser is left out.
func ReadTable(sections []*fluentconf.Section, r *fluentconf.Report) *Table {
	t := &Table{map[string]*Parser{}, map[string]*Multiline{}}
	for _, s := range sections {
		if s.Kind == fluentconf.Parser {
			t.readParser(s, r)
		}
	}
	for _, o := range BuiltIn() {
		if t.parsers[o.Name] == nil {
			t.parsers[o.Name] = must(New(o))
		}
	}
	for _, s := range sections { // they may name parsers that stand behind them
		if s.Kind == fluentconf.MultilineParser {
			t.readMultiline(s, r)
		}
	}
	for _, o := range BuiltInMultiline() {
		if t.multiline[o.Name] == nil {
			t.multiline[o.Name] = must(NewMultiline(o))
		}
	}
	return t
}

// must is for what is built in.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// Parser is the parser of a name.
func (t *Table) Parser(name string) (*Parser, error) {
	if p := t.parsers[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no parser %q%s; Parsers_File in [SERVICE] names the file in which parsers are defined", name, spell.Hint(name, slices.Sorted(maps.Keys(t.parsers))))
}

// Multiline is the multiline parser of a name.
func (t *Table) Multiline(name string) (*Multiline, error) {
	if m := t.multiline[name]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("there is no multiline parser %q%s; Parsers_File in [SERVICE] names the file in which they are defined", name, spell.Hint(name, slices.Sorted(maps.Keys(t.multiline))))
}

// setting reads the value of one key.
type setting func(value string) error

// repeated are the settings that may stand in a section several times.
var repeated = []string{"decode_field", "decode_field_as", "rule"}

// set reads the entries of a section, and reports whether all are right. Of a
// setting that is there twice the first counts.
func set(s *fluentconf.Section, settings map[string]setting, r *fluentconf.Report) (ok bool) {
	ok = true
	there := map[string]bool{}
	for _, e := range s.Entries {
		read := settings[e.Key]
		if there[e.Key] && !slices.Contains(repeated, e.Key) {
			r.Notice(e.At, "%s was set before, which counts; this one is left out", e.Key)
			continue
		}
		there[e.Key] = true
		if read == nil {
			r.Problem(e.At, "[%s] has no setting %q%s", strings.ToUpper(s.Kind), e.Key, spell.Hint(e.Key, slices.Sorted(maps.Keys(settings))))
			ok = false
		} else if err := read(e.Value); err != nil {
			r.Problem(e.At, "%s: %v", e.Key, err)
			ok = false
		}
	}
	return ok
}

func intoText(to *string) setting {
	return func(value string) error { *to = value; return nil }
}

// intoFlag reads a flag; unlike those that are on by default and named for the
// opposite here.
func intoFlag(to *bool, unlike bool) setting {
	return func(value string) error {
		on, err := fluentconf.ParseFlag(value)
		*to = on != unlike
		return err
	}
}

func (t *Table) readParser(s *fluentconf.Section, r *fluentconf.Report) {
	var o Options
	decoder := func(as bool) setting {
		return func(value string) error {
			o.DecodeFields = append(o.DecodeFields, Decoder{as, value})
			return nil
		}
	}
	ok := set(s, map[string]setting{
		"name": intoText(&o.Name), "format": func(value string) error { o.Format = strings.ToLower(value); return nil }, "regex": intoText(&o.Regex),
		"time_key": intoText(&o.TimeKey), "time_format": intoText(&o.TimeFormat), "time_offset": intoText(&o.TimeOffset),
		"time_keep": intoFlag(&o.TimeKeep, false), "time_strict": intoFlag(&o.TimeLenient, true),
		"time_system_timezone": intoFlag(&o.TimeSystemTimezone, false),
		"types":                intoText(&o.Types), "skip_empty_values": intoFlag(&o.KeepEmptyValues, true),
		"logfmt_no_bare_keys": intoFlag(&o.LogfmtNoBareKeys, false), "decode_field": decoder(false), "decode_field_as": decoder(true),
	}, r)
	if !t.mayAdd(s, o.Name, t.parsers[o.Name] != nil, r) || !ok {
		return
	}
	p, err := New(o)
	if err != nil {
		r.Problem(s.At, "%v", err)
		return
	}
	if notice := p.Notice(); notice != "" {
		r.Notice(s.At, "%s", notice)
	}
	t.parsers[o.Name] = p
}

// mayAdd refuses a section without a name; of two with one name the first counts.
func (t *Table) mayAdd(s *fluentconf.Section, name string, there bool, r *fluentconf.Report) bool {
	if name == "" {
		r.Problem(s.At, "[%s] has no name; give it one by Name", strings.ToUpper(s.Kind))
	} else if there {
		r.Notice(s.At, "[%s] %s was defined before, which counts; this one is left out", strings.ToUpper(s.Kind), name)
	}
	return name != "" && !there
}

func (t *Table) readMultiline(s *fluentconf.Section, r *fluentconf.Report) {
	var o MultilineOptions
	ok := set(s, map[string]setting{
		"name": intoText(&o.Name), "type": intoText(&o.Type), "key_content": intoText(&o.KeyContent), "key_group": intoText(&o.KeyGroup),
		"key_pattern": intoText(&o.KeyPattern), "match_string": intoText(&o.Match), "negate": intoFlag(&o.Negate, false),
		"parser": func(value string) (err error) {
			o.With, err = t.Parser(value)
			return err
		},
		"flush_timeout": func(value string) (err error) {
			if ms, ok := strconv.ParseUint(value, 10, 32); ok == nil { // a number is of milliseconds here
				o.FlushTimeout = time.Duration(ms) * time.Millisecond
				return nil
			}
			o.FlushTimeout, err = fluentconf.ParseSpan(value)
			return err
		},
		"rule": func(value string) error {
			rule, ok := ruleWords(value)
			if !ok {
				return fmt.Errorf(`%s is not: "state" "/expression/" "next state", with the quotes`, value)
			}
			o.Rules = append(o.Rules, rule)
			return nil
		},
	}, r)
	for _, inner := range s.Inner { // in YAML
		var rule Rule
		if inner.Kind != "rules" && inner.Kind != "rule" {
			r.Problem(inner.At, "[%s] has no setting %q%s", strings.ToUpper(s.Kind), inner.Kind, spell.Hint(inner.Kind, []string{"rules"}))
			ok = false
			continue
		}
		ok = set(inner, map[string]setting{"state": intoText(&rule.State), "regex": intoText(&rule.Regex), "next_state": intoText(&rule.Next)}, r) && ok
		o.Rules = append(o.Rules, rule)
	}
	if !t.mayAdd(s, o.Name, t.multiline[o.Name] != nil, r) || !ok {
		return
	}
	m, err := NewMultiline(o)
	if err != nil {
		r.Problem(s.At, "%v", err)
		return
	}
	for _, notice := range m.Notices() {
		r.Notice(s.At, "%s", notice)
	}
	t.multiline[o.Name] = m
}

// ruleWords takes a rule apart: a state, an expression, in which quotes and spaces
// may stand, and the next state.
func ruleWords(text string) (rule Rule, ok bool) {
	first, rest, ok1 := strings.Cut(strings.TrimSpace(strings.TrimPrefix(text, `"`)), `"`)
	if rest, ok = strings.CutSuffix(strings.TrimSpace(rest), `"`); !ok || !ok1 || !strings.HasPrefix(text, `"`) {
		return rule, false
	}
	i := strings.LastIndexByte(rest, '"')
	if i < 0 {
		return rule, false
	}
	expr, next := strings.TrimSpace(rest[:i]), rest[i+1:]
	n := len(expr)
	if n < 2 || expr[0] != '"' || expr[n-1] != '"' {
		return rule, false
	}
	return Rule{first, expr[1 : n-1], next}, true
}
