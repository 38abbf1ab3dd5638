package jobs

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
)

// Bodies of calls that are not made often are read by their shape.

// ProblemsMost is how many problems of one body are told, and unknownMost how
// many members that its call does not know.
const (
	ProblemsMost = 50
	unknownMost  = 8
)

// ReadPlain reads JSON into v, over what v holds; a member that is not known is
// refused. Its error is a *job.Error that tells all problems and names the field
// of the first. If the form of some value is wrong, content says what is wrong with
// what the others hold: an *job.Error for each problem, joined.
func ReadPlain(body []byte, v any, content ...func() error) error {
	return OneRefusal(problemsOf(body, v, "", unknownRefused, content...))
}

func unknownRefused(path, why string) error { return refuse(path, path+" "+why) }

// ReadLenient does so, and tells of members that are not known, as
// Reader.Unknown does, instead of refusing them.
func ReadLenient(body []byte, v any, tell func(path, why string) error, content ...func() error) error {
	return Refusal(v, problemsOf(body, v, "", tell, content...))
}

// Refusal is the one refusal of a body for its problems, which are joined.
func Refusal(body any, problems error) error {
	err := OneRefusal(problems)
	if _, is := body.(zizq); is {
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
func problemsOf(body []byte, v any, within string, tell func(path, why string) error, content ...func() error) error {
	var problems []error
	whole := true
	note := func(p strict.Problem) bool {
		problems = append(problems, p.Error(within))
		whole = whole && p.At != ""
		return len(problems) < ProblemsMost
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
	if err == nil && len(problems) > 0 && whole {
		for _, check := range content {
			problems = beside(problems, check())
		}
	}
	if err == nil {
		err = errors.Join(problems...)
	}
	return err
}

// beside adds to problems of form what is wrong with the content of other fields.
// Of a field whose form is wrong nothing more is told: it was read as if it were
// not there.
func beside(form []error, content error) []error {
	all := form
	for _, err := range problemsIn(nil, content) {
		own, ok := errors.AsType[*job.Error](err)
		if ok && !slices.ContainsFunc(form, func(told error) bool { return about(fieldOf(told), own.Field) }) {
			all = append(all, err)
		}
	}
	return all[:min(len(all), ProblemsMost)]
}

func fieldOf(err error) string {
	own, _ := errors.AsType[*job.Error](err)
	return own.Field
}

// about reports whether one of two fields is the other, or stands within it.
func about(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return a != "" && strings.HasPrefix(b, a) && (len(a) == len(b) || b[len(a)] == '.' || b[len(a)] == '[')
}

// OneRefusal makes one refusal of several: it names the field of the first,
// and tells all.
func OneRefusal(err error) error {
	first, ok := errors.AsType[*job.Error](err)
	if !ok {
		return err
	}
	if all := problemsIn(nil, err); len(all) > ProblemsMost {
		err = errors.Join(all[:ProblemsMost]...)
	}
	return &job.Error{Kind: first.Kind, Field: first.Field, Text: err.Error()}
}

// problemsIn adds the errors that one joins to a list.
func problemsIn(list []error, err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return append(list, err)
	}
	for _, one := range joined.Unwrap() {
		list = problemsIn(list, one)
	}
	return list
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

// spanned is a span that cannot be 0. Zizq's have 64 bits.
type spanned uint64

// Shape implements strict.Shaped.
func (spanned) Shape() string { return "a whole number from 1 to 18446744073709551615" }

// millis is a time or a span; what is above ours is for ever. nil = otherwise.
func millis[N uint64 | spanned](field string, n *N, otherwise job.Millis) (job.Millis, error) {
	if n == nil {
		return otherwise, nil
	}
	if own, cannot := any(*n).(spanned); cannot && own == 0 {
		return 0, refuse(field, field+" must be "+own.Shape())
	}
	return job.Millis(min(uint64(*n), uint64(job.MaxMillis))), nil
}

// notNull refuses a null that would change nothing.
func notNull[T any](field string, m *member[T]) error {
	if m.given && m.value == nil {
		return refuse(field, field+" must not be null; leave it out instead")
	}
	return nil
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
