// Package strict reads JSON into structs, and finds all that has a wrong form
// at once; what it says of a problem, the caller may say in other words. It also
// takes the parameters of queries apart.
package strict

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// Problem is a value that has a wrong form, or a member that is not known.
type Problem struct {
	At      jsontext.Pointer
	Field   string // the same, as a.b[2]; "" = the whole document
	Unknown bool
	Twice   bool         // it is there more than once
	Type    reflect.Type // what it is read into, or would be a member of; may be nil
	Err     error        // what a type that reads itself says; may be nil
}

// Read reads a document into v, over what v holds. Each problem goes to bad, and
// what it is about is read as if it were not there, until bad returns false.
// The error is that the document is no JSON.
func Read(body []byte, v any, bad func(Problem) (more bool)) error { return read(body, v, true, bad) }

// ReadKnown passes over members that are not known.
func ReadKnown(body []byte, v any, bad func(Problem) (more bool)) error {
	return read(body, v, false, bad)
}

// membersMax is how many members a document may have, and againMost how many bytes of it
// are read again, each time to find one more problem.
const (
	membersMax = 256
	againMost  = 2 << 20
)

func read(body []byte, v any, all bool, bad func(Problem) (more bool)) error {
	shape := reflect.TypeOf(v).Elem()
	switch text := bytes.TrimSpace(body); {
	case len(text) == 0:
		return Empty("a JSON object", shape)
	case string(text) == "null":
		bad(Problem{Type: shape})
		return nil
	case tooMany(body):
		return &job.Error{Kind: job.Invalid, Field: theBody, Text: theBody + " must not have more than " + strconv.Itoa(membersMax) + " fields"}
	}
	twice := false
	for again := 0; ; again += len(body) {
		err := json.Unmarshal(body, v, json.RejectUnknownMembers(all), jsontext.AllowDuplicateNames(twice))
		if err == nil {
			return nil
		}
		if same, ok := errors.AsType[*jsontext.SyntacticError](err); ok && !twice && errors.Is(err, jsontext.ErrDuplicateName) {
			twice = true
			if at := same.JSONPointer; !bad(Problem{At: at, Field: fieldOf(at), Twice: true}) {
				return nil
			}
			continue
		}
		found, ok := errors.AsType[*json.SemanticError](err)
		if !ok {
			return noJSON(err)
		}
		p := Problem{At: found.JSONPointer, Field: fieldOf(found.JSONPointer), Unknown: errors.Is(err, json.ErrUnknownName), Type: found.GoType, Err: found.Err}
		if !bad(p) || again+len(body) > againMost {
			return nil
		}
		at, cut := found.JSONPointer, false
		for ; at != "" && !cut; at = at.Parent() { // of a list nothing is read then
			if body, cut, err = without(body, at); err != nil { // what follows is no JSON
				return noJSON(err)
			}
		}
		if !cut {
			return nil
		}
	}
}

// theBody is the field of a problem of the whole document.
const theBody = "the body"

// Empty refuses a body without a value, and says what is wanted: something with the
// members of a struct.
func Empty(wanted string, of reflect.Type) *job.Error {
	if list := Members(of); len(list) > 0 {
		wanted += " with " + strings.Join(list, ", ")
	}
	return &job.Error{Kind: job.Invalid, Text: theBody + " is empty; send " + wanted}
}

// tooMany reports whether a document is an object with more members than one may have.
func tooMany(body []byte) bool {
	if len(body) < membersMax*len(`"":0,`) {
		return false
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	if d.PeekKind() != jsontext.KindBeginObject {
		return false
	}
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	values := 0
	for ; values <= 2*membersMax && d.PeekKind() != jsontext.KindEndObject; values++ {
		if d.SkipValue() != nil {
			return false // what follows says why
		}
	}
	return values > 2*membersMax
}

func noJSON(err error) error {
	return job.Errorf(job.Invalid, "invalid JSON: %s", Shorten(strings.TrimPrefix(err.Error(), "jsontext: "), 300))
}

// without is a document without one member, if it has that.
func without(body []byte, member jsontext.Pointer) (rest []byte, cut bool, err error) {
	var out bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true)), jsontext.NewEncoder(&out, jsontext.AllowDuplicateNames(true))
	for from.PeekKind() != jsontext.KindInvalid {
		token, err := from.ReadToken()
		kind, n := from.StackIndex(from.StackDepth())
		name := kind == jsontext.KindBeginObject && n%2 == 1
		switch {
		case err != nil:
		case name && from.StackPointer() == member:
			cut, err = true, from.SkipValue()
		default:
			err = to.WriteToken(token)
		}
		if err != nil {
			return body, false, err
		}
	}
	if _, err := from.ReadToken(); !errors.Is(err, io.EOF) { // it stopped there for that
		return body, false, err
	}
	return out.Bytes(), cut, nil
}

// fieldOf writes the place of a value as a.b[2].
func fieldOf(at jsontext.Pointer) string {
	field := ""
	for name := range at.Tokens() {
		switch {
		case name == "":
			field += `[""]`
		case strings.Trim(name, "0123456789") == "":
			field += "[" + name + "]"
		case strings.ContainsAny(name, `."[]`):
			field += "[" + strconv.Quote(name) + "]"
		case field == "":
			field = name
		default:
			field += "." + name
		}
	}
	return Shorten(field, 100)
}

// Shorten keeps a hostile text from filling an answer.
func Shorten(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// NotKnown begins what is said of a member that is not known.
const NotKnown = "is not known here"

// Why says what is wrong with the field.
func (p *Problem) Why() string {
	if p.Unknown {
		name := p.Field[strings.LastIndexByte(p.Field, '.')+1:]
		return NotKnown + spell.Hint(name, Members(p.Type))
	}
	if p.Twice {
		return "is there twice"
	}
	if own, ok := errors.AsType[*job.Error](p.Err); ok {
		return "is refused: " + own.Error()
	}
	return "must be " + shapeOf(p.Type)
}

// Error is the refusal of a field, which may stand within another one.
func (p *Problem) Error(within string) *job.Error {
	e := &job.Error{Kind: job.Invalid, Field: Join(within, p.Field)}
	if own, ok := errors.AsType[*job.Error](p.Err); ok {
		e.Kind = own.Kind
	}
	e.Text = e.Field + " " + p.Why()
	return e
}

// Join is the path of a field within another one; "" is none.
func Join(within, field string) string {
	switch {
	case within == "" && field == "":
		return theBody
	case within == "" || field == "":
		return within + field
	}
	return within + "." + field
}

// Members are the names in JSON of the members of a struct.
func Members(t reflect.Type) (names []string) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			names = append(names, Members(f.Type)...)
		case name != "" && name != "-" && !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names
}

// Shaped is a type that says itself what a value of it must be.
type Shaped interface{ Shape() string }

func shapeOf(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil {
		return "something else"
	}
	if own, ok := reflect.Zero(t).Interface().(Shaped); ok {
		return own.Shape()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float64:
		return "a number"
	case reflect.Uint16:
		return "a whole number from 0 to 65535"
	case reflect.Uint32:
		return "a whole number from 0 to 4294967295"
	case reflect.Uint64:
		return "a whole number from 0 to 18446744073709551615"
	}
	return "a whole number"
}
