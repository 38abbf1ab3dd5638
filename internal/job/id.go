package job

import (
	"encoding/binary"
	"errors"
)

// ID names a job: 128 bits in the SCRU128 layout (48 bit milliseconds, two
// 24 bit counters, 32 bit entropy), written as 25 characters [0-9a-z]. Byte
// order, text order and order of creation agree, so an id is also a place in
// the first-in-first-out order (spec/jobs.md, "ids").
type ID [16]byte

// IDChars is the length of an id written as text.
const IDChars = 25

const idDigits = "0123456789abcdefghijklmnopqrstuvwxyz"

// ErrID says that a text is not an id.
var ErrID = errors.New("a job id has exactly 25 characters of 0-9 and a-z")

// IsZero reports whether the id was never set.
func (id ID) IsZero() bool { return id == ID{} }

// Before reports whether id was made before other.
func (id ID) Before(other ID) bool {
	a, b := id.halves()
	c, d := other.halves()
	return a < c || a == c && b < d
}

// Compare orders ids as bytes.
func (id ID) Compare(other ID) int {
	a, b := id.halves()
	c, d := other.halves()
	switch {
	case a < c || a == c && b < d:
		return -1
	case a == c && b == d:
		return 0
	}
	return 1
}

func (id ID) halves() (hi, lo uint64) {
	return binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
}

// AppendTo appends the 25 characters of the id.
func (id ID) AppendTo(b []byte) []byte {
	var out [IDChars]byte
	// Five groups of five digits (36^5 = 60466176), by long division of four 32 bit limbs.
	var limbs [4]uint64
	for i := range limbs {
		limbs[i] = uint64(id[4*i])<<24 | uint64(id[4*i+1])<<16 | uint64(id[4*i+2])<<8 | uint64(id[4*i+3])
	}
	for end := IDChars; end > 0; end -= 5 {
		var rest uint64
		for i := range limbs {
			v := rest<<32 | limbs[i]
			limbs[i], rest = v/60466176, v%60466176
		}
		for i := end - 1; i >= end-5; i-- {
			out[i] = idDigits[rest%36]
			rest /= 36
		}
	}
	return append(b, out[:]...)
}

func (id ID) String() string { return string(id.AppendTo(make([]byte, 0, IDChars))) }

// MarshalText writes the id as its 25 characters.
func (id ID) MarshalText() ([]byte, error) { return id.AppendTo(nil), nil }

// UnmarshalText reads them.
func (id *ID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseID(text)
	return err
}

// ParseID reads the 25 characters of an id; anything else is ErrID.
func ParseID[T ~string | ~[]byte](s T) (ID, error) {
	var id ID
	if len(s) != IDChars {
		return id, ErrID
	}
	var limbs [4]uint64
	for i := range IDChars {
		var digit uint64
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digit = uint64(c - '0')
		case c >= 'a' && c <= 'z':
			digit = uint64(c-'a') + 10
		default:
			return ID{}, ErrID
		}
		for j := 3; j >= 0; j-- {
			v := limbs[j]*36 + digit
			limbs[j], digit = v&0xffffffff, v>>32
		}
		if digit != 0 {
			return ID{}, ErrID // above 128 bits
		}
	}
	for i, v := range limbs {
		id[4*i], id[4*i+1], id[4*i+2], id[4*i+3] = byte(v>>24), byte(v>>16), byte(v>>8), byte(v)
	}
	return id, nil
}

// IDs makes ids, each above the one before, whatever the clock does. It is
// not safe for concurrent use: the engine's committer owns it. The SCRU128
// library is not served by the module proxy we build from, hence these lines.
type IDs struct {
	last ID
	rnd  func() uint64
}

// NewIDs makes ids above floor with entropy from rnd.
func NewIDs(floor ID, rnd func() uint64) *IDs { return &IDs{last: floor, rnd: rnd} }

// Next returns the next id for the time now. While now stands still or goes
// back, the counters carry the order.
func (g *IDs) Next(now Millis) ID {
	r := g.rnd()
	id := idOf(uint64(max(now, 0)), uint32(r>>40), uint32(r>>17)&0x7fffff, uint32(g.rnd()))
	if !g.last.Before(id) || g.last.millis() == id.millis() {
		id = g.last.successor(uint32(g.rnd()))
	}
	g.last = id
	return id
}

func (id ID) millis() uint64 {
	hi, _ := id.halves()
	return hi >> 16
}

func idOf(millis uint64, hi, lo, entropy uint32) ID {
	var id ID
	for i := range 6 {
		id[i] = byte(millis >> (40 - 8*i))
	}
	for i := range 3 {
		id[6+i] = byte(hi >> (16 - 8*i))
		id[9+i] = byte(lo >> (16 - 8*i))
	}
	for i := range 4 {
		id[12+i] = byte(entropy >> (24 - 8*i))
	}
	return id
}

// successor counts on in the 96 bits of time and counters and draws new entropy.
func (id ID) successor(entropy uint32) ID {
	for i := 11; i >= 0; i-- {
		id[i]++
		if id[i] != 0 {
			break
		}
	}
	for i := range 4 {
		id[12+i] = byte(entropy >> (24 - 8*i))
	}
	return id
}
