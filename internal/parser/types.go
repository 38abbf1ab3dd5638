package parser

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tinylib/msgp/msgp"
)

// fieldType is what the text of a field becomes.
type fieldType string

// parseTypes reads `field:type ...`, with spaces or commas between.
func parseTypes(text string) (map[string]fieldType, error) {
	types := map[string]fieldType{}
	for _, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }) {
		i := strings.LastIndexByte(entry, ':')
		if i <= 0 {
			return nil, fmt.Errorf("types: %q is not field:type", entry)
		}
		name, kind := entry[:i], fieldType(strings.ToLower(entry[i+1:]))
		switch kind {
		case "int":
			kind = "integer"
		case "integer", "float", "bool", "hex", "string":
		default:
			return nil, fmt.Errorf("types: the type %q of %s is not known; the types are integer, float, bool, hex and string", kind, name)
		}
		types[name] = kind
	}
	return types, nil
}

// append appends a value. As in the original a number is what the text begins
// with, 0 if it begins with none, and what is no bool stays a text.
func (f fieldType) append(dst, text []byte) []byte {
	switch f {
	case "integer":
		n, _ := strconv.ParseInt(prefix(text, "0123456789"), 10, 64) // too large: the nearest
		return msgp.AppendInt64(dst, n)
	case "hex":
		digits := bytes.TrimPrefix(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("0x")), []byte("0X"))
		n, _ := strconv.ParseUint(strings.TrimLeft(prefix(digits, "0123456789abcdefABCDEF"), "+-"), 16, 64)
		return msgp.AppendUint64(dst, n)
	case "float":
		return msgp.AppendFloat64(dst, toFloat(text))
	case "bool":
		if bytes.EqualFold(text, []byte("true")) {
			return msgp.AppendBool(dst, true)
		} else if bytes.EqualFold(text, []byte("false")) {
			return msgp.AppendBool(dst, false)
		}
	}
	return msgp.AppendStringFromBytes(dst, text)
}

// prefix is what a text begins with, behind spaces: a sign, and digits.
func prefix(text []byte, digits string) string {
	text = bytes.TrimLeft(text, " \t")
	n := 0
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		n = 1
	}
	for n < len(text) && strings.IndexByte(digits, text[n]) >= 0 {
		n++
	}
	return string(text[:n])
}

// toFloat is the number that a text begins with.
func toFloat(text []byte) float64 {
	whole := prefix(text, "0123456789.eE+-")
	for ; whole != ""; whole = whole[:len(whole)-1] {
		if f, err := strconv.ParseFloat(whole, 64); err == nil && !math.IsInf(f, 0) {
			return f
		}
		if len(whole) > 64 {
			whole = whole[:64]
		}
	}
	return 0
}
