package filter

import (
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// ModifyOptions are the settings of the filter modify. The rules are applied in
// their order if all conditions hold.
type ModifyOptions struct {
	Rules      []ModifyRule
	Conditions []string // `Key_Exists key`, `Key_Value_Matches key expression` ...
}

// ModifyRule is one line: its kind (set, rename ...) and what stands behind that.
type ModifyRule struct {
	Kind, Text string
}

type modify struct {
	rules      []change
	conditions []condition
}

// change changes a body.
type change func(record.Body) record.Body

// condition looks at an event, of which the body is taken apart.
type condition func(s *scratch, e *record.Event, out *Output) bool

// NewModify makes the filter that changes fields by rules.
func NewModify(o ModifyOptions) (Filter, error) {
	m := &modify{}
	var problems []error
	for _, r := range o.Rules {
		c, err := newChange(strings.ToLower(r.Kind), r.Text)
		if err != nil {
			problems = append(problems, err)
		}
		m.rules = append(m.rules, c)
	}
	for _, text := range o.Conditions {
		c, err := newCondition(text)
		if err != nil {
			problems = append(problems, err)
		}
		m.conditions = append(m.conditions, c)
	}
	return m, named("modify", problems)
}

func (m *modify) Filter(in Input, out *Output) Verdict {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if !s.parse(in.Event) {
		return Keep
	}
	for _, holds := range m.conditions {
		if !holds(s, in.Event, out) {
			return Keep
		}
	}
	for _, apply := range m.rules {
		s.body = apply(s.body)
	}
	return s.emit(out, in.Time, in.Event)
}

// ModifyRules are the kinds of rules, in the order of the documentation.
var ModifyRules = []string{
	"set", "add", "remove", "remove_wildcard", "remove_regex", "rename", "hard_rename",
	"copy", "hard_copy", "move_to_start", "move_to_end",
}

// newChange reads a rule.
func newChange(kind, text string) (change, error) {
	var key, value string
	switch kind {
	case "set", "add", "rename", "hard_rename", "copy", "hard_copy":
		var err error
		if key, value, err = pair(kind, text); err != nil {
			return nil, err
		}
	default:
		if key = unquote(strings.TrimSpace(text)); key == "" {
			return nil, fmt.Errorf("%s has no key", kind)
		}
	}
	raw := rawText(value)
	switch kind {
	case "set":
		return func(b record.Body) record.Body { return b.Set(key, raw) }, nil
	case "add":
		return unlessThere(key, func(b record.Body) record.Body { return b.Set(key, raw) }), nil
	case "remove":
		return func(b record.Body) record.Body { return b.Remove(key) }, nil
	case "remove_wildcard":
		return func(b record.Body) record.Body { return b.RemoveFunc(hasPrefix(key)) }, nil
	case "remove_regex":
		expr, err := parser.Compile(key)
		return func(b record.Body) record.Body {
			return b.RemoveFunc(func(f record.Field) bool { return matches(expr, f.Key, &Output{}) })
		}, err
	case "rename":
		return unlessThere(value, func(b record.Body) record.Body { return b.Rename(key, value) }), nil
	case "hard_rename":
		return func(b record.Body) record.Body { return b.Rename(key, value) }, nil
	case "copy":
		return unlessThere(value, func(b record.Body) record.Body { return copyField(b, key, value) }), nil
	case "hard_copy":
		return func(b record.Body) record.Body { return copyField(b, key, value) }, nil
	case "move_to_start", "move_to_end":
		return func(b record.Body) record.Body { return move(b, hasPrefix(key), kind == "move_to_start") }, nil
	}
	return nil, fmt.Errorf("the rule %q is not known; the rules are %s", kind, strings.Join(ModifyRules, ", "))
}

// unlessThere is a change that is left if a key is there.
func unlessThere(key string, c change) change {
	return func(b record.Body) record.Body {
		if b.Index(key) >= 0 {
			return b
		}
		return c(b)
	}
}

// hasPrefix chooses the fields whose keys begin with a text; a * at its end is
// not part of it.
func hasPrefix(text string) func(record.Field) bool {
	text = strings.TrimSuffix(text, "*")
	return func(f record.Field) bool { return strings.HasPrefix(string(f.Key), text) }
}

func copyField(b record.Body, from, to string) record.Body {
	i := b.Index(from)
	if i < 0 || from == to {
		return b
	}
	return b.Set(to, b[i].Value)
}

// move moves the fields that are chosen to the start or to the end.
func move(b record.Body, chosen func(record.Field) bool, start bool) record.Body {
	var moved, rest []record.Field
	for _, f := range b {
		if chosen(f) {
			moved = append(moved, f)
		} else {
			rest = append(rest, f)
		}
	}
	if !start {
		moved, rest = rest, moved
	}
	return append(append(b[:0], moved...), rest...)
}

// ModifyConditions are the kinds of conditions, in the order of the documentation.
var ModifyConditions = []string{
	"key_exists", "key_does_not_exist", "a_key_matches", "no_key_matches", "key_value_equals", "key_value_does_not_equal",
	"key_value_matches", "key_value_does_not_match", "matching_keys_have_matching_values", "matching_keys_do_not_have_matching_values",
}

// newCondition reads a condition.
func newCondition(text string) (condition, error) {
	kind, rest := cutKey(text)
	kind = strings.ToLower(kind)
	switch kind {
	case "key_exists", "key_does_not_exist":
		path, err := record.ParsePath(unquote(rest))
		return func(_ *scratch, e *record.Event, _ *Output) bool {
			return (path.Find(e.Body) != nil) == (kind == "key_exists")
		}, err
	case "a_key_matches", "no_key_matches":
		expr, err := parser.Compile(unquote(rest))
		if rest == "" {
			return nil, fmt.Errorf("condition %s has no expression", kind)
		}
		return func(s *scratch, _ *record.Event, out *Output) bool {
			for _, f := range s.body {
				if matches(expr, f.Key, out) {
					return kind == "a_key_matches"
				}
			}
			return kind != "a_key_matches"
		}, err
	case "key_value_equals", "key_value_does_not_equal", "key_value_matches", "key_value_does_not_match":
		return newValueCondition(kind, rest)
	case "matching_keys_have_matching_values", "matching_keys_do_not_have_matching_values":
		return newMatchingCondition(kind, rest)
	}
	return nil, fmt.Errorf("the condition %q is not known; the conditions are %s", kind, strings.Join(ModifyConditions, ", "))
}

// newValueCondition is about the value of one key, which has to be there.
func newValueCondition(kind, text string) (condition, error) {
	key, value, err := pair("condition "+kind, text)
	if err != nil {
		return nil, err
	}
	path, err := record.ParsePath(key)
	if err != nil {
		return nil, err
	}
	wanted := !strings.Contains(kind, "does_not")
	if strings.Contains(kind, "equal") {
		return func(s *scratch, e *record.Event, _ *Output) bool {
			text, ok := s.plain(e, path)
			return ok && (string(text) == value) == wanted
		}, nil
	}
	expr, err := parser.Compile(value)
	return func(s *scratch, e *record.Event, out *Output) bool {
		text, ok := s.plain(e, path)
		return ok && matches(expr, text, out) == wanted
	}, err
}

// newMatchingCondition is about the values of all keys that match.
func newMatchingCondition(kind, text string) (condition, error) {
	key, value, err := pair("condition "+kind, text)
	if err != nil {
		return nil, err
	}
	keys, err := parser.Compile(key)
	if err != nil {
		return nil, err
	}
	values, err := parser.Compile(value)
	wanted := kind == "matching_keys_have_matching_values"
	return func(s *scratch, _ *record.Event, out *Output) bool {
		for _, f := range s.body {
			if matches(keys, f.Key, out) && matches(values, s.textOf(f.Value), out) != wanted {
				return false
			}
		}
		return true
	}, err
}
