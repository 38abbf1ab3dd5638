package job

import (
	"bytes"
	"math"
	"strconv"
)

// NestingMax is how deep a payload, a result or a checkpoint may be nested.
// Clients read at most 127 levels (serde_json), and a list of jobs has three of
// them around a payload.
const NestingMax = 124

// numberPlain is how many digits every client can read.
const numberPlain = 300

// Unreadable finds what clients could not read in well-formed JSON: one that
// meets it ends its stream, again and again. at is the path of the member, such
// as .a[3]; why is empty if all is well.
func Unreadable(v []byte) (at, why string) {
	if len(v) <= 2*NestingMax && !mayHaveExponent(v) {
		return "", "" // the usual one: neither so deep nor so many digits fit into it
	}
	depth := 0
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			i = closing(v, i+1)
		case c == '{' || c == '[':
			if depth++; depth > NestingMax {
				return "", "is nested deeper than " + strconv.Itoa(NestingMax) + " levels, which clients cannot read"
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(v) && inNumber(v[end]) {
				end++
			}
			if tooLarge(v[i:end]) {
				return pathTo(v[:i]), "is a number that is too large for clients (beyond 1.8e308); send it as a text"
			}
			i = end - 1
		}
	}
	return "", ""
}

// mayHaveExponent is quick: e behind a digit may stand in a text, too.
func mayHaveExponent(v []byte) bool {
	for _, e := range [...]byte{'e', 'E'} {
		for at := 0; ; at++ {
			n := bytes.IndexByte(v[at:], e)
			if n < 0 {
				break
			}
			if at += n; at > 0 && '0' <= v[at-1] && v[at-1] <= '9' {
				return true
			}
		}
	}
	return false
}

func inNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '.' || c|0x20 == 'e' || c == '+' || c == '-'
}

// level is an object or a list that is open.
type level struct {
	list  bool
	index int
	key   []byte // as it is written
}

// pathTo is the path of the value that stands behind v.
func pathTo(v []byte) (path string) {
	stack, text := []level{{}}, []byte(nil)
	for i := 0; i < len(v); i++ {
		top := &stack[len(stack)-1]
		switch v[i] {
		case '"':
			end := closing(v, i+1)
			text, i = v[i+1:end], end
		case ':':
			top.key = text
		case ',':
			top.index++
		case '{', '[':
			stack = append(stack, level{list: v[i] == '['})
		case '}', ']':
			stack = stack[:len(stack)-1]
		}
	}
	const most = 200
	for _, l := range stack[1:] {
		if l.list {
			path += "[" + strconv.Itoa(l.index) + "]"
		} else {
			path += "." + string(l.key)
		}
		if len(path) > most {
			return string(bytes.ToValidUTF8([]byte(path[:most]), nil)) + "…"
		}
	}
	return path
}

// closing is where a text ends that begins at i.
func closing(v []byte, i int) int {
	for from := i; ; i++ {
		n := bytes.IndexByte(v[i:], '"')
		if n < 0 {
			return len(v)
		}
		i += n
		first := i // of the backslashes before the quote: it is escaped by an odd number
		for first > from && v[first-1] == '\\' {
			first--
		}
		if (i-first)%2 == 0 {
			return i
		}
	}
}

func tooLarge(number []byte) bool {
	if len(number) < numberPlain && bytes.IndexByte(number, 'e') < 0 && bytes.IndexByte(number, 'E') < 0 {
		return false
	}
	f, _ := strconv.ParseFloat(string(number), 64)
	return math.IsInf(f, 0)
}
