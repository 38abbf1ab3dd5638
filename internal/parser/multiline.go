package parser

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rule is one line of a multiline parser: in State a line that Regex finds
// itself in is taken, and Next is the state for the lines behind it. The state
// of a first line is start_state; a Next of start_state ends the message.
type Rule struct {
	State string // several with commas between them
	Regex string
	Next  string
}

const startState = "start_state"

// MultilineOptions are the settings of a [MULTILINE_PARSER].
type MultilineOptions struct {
	Name string

	// Type is how lines are joined. regex ("" = regex) goes by Rules. endswith
	// and equal, the ways of container runtimes, go by the field KeyPattern
	// ("" = KeyContent): the message ends with a record in which that ends with,
	// or is, Match. Negate turns that round.
	Type       string
	Rules      []Rule
	Match      string
	Negate     bool
	KeyPattern string

	// A Parser makes records of the lines first; KeyContent is the field of the
	// records that is joined, KeyGroup one whose values are joined apart.
	Parser     *Options
	With       *Parser // one that is there already, in place of Parser
	KeyContent string
	KeyGroup   string

	FlushTimeout time.Duration // 0 = 5 s
}

// FlushTimeoutDefault is how long a message waits for its next line.
const FlushTimeoutDefault = 5 * time.Second

// Multiline is a multiline parser. It may be used by many goroutines.
type Multiline struct {
	options MultilineOptions
	parser  *Parser
	rules   map[string][]rule // by state
}

type rule struct {
	expr *Expr
	next string
}

// NewMultiline makes a multiline parser, or says what is wrong with its settings.
func NewMultiline(o MultilineOptions) (*Multiline, error) {
	m := &Multiline{options: o, rules: map[string][]rule{}}
	if m.options.FlushTimeout == 0 {
		m.options.FlushTimeout = FlushTimeoutDefault
	}
	var problems []error
	switch o.Type = strings.ToLower(o.Type); o.Type {
	case "", "regex":
		m.options.Type = "regex"
		problems = m.setRules()
	case "endswith", "equal":
		m.options.Type = o.Type
		if o.KeyContent == "" && (o.Parser != nil || o.With != nil) {
			problems = append(problems, errors.New("key_content is missing: it names the field that is joined"))
		}
	default:
		problems = append(problems, fmt.Errorf("type %q is not known; the types are regex, endswith and equal", o.Type))
	}
	if o.FlushTimeout < 0 {
		problems = append(problems, errors.New("flush_timeout is less than 0"))
	}
	if m.parser = o.With; o.Parser != nil {
		var err error
		if m.parser, err = New(*o.Parser); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("multiline parser %s: %w", o.Name, err)
	}
	return m, nil
}

func (m *Multiline) setRules() (problems []error) {
	for _, r := range m.options.Rules {
		expr, err := Compile(r.Regex)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for state := range strings.SplitSeq(r.State, ",") {
			state = strings.TrimSpace(state)
			m.rules[state] = append(m.rules[state], rule{expr, strings.TrimSpace(r.Next)})
		}
	}
	if len(m.rules[startState]) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New(`no rule has the state start_state, which a first line needs; write rule "start_state" "/.../" "cont"`))
	}
	for _, r := range m.options.Rules {
		next := strings.TrimSpace(r.Next)
		if _, ok := m.rules[next]; !ok && len(problems) == 0 && next != startState {
			problems = append(problems, fmt.Errorf("a rule goes on to the state %q, which no rule has", next))
		}
	}
	return problems
}

// Name is the name of the multiline parser.
func (m *Multiline) Name() string { return m.options.Name }

// KeyContent is the field of records that is joined.
func (m *Multiline) KeyContent() string { return m.options.KeyContent }

// Joining is the same parser for records that have the text in another field.
func (m *Multiline) Joining(key string) *Multiline {
	other := *m
	other.options.KeyContent = key
	return &other
}

// FlushTimeout is how long a message waits for its next line.
func (m *Multiline) FlushTimeout() time.Duration { return m.options.FlushTimeout }

// Notices are what a person should know about its expressions.
func (m *Multiline) Notices() (notices []string) {
	for _, rules := range m.rules {
		for _, r := range rules {
			if notice := r.expr.Notice(); notice != "" {
				notices = append(notices, "multiline parser "+m.options.Name+": "+notice)
			}
		}
	}
	slices.Sort(notices)
	return slices.Compact(notices)
}

// next returns the state behind a text in a state, if there is a rule for it.
func (m *Multiline) next(state string, text []byte) (next string, ok bool) {
	for _, r := range m.rules[state] {
		if found, err := r.expr.Match(text); err == nil && found {
			return r.next, true
		}
	}
	return "", false
}

// ends reports whether a record of which this is the pattern field is the last
// of its message.
func (m *Multiline) ends(pattern []byte) bool {
	is := bytes.HasSuffix(pattern, []byte(m.options.Match))
	if m.options.Type == "equal" {
		is = string(pattern) == m.options.Match
	}
	return is != m.options.Negate
}
