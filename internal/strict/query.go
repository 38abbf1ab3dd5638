package strict

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// Params takes a query apart and refuses parameters that are not known, and
// repeated ones except that named repeated.
func Params(raw, repeated string, known ...string) (url.Values, error) {
	wrong := func(field, text string) error {
		return &job.Error{Kind: job.Invalid, Field: field, Text: "invalid query parameters: " + text}
	}
	if repeated != "" {
		known = append(slices.Clip(known), repeated)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, wrong("", Shorten(err.Error(), 100))
	}
	for name, list := range values {
		switch {
		case !slices.Contains(known, name):
			hint := cmp.Or(spell.Hint(name, known), "; there are "+strings.Join(known, ", "))
			return nil, wrong(name, "unknown parameter "+strconv.Quote(Shorten(name, 64))+hint)
		case len(list) > 1 && name != repeated:
			return nil, wrong(name, name+" is there twice")
		}
	}
	return values, nil
}

// Names reads a comma list as a sorted set; empty parts do not count.
func Names(value string) []string {
	list := slices.DeleteFunc(strings.Split(value, ","), func(s string) bool { return s == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// Whole reads a whole number of a query; usual is for one that is not given.
func Whole(values url.Values, name string, usual, least, most int) (int, error) {
	text := values.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		return 0, &job.Error{Kind: job.Invalid, Field: name, Text: name + " must be a whole number from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)}
	}
	return n, nil
}
