package parser

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// Decoder is a line Decode_Field or Decode_Field_As: `json log do_next`.
type Decoder struct {
	As   bool // Decode_Field_As: what is decoded replaces the field
	Rule string
}

// decoder is all that is done to one field, in its order.
type decoder struct {
	field string
	steps []step
}

type step struct {
	as, doNext, tryNext bool
	kind                string
}

// newDecoders reads the decoders and puts those of one field together.
func newDecoders(rules []Decoder) (decoders []*decoder, err error) {
	of := map[string]*decoder{}
	for _, rule := range rules {
		words := strings.Fields(rule.Rule)
		if len(words) < 2 || len(words) > 3 {
			err = errors.Join(err, fmt.Errorf("decode_field %q is not: decoder field [do_next or try_next]", rule.Rule))
			continue
		}
		s := step{as: rule.As, kind: strings.ToLower(words[0])}
		switch s.kind {
		case "json", "escaped", "escaped_utf8", "mysql_quoted":
		default:
			err = errors.Join(err, fmt.Errorf("the decoder %q is not known; the decoders are json, escaped, escaped_utf8 and mysql_quoted", words[0]))
		}
		if !s.as && s.kind != "json" {
			err = errors.Join(err, fmt.Errorf("decode_field %s: only json adds fields to a record; write decode_field_as", rule.Rule))
		}
		if len(words) == 3 {
			s.doNext, s.tryNext = strings.EqualFold(words[2], "do_next"), strings.EqualFold(words[2], "try_next")
			if !s.doNext && !s.tryNext {
				err = errors.Join(err, fmt.Errorf("%q behind a decoder is neither do_next nor try_next", words[2]))
			}
		}
		d := of[words[1]]
		if d == nil {
			d = &decoder{field: words[1]}
			of[words[1]], decoders = d, append(decoders, d)
		}
		d.steps = append(d.steps, s)
	}
	return decoders, err
}

// decode applies the decoders to the record that was written.
func (p *Parser) decode(w *writer) error {
	body, err := record.ParseBody(nil, w.out[w.begin:])
	if err != nil {
		return ErrNoFit
	}
	for _, d := range p.decoders {
		if i := body.Index(d.field); i >= 0 {
			body = d.apply(body, i)
		}
	}
	raw := body.Append(nil)
	w.out = append(w.out[:w.begin], raw...)
	return nil
}

// apply decodes one field. A step that fails leaves it as it was.
func (d *decoder) apply(body record.Body, i int) record.Body {
	for _, s := range d.steps {
		text, isText := record.Text(body[i].Value)
		if !isText {
			return body
		}
		value, ok := s.decode(text)
		switch {
		case ok && s.as:
			body[i].Value = value
		case ok && record.IsMap(value):
			extra, err := record.ParseBody(nil, value)
			if err != nil {
				return body
			}
			for _, f := range extra {
				body = body.Set(string(f.Key), f.Value)
			}
			return body
		}
		if !s.doNext && (ok || !s.tryNext) {
			return body
		}
	}
	return body
}

// decode returns the raw value of a text.
func (s step) decode(text []byte) (value []byte, ok bool) {
	switch s.kind {
	case "json":
		first := bytes.TrimLeft(text, " \t\r\n")
		if len(first) == 0 || first[0] != '{' && first[0] != '[' {
			return nil, false
		}
		value, err := record.AppendFromJSON(nil, text)
		return value, err == nil
	case "mysql_quoted":
		n := len(text)
		if n < 2 || text[0] != text[n-1] || text[0] != '\'' && text[0] != '"' {
			return nil, false
		}
		return msgp.AppendStringFromBytes(nil, unquoteMySQL(text[1:n-1])), true
	default:
		return msgp.AppendStringFromBytes(nil, unescape(nil, text, s.kind == "escaped_utf8")), true
	}
}

// simple are the escapes of one letter.
var simple = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'a': '\a', 'v': '\v', '\\': '\\', '"': '"', '\'': '\'', '/': '/'}

// unescape appends a text without its escapes; with numbers also those by
// number (\u00e4, \xe4, \344). What is no escape stays.
func unescape(dst, text []byte, numbers bool) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i == len(text)-1 {
			return append(dst, text...)
		}
		dst, text = append(dst, text[:i]...), text[i:]
		if c, ok := simple[text[1]]; ok {
			dst, text = append(dst, c), text[2:]
			continue
		}
		n := 0
		if numbers {
			dst, n = appendNumbered(dst, text)
		}
		if n == 0 {
			dst, n = append(dst, text[:2]...), 2
		}
		text = text[n:]
	}
}

// appendNumbered appends the character of an escape by number, and returns the
// length of the escape, or 0.
func appendNumbered(dst, text []byte) ([]byte, int) {
	switch text[1] {
	case 'u':
		r, ok := hexRune(text, 4)
		if !ok {
			return dst, 0
		}
		if low, ok := hexRune(text[6:], 4); ok && r>>10 == 0xd800>>10 && low>>10 == 0xdc00>>10 && text[6] == '\\' && text[7] == 'u' {
			return utf8.AppendRune(dst, (r-0xd800)<<10|(low-0xdc00)+0x10000), 12
		}
		return utf8.AppendRune(dst, r), 6
	case 'U':
		if r, ok := hexRune(text, 8); ok {
			return utf8.AppendRune(dst, r), 10
		}
	case 'x':
		if r, ok := hexRune(text, 2); ok {
			return append(dst, byte(r)), 4
		}
	case '0', '1', '2', '3':
		if len(text) >= 4 {
			if c, err := strconv.ParseUint(string(text[1:4]), 8, 8); err == nil {
				return append(dst, byte(c)), 4
			}
		}
	}
	return dst, 0
}

// hexRune reads some hexadecimal digits behind two bytes.
func hexRune(text []byte, digits int) (rune, bool) {
	if len(text) < 2+digits {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:2+digits]), 16, 32)
	return rune(n), err == nil && n <= utf8.MaxRune
}

// unquoteMySQL takes the escapes of a quoted text of MySQL away.
func unquoteMySQL(text []byte) (out []byte) {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		switch c := text[i]; c {
		case '0':
			out = append(out, 0)
		case 'Z':
			out = append(out, 0x1a)
		case 'n', 't', 'r', 'b':
			out = append(out, simple[c])
		case '%', '_': // an escape for LIKE, which stays one
			out = append(out, '\\', c)
		default:
			out = append(out, c)
		}
	}
	return out
}

// Unescape is a text without its escapes, also those by number.
func Unescape(text []byte) []byte { return unescape(nil, text, true) }
