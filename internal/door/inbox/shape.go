package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/strict"
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
	var d document
	whole := true
	err := strict.Read(relaxed(body), &d, func(p strict.Problem) bool {
		field := cmp.Or(shorten(strings.Join(slices.Collect(p.At.Tokens()), ".")), "the settings")
		r.bad(field, misread(p, field))
		r.shapes = append(r.shapes, field)
		whole = p.At != "" && len(r.shapes) < problemsMax
		return whole
	})
	if err == nil && !whole {
		err = errors.Join(r.problems...)
	}
	return &d, err
}

// misread says what is wrong with the form of a value.
func misread(p strict.Problem, field string) string {
	switch {
	case p.Unknown:
		return noSetting(field)
	case p.Twice:
		return p.Why()
	case p.Err != nil && p.Type != nil && readsItself(p.Type):
		return "is refused: " + p.Err.Error()
	case p.Type == nil:
		return "cannot be read: " + shorten(fmt.Sprint(p.Err))
	}
	return "must be " + shapeOf(p.Type)
}

func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[json.UnmarshalerFrom]())
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
