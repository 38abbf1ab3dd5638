package job

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
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

// field is one key of an object of a policy: how its value is read, checked for being
// there, and written. To add one, add it to the list of its object.
type field[T any] struct {
	key   string
	of    func(*T) bool // whether an object has it, by its kind; nil = always
	set   func(*T) bool
	read  func(p *problems, m member, v *T)
	write func(b []byte, v *T) []byte
}

// at is a field that is kept in one place. What is zero is not set.
func at[T, V any](key string, place func(*T) *V, read func(*problems, member, *V), write func([]byte, V) []byte) field[T] {
	return field[T]{
		key:   key,
		set:   func(v *T) bool { return !reflect.ValueOf(place(v)).Elem().IsZero() },
		read:  func(p *problems, m member, v *T) { read(p, m, place(v)) },
		write: func(b []byte, v *T) []byte { return write(b, *place(v)) },
	}
}

func (f field[T]) when(of func(*T) bool) field[T] { f.of = of; return f }

func (f *field[T]) belongs(v *T) bool { return f.of == nil || f.of(v) }

// keysOf lists the keys that an object can have.
func keysOf[T any](fields []field[T], v *T) (keys []string) {
	for i := range fields {
		if fields[i].belongs(v) {
			keys = append(keys, fields[i].key)
		}
	}
	return keys
}

// readFields reads an object. kind is what it is, in words, where that decides
// which keys it has.
func readFields[T any](p *problems, members []member, v *T, fields []field[T], kind string) {
	for _, m := range members {
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.key == m.key })
		switch {
		case i < 0:
			keys := keysOf(fields, v)
			p.add(m.path, "unknown key; the keys are %s%s", strings.Join(keys, ", "), spell.Hint(m.key, keys))
		case !fields[i].belongs(v):
			p.add(m.path, "is no field of %s; its keys are %s", kind, strings.Join(keysOf(fields, v), ", "))
		default:
			fields[i].read(p, m, v)
		}
	}
}

// checkForeign refuses values in fields that do not belong to the kind. They
// come from Go code only; the readers refuse the keys.
func checkForeign[T any](p *problems, prefix string, v *T, fields []field[T], kind string) {
	for i := range fields {
		if f := &fields[i]; f.set(v) && !f.belongs(v) {
			p.add(prefix+f.key, "is no field of %s; its keys are %s", kind, strings.Join(keysOf(fields, v), ", "))
		}
	}
}

// appendFields writes an object: what is set, or with all every field that belongs to
// its kind.
func appendFields[T any](b []byte, v *T, fields []field[T], all func(key string) bool) []byte {
	b = append(b, '{')
	for i := range fields {
		if f := &fields[i]; f.belongs(v) && (all != nil && all(f.key) || f.set(v)) {
			b = f.write(appendKey(b, f.key), v)
		}
	}
	return append(b, '}')
}

var retryFields = []field[Retry]{
	at("limit", func(r *Retry) *Limit { return &r.Limit }, (*problems).limit, appendLimit),
	at("max_age", func(r *Retry) *Millis { return &r.MaxAge }, (*problems).maxAge, appendMaxAge),
	at("place", func(r *Retry) *Place { return &r.Place }, named(ParsePlace), appendName[Place]),
	at("curve", func(r *Retry) **Curve { return &r.Curve }, (*problems).curve, appendCurve),
	at("rules", func(r *Retry) **Rules { return &r.Rules }, (*problems).rules, appendRules),
	at("loss_limit", func(r *Retry) *Limit { return &r.LossLimit }, (*problems).limit, appendLimit),
}

func (p *problems) parseRetry(b []byte) (r Retry) {
	readFields(p, p.object("", b), &r, retryFields, "")
	if r.Curve != nil && r.Curve.Kind == CurveImmediate && r.Place == PlaceUnset {
		r.Place = PlaceFront
	}
	return r
}

// maxAge reads a span above nothing, or "unlimited".
func (p *problems) maxAge(m member, age *Millis) {
	if string(m.value) == `"unlimited"` {
		*age = MaxMillis
		return
	}
	v, ok := p.span(m)
	if *age = v; ok && v == 0 {
		p.add(m.path, "must be above 0; leave it out to inherit, or use unlimited")
	}
}

func appendMaxAge(b []byte, age Millis) []byte {
	if age == MaxMillis {
		return append(b, `"unlimited"`...)
	}
	return appendName(b, age)
}

// kinds are the kinds of curves that have a field. Of one that is not known it may be any.
func kinds(list ...CurveKind) func(*Curve) bool {
	return func(c *Curve) bool { return c.Kind == CurveUnset || slices.Contains(list, c.Kind) }
}

func spanOf(key string, place func(*Curve) *Millis) field[Curve] {
	return at(key, place, (*problems).setSpan, appendName[Millis])
}

var curveFields = []field[Curve]{
	at("kind", func(c *Curve) *CurveKind { return &c.Kind }, known[CurveKind], appendName[CurveKind]),
	spanOf("base", func(c *Curve) *Millis { return &c.Base }).when(kinds(CurvePolynomial, CurveUniform, CurveStaircase, CurveLinear)),
	at("cap", func(c *Curve) *Millis { return &c.Cap }, func(p *problems, m member, v *Millis) {
		if p.setSpan(m, v); *v == 0 {
			p.add(m.path, "must be above 0")
		}
	}, appendName[Millis]).when(kinds(CurveUniform, CurveExponential, CurveLinear)),
	spanOf("unit", func(c *Curve) *Millis { return &c.Unit }).when(kinds(CurveExponential)),
	at("factor", func(c *Curve) *float64 { return &c.Factor }, (*problems).float, appendFloat).when(kinds(CurveExponential)),
	at("offset", func(c *Curve) *int { return &c.Offset }, func(p *problems, m member, v *int) {
		f := 0.0
		if p.float(m, &f); f != math.Trunc(f) || f < 0 || f > OffsetMax {
			p.add(m.path, "must be a whole number from 0 to %d", OffsetMax)
			return
		}
		*v = int(f)
	}, func(b []byte, v int) []byte { return strconv.AppendInt(b, int64(v), 10) }).when(kinds(CurveExponential)),
	spanOf("delay", func(c *Curve) *Millis { return &c.Delay }).when(kinds(CurveConstant)),
	spanOf("step", func(c *Curve) *Millis { return &c.Step }).when(kinds(CurveLinear)),
	at("delays", func(c *Curve) *[]Millis { return &c.Delays }, (*problems).spans, appendSpans).when(kinds(CurveList)),
	at("exponent", func(c *Curve) *float64 { return &c.Exponent }, (*problems).float, appendFloat).when(kinds(CurvePolynomial)),
	at("count", func(c *Curve) *Count { return &c.Count }, named(parseCount), appendName[Count]).when(kinds(CurvePolynomial)),
	{
		"jitter", kinds(CurvePolynomial, CurveExponential, CurveLinear, CurveList),
		func(c *Curve) bool { return c.Spread != 0 || c.Jitter != Jitter{} },
		func(p *problems, m member, c *Curve) {
			if c.Kind == CurvePolynomial {
				p.setSpan(m, &c.Spread)
			} else {
				named(ParseJitter)(p, m, &c.Jitter)
			}
		},
		func(b []byte, c *Curve) []byte {
			if c.Kind == CurvePolynomial {
				return appendName(b, c.Spread)
			}
			return appendName(b, c.Jitter)
		},
	},
}

func (p *problems) curve(in member, into **Curve) {
	members := p.object(in.path, in.value)
	if members == nil {
		return
	}
	given := map[string]bool{}
	kind := CurveUnset
	for _, m := range members {
		if given[m.key] = true; m.key == "kind" {
			named(ParseCurveKind)(p, m, &kind)
		}
	}
	if !given["kind"] {
		p.add(in.path+".kind", "is missing; use one of %s", strings.Join(curveNames[1:], ", "))
	}
	c := defaultCurve(kind)
	readFields(p, members, &c, curveFields, "kind "+kind.String())
	for _, key := range map[CurveKind][]string{CurveLinear: {"base", "step"}, CurveList: {"delays"}}[kind] {
		if !given[key] {
			p.add(in.path+"."+key, "is missing; kind %s needs it", kind)
		}
	}
	if kind == CurveUnset {
		return
	}
	if !given["cap"] && c.Cap > 0 && c.Cap < c.floor() {
		p.add(in.path+".cap", "is missing, and its default %s is below %s %s", c.Cap, c.floorName(), c.floor())
	}
	*into = &c
}

func parseCount(s string) (Count, error) {
	at, ok := indexOf(countNames[:], s)
	if !ok {
		return 0, Errorf(Invalid, "count %q: use previous or including", shorten(s))
	}
	return Count(at), nil
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

// setSpan reads one into a place, which stays as it is after a problem.
func (p *problems) setSpan(m member, to *Millis) {
	if v, ok := p.span(m); ok {
		*to = v
	}
}

// spans reads a list of durations.
func (p *problems) spans(m member, to *[]Millis) {
	items, ok := p.list(m, DelaysMax, "durations")
	if !ok {
		return
	}
	*to = make([]Millis, len(items))
	for i, item := range items {
		p.setSpan(item, &(*to)[i])
	}
}

func (p *problems) limit(m member, to *Limit) {
	text, isString := m.str()
	if !isString && !m.isNumber() {
		p.add(m.path, "must be a whole number, unlimited or none, not %s", shorten(text))
		return
	}
	var err error
	if *to, err = ParseLimit(text); err != nil {
		p.add(m.path, "%s", err.Error())
	}
}

func (p *problems) float(m member, to *float64) {
	f, err := strconv.ParseFloat(string(m.value), 64)
	if !m.isNumber() || err != nil {
		p.add(m.path, "must be a finite number, not %s", shorten(string(m.value)))
		return
	}
	*to = f
}

// named reads a string with one of the parsers of names.
func named[T any](parse func(string) (T, error)) func(*problems, member, *T) {
	return func(p *problems, m member, to *T) {
		text, isString := m.str()
		if !isString {
			p.add(m.path, "must be a string, not %s", shorten(text))
			return
		}
		var err error
		if *to, err = parse(text); err != nil {
			p.add(m.path, "%s", err.Error())
		}
	}
}

// known is for a value that was read before the others, which depend on it.
func known[T any](*problems, member, *T) {}

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
	ok := r.Curve == nil || r.Curve.finite()
	if r.Rules != nil {
		for i := range *r.Rules {
			c := (*r.Rules)[i].Curve
			ok = ok && (c == nil || c.finite())
		}
	}
	if !ok {
		return nil, errNotFinite
	}
	return appendFields(nil, &r, retryFields, nil), nil
}

var errNotFinite = Errorf(Internal, "writing a curve: a number in it is not finite")

func (c *Curve) finite() bool {
	return finite(c.Factor) && finite(c.Exponent) && finite(c.Jitter.Percent)
}

// MarshalJSON writes the fields of the curve's kind.
func (c Curve) MarshalJSON() ([]byte, error) {
	if !c.finite() {
		return nil, errNotFinite
	}
	return appendCurve(nil, &c), nil
}

func appendCurve(b []byte, c *Curve) []byte {
	return appendFields(b, c, curveFields, func(key string) bool { return key != "cap" })
}

func appendKey(b []byte, key string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(append(append(b, '"'), key...), `":`...)
}

// appendName writes a word of ours, none of which needs escapes.
func appendName[V fmt.Stringer](b []byte, v V) []byte {
	return append(append(append(b, '"'), v.String()...), '"')
}

func appendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) }

func appendLimit(b []byte, l Limit) []byte {
	if n, counted := l.Count(); counted {
		return strconv.AppendUint(b, uint64(n), 10)
	}
	return appendName(b, l)
}

func appendSpans(b []byte, list []Millis) []byte {
	b = append(b, '[')
	for _, v := range list {
		b = appendName(appendComma(b), v)
	}
	return append(b, ']')
}
