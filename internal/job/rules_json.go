package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// dos are the choices that have a field. Of one that is not known it may be any.
func dos(list ...Do) func(*Rule) bool {
	return func(r *Rule) bool { return r.Do == DoUnset || slices.Contains(list, r.Do) }
}

var ruleFields = []field[Rule]{
	{"when", nil, func(r *Rule) bool { return !r.When.IsZero() }, func(p *problems, m member, r *Rule) {
		readFields(p, p.object(m.path, m.value), &r.When, whenFields, "")
	}, func(b []byte, r *Rule) []byte { return appendFields(b, &r.When, whenFields, nil) }},
	at("do", func(r *Rule) *Do { return &r.Do }, known[Do], appendName[Do]),
	at("limit", func(r *Rule) *Limit { return &r.Limit }, (*problems).limit, appendLimit).when(dos(DoRetry)),
	at("curve", func(r *Rule) **Curve { return &r.Curve }, (*problems).curve, appendCurve).when(dos(DoRetry)),
	at("respect_retry_after", func(r *Rule) *bool { return &r.IgnoreRetryAfter }, func(p *problems, m member, v *bool) { *v = p.answer(m) == No },
		func(b []byte, ignored bool) []byte { return strconv.AppendBool(b, !ignored) }).when(dos(DoRetry)),
	at("delay", func(r *Rule) *Millis { return &r.Delay }, (*problems).setSpan, appendName[Millis]).when(dos(DoRelease, DoHold)),
}

var whenFields = []field[When]{
	at("error_type", func(w *When) *[]string { return &w.ErrorTypes }, func(p *problems, m member, list *[]string) {
		for _, one := range p.oneOrMore(m, "error types") {
			var text string
			named(plainText)(p, one, &text)
			*list = append(*list, text)
		}
	}, func(b []byte, list []string) []byte {
		b = append(b, '[')
		for _, text := range list {
			b = appendText(appendComma(b), text)
		}
		return append(b, ']')
	}),
	at("message", func(w *When) *string { return &w.Message }, func(p *problems, m member, text *string) {
		if named(plainText)(p, m, text); *text == "" {
			p.add(m.path, "must not be empty; leave it out to match any message")
		}
	}, appendText),
	at("status", func(w *When) *[]Range { return &w.Status }, ranges(statusMax, "503, 5xx or 500-504"), appendRanges),
	at("exit_code", func(w *When) *[]Range { return &w.ExitCode }, ranges(exitCodeMax, "75 or 64-78"), appendRanges),
	at("timeout", func(w *When) *Answer { return &w.Timeout }, func(p *problems, m member, a *Answer) { *a = p.answer(m) },
		func(b []byte, a Answer) []byte { return strconv.AppendBool(b, a == Yes) }),
}

func (p *problems) rules(in member, into **Rules) {
	items, ok := p.list(in, RulesMax, "rules")
	if !ok {
		return
	}
	rules := make(Rules, len(items))
	for i, item := range items {
		p.rule(item, &rules[i])
	}
	*into = &rules
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

func (p *problems) rule(in member, r *Rule) {
	members := p.object(in.path, in.value)
	if members == nil {
		return
	}
	given := false
	for _, m := range members {
		if m.key == "do" {
			given = true
			named(ParseDo)(p, m, &r.Do)
		}
	}
	if !given {
		p.add(in.path+".do", "is missing; use one of %s", strings.Join(doNames[1:], ", "))
	}
	readFields(p, members, r, ruleFields, "do "+r.Do.String())
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

func ranges(most uint16, example string) func(*problems, member, *[]Range) {
	return func(p *problems, in member, list *[]Range) {
		for _, m := range p.oneOrMore(in, "numbers") {
			text, isString := m.str()
			r, ok := parseRange(text, most)
			if !ok || !isString && !m.isNumber() {
				p.add(m.path, "%s must be a number from 1 to %d or a range such as %s", shorten(text), most, example)
			}
			*list = append(*list, r)
		}
	}
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
	checkForeign(p, path+".", r, ruleFields, "do "+r.Do.String())
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

func appendRules(b []byte, rules *Rules) []byte {
	b = append(b, '[')
	for i := range *rules {
		b = appendFields(appendComma(b), &(*rules)[i], ruleFields, nil)
	}
	return append(b, ']')
}

func appendRanges(b []byte, list []Range) []byte {
	b = append(b, '[')
	for _, r := range list {
		if b = appendComma(b); r.Lo == r.Hi {
			b = strconv.AppendUint(b, uint64(r.Lo), 10)
		} else {
			b = appendName(b, r)
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
