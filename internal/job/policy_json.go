package job

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/spell"
)

// ParseRetry reads a policy in the shape of spec/retry.md section 1 as JSON.
// Spans are strings as ParseDuration reads them, or numbers of milliseconds.
// A curve's missing fields take the defaults of its kind; a curve of kind
// immediate sets place front unless a place is given. It is strict: unknown or
// repeated keys, null, negative spans, a field of another kind and values
// that contradict each other are refused, all at once, in an Invalid *Error
// whose cause is Problems.
func ParseRetry(b []byte) (Retry, error) {
	p := problems{what: "retry policy"}
	r := p.parseRetry(b)
	p.checkRetry(&r)
	if err := p.err(); err != nil {
		return Retry{}, err
	}
	return r, nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Retry) UnmarshalJSON(b []byte) (err error) {
	*r, err = ParseRetry(b)
	return err
}

var retryKeys = []string{"limit", "max_age", "place", "curve", "rules", "loss_limit"}

func (p *problems) parseRetry(b []byte) (r Retry) {
	for _, m := range p.object("", b) {
		switch m.key {
		case "limit":
			r.Limit = p.limit(m)
		case "loss_limit":
			r.LossLimit = p.limit(m)
		case "max_age":
			r.MaxAge = p.maxAge(m)
		case "place":
			r.Place = name(p, m, ParsePlace)
		case "curve":
			r.Curve = p.parseCurve(m)
		case "rules":
			r.Rules = p.parseRules(m)
		default:
			p.add(m.path, "unknown key; the keys are %s%s", strings.Join(retryKeys, ", "), spell.Hint(m.key, retryKeys))
		}
	}
	if r.Curve != nil && r.Curve.Kind == CurveImmediate && r.Place == PlaceUnset {
		r.Place = PlaceFront
	}
	return r
}

// maxAge reads a span above nothing, or "unlimited".
func (p *problems) maxAge(m member) Millis {
	if string(m.value) == `"unlimited"` {
		return MaxMillis
	}
	age, ok := p.span(m)
	if ok && age == 0 {
		p.add(m.path, "must be above 0; leave it out to inherit, or use unlimited")
	}
	return age
}

type curveKey struct {
	key   string
	kinds []CurveKind
}

// curveKeys are the keys beside kind, and of which kinds each is a field.
var curveKeys = []curveKey{
	{"base", []CurveKind{CurvePolynomial, CurveUniform, CurveStaircase, CurveLinear}},
	{"cap", []CurveKind{CurveUniform, CurveExponential, CurveLinear}},
	{"unit", []CurveKind{CurveExponential}},
	{"factor", []CurveKind{CurveExponential}},
	{"offset", []CurveKind{CurveExponential}},
	{"delay", []CurveKind{CurveConstant}},
	{"step", []CurveKind{CurveLinear}},
	{"delays", []CurveKind{CurveList}},
	{"exponent", []CurveKind{CurvePolynomial}},
	{"count", []CurveKind{CurvePolynomial}},
	{"jitter", []CurveKind{CurvePolynomial, CurveExponential, CurveLinear, CurveList}},
}

// keysOf lists the keys of a kind for people.
func keysOf(kind CurveKind) string {
	keys := []string{"kind"}
	for _, k := range curveKeys {
		if kind == CurveUnset || slices.Contains(k.kinds, kind) {
			keys = append(keys, k.key)
		}
	}
	return strings.Join(keys, ", ")
}

func (p *problems) parseCurve(in member) *Curve {
	members := p.object(in.path, in.value)
	if members == nil {
		return nil
	}
	kind := CurveUnset
	given := map[string]bool{}
	for _, m := range members {
		given[m.key] = true
		if m.key == "kind" {
			kind = name(p, m, ParseCurveKind)
		}
	}
	if !given["kind"] {
		p.add(in.path+".kind", "is missing; use one of %s", strings.Join(curveNames[1:], ", "))
	}
	c := defaultCurve(kind)
	for _, m := range members {
		at := slices.IndexFunc(curveKeys, func(k curveKey) bool { return k.key == m.key })
		switch {
		case m.key == "kind":
		case at < 0:
			p.add(m.path, "unknown key; the keys are %s%s", keysOf(kind), spell.Hint(m.key, strings.Split(keysOf(kind), ", ")))
		case kind != CurveUnset && !slices.Contains(curveKeys[at].kinds, kind):
			p.add(m.path, "is no field of kind %s; its keys are %s", kind, keysOf(kind))
		default:
			p.curveField(&c, m)
		}
	}
	p.needed(in.path, kind, given)
	if kind == CurveUnset {
		return nil
	}
	if !given["cap"] && c.Cap > 0 && c.Cap < c.floor() {
		p.add(in.path+".cap", "is missing, and its default %s is below %s %s", c.Cap, c.floorName(), c.floor())
	}
	return &c
}

// curveField reads one field that belongs to the curve's kind.
func (p *problems) curveField(c *Curve, m member) {
	span := func(to *Millis) {
		if v, ok := p.span(m); ok {
			*to = v
		}
	}
	switch m.key {
	case "base":
		span(&c.Base)
	case "cap":
		span(&c.Cap)
		if c.Cap == 0 {
			p.add(m.path, "must be above 0")
		}
	case "unit":
		span(&c.Unit)
	case "delay":
		span(&c.Delay)
	case "step":
		span(&c.Step)
	case "factor":
		c.Factor = p.float(m, c.Factor)
	case "exponent":
		c.Exponent = p.float(m, c.Exponent)
	case "offset":
		f := p.float(m, 0)
		if f != math.Trunc(f) || f < 0 || f > OffsetMax {
			p.add(m.path, "must be a whole number from 0 to %d", OffsetMax)
			return
		}
		c.Offset = int(f)
	case "count":
		c.Count = name(p, m, parseCount)
	case "delays":
		c.Delays = p.spans(m)
	case "jitter":
		if c.Kind == CurvePolynomial {
			span(&c.Spread)
		} else {
			c.Jitter = name(p, m, ParseJitter)
		}
	}
}

func parseCount(s string) (Count, error) {
	at, ok := indexOf(countNames[:], s)
	if !ok {
		return 0, Errorf(Invalid, "count %q: use previous or including", shorten(s))
	}
	return Count(at), nil
}

// needed names the fields without which a kind means nothing.
func (p *problems) needed(path string, kind CurveKind, given map[string]bool) {
	var keys []string
	switch kind {
	case CurveLinear:
		keys = []string{"base", "step"}
	case CurveList:
		keys = []string{"delays"}
	default:
	}
	for _, key := range keys {
		if !given[key] {
			p.add(path+"."+key, "is missing; kind %s needs it", kind)
		}
	}
}

// member is one key of an object with its raw value and its path from the policy.
type member struct {
	path, key string
	value     []byte
}

// object takes an object apart in the order it was written; nil and a problem
// if it is none.
func (p *problems) object(path string, b []byte) []member {
	var whole json.RawMessage
	if err := json.Unmarshal(b, &whole); err != nil {
		p.add(path, "is not JSON: %s", err.Error())
		return nil
	}
	if whole = bytes.TrimSpace(whole); whole[0] != '{' {
		p.add(path, "must be an object with keys, not %s", shorten(string(whole)))
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(whole))
	members := []member{}
	seen := map[string]bool{}
	_, err := dec.Token() // the brace
	for err == nil && dec.More() {
		var value json.RawMessage
		var token json.Token
		if token, err = dec.Token(); err == nil {
			err = dec.Decode(&value)
		}
		if err != nil { // cannot be: it was valid above
			p.add(path, "is not JSON: %s", err.Error())
			return nil
		}
		key := token.(string)
		at := shorten(key)
		if key == "" {
			at = `""`
		}
		if path != "" {
			at = path + "." + at
		}
		if seen[key] {
			p.add(at, "is there twice")
			continue
		}
		seen[key] = true
		members = append(members, member{at, key, bytes.TrimSpace(value)})
	}
	return members
}

// span reads a duration from a string or a number.
func (p *problems) span(m member) (Millis, bool) {
	text, isString := m.str()
	if !isString {
		f, err := strconv.ParseFloat(text, 64)
		digits := strings.Trim(text, "0123456789") == ""
		switch {
		case !m.isNumber():
			p.add(m.path, "must be a duration, not %s", shorten(text))
			return 0, false
		case f < 0:
			p.add(m.path, "must not be negative")
			return 0, false
		case digits: // exact beyond 2^53
		case err != nil || f > float64(MaxMillis):
			p.add(m.path, "is too long; the most is %s", MaxMillis)
			return 0, false
		case f != math.Trunc(f):
			p.add(m.path, "a bare number counts milliseconds and must be whole")
			return 0, false
		default: // 1e3, 1000.0
			return Millis(f), true
		}
	}
	v, err := ParseDuration(text)
	if err != nil {
		p.add(m.path, "%s", err.Error())
	}
	return v, err == nil
}

// spans reads a list of durations.
func (p *problems) spans(m member) []Millis {
	items, ok := p.list(m, DelaysMax, "durations")
	if !ok {
		return nil
	}
	list := make([]Millis, 0, len(items))
	for _, item := range items {
		v, _ := p.span(item)
		list = append(list, v)
	}
	return list
}

func (p *problems) limit(m member) Limit {
	text, isString := m.str()
	if !isString && !m.isNumber() {
		p.add(m.path, "must be a whole number, unlimited or none, not %s", shorten(text))
		return Limit{}
	}
	limit, err := ParseLimit(text)
	if err != nil {
		p.add(m.path, "%s", err.Error())
	}
	return limit
}

func (p *problems) float(m member, otherwise float64) float64 {
	f, err := strconv.ParseFloat(string(m.value), 64)
	if !m.isNumber() || err != nil {
		p.add(m.path, "must be a finite number, not %s", shorten(string(m.value)))
		return otherwise
	}
	return f
}

// name reads a string with one of the parsers of names.
func name[T any](p *problems, m member, parse func(string) (T, error)) (v T) {
	text, isString := m.str()
	if !isString {
		p.add(m.path, "must be a string, not %s", shorten(text))
		return v
	}
	v, err := parse(text)
	if err != nil {
		p.add(m.path, "%s", err.Error())
	}
	return v
}

// str returns the string's content, or the raw text of what is not a string.
func (m member) str() (text string, isString bool) {
	if len(m.value) > 0 && m.value[0] == '"' && json.Unmarshal(m.value, &text) == nil {
		return text, true
	}
	return string(m.value), false
}

func (m member) isNumber() bool {
	return len(m.value) > 0 && (m.value[0] == '-' || m.value[0] >= '0' && m.value[0] <= '9')
}

// MarshalJSON writes only what is set, and a curve with all its fields, so
// that it means the same when a default changes.
func (r Retry) MarshalJSON() ([]byte, error) {
	b := appendLimitKey([]byte{'{'}, "limit", r.Limit)
	if r.MaxAge == MaxMillis {
		b = appendString(b, "max_age", "unlimited")
	} else if r.MaxAge != 0 {
		b = appendString(b, "max_age", r.MaxAge.String())
	}
	if r.Place != PlaceUnset {
		b = appendString(b, "place", r.Place.String())
	}
	if r.Curve != nil {
		curve, err := r.Curve.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(appendKey(b, "curve"), curve...)
	}
	if r.Rules != nil {
		var err error
		if b, err = r.Rules.appendJSON(appendKey(b, "rules")); err != nil {
			return nil, err
		}
	}
	b = appendLimitKey(b, "loss_limit", r.LossLimit)
	return append(b, '}'), nil
}

// MarshalJSON writes the fields of the curve's kind.
func (c Curve) MarshalJSON() ([]byte, error) {
	if !finite(c.Factor) || !finite(c.Exponent) || !finite(c.Jitter.Percent) {
		return nil, Errorf(Internal, "writing a curve: a number in it is not finite")
	}
	b := appendString([]byte{'{'}, "kind", c.Kind.String())
	span := func(key string, v Millis) { b = appendString(b, key, v.String()) }
	float := func(key string, f float64) { b = strconv.AppendFloat(appendKey(b, key), f, 'g', -1, 64) }
	for _, k := range curveKeys {
		if !slices.Contains(k.kinds, c.Kind) {
			continue
		}
		switch k.key {
		case "base":
			span(k.key, c.Base)
		case "cap":
			if c.Cap != 0 {
				span(k.key, c.Cap)
			}
		case "unit":
			span(k.key, c.Unit)
		case "delay":
			span(k.key, c.Delay)
		case "step":
			span(k.key, c.Step)
		case "factor":
			float(k.key, c.Factor)
		case "exponent":
			float(k.key, c.Exponent)
		case "offset":
			b = strconv.AppendInt(appendKey(b, k.key), int64(c.Offset), 10)
		case "count":
			b = appendString(b, k.key, c.Count.String())
		case "delays":
			b = appendSpans(appendKey(b, k.key), c.Delays)
		case "jitter":
			if c.Kind == CurvePolynomial {
				span(k.key, c.Spread)
			} else {
				b = appendString(b, k.key, c.Jitter.String())
			}
		}
	}
	return append(b, '}'), nil
}

func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), key...), `":`...)
}

// appendString writes a key and a string of ours, none of which needs escapes.
func appendString(b []byte, key, value string) []byte {
	return append(append(append(appendKey(b, key), '"'), value...), '"')
}

func appendLimitKey(b []byte, key string, l Limit) []byte {
	if n, counted := l.Count(); counted {
		return strconv.AppendUint(appendKey(b, key), uint64(n), 10)
	}
	if l.IsSet() {
		return appendString(b, key, l.String())
	}
	return b
}

func appendSpans(b []byte, list []Millis) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), v.String()...), '"')
	}
	return append(b, ']')
}
