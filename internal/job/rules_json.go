package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/reprisehq/reprise/internal/spell"
)

var whenKeys = []string{"error_type", "message", "status", "exit_code", "timeout"}

// ruleKeys are the keys beside when and do, and of what each is a field.
var ruleKeys = []struct {
	key string
	of  []Do
}{
	{"limit", []Do{DoRetry}},
	{"curve", []Do{DoRetry}},
	{"respect_retry_after", []Do{DoRetry}},
	{"delay", []Do{DoRelease, DoHold}},
}

// keysOfRule lists the keys of a rule for people.
func keysOfRule(do Do) string {
	keys := []string{"when", "do"}
	for _, k := range ruleKeys {
		if do == DoUnset || slices.Contains(k.of, do) {
			keys = append(keys, k.key)
		}
	}
	return strings.Join(keys, ", ")
}

func (p *problems) parseRules(in member) *Rules {
	items, ok := p.list(in, RulesMax, "rules")
	if !ok {
		return nil
	}
	rules := make(Rules, 0, len(items))
	for _, item := range items {
		rules = append(rules, p.parseRule(item))
	}
	return &rules
}

// list takes an array apart, and names its entries by their place.
func (p *problems) list(in member, most int, what string) ([]member, bool) {
	var items []json.RawMessage
	if len(in.value) == 0 || in.value[0] != '[' || json.Unmarshal(in.value, &items) != nil {
		p.add(in.path, "must be a list of %s", what)
		return nil, false
	}
	if len(items) > most {
		p.add(in.path, "has %d entries; the most is %d", len(items), most)
		return nil, false
	}
	out := make([]member, len(items))
	for i, item := range items {
		out[i] = member{path: in.path + "[" + strconv.Itoa(i) + "]", value: bytes.TrimSpace(item)}
	}
	return out, true
}

func (p *problems) parseRule(in member) (r Rule) {
	members := p.object(in.path, in.value)
	if members == nil {
		return r
	}
	given := map[string]bool{}
	for _, m := range members {
		given[m.key] = true
		if m.key == "do" {
			r.Do = name(p, m, ParseDo)
		}
	}
	if !given["do"] {
		p.add(in.path+".do", "is missing; use one of %s", strings.Join(doNames[1:], ", "))
	}
	for _, m := range members {
		at := -1
		for i := range ruleKeys {
			if ruleKeys[i].key == m.key {
				at = i
			}
		}
		switch {
		case m.key == "do":
		case m.key == "when":
			r.When = p.parseWhen(m)
		case at < 0:
			p.add(m.path, "unknown key; the keys are %s%s", keysOfRule(r.Do), spell.Hint(m.key, strings.Split(keysOfRule(r.Do), ", ")))
		case r.Do != DoUnset && !slices.Contains(ruleKeys[at].of, r.Do):
			p.add(m.path, "is no field of do %s; its keys are %s", r.Do, keysOfRule(r.Do))
		default:
			p.ruleField(&r, m)
		}
	}
	return r
}

// ruleField reads one field that belongs to what the rule does.
func (p *problems) ruleField(r *Rule, m member) {
	switch m.key {
	case "limit":
		r.Limit = p.limit(m)
	case "curve":
		r.Curve = p.parseCurve(m)
	case "respect_retry_after":
		r.IgnoreRetryAfter = p.answer(m) == No
	case "delay":
		r.Delay, _ = p.span(m)
	}
}

func (p *problems) parseWhen(in member) (w When) {
	for _, m := range p.object(in.path, in.value) {
		switch m.key {
		case "error_type":
			for _, one := range p.oneOrMore(m, "error types") {
				w.ErrorTypes = append(w.ErrorTypes, name(p, one, plainText))
			}
		case "message":
			w.Message = name(p, m, plainText)
			if w.Message == "" {
				p.add(m.path, "must not be empty; leave it out to match any message")
			}
		case "status":
			w.Status = p.ranges(m, statusMax, "503, 5xx or 500-504")
		case "exit_code":
			w.ExitCode = p.ranges(m, exitCodeMax, "75 or 64-78")
		case "timeout":
			w.Timeout = p.answer(m)
		default:
			p.add(m.path, "unknown key; the keys are %s%s", strings.Join(whenKeys, ", "), spell.Hint(m.key, whenKeys))
		}
	}
	return w
}

func plainText(s string) (string, error) { return s, nil }

// oneOrMore reads a single value as a list of one.
func (p *problems) oneOrMore(m member, what string) []member {
	if len(m.value) == 0 || m.value[0] != '[' {
		return []member{m}
	}
	list, _ := p.list(m, AlternativesMax, what)
	if list != nil && len(list) == 0 {
		p.add(m.path, "must have at least one entry; leave it out to match any")
	}
	return list
}

func (p *problems) ranges(in member, most uint16, example string) (list []Range) {
	for _, m := range p.oneOrMore(in, "numbers") {
		text, isString := m.str()
		r, ok := parseRange(text, most)
		if !ok || !isString && !m.isNumber() {
			p.add(m.path, "%s must be a number from 1 to %d or a range such as %s", shorten(text), most, example)
		}
		list = append(list, r)
	}
	return list
}

func (p *problems) answer(m member) Answer {
	switch string(m.value) {
	case "true":
		return Yes
	case "false":
		return No
	}
	p.add(m.path, "must be true or false, not %s", shorten(string(m.value)))
	return Unsaid
}

// checkRules holds for rules from anywhere.
func (p *problems) checkRules(rules Rules) {
	if len(rules) > RulesMax {
		p.add("rules", "has %d entries; the most is %d", len(rules), RulesMax)
		return
	}
	for i := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		if i > 0 && rules[i-1].When.IsZero() && rules[i-1].Do != DoUnset {
			p.add(path, "is never reached: rules[%d] has no condition, so it matches every failure", i-1)
		}
		p.checkRule(path, &rules[i])
	}
}

func (p *problems) checkRule(path string, r *Rule) {
	p.checkWhen(path+".when.", &r.When)
	if r.Do == DoUnset || int(r.Do) >= len(doNames) {
		p.add(path+".do", "use one of %s", strings.Join(doNames[1:], ", "))
		return // what else belongs to it depends on that
	}
	set := map[string]bool{
		"limit": r.Limit.IsSet(), "curve": r.Curve != nil, "respect_retry_after": r.IgnoreRetryAfter, "delay": r.Delay != 0,
	}
	for _, k := range ruleKeys {
		if set[k.key] && !slices.Contains(k.of, r.Do) {
			p.add(path+"."+k.key, "is no field of do %s; its keys are %s", r.Do, keysOfRule(r.Do))
		}
	}
	p.checkSpan(path+".delay", r.Delay)
	if r.Delay == 0 && (r.Do == DoRelease || r.Do == DoHold) {
		p.add(path+".delay", "must be given and above 0; do %s needs it", r.Do)
	}
	if r.Curve != nil {
		p.checkCurve(path+".curve.", r.Curve)
	}
}

func (p *problems) checkWhen(prefix string, w *When) {
	most := func(key string, n int) bool {
		if n > AlternativesMax {
			p.add(prefix+key, "has %d entries; the most is %d", n, AlternativesMax)
		}
		return n <= AlternativesMax
	}
	if most("error_type", len(w.ErrorTypes)) {
		for i, text := range w.ErrorTypes {
			bad := text == "" || !utf8.ValidString(text) || len(text) > TextBytesMax
			if path := fmt.Sprintf("%serror_type[%d]", prefix, i); bad && !p.has(prefix+"error_type") {
				p.add(path, "must be a text of 1 to %d bytes", TextBytesMax)
			}
		}
	}
	if w.Message != "" {
		if _, err := CompilePattern(w.Message); err != nil {
			p.add(prefix+"message", "%s", err.Error())
		}
	}
	for _, x := range []struct {
		key  string
		list []Range
	}{{"status", w.Status}, {"exit_code", w.ExitCode}} {
		if !most(x.key, len(x.list)) {
			continue
		}
		for i, r := range x.list {
			path := fmt.Sprintf("%s%s[%d]", prefix, x.key, i)
			if (r.Lo < 1 || r.Lo > r.Hi) && !p.has(prefix+x.key) {
				p.add(path, "%d-%d is no range of numbers from 1", r.Lo, r.Hi)
			}
		}
	}
	if w.Timeout > No {
		p.add(prefix+"timeout", "must be true or false")
	}
}

func (rs Rules) appendJSON(b []byte) ([]byte, error) {
	b = append(b, '[')
	for i := range rs {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = rs[i].appendJSON(b); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// appendJSON writes only what is set.
func (r *Rule) appendJSON(b []byte) ([]byte, error) {
	b = append(b, '{')
	if w := &r.When; !w.IsZero() {
		b = w.appendJSON(append(b, `"when":{`...))
	}
	b = appendString(b, "do", r.Do.String())
	b = appendLimitKey(b, "limit", r.Limit)
	if r.Curve != nil {
		curve, err := r.Curve.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(appendKey(b, "curve"), curve...)
	}
	if r.IgnoreRetryAfter {
		b = append(appendKey(b, "respect_retry_after"), "false"...)
	}
	if r.Delay != 0 {
		b = appendString(b, "delay", r.Delay.String())
	}
	return append(b, '}'), nil
}

func (w *When) appendJSON(b []byte) []byte {
	if len(w.ErrorTypes) > 0 {
		b = append(appendKey(b, "error_type"), '[')
		for _, text := range w.ErrorTypes {
			b = appendText(appendComma(b), text)
		}
		b = append(b, ']')
	}
	if w.Message != "" {
		b = appendText(appendKey(b, "message"), w.Message)
	}
	b = appendRanges(b, "status", w.Status)
	b = appendRanges(b, "exit_code", w.ExitCode)
	if w.Timeout != Unsaid {
		b = strconv.AppendBool(appendKey(b, "timeout"), w.Timeout == Yes)
	}
	return append(b, '}')
}

func appendRanges(b []byte, key string, list []Range) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(appendKey(b, key), '[')
	for _, r := range list {
		if b = appendComma(b); r.Lo == r.Hi {
			b = strconv.AppendUint(b, uint64(r.Lo), 10)
		} else {
			b = append(append(append(b, '"'), r.String()...), '"')
		}
	}
	return append(b, ']')
}

func appendComma(b []byte) []byte {
	if b[len(b)-1] != '[' {
		return append(b, ',')
	}
	return b
}

// appendText writes a text of a user's, in which <, > and & stay readable.
func appendText(b []byte, text string) []byte {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string always has a form in JSON
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}
