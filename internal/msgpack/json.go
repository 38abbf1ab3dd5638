package msgpack

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"
)

// depthMax is how deep values may be nested, as in the doors' JSON.
const depthMax = 10_000

// ErrTooLarge refuses a value whose JSON would be larger than allowed.
var ErrTooLarge = errors.New("the value is larger than allowed when it is written as JSON")

// Error says what is wrong with a MessagePack value, and where.
type Error struct {
	Path string // a.b[2]; "" = the value as a whole
	Text string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Text
	}
	return e.Path + ": " + e.Text
}

func bad(text string) error { return &Error{Text: text} }

// AppendJSON appends the JSON text of msg, which holds exactly one value. It
// appends at most most bytes, else ErrTooLarge; other errors are *Error. A
// length in msg is a claim and costs no memory before its bytes are there.
func AppendJSON(dst, msg []byte, most int) ([]byte, error) {
	r := reader{out: dst, most: len(dst) + most}
	rest, err := r.value(msg, 0)
	if err == nil && len(rest) > 0 {
		err = bad("there is more after the first value")
	}
	return r.out, err
}

// reader walks over MessagePack and writes JSON.
type reader struct {
	out  []byte
	most int // length of out
}

// value carries one value over and returns what follows it.
func (r *reader) value(msg []byte, depth int) (rest []byte, err error) {
	switch kind := msgp.NextType(msg); kind {
	case msgp.MapType:
		rest, err = r.object(msg, depth+1)
	case msgp.ArrayType:
		rest, err = r.array(msg, depth+1)
	case msgp.StrType:
		rest, err = r.text(msg)
	case msgp.IntType:
		var n int64
		n, rest, err = msgp.ReadInt64Bytes(msg)
		r.out = strconv.AppendInt(r.out, n, 10)
	case msgp.UintType:
		var n uint64
		n, rest, err = msgp.ReadUint64Bytes(msg)
		r.out = strconv.AppendUint(r.out, n, 10)
	case msgp.Float64Type:
		var f float64
		if f, rest, err = msgp.ReadFloat64Bytes(msg); err == nil {
			err = r.float(f)
		}
	case msgp.Float32Type:
		var f float32
		if f, rest, err = msgp.ReadFloat32Bytes(msg); err == nil {
			err = r.float(float64(f))
		}
	case msgp.BoolType:
		var b bool
		b, rest, err = msgp.ReadBoolBytes(msg)
		r.out = strconv.AppendBool(r.out, b)
	case msgp.NilType:
		rest, err = msgp.ReadNilBytes(msg)
		r.out = append(r.out, "null"...)
	default:
		err = noJSON(kind, msg)
	}
	if err == nil && len(r.out) > r.most {
		err = ErrTooLarge
	}
	return rest, told(err)
}

// noJSON says why a value of a kind cannot be carried over.
func noJSON(kind msgp.Type, msg []byte) error {
	switch {
	case len(msg) == 0:
		return bad("it ends early")
	case kind == msgp.BinType:
		return bad("binary data (bin) is not allowed here; send a string, for example Base64")
	case kind == msgp.InvalidType:
		return bad("the byte 0x" + strconv.FormatUint(uint64(msg[0]), 16) + " begins no value")
	}
	return bad("extension types, such as timestamps, are not allowed here; send a string or a number")
}

// told puts the library's word for what is cut short into ours.
func told(err error) error {
	if err == nil || err == ErrTooLarge { //nolint:errorlint // made here and never wrapped
		return err
	}
	if _, ours := err.(*Error); ours { //nolint:errorlint // likewise
		return err
	}
	if errors.Is(err, msgp.ErrShortBytes) {
		return bad("it ends early")
	}
	return bad(err.Error())
}

func (r *reader) object(msg []byte, depth int) ([]byte, error) {
	n, rest, err := msgp.ReadMapHeaderBytes(msg)
	if err != nil {
		return nil, err
	}
	if err := claim(uint64(n)*2, rest, depth); err != nil {
		return nil, err
	}
	r.out = append(r.out, '{')
	for i := range n {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if kind := msgp.NextType(rest); kind != msgp.StrType && len(rest) > 0 {
			return nil, bad("a map has a key that is no string")
		}
		key := rest
		if rest, err = r.text(rest); err != nil {
			return nil, told(err)
		}
		r.out = append(r.out, ':')
		if rest, err = r.value(rest, depth); err != nil {
			name, _, _ := msgp.ReadStringZC(key)
			return nil, within(string(name), err)
		}
	}
	r.out = append(r.out, '}')
	return rest, nil
}

func (r *reader) array(msg []byte, depth int) ([]byte, error) {
	n, rest, err := msgp.ReadArrayHeaderBytes(msg)
	if err != nil {
		return nil, err
	}
	if err := claim(uint64(n), rest, depth); err != nil {
		return nil, err
	}
	r.out = append(r.out, '[')
	for i := range n {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if rest, err = r.value(rest, depth); err != nil {
			return nil, within("["+strconv.FormatUint(uint64(i), 10)+"]", err)
		}
	}
	r.out = append(r.out, ']')
	return rest, nil
}

// claim refuses a length that the bytes cannot fulfil, and too much nesting.
func claim(values uint64, rest []byte, depth int) error {
	switch {
	case depth > depthMax:
		return bad("values are nested deeper than " + strconv.Itoa(depthMax))
	case values > uint64(len(rest)):
		return bad("it ends early: a map or an array is longer than what is left")
	}
	return nil
}

func (r *reader) text(msg []byte) ([]byte, error) {
	s, rest, err := msgp.ReadStringZC(msg)
	if err != nil {
		return nil, err
	}
	if isPlain(s) {
		r.out = append(append(append(r.out, '"'), s...), '"')
	} else if r.out, err = jsontext.AppendQuote(r.out, s); err != nil {
		return nil, bad("a string is not UTF-8")
	}
	return rest, nil
}

// isPlain reports whether a string can stand between quotes as it is.
func isPlain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// float writes a float so that it is read as one.
func (r *reader) float(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return bad("a number is NaN or infinite")
	}
	at := len(r.out)
	r.out = jsontext.AppendFloat(r.out, f, 64)
	if !bytes.ContainsAny(r.out[at:], ".e") {
		r.out = append(r.out, ".0"...)
	}
	return nil
}

// within adds where a problem is, from the inside out.
func within(name string, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // made here and never wrapped
	if !ok {
		return err
	}
	const bytesMax = 200
	path := name
	if e.Path != "" && e.Path[0] != '[' {
		path += "."
	}
	if path += e.Path; len(path) > bytesMax {
		path = strings.ToValidUTF8(path[:bytesMax], "")
	}
	return &Error{Path: path, Text: e.Text}
}
