package job

import (
	"math"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/spell"
)

// Retry is the retry policy as data (spec/retry.md section 1). The same shape
// stands on a job, a job type, a queue, a door and the server; each field that
// is not set is left to the next wider one, see Over. The zero value sets
// nothing.
//
// A Retry is a value: copies may share Curve and Rules, so nobody changes them
// after they are made.
type Retry struct {
	// Limit is how many retries follow the first attempt: limit 3 is at most
	// four attempts. Server default 25.
	Limit Limit

	// MaxAge gives the job up once its next due time is further than this
	// from its creation (or last revive). 0 = not set; MaxMillis = unlimited,
	// which is also what the server's silence means.
	MaxAge Millis

	// Place is where a retry stands that is ready at once. Server default keep.
	Place Place

	// Curve is how long to wait. It is replaced whole, never mixed: the
	// numbers of one curve say nothing about another. Server default
	// polynomial 15s, 4, 30s.
	Curve *Curve

	// Rules say what to do about particular failures, before limit and curve
	// are looked at. They are replaced whole. Server default none.
	Rules *Rules

	// LossLimit is how many losses in a row (the holder vanished, nothing was
	// settled) make the job dead with reason lost; at least 1, or unlimited.
	// Server default 20.
	LossLimit Limit
}

// DefaultRetry is the server's policy if nobody configures one: the defaults
// of the Zizq seed, which retry for about three weeks.
func DefaultRetry() Retry {
	curve := defaultCurve(CurvePolynomial)
	return Retry{
		Limit:     LimitOf(25),
		Place:     PlaceKeep,
		Curve:     &curve,
		LossLimit: LimitOf(20),
	}
}

// Over lays r, the more specific policy, over base: every field that r sets
// wins, the others are base's.
func (r Retry) Over(base Retry) Retry {
	if !r.Limit.IsSet() {
		r.Limit = base.Limit
	}
	if r.MaxAge == 0 {
		r.MaxAge = base.MaxAge
	}
	if r.Place == PlaceUnset {
		r.Place = base.Place
	}
	if r.Curve == nil {
		r.Curve = base.Curve
	}
	if r.Rules == nil {
		r.Rules = base.Rules
	}
	if !r.LossLimit.IsSet() {
		r.LossLimit = base.LossLimit
	}
	return r
}

// LimitValue is the retry limit of a merged policy; not bounded if it is
// unlimited or not set. A job is dead when its charged attempts exceed it:
// with limit 0 the first failure is fatal.
func (r Retry) LimitValue() (limit int64, bounded bool) {
	n, ok := r.Limit.Count()
	return int64(n), ok
}

// LossLimitValue is the loss limit of a merged policy. A job is lost when its
// losses reach it. Unlimited and not set are lossLimitMax, which nothing
// reaches, and from which a caller may count on without overflow.
func (r Retry) LossLimitValue() uint32 {
	const lossLimitMax = math.MaxInt32
	if n, ok := r.LossLimit.Count(); ok {
		return min(n, lossLimitMax)
	}
	return lossLimitMax
}

// IsZero reports whether nothing is set.
func (r Retry) IsZero() bool { return r == Retry{} }

// Limit is a number, unlimited, or (the zero value) not set.
type Limit struct {
	is limitState
	n  uint32
}

type limitState uint8

const (
	limitUnset limitState = iota
	limitCounted
	limitNone // no limit at all
)

// LimitOf is a limit of n; LimitOf(0) is what configuration calls "none": no retry.
func LimitOf(n uint32) Limit { return Limit{is: limitCounted, n: n} }

// Unlimited is the limit that is never reached.
func Unlimited() Limit { return Limit{is: limitNone} }

// IsSet reports whether the limit says anything.
func (l Limit) IsSet() bool { return l.is != limitUnset }

// Count returns the number; ok is false for unlimited and for not set.
func (l Limit) Count() (n uint32, ok bool) { return l.n, l.is == limitCounted }

// String writes the limit as ParseLimit reads it; not set is empty.
func (l Limit) String() string {
	switch l.is {
	case limitCounted:
		return strconv.FormatUint(uint64(l.n), 10)
	case limitNone:
		return "unlimited"
	default:
		return ""
	}
}

// ParseLimit reads a whole number up to 4294967295, "unlimited" or "none" (0).
func ParseLimit(s string) (Limit, error) {
	switch s {
	case "unlimited":
		return Unlimited(), nil
	case "none":
		return LimitOf(0), nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return Limit{}, Errorf(Invalid, "limit %q: use a whole number from 0 to 4294967295, unlimited or none", shorten(s))
	}
	return LimitOf(uint32(n)), nil
}

// Place is where a job that goes back and is ready at once stands in its line
// (spec/core.md section 1).
type Place uint8

// The places.
const (
	PlaceUnset Place = iota
	PlaceKeep        // where it stood
	PlaceFront       // before the band of fresh jobs
	PlaceBack        // behind all
)

var placeNames = [...]string{"", "keep", "front", "back"}

// String writes the place as ParsePlace reads it; not set is empty.
func (p Place) String() string { return nameOf(placeNames[:], uint8(p)) }

// ParsePlace reads keep, front or back.
func ParsePlace(s string) (Place, error) {
	at, ok := indexOf(placeNames[:], s)
	if !ok {
		return PlaceUnset, Errorf(Invalid, "place %q: use keep, front or back%s", shorten(s), spell.Hint(s, placeNames[:]))
	}
	return Place(at), nil
}

// Curve says how long to wait before a retry. Package rule computes it. Only
// the fields of its kind mean anything; the others are zero. All spans are in
// milliseconds and none is negative. n is the retry being scheduled, 1 for
// the first, and a = n-1.
type Curve struct {
	Kind CurveKind

	Base Millis // polynomial (15s), uniform (5s), staircase (5s), linear
	Cap  Millis // uniform (2000s), exponential (1h), linear; 0 = none

	Unit   Millis  // exponential: the first wait (1s)
	Factor float64 // exponential: at least 1 (2)
	Offset int     // exponential: added to n-1, from 0 to OffsetMax (0)

	Delay  Millis   // constant (5s)
	Step   Millis   // linear: added per retry
	Delays []Millis // list: the n-th wait; the last one repeats. 1 to DelaysMax

	// Exponent is the polynomial's (4): the wait grows by a^Exponent seconds.
	// Below zero it comes only over the wire; the term for a = 0 is then 0.
	Exponent float64

	// Spread is the polynomial's jitter (30s): the wait grows by a random
	// part of Spread, times a. It is an amount of time, where the other kinds
	// have a Jitter kind; on the wire both are called jitter.
	Spread Millis

	Count  Count  // polynomial
	Jitter Jitter // exponential (full), linear (none), list (none)
}

// Limits on what a policy may hold.
const (
	DelaysMax = 100
	OffsetMax = math.MaxInt32
)

// CurveKind names a formula of the table in spec/retry.md section 1.
type CurveKind uint8

// The kinds. A curve of CurveUnset is not a curve.
const (
	CurveUnset       CurveKind = iota
	CurvePolynomial            // base + a^exponent seconds + a * r * jitter (Zizq)
	CurveUniform               // in [base, min(base * 2^n, cap)] (Fluent Bit)
	CurveExponential           // min(unit * factor^(n-1+offset), cap) (correlate)
	CurveConstant              // delay (Ziggurat's "linear")
	CurveStaircase             // (2^min(n,25) - 1) * base (Ziggurat's exponential)
	CurveLinear                // min(base + (n-1) * step, cap)
	CurveList                  // the n-th delay
	CurveImmediate             // 0 (GridServer)
)

var curveNames = [...]string{
	"", "polynomial", "uniform", "exponential", "constant", "staircase", "linear", "list", "immediate",
}

// String writes the kind as configuration does.
func (k CurveKind) String() string { return nameOf(curveNames[:], uint8(k)) }

// ParseCurveKind reads the name of a kind.
func ParseCurveKind(s string) (CurveKind, error) {
	at, ok := indexOf(curveNames[:], s)
	if !ok {
		return CurveUnset, Errorf(Invalid, "kind %q: use one of %s%s", shorten(s), strings.Join(curveNames[1:], ", "), spell.Hint(s, curveNames[1:]))
	}
	return CurveKind(at), nil
}

// Count is what the polynomial's a counts.
type Count uint8

// The counts.
const (
	CountPrevious  Count = iota // a = n-1, the attempts before the one that failed (Zizq seed)
	CountIncluding              // a = n, with the one that failed (Zizq 0.6.1)
)

var countNames = [...]string{"previous", "including"}

func (c Count) String() string { return nameOf(countNames[:], uint8(c)) }

// Jitter says how a computed wait v is spread. The zero value is none.
type Jitter struct {
	Kind    JitterKind
	Percent float64 // JitterPercent only, 0 to 100
}

// JitterKind names a way to spread.
type JitterKind uint8

// The jitter kinds; U is uniform, both ends included.
const (
	JitterNone         JitterKind = iota
	JitterFull                    // U(0, v)
	JitterEqual                   // v/2 + U(0, v/2)
	JitterDecorrelated            // min(cap, U(base, 3 * previous wait))
	JitterPercent                 // v ± Percent
)

var jitterNames = [...]string{"none", "full", "equal", "decorrelated"}

// String writes the jitter as ParseJitter reads it.
func (j Jitter) String() string {
	if j.Kind == JitterPercent {
		return "±" + strconv.FormatFloat(j.Percent, 'f', -1, 64) + "%"
	}
	return nameOf(jitterNames[:], uint8(j.Kind))
}

// ParseJitter reads none, full, equal, decorrelated, or a percentage from 0 to
// 100 written ±10%, +-10% or 10%.
func ParseJitter(s string) (Jitter, error) {
	if at, ok := indexOf(jitterNames[:], s); ok {
		return Jitter{Kind: JitterKind(at)}, nil
	}
	number, isPercent := strings.CutSuffix(s, "%")
	number = strings.TrimPrefix(strings.TrimPrefix(number, "±"), "+-")
	if !isPercent || number == "" || strings.Trim(number, "0123456789.") != "" {
		return Jitter{}, Errorf(Invalid, "jitter %q: use none, full, equal, decorrelated or a percentage such as ±10%%", shorten(s))
	}
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || percent > 100 {
		return Jitter{}, Errorf(Invalid, "jitter %q: the percentage must be from 0 to 100", shorten(s))
	}
	return Jitter{Kind: JitterPercent, Percent: percent}, nil
}

// defaultCurve returns a curve of a kind with the defaults of the table in
// spec/retry.md section 1.
func defaultCurve(kind CurveKind) Curve {
	c := Curve{Kind: kind}
	switch kind {
	case CurvePolynomial:
		c.Base, c.Exponent, c.Spread = 15*Second, 4, 30*Second
	case CurveUniform:
		c.Base, c.Cap = 5*Second, 2000*Second
	case CurveExponential:
		c.Unit, c.Factor, c.Cap, c.Jitter.Kind = Second, 2, Hour, JitterFull
	case CurveConstant:
		c.Delay = 5 * Second
	case CurveStaircase:
		c.Base = 5 * Second
	case CurveUnset, CurveLinear, CurveList, CurveImmediate: // nothing to assume
	}
	return c
}

// ZizqCurve is the curve of the jobs door's wire field `backoff` (exponent,
// base_ms, jitter_ms), counted as the seed does. A negative exponent is a
// curve here; configuration refuses it.
func ZizqCurve(exponent float64, baseMillis, jitterMillis uint32) Curve {
	return Curve{
		Kind:     CurvePolynomial,
		Base:     Millis(baseMillis),
		Exponent: exponent,
		Spread:   Millis(jitterMillis),
	}
}

func nameOf(names []string, at uint8) string {
	if int(at) < len(names) {
		return names[at]
	}
	return "unknown(" + strconv.Itoa(int(at)) + ")"
}

// indexOf finds a name; the empty name, which stands for "not set", is never found.
func indexOf(names []string, s string) (int, bool) {
	for i, name := range names {
		if name == s && s != "" {
			return i, true
		}
	}
	return 0, false
}
