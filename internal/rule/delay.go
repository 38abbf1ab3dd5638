package rule

import (
	"math"
	"math/bits"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// Delay returns how long to wait before a retry, in milliseconds: one draw
// from the interval of DelayBounds. Retry is the retry being scheduled, 1 for
// the first; previous is the wait before the last attempt (0 if there was
// none), which only decorrelated jitter looks at; rnd is uniform in [0, 1) and
// is asked only when there is something to choose.
//
// For any curve and any retry the answer is from 0 to job.MaxMillis. A missing
// curve waits as the server's default does: a lost policy must not become a
// hot loop.
func Delay(c *job.Curve, retry int, previous job.Millis, rnd func() float64) job.Millis {
	lo, hi, inclusive := DelayBounds(c, retry)
	if c != nil && jitterOf(c) == job.JitterDecorrelated {
		if previous <= 0 {
			previous = lo // as if the wait before the first had been the base
		}
		hi = min(hi, max(lo, Times(previous, 3)))
	}
	if lo == hi {
		return lo
	}
	count := hi - lo
	if inclusive {
		count++
	}
	return lo + draw(count, rnd())
}

// DelayBounds returns the interval Delay draws from, in milliseconds. The
// upper end is part of it if maxInclusive; it is not where the formula is
// "amount times r" (polynomial with jitter). Every term is cut to whole
// milliseconds by itself, so that this holds exactly.
//
// For decorrelated jitter, whose interval follows the wait before, it is the
// widest interval that retry can have.
func DelayBounds(c *job.Curve, retry int) (lo, hi job.Millis, maxInclusive bool) {
	if c == nil {
		c = &fallback
	}
	n := int64(max(retry, 1))
	switch c.Kind {
	case job.CurveUniform:
		lo = legal(c.Base)
		return lo, max(lo, capped(doubled(lo, n), c.Cap)), true
	case job.CurveExponential:
		v := exponential(c, n)
		return spread(c, v, c.Unit, legal(c.Cap), n)
	case job.CurveConstant:
		lo = legal(c.Delay)
		return lo, lo, true
	case job.CurveStaircase:
		lo = Times(legal(c.Base), 1<<min(n, staircaseTop)-1)
		return lo, lo, true
	case job.CurveLinear:
		v := capped(legal(c.Base).Add(Times(legal(c.Step), n-1)), c.Cap)
		return spread(c, v, c.Base, legal(c.Cap), n)
	case job.CurveList:
		return list(c, n)
	case job.CurveImmediate:
		return 0, 0, true
	case job.CurvePolynomial:
		return polynomial(c, n)
	default:
		return polynomial(&fallback, n)
	}
}

// fallback stands in for a curve that is missing or of no known kind.
var fallback = *job.DefaultRetry().Curve

// staircaseTop is the step after which Ziggurat's staircase is flat.
const staircaseTop = 25

// polynomial is the Zizq seed's B + a^E seconds + a * rand(0 to J).
func polynomial(c *job.Curve, n int64) (lo, hi job.Millis, maxInclusive bool) {
	a := n - 1
	if c.Count == job.CountIncluding {
		a = n
	}
	lo = legal(c.Base)
	if a > 0 || c.Exponent >= 0 { // 0^0 is 1; 0 to a negative power counts as 0
		lo = lo.Add(Whole(math.Pow(float64(a), c.Exponent) * float64(job.Second)))
	}
	hi = lo.Add(Times(legal(c.Spread), a))
	return lo, hi, lo == hi
}

// exponential is unit * factor^(n-1+offset) up to the cap, without jitter.
func exponential(c *job.Curve, n int64) job.Millis {
	unit := legal(c.Unit)
	if unit == 0 {
		return 0 // else 0 times infinity
	}
	power := float64(n-1) + float64(max(c.Offset, 0))
	return capped(Whole(float64(unit)*math.Pow(c.Factor, power)), c.Cap)
}

// list is the n-th delay. Decorrelated jitter takes the shortest delay as its
// base and the longest as its cap.
func list(c *job.Curve, n int64) (lo, hi job.Millis, maxInclusive bool) {
	if len(c.Delays) == 0 {
		return polynomial(&fallback, n)
	}
	v := legal(c.Delays[min(n, int64(len(c.Delays)))-1])
	return spread(c, v, slices.Min(c.Delays), legal(slices.Max(c.Delays)), n)
}

// spread puts the jitter around a computed wait v. Base and limit (0 = none)
// matter to decorrelated jitter only. A percentage may pass the cap: the cap
// is of the curve, the jitter comes after it.
func spread(c *job.Curve, v, base, limit job.Millis, n int64) (lo, hi job.Millis, maxInclusive bool) {
	switch c.Jitter.Kind {
	case job.JitterFull:
		return 0, v, true
	case job.JitterEqual:
		return v / 2, v, true
	case job.JitterDecorrelated:
		base = capped(legal(base), limit)
		return base, capped(tripled(base, n), limit), true
	case job.JitterPercent:
		p := c.Jitter.Percent
		if !(p > 0) { // NaN too
			return v, v, true
		}
		p = min(p, 100)
		return Whole(float64(v) * ((100 - p) / 100)), Whole(float64(v) * ((100 + p) / 100)), true
	default:
		return v, v, true
	}
}

// jitterOf is the jitter kind of a curve that has one.
func jitterOf(c *job.Curve) job.JitterKind {
	switch c.Kind {
	case job.CurveExponential, job.CurveLinear, job.CurveList:
		return c.Jitter.Kind
	default:
		return job.JitterNone
	}
}

// draw picks one of count values, 0 to count-1, by r in [0, 1).
func draw(count job.Millis, r float64) job.Millis {
	at := r * float64(count)
	switch {
	case !(at > 0): // NaN too
		return 0
	case at >= float64(count): // rounding, or a source that reached 1
		return count - 1
	}
	return min(job.Millis(at), count-1)
}

// Whole cuts a computed number of milliseconds to what a wait can be. A value
// within rounding error of a whole millisecond is that millisecond: 9^1.5 is
// 27 on every machine, also where Pow says 26.999999999999996.
func Whole(ms float64) job.Millis {
	const roundingError = 4e-15 // some units in the last place
	if !(ms < float64(job.MaxMillis)) {
		return job.MaxMillis // also NaN: rather wait than spin
	}
	if ms <= 0 {
		return 0
	}
	if near := math.Round(ms); math.Abs(ms-near) <= near*roundingError {
		ms = near
	}
	return job.Millis(ms)
}

// legal brings a span that no parser would pass into the legal range.
func legal(v job.Millis) job.Millis { return min(max(v, 0), job.MaxMillis) }

// capped bounds v by a cap, of which 0 means none.
func capped(v, limit job.Millis) job.Millis {
	if limit <= 0 {
		return v
	}
	return min(v, limit)
}

// Times multiplies two numbers of at least 0, up to job.MaxMillis.
func Times(v job.Millis, by int64) job.Millis {
	high, low := bits.Mul64(uint64(v), uint64(by))
	if high != 0 || low > uint64(job.MaxMillis) {
		return job.MaxMillis
	}
	return job.Millis(low)
}

// doubled is v * 2^n, tripled is v * 3^n, up to job.MaxMillis.
func doubled(v job.Millis, n int64) job.Millis { return Times(v, 1<<min(n, 62)) }

func tripled(v job.Millis, n int64) job.Millis {
	for ; n > 0 && v > 0 && v < job.MaxMillis; n-- {
		v = Times(v, 3)
	}
	return v
}
