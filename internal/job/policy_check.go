package job

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Problems are all that is wrong with a policy. Each has the path of its field
// in Field, such as curve.cap, and again at the start of its Text.
type Problems []*Error

func (ps Problems) Error() string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.Text
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives errors.Is and errors.As every problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Validate checks a policy that was not read by ParseRetry, by the same rules.
func (r Retry) Validate() error {
	p := problems{what: "retry policy"}
	p.checkRetry(&r)
	return p.err()
}

// Validate checks a single curve, naming its fields without a prefix.
func (c Curve) Validate() error {
	p := problems{what: "curve"}
	p.checkCurve("", &c)
	return p.err()
}

// problemsMax bounds what a hostile policy can make us write.
const problemsMax = 50

// problems collects what is wrong; the first finding about a field is kept.
type problems struct {
	what   string
	found  Problems
	unsaid int // beyond problemsMax
}

func (p *problems) add(path, format string, args ...any) {
	if p.has(path) {
		return
	}
	if len(p.found) == problemsMax {
		p.unsaid++
		return
	}
	text := fmt.Sprintf(format, args...)
	if path == "" {
		text = "it " + text
	} else {
		text = path + ": " + text
	}
	p.found = append(p.found, &Error{Kind: Invalid, Field: path, Text: text})
}

func (p *problems) has(path string) bool {
	return slices.ContainsFunc(p.found, func(e *Error) bool { return e.Field == path })
}

// err is nil, or one Invalid *Error that carries Problems; its Field is the
// field's path if just one field is wrong.
func (p *problems) err() error {
	if len(p.found) == 0 {
		return nil
	}
	err := &Error{Kind: Invalid, Text: p.what + " refused", Cause: p.found}
	if len(p.found) == 1 {
		err.Field = p.found[0].Field
	}
	if p.unsaid > 0 {
		err.Text += fmt.Sprintf(" (%d further problems not listed)", p.unsaid)
	}
	return err
}

func (p *problems) checkRetry(r *Retry) {
	if n, counted := r.LossLimit.Count(); counted && n == 0 {
		p.add("loss_limit", "must be at least 1 (dead at the first loss), or unlimited")
	}
	p.checkSpan("max_age", r.MaxAge)
	if r.Place > PlaceBack {
		p.add("place", "%s", r.Place)
	}
	if r.Curve != nil {
		p.checkCurve("curve.", r.Curve)
	}
	if r.Rules != nil {
		p.checkRules(*r.Rules)
	}
}

func (p *problems) checkSpan(path string, v Millis) {
	if v < 0 {
		p.add(path, "must not be negative")
	} else if v > MaxMillis {
		p.add(path, "is too long; the most is %s", MaxMillis)
	}
}

func (p *problems) checkCurve(prefix string, c *Curve) {
	if c.Kind == CurveUnset || int(c.Kind) >= len(curveNames) {
		p.add(prefix+"kind", "use one of %s", strings.Join(curveNames[1:], ", "))
		return
	}
	checkForeign(p, prefix, c, curveFields, "kind "+c.Kind.String())
	p.checkJitterKind(prefix, c)
	spans := [...]struct {
		key string
		v   Millis
	}{{"base", c.Base}, {"cap", c.Cap}, {"unit", c.Unit}, {"delay", c.Delay}, {"step", c.Step}, {"jitter", c.Spread}}
	for _, s := range spans {
		p.checkSpan(prefix+s.key, s.v)
	}
	if c.Cap != 0 && c.Cap < c.floor() {
		p.add(prefix+"cap", "%s is below %s %s", c.Cap, c.floorName(), c.floor())
	}
	switch c.Kind {
	case CurvePolynomial:
		p.checkPolynomial(prefix, c)
	case CurveUniform, CurveStaircase:
		p.checkAboveNothing(prefix+"base", c.Base)
	case CurveExponential:
		p.checkAboveNothing(prefix+"unit", c.Unit)
		if !finite(c.Factor) || c.Factor < 1 {
			p.add(prefix+"factor", "must be a finite number of at least 1")
		}
		if c.Offset < 0 || c.Offset > OffsetMax {
			p.add(prefix+"offset", "must be from 0 to %d", OffsetMax)
		}
	case CurveList:
		p.checkList(prefix+"delays", c.Delays)
	case CurveUnset, CurveConstant, CurveLinear, CurveImmediate: // nothing beyond the above
	}
	if c.Kind != CurvePolynomial {
		p.checkJitter(prefix+"jitter", c.Jitter)
	}
}

// floor is what the cap may not be below.
func (c *Curve) floor() Millis {
	if c.Kind == CurveExponential {
		return c.Unit
	}
	return c.Base
}

func (c *Curve) floorName() string {
	if c.Kind == CurveExponential {
		return "unit"
	}
	return "base"
}

// checkAboveNothing refuses 0 where it would make every wait 0: a policy that
// retries without pause must say so by its kind.
func (p *problems) checkAboveNothing(path string, v Millis) {
	if v == 0 {
		p.add(path, "must be above 0; to retry without a wait use kind immediate")
	}
}

func (p *problems) checkPolynomial(prefix string, c *Curve) {
	if !finite(c.Exponent) {
		p.add(prefix+"exponent", "must be a finite number")
	}
	if c.Count > CountIncluding {
		p.add(prefix+"count", "use previous or including")
	}
}

func (p *problems) checkList(path string, delays []Millis) {
	if len(delays) == 0 {
		p.add(path, "must have at least one delay")
	}
	if len(delays) > DelaysMax {
		p.add(path, "has %d entries; the most is %d", len(delays), DelaysMax)
		return
	}
	for i, v := range delays {
		p.checkSpan(fmt.Sprintf("%s[%d]", path, i), v)
	}
}

func (p *problems) checkJitter(path string, j Jitter) {
	switch {
	case j.Kind > JitterPercent:
		p.add(path, "%s", j)
	case !(j.Percent >= 0 && j.Percent <= 100): // NaN too
		p.add(path, "the percentage must be from 0 to 100")
	case j.Percent != 0 && j.Kind != JitterPercent:
		p.add(path, "%s has no percentage", j)
	}
}

// checkJitterKind refuses the jitter of another kind.
func (p *problems) checkJitterKind(prefix string, c *Curve) {
	if c.Kind == CurvePolynomial && c.Jitter != (Jitter{}) {
		p.add(prefix+"jitter", "of kind polynomial is an amount of time")
	} else if c.Kind != CurvePolynomial && c.Spread != 0 {
		p.add(prefix+"jitter", "of kind %s is not an amount of time", c.Kind)
	}
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
