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
