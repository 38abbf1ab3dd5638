package job

import "strconv"

// Millis is a time in milliseconds: a point counts from the Unix epoch, a span from nothing.
type Millis int64

// Spans. MaxMillis is where all arithmetic with times saturates; it is half of
// what fits, so that the sum of any two times cannot overflow.
const (
	Second    Millis = 1000
	Minute           = 60 * Second
	Hour             = 60 * Minute
	Day              = 24 * Hour
	MaxMillis Millis = 1 << 62
)

// Add returns a + b, never below 0 and never above MaxMillis.
func (a Millis) Add(b Millis) Millis {
	switch {
	case b > 0 && a > MaxMillis-b:
		return MaxMillis
	case b < 0 && a < 0: // both below nothing; the sum might even wrap
		return 0
	}
	return min(max(a+b, 0), MaxMillis)
}

// String writes a span as ParseDuration reads it: 7d, 1d12h, 1m30s, 12.5s,
// 250ms, 0s.
func (m Millis) String() string { return string(m.Append(make([]byte, 0, 32))) }

// Append writes a span as String does.
func (m Millis) Append(b []byte) []byte {
	rest := uint64(m)
	if m < 0 { // a broken value must still be readable in a log
		b, rest = append(b, '-'), -rest
	}
	if rest == 0 {
		return append(b, "0s"...)
	}
	if rest < uint64(Second) {
		return append(strconv.AppendUint(b, rest, 10), "ms"...)
	}
	for _, u := range [...]struct {
		span Millis
		name byte
	}{{Day, 'd'}, {Hour, 'h'}, {Minute, 'm'}} {
		if n := rest / uint64(u.span); n > 0 {
			b = append(strconv.AppendUint(b, n, 10), u.name)
			rest %= uint64(u.span)
		}
	}
	if rest == 0 {
		return b
	}
	b = strconv.AppendUint(b, rest/uint64(Second), 10)
	if frac := rest % uint64(Second); frac > 0 {
		b = append(b, '.', byte('0'+frac/100))
		if frac%100 > 0 {
			b = append(b, byte('0'+frac/10%10))
		}
		if frac%10 > 0 {
			b = append(b, byte('0'+frac%10))
		}
	}
	return append(b, 's')
}
