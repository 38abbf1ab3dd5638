package inbox

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
)

// problemsMax bounds what a hostile document can make us answer.
const problemsMax = 50

// reader collects what is wrong with a document.
type reader struct {
	s        Settings
	kept     bool
	problems []error
	shapes   []string // fields whose value has a wrong form: nothing more is told of them
}

func (r *reader) note(err error) {
	if err == nil {
		return
	}
	if bad, ok := errors.AsType[*job.Error](err); ok && r.misshapen(bad.Field) {
		return
	}
	r.problems = append(r.problems, err)
}

func (r *reader) bad(field, text string) { r.note(refuse(field, field+" "+text)) }

// misshapen reports whether a part of a field has a wrong form: what is there
// without it says nothing about the field.
func (r *reader) misshapen(field string) bool {
	return slices.ContainsFunc(r.shapes, func(s string) bool { return s == field || strings.HasPrefix(s, field+".") })
}

// document reads what has the right form. A value of a wrong form is noted and
// read as if it were not there, so that all of them are told at once, and what
// is wrong with the others too. The error says that there is no document.
func (r *reader) document(body []byte) (*document, error) {
	body = relaxed(body)
	for {
		var d document
		err := json.Unmarshal(body, &d, json.RejectUnknownMembers(true))
		if err == nil {
			return &d, nil
		}
		bad, ok := errors.AsType[*json.SemanticError](err)
		if !ok {
			return nil, refuse("", "invalid JSON: "+shorten(strings.TrimPrefix(err.Error(), "jsontext: ")))
		}
		field := fieldOf(bad.JSONPointer)
		r.bad(field, misread(bad, field))
		r.shapes = append(r.shapes, field)
		if bad.JSONPointer == "" || len(r.shapes) == problemsMax {
			return nil, errors.Join(r.problems...)
		}
		if body, err = without(body, bad.JSONPointer); err != nil { // what follows it is no JSON
			return nil, refuse("", "invalid JSON: "+shorten(strings.TrimPrefix(err.Error(), "jsontext: ")))
		}
	}
}

// without is a document without one member.
func without(body []byte, member jsontext.Pointer) ([]byte, error) {
	var out bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(body)), jsontext.NewEncoder(&out)
	for from.PeekKind() != jsontext.KindInvalid {
		token, err := from.ReadToken()
		kind, n := from.StackIndex(from.StackDepth())
		name := kind == jsontext.KindBeginObject && n%2 == 1
		switch {
		case err != nil:
		case name && from.StackPointer() == member:
			err = from.SkipValue()
		default:
			err = to.WriteToken(token)
		}
		if err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// misread says what is wrong with the form of a value.
func misread(bad *json.SemanticError, field string) string {
	switch inner := bad.Err; {
	case errors.Is(bad, json.ErrUnknownName):
		return noSetting(field)
	case inner != nil && bad.GoType != nil && readsItself(bad.GoType):
		return "is refused: " + inner.Error()
	case bad.GoType == nil:
		return "cannot be read: " + shorten(bad.Error())
	}
	return "must be " + shapeOf(bad.GoType)
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.UnmarshalerFrom]())
}

// fieldOf writes the place of a value as a.b.
func fieldOf(at jsontext.Pointer) string {
	field := strings.Join(slices.Collect(at.Tokens()), ".")
	return cmp.Or(shorten(field), "the settings")
}

func shapeOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a text"
	case reflect.Int:
		return "a whole number, written without a fraction or an exponent"
	case reflect.Float64:
		return "a number"
	}
	return "an object"
}
