package jobs

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
)

// Bodies of calls that are not made often are read by their shape.

// problemsMost is how many problems of one body are told, and unknownMost how
// many members that its call does not know.
const (
	problemsMost = 50
	unknownMost  = 8
)

// ReadPlain reads JSON into v, over what v holds; a member that is not known is
// refused. Its error is a *job.Error that tells all problems and names the field
// of the first.
func ReadPlain(body []byte, v any) error { return read(body, v, "", unknownRefused) }

func unknownRefused(path, why string) error { return refuse(path, path+" "+why) }

// ReadLenient does so, and tells of members that are not known, as
// Reader.Unknown does, instead of refusing them.
func ReadLenient(body []byte, v any, tell func(path, why string) error) error {
	err := read(body, v, "", tell)
	if _, is := v.(zizq); is {
		err = unprocessable(err)
	}
	return err
}

// zizq marks bodies whose fields are refused with 422 where others are with 400.
type zizq interface{ asZizq() }

func (*BudgetAsk) asZizq()   {}
func (*BudgetPatch) asZizq() {}
func (*BindingAsk) asZizq()  {}
func (*BindingCost) asZizq() {}
func (*BindingsAsk) asZizq() {}

// read reads a value that stands within another one.
func read(body []byte, v any, within string, tell func(path, why string) error) error {
	return OneRefusal(problemsOf(body, v, within, tell))
}

// problemsOf joins one *job.Error for each problem. Members that are not known
// are told, and what that returns is a problem.
func problemsOf(body []byte, v any, within string, tell func(path, why string) error) error {
	var problems []error
	note := func(p strict.Problem) bool {
		problems = append(problems, p.Error(within))
		return len(problems) < problemsMost
	}
	told := 0
	err := strict.Read(body, v, func(p strict.Problem) bool {
		if !p.Unknown {
			return note(p)
		}
		told++
		if refused := tell(strict.Join(within, p.Field), p.Why()); refused != nil {
			problems = append(problems, refused)
		}
		return told < unknownMost
	})
	if err == nil && problems == nil && told > 0 { // as it was sent, whatever else is in it
		err = strict.ReadKnown(body, v, note)
	}
	if err == nil {
		err = errors.Join(problems...)
	}
	return err
}

// OneRefusal makes one refusal of several: it names the field of the first,
// and tells all.
func OneRefusal(err error) error {
	first, ok := errors.AsType[*job.Error](err)
	if !ok {
		return err
	}
	return &job.Error{Kind: first.Kind, Field: first.Field, Text: err.Error()}
}

// unprocessable makes what is wrong with a field, if something is, a 422 instead
// of a 400: Zizq's documents say so for changes of jobs and for budgets.
func unprocessable(err error) error {
	if own, ok := errors.AsType[*job.Error](err); ok && own.Kind == job.Invalid && own.Field != "" && own.Field != "the body" && !strings.Contains(own.Text, strict.NotKnown) {
		own.Kind = job.Unprocessable
	}
	return err
}

// member is one of a body that may be left out, or be null.
type member[T any] struct {
	given bool
	value *T // nil = null
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (m *member[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	m.given = true
	return json.UnmarshalDecode(d, &m.value)
}

// or is the value, or another one for null.
func (m *member[T]) or(otherwise T) T {
	if m.value == nil {
		return otherwise
	}
	return *m.value
}

// missing refuses what is missing or null.
func missing(field string, there bool) error {
	if there {
		return nil
	}
	return refuse(field, field+" is missing")
}

// Within refuses a number outside its bounds.
func Within(field string, n, least, most int64) error {
	if n >= least && n <= most {
		return nil
	}
	return refuse(field, field+" must be a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
}

// millis reads a time or a span. Zizq's have 64 bits; what is above ours is for
// ever. nil = otherwise.
func millis(field string, n *uint64, least uint64, otherwise job.Millis) (job.Millis, error) {
	switch {
	case n == nil:
		return otherwise, nil
	case *n < least:
		return 0, refuse(field, field+" must be a whole number from "+strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(1<<64-1, 10))
	}
	return job.Millis(min(*n, uint64(job.MaxMillis))), nil
}

// WordOf finds the value that a word names.
func WordOf[T interface{ String() string }](field, word string, values ...T) (none T, err error) {
	var known []string
	for _, v := range values {
		if v.String() == word {
			return v, nil
		}
		known = append(known, v.String())
	}
	return none, refuse(field, field+" must be one of "+strings.Join(known, " ")+spell.Hint(word, known))
}
