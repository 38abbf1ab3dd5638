package job

import (
	"encoding/binary"
	"math"

	"github.com/reprisehq/reprise/internal/codec"
)

// retryFormat is the leading byte of a stored Retry. A number is never used
// for two formats; a reader knows all that were ever written.
//
// Format 1: the byte, a number of retryHas bits, then what the bits say, in
// their order. Floats have 8 bytes, little-endian.
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
	f := codec.Write(b)
	r.fields(&f)
	return f.Bytes()
}

// DecodeRetry reads what AppendBinary wrote and returns the bytes behind it.
// It checks form and ranges, so that what it returns is safe to compute with;
// it does not Validate, so that a rule added later cannot make a stored job
// unreadable. What it refuses is a Corrupt error.
func DecodeRetry(b []byte) (r Retry, rest []byte, err error) {
	f := codec.Read(b)
	if r.fields(&f); f.Bad() {
		return Retry{}, nil, Errorf(Corrupt, "reading a stored retry policy: it is cut short, damaged, or of an unknown format")
	}
	return r, f.Bytes(), nil
}

func (r *Retry) fields(f *codec.Fields) {
	format := byte(retryFormat)
	codec.Enum(f, &format, retryFormat+1)
	f.Refuse(format != retryFormat)
	has := bit(r.Limit.IsSet(), hasLimit) | bit(r.MaxAge != 0, hasMaxAge) |
		bit(r.Place != PlaceUnset, hasPlace) | bit(r.LossLimit.IsSet(), hasLossLimit) | bit(r.Rules != nil, hasRules)
	if r.Curve != nil {
		has |= hasCurve | r.Curve.bits()
	}
	codec.Uint(f, &has, hasEnd-1)
	if f.Bad() {
		return
	}
	limitField(f, has&hasLimit, &r.Limit)
	numberField(f, has&hasMaxAge, &r.MaxAge, MaxMillis)
	numberField(f, has&hasPlace, &r.Place, PlaceBack)
	limitField(f, has&hasLossLimit, &r.LossLimit)
	f.Refuse(has&hasCurve == 0 && has&hasAnyOfCurve != 0)
	if has&hasCurve != 0 {
		if f.Reads() {
			r.Curve = &Curve{}
		}
		r.Curve.fields(f, has)
	}
	if has&hasRules != 0 {
		if f.Reads() {
			r.Rules = &Rules{}
		}
		r.Rules.fields(f)
	}
}

func (c *Curve) bits() uint64 {
	return bit(c.Base != 0, hasBase) | bit(c.Cap != 0, hasCap) | bit(c.Unit != 0, hasUnit) |
		bit(c.Delay != 0, hasDelay) | bit(c.Step != 0, hasStep) | bit(c.Factor != 0, hasFactor) |
		bit(c.Exponent != 0, hasExponent) | bit(c.Offset != 0, hasOffset) | bit(len(c.Delays) > 0, hasDelays) |
		bit(c.Jitter.Kind != JitterNone, hasJitter) | bit(c.Jitter.Percent != 0, hasPercent) |
		bit(c.Spread != 0, hasSpread) | bit(c.Count != 0, hasCount)
}

func (c *Curve) fields(f *codec.Fields, has uint64) {
	numberField(f, hasCurve, &c.Kind, CurveKind(len(curveNames)-1))
	numberField(f, has&hasBase, &c.Base, MaxMillis)
	numberField(f, has&hasCap, &c.Cap, MaxMillis)
	numberField(f, has&hasUnit, &c.Unit, MaxMillis)
	numberField(f, has&hasDelay, &c.Delay, MaxMillis)
	numberField(f, has&hasStep, &c.Step, MaxMillis)
	floatField(f, has&hasFactor, &c.Factor)
	floatField(f, has&hasExponent, &c.Exponent)
	numberField(f, has&hasOffset, &c.Offset, OffsetMax)
	if has&hasDelays != 0 {
		for i := range codec.List(f, &c.Delays) {
			delay := &c.Delays[i]
			codec.Uint(f, delay, uint64(MaxMillis))
		}
		f.Refuse(len(c.Delays) == 0 || len(c.Delays) > DelaysMax)
	}
	numberField(f, has&hasJitter, &c.Jitter.Kind, JitterPercent)
	floatField(f, has&hasPercent, &c.Jitter.Percent)
	numberField(f, has&hasSpread, &c.Spread, MaxMillis)
	numberField(f, has&hasCount, &c.Count, CountIncluding)
}

// numberField is a number from 1 to most if its bit is set: zero is told by the bit.
func numberField[T ~uint8 | ~int | ~int64](f *codec.Fields, set uint64, p *T, most T) {
	if set != 0 {
		codec.Uint(f, p, uint64(most))
		f.Refuse(*p == 0)
	}
}

func floatField(f *codec.Fields, set uint64, p *float64) {
	if set != 0 {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(*p))
		if f.Raw(b[:]); f.Reads() {
			*p = math.Float64frombits(binary.LittleEndian.Uint64(b[:]))
			f.Refuse(*p == 0 || !finite(*p))
		}
	}
}

// limitField: 0 is unlimited, else the number plus one.
func limitField(f *codec.Fields, set uint64, l *Limit) {
	if set == 0 {
		return
	}
	var v uint64
	if n, counted := l.Count(); counted {
		v = uint64(n) + 1
	}
	codec.Uint(f, &v, math.MaxUint32+1)
	switch {
	case !f.Reads():
	case v == 0:
		*l = Unlimited()
	default:
		*l = LimitOf(uint32(v - 1))
	}
}

func bit(set bool, b uint64) uint64 {
	if set {
		return b
	}
	return 0
}
