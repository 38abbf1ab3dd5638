package record

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// depthMax is how deep values may be nested to be written; what lies deeper is null.
const depthMax = 1000

// AppendJSON appends the JSON of one raw value, and never fails:
//
//   - binary data is written as a text;
//   - a byte of a text that is no UTF-8 becomes U+FFFD;
//   - EventTime becomes seconds with a fraction, each other extension a text of
//     hexadecimal digits;
//   - NaN and infinities become null, and so does what is nested deeper than
//     1,000 and what is cut short;
//   - a key that is no text is written as the text of its JSON, one that is a map
//     or an array as hexadecimal digits;
//   - a float without a fraction gets one decimal (1.0), others 16 digits.
//
// With escapeUnicode all beyond ASCII is written as \uXXXX.
func AppendJSON(dst, raw []byte, escapeUnicode bool) []byte {
	dst, _ = appendValue(dst, raw, 0, 0, escapeUnicode)
	return dst
}

// appendValue appends the value at a place and returns its end.
func appendValue(dst, b []byte, at, depth int, escape bool) ([]byte, int) {
	k, size, n := head(b, at)
	body := at + size
	switch k {
	case kindStr, kindBin:
		return appendQuoted(dst, b[body:body+n], escape), body + n
	case kindInt:
		return strconv.AppendInt(dst, integer(b, at), 10), body
	case kindUint:
		return strconv.AppendUint(dst, uint64(integer(b, at)), 10), body
	case kindFloat:
		return appendFloat(dst, float(b, at)), body
	case kindBool:
		return strconv.AppendBool(dst, b[at] == 0xc3), body
	case kindMap, kindArray:
		if depth == depthMax {
			end, err := skip(b, at)
			if err != nil {
				end = len(b)
			}
			return append(dst, "null"...), end
		}
		if k == kindArray {
			return appendArray(dst, b, body, n, depth+1, escape)
		}
		dst, at = appendMembers(append(dst, '{'), b, body, n, depth+1, escape)
		return append(dst, '}'), at
	case kindExt:
		return appendExtension(dst, b[body-1], b[body:body+n]), body + n
	case kindNil:
		return append(dst, "null"...), body
	default: // cut short, or no value
		return append(dst, "null"...), len(b)
	}
}

func appendArray(dst, b []byte, at, n, depth int, escape bool) ([]byte, int) {
	dst = append(dst, '[')
	for i := 0; i < n && at < len(b); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, at = appendValue(dst, b, at, depth, escape)
	}
	return append(dst, ']'), at
}

// appendMembers appends the members of a map without the braces.
func appendMembers(dst, b []byte, at, n, depth int, escape bool) ([]byte, int) {
	for i := 0; i < n && at < len(b); i++ {
		if i > 0 {
			dst = append(dst, ',')
		}
		if end := at + int(forms[b[at]].whole); b[at]>>5 == 0xa0>>5 && end <= len(b) { // a short text
			dst = appendQuoted(dst, b[at+1:end], escape)
			at = end
		} else {
			dst, at = appendKey(dst, b, at, depth, escape)
		}
		dst = append(dst, ':')
		dst, at = appendValue(dst, b, at, depth, escape)
	}
	return dst, at
}

// appendKey appends a key that is not a short text. A key that is a map or an
// array is not gone into: the escapes of one in another would grow without end.
func appendKey(dst, b []byte, at, depth int, escape bool) ([]byte, int) {
	if k, _, _ := head(b, at); k == kindMap || k == kindArray {
		end, err := skip(b, at)
		if err != nil {
			end = len(b)
		}
		return append(hex.AppendEncode(append(dst, '"'), b[at:end]), '"'), end
	}
	begin := len(dst)
	if dst, at = appendValue(dst, b, at, depth, escape); dst[begin] == '"' {
		return dst, at
	}
	text := string(dst[begin:])
	return appendQuoted(dst[:begin], []byte(text), escape), at
}

// appendExtension appends EventTime as a number and all else as hexadecimal digits.
func appendExtension(dst []byte, kind byte, body []byte) []byte {
	if kind == eventTime && len(body) == 8 {
		t := Time{Sec: int64(binary.BigEndian.Uint32(body)), Nsec: binary.BigEndian.Uint32(body[4:])}
		return appendFloat(dst, t.seconds())
	}
	return append(hex.AppendEncode(append(dst, '"'), body), '"')
}

// appendFloat appends a float so that it is read as one where that is possible.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return append(dst, "null"...)
	case f == math.Trunc(f) && math.Abs(f) < 1<<63:
		return strconv.AppendFloat(dst, f, 'f', 1, 64)
	}
	return strconv.AppendFloat(dst, f, 'g', 16, 64)
}

// appendQuoted appends a text between quotes.
func appendQuoted(dst, s []byte, escape bool) []byte {
	dst = append(dst, '"')
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		dst, s = appendSpecial(dst, s[n:], escape)
	}
}

const (
	ones   = 0x0101010101010101
	spaces = ones * ' '
	quotes = ones * '"'
	slants = ones * '\\'
	tops   = ones * 0x80
)

// plain is the length of the beginning of s that stands between quotes as it
// is. It looks at eight bytes at once: subtracting sets the top bit of a byte
// that is less, and a byte that is equal becomes zero, less than one, by xor. A
// byte behind the first hit may be a false one.
func plain(s []byte) int {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		x := binary.LittleEndian.Uint64(s[i:])
		if hit := (x | (x - spaces) | ((x ^ quotes) - ones) | ((x ^ slants) - ones)) & tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

const digits = "0123456789abcdef"

// appendSpecial appends what plain stopped at and returns what follows.
func appendSpecial(dst, s []byte, escape bool) (out, rest []byte) {
	c := s[0]
	if c >= utf8.RuneSelf {
		r, n := utf8.DecodeRune(s)
		switch {
		case !escape:
			dst = utf8.AppendRune(dst, r)
		case r > 0xffff:
			r -= 0x10000
			dst = appendEscape(appendEscape(dst, 0xd800|r>>10), 0xdc00|r&0x3ff)
		default:
			dst = appendEscape(dst, r)
		}
		return dst, s[n:]
	}
	switch c {
	case '"', '\\':
		dst = append(dst, '\\', c)
	case '\n':
		dst = append(dst, '\\', 'n')
	case '\r':
		dst = append(dst, '\\', 'r')
	case '\t':
		dst = append(dst, '\\', 't')
	case '\b':
		dst = append(dst, '\\', 'b')
	case '\f':
		dst = append(dst, '\\', 'f')
	default:
		dst = appendEscape(dst, rune(c))
	}
	return dst, s[1:]
}

func appendEscape(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
