package record

import (
	"bytes"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/msgpack"
)

// ErrJSON refuses a text that is not one value of JSON.
var ErrJSON = errors.New("this is not one value of JSON")

// AppendFromJSON appends the raw value of one JSON text. Names may stand twice,
// and what is no UTF-8 in texts becomes U+FFFD.
func AppendFromJSON(dst, text []byte) ([]byte, error) {
	twice := jsontext.AllowDuplicateNames(true)
	if !jsontext.Value(text).IsValid(twice) {
		clean := jsontext.Value(bytes.Clone(text))
		if clean.Format(twice, jsontext.AllowInvalidUTF8(true)) != nil {
			return dst, ErrJSON
		}
		text = bytes.ToValidUTF8(clean, []byte("\uFFFD"))
	}
	out, err := msgpack.Append(dst, text)
	if err != nil {
		return dst, ErrJSON
	}
	return out, nil
}

// ErrForm refuses JSON that is no event.
var ErrForm = errors.New("an event is an object, [time, object] or [[time, metadata], object]")

// AppendEventFromJSON appends the event that a JSON text is: an object, which happened at t,
// or one with its own time in front, as events are written here.
func AppendEventFromJSON(dst []byte, t Time, text []byte) ([]byte, error) {
	out := AppendHead(dst, t)
	begin := len(out)
	out, err := AppendFromJSON(out, text)
	if err != nil {
		return dst, err
	}
	raw := out[begin:]
	if IsMap(raw) {
		return out, nil
	}
	r := NewReader(raw)
	if !r.Next() || r.Offset() != len(raw) {
		return dst, ErrForm
	}
	return AppendEvent(dst, r.Time, bytes.Clone(r.Meta), bytes.Clone(r.Body)), nil
}
