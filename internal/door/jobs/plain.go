package jobs

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// ReadPlain reads JSON into v, over what v holds. With strict, an unknown
// member is refused. Its errors are *job.Error and name the field.
func ReadPlain(body []byte, v any, strict bool) error {
	return plainFault(json.Unmarshal(body, v, json.RejectUnknownMembers(strict)))
}

// ReadLenient does so, and tells of the first member that is not known, as
// Reader.Unknown does, instead of refusing it.
func ReadLenient(body []byte, v any, tell func(path, why string) error) error {
	err := json.Unmarshal(body, v, json.RejectUnknownMembers(true))
	if bad, ok := errors.AsType[*json.SemanticError](err); ok && errors.Is(err, json.ErrUnknownName) {
		if refused := tell(fieldOf(bad.JSONPointer), notKnownAt(bad)); refused != nil {
			return refused
		}
		err = json.Unmarshal(body, v)
	}
	return plainFault(err)
}

// notKnownAt says that the member at which reading stopped is not known.
func notKnownAt(bad *json.SemanticError) string {
	return notKnown + spell.Hint(bad.JSONPointer.LastToken(), membersOf(bad.GoType))
}

func plainFault(err error) error {
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
		why = " " + notKnownAt(bad)
	}
	return &job.Error{Kind: job.Invalid, Field: field, Text: field + why}
}

// membersOf are the names in JSON of the members of a struct.
func membersOf(t reflect.Type) (names []string) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		} else if f.Anonymous {
			names = append(names, membersOf(f.Type)...)
		}
	}
	return names
}

const theBody = "the body"

// fieldOf writes the place of a value as a.b[2].
func fieldOf(at jsontext.Pointer) string {
	field := ""
	for name := range at.Tokens() {
		switch {
		case name != "" && strings.Trim(name, "0123456789") == "":
			field += "[" + name + "]"
		case strings.ContainsAny(name, `."[]`):
			field += "[" + strconv.Quote(name) + "]"
		case field == "":
			field = name
		default:
			field += "." + name
		}
	}
	if field == "" {
		return theBody
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
