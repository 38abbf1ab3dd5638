package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// plainMax bounds the bodies that are read by reflection, which nobody sends
// often.
const plainMax = 1 << 20

// plain reads a body into v, over what v holds. With strict, an unknown member
// is refused. Its errors are *job.Error and name the field.
func plain(body []byte, v any, strict bool) error {
	if len(body) > plainMax {
		return &refusal{http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the body of this call is larger than " + itoa(plainMax) + " bytes"}
	}
	err := json.Unmarshal(body, v, json.RejectUnknownMembers(strict))
	if err == nil {
		return nil
	}
	bad, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return job.Errorf(job.Invalid, "invalid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	field := fieldOf(bad.JSONPointer)
	if own, ok := errors.AsType[*job.Error](err); ok {
		return &job.Error{Kind: own.Kind, Field: field, Text: field + " is refused: " + own.Error()}
	}
	why := " must be " + shapeOf(bad.GoType)
	if errors.Is(err, json.ErrUnknownName) {
		why = " is not known here"
	}
	return &job.Error{Kind: job.Invalid, Field: field, Text: field + why}
}

// fieldOf writes the place of a value as a.b[2].
func fieldOf(at jsontext.Pointer) string {
	field := ""
	for name := range at.Tokens() {
		switch {
		case name != "" && strings.Trim(name, "0123456789") == "":
			field += "[" + name + "]"
		case field == "":
			field = name
		default:
			field += "." + name
		}
	}
	if field == "" {
		return "the body"
	}
	return field
}

func shapeOf(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "something else"
	case t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "an array"
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		return "an object"
	case t.Kind() == reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// sendPlain answers with a value that is written by reflection.
func (h *handler) sendPlain(w http.ResponseWriter, r *http.Request, v any, err error) {
	var body []byte
	if err == nil {
		body, err = json.Marshal(v)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	send(w, http.StatusOK, body)
}

// sendPlainAs does so with another status; the value can be written.
func (h *handler) sendPlainAs(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	send(w, status, body)
}
