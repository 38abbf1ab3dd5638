package job

import (
	"encoding/binary"
	"math"
)

// retryFormat is the leading byte of a stored Retry. A number is never used
// for two formats; a reader knows all that were ever written.
//
// Format 1: the byte, a uvarint of retryHas bits, then what the bits say, in
// their order. Numbers are uvarints, floats 8 bytes little-endian.
const retryFormat = 1

// The bits of format 1. Never renumbered.
const (
	hasLimit = 1 << iota
	hasMaxAge
	hasPlace
	hasLossLimit
	hasCurve // its kind follows; the bits below are all of the curve
	hasBase
	hasCap
	hasUnit
	hasDelay
	hasStep
	hasFactor
	hasExponent
	hasOffset
	hasDelays
	hasJitter
	hasPercent
	hasSpread
	hasCount
	hasRules // of the policy again, behind its curve; see rules_binary.go
	hasEnd
)

const hasAnyOfCurve = hasRules - hasBase

// AppendBinary appends the compact stored form to b. Setting nothing takes two
// bytes; the usual override takes less than twenty.
func (r *Retry) AppendBinary(b []byte) []byte {
	var c Curve
	bits := bit(r.Limit.IsSet(), hasLimit) | bit(r.MaxAge != 0, hasMaxAge) |
		bit(r.Place != PlaceUnset, hasPlace) | bit(r.LossLimit.IsSet(), hasLossLimit)
	if r.Curve != nil {
		c = *r.Curve
		bits |= hasCurve | c.bits()
	}
	bits |= bit(r.Rules != nil, hasRules)
	b = binary.AppendUvarint(append(b, retryFormat), bits)
	if bits&hasLimit != 0 {
		b = appendLimit(b, r.Limit)
	}
	b = appendMillis(b, bits&hasMaxAge, r.MaxAge)
	if bits&hasPlace != 0 {
		b = append(b, byte(r.Place))
	}
	if bits&hasLossLimit != 0 {
		b = appendLimit(b, r.LossLimit)
	}
	if bits&hasCurve != 0 {
		b = c.appendBinary(append(b, byte(c.Kind)), bits)
	}
	if bits&hasRules != 0 {
		b = r.Rules.appendBinary(b)
	}
	return b
}

func (c *Curve) bits() uint64 {
	return bit(c.Base != 0, hasBase) | bit(c.Cap != 0, hasCap) | bit(c.Unit != 0, hasUnit) |
		bit(c.Delay != 0, hasDelay) | bit(c.Step != 0, hasStep) | bit(c.Factor != 0, hasFactor) |
		bit(c.Exponent != 0, hasExponent) | bit(c.Offset != 0, hasOffset) | bit(len(c.Delays) > 0, hasDelays) |
		bit(c.Jitter.Kind != JitterNone, hasJitter) | bit(c.Jitter.Percent != 0, hasPercent) |
		bit(c.Spread != 0, hasSpread) | bit(c.Count != 0, hasCount)
}

func (c *Curve) appendBinary(b []byte, bits uint64) []byte {
	b = appendMillis(b, bits&hasBase, c.Base)
	b = appendMillis(b, bits&hasCap, c.Cap)
	b = appendMillis(b, bits&hasUnit, c.Unit)
	b = appendMillis(b, bits&hasDelay, c.Delay)
	b = appendMillis(b, bits&hasStep, c.Step)
	b = appendFloat(b, bits&hasFactor, c.Factor)
	b = appendFloat(b, bits&hasExponent, c.Exponent)
	if bits&hasOffset != 0 {
		b = binary.AppendUvarint(b, uint64(c.Offset))
	}
	if bits&hasDelays != 0 {
		b = binary.AppendUvarint(b, uint64(len(c.Delays)))
		for _, v := range c.Delays {
			b = binary.AppendUvarint(b, uint64(v))
		}
	}
	if bits&hasJitter != 0 {
		b = append(b, byte(c.Jitter.Kind))
	}
	b = appendFloat(b, bits&hasPercent, c.Jitter.Percent)
	b = appendMillis(b, bits&hasSpread, c.Spread)
	if bits&hasCount != 0 {
		b = append(b, byte(c.Count))
	}
	return b
}

// DecodeRetry reads what AppendBinary wrote and returns the bytes behind it.
// It checks form and ranges, so that what it returns is safe to compute with;
// it does not Validate, so that a rule added later cannot make a stored job
// unreadable. What it refuses is a Corrupt error.
func DecodeRetry(b []byte) (r Retry, rest []byte, err error) {
	if len(b) == 0 || b[0] != retryFormat {
		return Retry{}, nil, Errorf(Corrupt, "reading a stored retry policy: unknown format")
	}
	d := retryDecoder{rest: b[1:]}
	d.bits = d.number(hasEnd - 1)
	if d.has(hasLimit) {
		r.Limit = d.limit()
	}
	r.MaxAge = d.millis(hasMaxAge)
	r.Place = Place(d.oneOf(hasPlace, uint64(PlaceBack)))
	if d.has(hasLossLimit) {
		r.LossLimit = d.limit()
	}
	if d.has(hasCurve) {
		r.Curve = d.curve()
	} else if d.bits&hasAnyOfCurve != 0 {
		d.bad = true
	}
	if d.has(hasRules) {
		r.Rules = d.rules()
	}
	if d.bad {
		return Retry{}, nil, Errorf(Corrupt, "reading a stored retry policy: it is cut short or damaged")
	}
	return r, d.rest, nil
}

// retryDecoder reads from the left; after the first fault it only returns zeroes.
type retryDecoder struct {
	rest []byte
	bits uint64
	bad  bool
}

func (d *retryDecoder) curve() *Curve {
	c := &Curve{Kind: CurveKind(d.oneOf(hasCurve, uint64(len(curveNames)-1)))}
	c.Base = d.millis(hasBase)
	c.Cap = d.millis(hasCap)
	c.Unit = d.millis(hasUnit)
	c.Delay = d.millis(hasDelay)
	c.Step = d.millis(hasStep)
	c.Factor = d.float(hasFactor)
	c.Exponent = d.float(hasExponent)
	c.Offset = int(d.oneOf(hasOffset, OffsetMax))
	if d.has(hasDelays) {
		n := d.oneOf(hasDelays, DelaysMax)
		for range n {
			c.Delays = append(c.Delays, Millis(d.number(uint64(MaxMillis))))
		}
	}
	c.Jitter.Kind = JitterKind(d.oneOf(hasJitter, uint64(JitterPercent)))
	c.Jitter.Percent = d.float(hasPercent)
	c.Spread = d.millis(hasSpread)
	c.Count = Count(d.oneOf(hasCount, uint64(CountIncluding)))
	return c
}

func (d *retryDecoder) has(bit uint64) bool { return d.bits&bit != 0 && !d.bad }

// number reads a uvarint of at most most.
func (d *retryDecoder) number(most uint64) uint64 {
	if d.bad {
		return 0
	}
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > most {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// oneOf reads a number from 1 to most if its bit is set: zero is told by the bit.
func (d *retryDecoder) oneOf(bit, most uint64) uint64 {
	if !d.has(bit) {
		return 0
	}
	v := d.number(most)
	if v == 0 {
		d.bad = true
	}
	return v
}

func (d *retryDecoder) millis(bit uint64) Millis { return Millis(d.oneOf(bit, uint64(MaxMillis))) }

func (d *retryDecoder) float(bit uint64) float64 {
	if !d.has(bit) {
		return 0
	}
	if len(d.rest) < 8 {
		d.bad = true
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	if f == 0 || !finite(f) {
		d.bad = true
		return 0
	}
	return f
}

// limit: 0 is unlimited, else the number plus one.
func (d *retryDecoder) limit() Limit {
	v := d.number(math.MaxUint32 + 1)
	if v == 0 {
		return Unlimited()
	}
	return LimitOf(uint32(v - 1))
}

func appendLimit(b []byte, l Limit) []byte {
	n, counted := l.Count()
	if !counted {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(n)+1)
}

func appendMillis(b []byte, set uint64, v Millis) []byte {
	if set == 0 {
		return b
	}
	return binary.AppendUvarint(b, uint64(v))
}

func appendFloat(b []byte, set uint64, f float64) []byte {
	if set == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
}

func bit(set bool, b uint64) uint64 {
	if set {
		return b
	}
	return 0
}
