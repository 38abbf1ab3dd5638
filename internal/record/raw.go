package record

import (
	"encoding/binary"
	"errors"
	"math"
)

var (
	errShort = errors.New("it ends early")
	errByte  = errors.New("this byte begins no value of MessagePack")
	errEvent = errors.New("this is no event; [[time, metadata], body] or [time, body] is expected")
	errTime  = errors.New("the time of an event is EventTime (extension 0 of 8 bytes) or a number of seconds")
	errMeta  = errors.New("the metadata of an event is a map")
	errBody  = errors.New("the body of an event is a map")
	errMore  = errors.New("there is more after the value")
)

// kind is what a value of MessagePack is.
type kind uint8

const (
	kindShort kind = iota // the bytes end within the header or what it claims
	kindBad               // no value begins so
	kindNil
	kindBool
	kindInt
	kindUint
	kindFloat
	kindStr
	kindBin
	kindExt
	kindArray
	kindMap
)

// form is how a value begins: its kind, how long the header is, and how many
// bytes at its end are a length. Without these, fixed is the length of the
// payload or the number of members.
type form struct {
	kind          kind
	header, width uint8
	fixed         uint8

	whole, more uint8 // without a width: the length of header and payload, and how many values follow
}

var forms = [256]form{
	0xc0: {kind: kindNil, header: 1},
	0xc1: {kind: kindBad, header: 1},
	0xc2: {kind: kindBool, header: 1},
	0xc3: {kind: kindBool, header: 1},
	0xc4: {kind: kindBin, header: 2, width: 1},
	0xc5: {kind: kindBin, header: 3, width: 2},
	0xc6: {kind: kindBin, header: 5, width: 4},
	0xc7: {kind: kindExt, header: 3, width: 1},
	0xc8: {kind: kindExt, header: 4, width: 2},
	0xc9: {kind: kindExt, header: 6, width: 4},
	0xca: {kind: kindFloat, header: 5},
	0xcb: {kind: kindFloat, header: 9},
	0xcc: {kind: kindUint, header: 2},
	0xcd: {kind: kindUint, header: 3},
	0xce: {kind: kindUint, header: 5},
	0xcf: {kind: kindUint, header: 9},
	0xd0: {kind: kindInt, header: 2},
	0xd1: {kind: kindInt, header: 3},
	0xd2: {kind: kindInt, header: 5},
	0xd3: {kind: kindInt, header: 9},
	0xd4: {kind: kindExt, header: 2, fixed: 1},
	0xd5: {kind: kindExt, header: 2, fixed: 2},
	0xd6: {kind: kindExt, header: 2, fixed: 4},
	0xd7: {kind: kindExt, header: 2, fixed: 8},
	0xd8: {kind: kindExt, header: 2, fixed: 16},
	0xd9: {kind: kindStr, header: 2, width: 1},
	0xda: {kind: kindStr, header: 3, width: 2},
	0xdb: {kind: kindStr, header: 5, width: 4},
	0xdc: {kind: kindArray, header: 3, width: 2},
	0xdd: {kind: kindArray, header: 5, width: 4},
	0xde: {kind: kindMap, header: 3, width: 2},
	0xdf: {kind: kindMap, header: 5, width: 4},
}

func init() {
	for c := range forms {
		switch {
		case c < 0x80 || c >= 0xe0:
			forms[c] = form{kind: kindInt, header: 1}
		case c < 0x90:
			forms[c] = form{kind: kindMap, header: 1, fixed: uint8(c & 15)}
		case c < 0xa0:
			forms[c] = form{kind: kindArray, header: 1, fixed: uint8(c & 15)}
		case c < 0xc0:
			forms[c] = form{kind: kindStr, header: 1, fixed: uint8(c & 31)}
		}
		f := &forms[c]
		switch f.whole = f.header; f.kind {
		case kindMap:
			f.more = 2 * f.fixed
		case kindArray:
			f.more = f.fixed
		default:
			f.whole += f.fixed
		}
	}
}

// head reads how the value at a place begins: its kind, the length of its
// header, and n, the length of the payload behind it or the number of members.
// A payload that is not there whole is kindShort, and so are more members than
// there are bytes left. The type of an extension is the last byte of the header;
// a number is all header.
func head(b []byte, at int) (k kind, size int, n int) {
	if at >= len(b) {
		return kindShort, 0, 0
	}
	f := &forms[b[at]]
	size = int(f.header)
	left := len(b) - at - size
	if left < 0 {
		return kindShort, 0, 0
	}
	length := uint32(f.fixed)
	switch f.width {
	case 1:
		length = uint32(b[at+1])
	case 2:
		length = uint32(binary.BigEndian.Uint16(b[at+1:]))
	case 4:
		length = binary.BigEndian.Uint32(b[at+1:])
	}
	need := uint64(length)
	if f.kind == kindMap {
		need *= 2
	}
	if need > uint64(left) {
		return kindShort, 0, 0
	}
	return f.kind, size, int(length)
}

// skip returns the end of the value at a place, or the place of a fault.
func skip(b []byte, at int) (end int, err error) {
	for left := 1; left > 0; left-- {
		if at >= len(b) {
			return at, errShort
		}
		begin, f := at, &forms[b[at]]
		if f.width == 0 {
			at, left = at+int(f.whole), left+int(f.more)
		} else {
			k, size, n := head(b, at)
			if at += size; k == kindArray {
				left += n
			} else if k == kindMap {
				left += 2 * n
			} else if at += n; k == kindShort {
				return begin, errShort
			}
		}
		if f.kind == kindBad {
			return begin, errByte
		} else if left-1 > len(b)-at { // each value needs a byte
			return begin, errShort
		}
	}
	return at, nil
}

// Skip returns what follows the first value of b.
func Skip(b []byte) (rest []byte, err error) {
	end, err := skip(b, 0)
	if err != nil {
		return nil, &Error{Offset: end, Text: err.Error()}
	}
	return b[end:], nil
}

// Text returns the bytes of a value that is a text or binary data.
func Text(raw []byte) (text []byte, ok bool) {
	k, size, n := head(raw, 0)
	if k != kindStr && k != kindBin {
		return nil, false
	}
	return raw[size : size+n], true
}

// IsMap reports whether a value is a map.
func IsMap(raw []byte) bool {
	k, _, _ := head(raw, 0)
	return k == kindMap
}

// integer is the whole number at a place, of kindInt or kindUint; one of more
// than 63 bits comes out negative.
func integer(b []byte, at int) int64 {
	rest := b[at+1:]
	switch c := b[at]; c {
	case 0xcc:
		return int64(rest[0])
	case 0xcd:
		return int64(binary.BigEndian.Uint16(rest))
	case 0xce:
		return int64(binary.BigEndian.Uint32(rest))
	case 0xcf, 0xd3:
		return int64(binary.BigEndian.Uint64(rest))
	case 0xd0:
		return int64(int8(rest[0]))
	case 0xd1:
		return int64(int16(binary.BigEndian.Uint16(rest)))
	case 0xd2:
		return int64(int32(binary.BigEndian.Uint32(rest)))
	default:
		return int64(int8(c))
	}
}

// float is the float at a place.
func float(b []byte, at int) float64 {
	if b[at] == 0xca {
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[at+1:])))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b[at+1:]))
}
