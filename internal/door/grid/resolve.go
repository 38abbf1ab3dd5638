package grid

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
)

// Level is who chose the value of an option, the weakest first.
type Level uint8

// The levels.
const (
	FromProfile Level = iota
	FromBroker
	FromService
	FromSession
	levels
)

func (l Level) String() string { return [...]string{"profile", "broker", "service", "session"}[l] }

// Given are the options that one level names, as JSON by their names.
type Given map[string]jsontext.Value

// said is what one level names, and where it stands.
type said struct {
	below string
	given Given
}

// Origins is who chose each option, by its name.
type Origins map[string]Level

// Resolve gives every option a value: of the strongest level that names it
// (grid.md, decision 5). The options are the settings of the queue that it
// returns, which has no name yet.
func Resolve(p job.Profile, broker, service, session Given) (*job.Queue, Origins, error) {
	return resolve(p, said{"grid.defaults", broker}, said{"grid.services", service}, said{"options", session})
}

// The options of which one changes what the other may say.
const (
	rescheduleFirst = "reschedule_first"
	evictedPlace    = "evicted_place"
	redundancy      = "redundancy"
	exclusion       = "failures_before_exclusion"
)

// resolve lays levels over the profile: the first is the broker's, then the
// service's and the session's.
func resolve(p job.Profile, list ...said) (*job.Queue, Origins, error) {
	q, from := blank(p), make(Origins, len(Options))
	for i := range Options {
		o := &Options[i]
		if err := o.read(q, jsontext.Value(o.Values[p])); err != nil {
			return nil, nil, fmt.Errorf("the value of %s in the profile %s: %w", o.Name, p, err)
		}
		from[o.Name] = FromProfile
	}
	var problems []error
	for i, l := range list {
		problems = append(problems, l.given.over(q, from, FromBroker+Level(i), l.below))
	}
	err := errors.Join(problems...)
	if err == nil && len(list) > 0 {
		err = contradictions(q, from, list[len(list)-1].below)
	}
	if q.NonIdempotent { // wins over a weaker level that asks for copies
		from[redundancy] = max(from[redundancy], from["idempotent"])
	}
	return q, from, err
}

// blank are the settings of a session before any option is read: what holds
// for all of them.
func blank(p job.Profile) *job.Queue {
	q := job.NewQueue("")
	q.Retry.Place = job.PlaceFront // grid.md, decision 1
	q.RequireToken = true
	q.Grid = &job.Grid{Profile: p}
	return q
}

// Check names everything that is wrong with the options alone. below is where
// they stand.
func (g Given) Check(below string) error {
	return g.over(blank(job.ProfileSeed), Origins{}, FromSession, below)
}

// over writes the options to q, and notes whose they are. It goes through all
// of them, so that what is wrong is told together.
func (g Given) over(q *job.Queue, from Origins, level Level, below string) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if optionOf(name) == nil {
			problems = append(problems, refuse(below+"."+short(name), "%s.%s%s", below, short(name), noOption(name, g[name])))
		}
	}
	for i := range Options {
		o := &Options[i]
		v, named := g[o.Name]
		field := below + "." + o.Name
		switch {
		case !named:
			continue
		case v.Kind() == 'n':
			problems = append(problems, refuse(field, "%s must not be null; leave it out to inherit it", field))
			continue
		}
		if err := o.read(q, v); err != nil {
			problems = append(problems, wrongValue(field, err))
			continue
		}
		from[o.Name] = level
		if o.Name == rescheduleFirst { // which is about both
			from[evictedPlace] = level
		}
	}
	return errors.Join(problems...)
}

// wrongValue names the field of what a reader of values says.
func wrongValue(field string, err error) error {
	text := err.Error()
	if own, ok := errors.AsType[*job.Error](err); ok {
		text = "is refused: " + own.Text
	}
	return refuse(field, "%s %s", field, text)
}

func short(name string) string { return strict.Shorten(name, 64) }

// noOption says what somebody meant who gave a value to an option that there is
// not: a setting of GridServer, one of the broker, or an option misspelt.
func noOption(name string, v jsontext.Value) string {
	if o, ok := spell.Find(gridServer, name); ok {
		return o.Answer(string(v))
	}
	broker := meantOf(BrokerSettings, name, func(s BrokerSetting) string { return s.Name })
	o := meantOf(Options, name, func(o Option) string { return o.Name })
	switch {
	case broker != nil && (o == nil || spell.Fold(broker.Name) == spell.Fold(name)):
		return " is no option; it is a setting of the broker: write grid." + broker.Name + " in the configuration file"
	case o != nil:
		return " is no option; did you mean " + o.Name + "?"
	}
	return " is no option; docs/grid.md lists those there are"
}

// meantOf is the entry of a list that was meant by a name; nil if none is near.
func meantOf[T any](list []T, name string, nameOf func(T) string) *T {
	names := make([]string, len(list))
	for i := range list {
		names[i] = nameOf(list[i])
	}
	if i := slices.Index(names, spell.Meant(name, names)); i >= 0 {
		return &list[i]
	}
	return nil
}

// contradictions are options that are fine alone and not together. below is
// where the strongest level stands.
func contradictions(q *job.Queue, from Origins, below string) error {
	var problems []error
	if copiesOf(q).Strategies != 0 && q.NonIdempotent && from[redundancy] == FromSession {
		problems = append(problems, refuse(below+".redundancy", "%s.redundancy asks for copies of tasks that are not idempotent; leave one of the two out", below))
	}
	if q.Grid.OnTimeout != job.TimeoutReschedule {
		return errors.Join(problems...)
	}
	if q.NonIdempotent {
		problems = append(problems, refuse(below+".on_timeout",
			"%s.on_timeout is reschedule, which runs a task beside its copy, but its tasks are not idempotent; use retry", below))
	}
	if q.Grid.MaxCopies < 2 {
		problems = append(problems, refuse(below+".max_copies",
			"%s.max_copies must be at least 2 for on_timeout: reschedule, which runs a copy beside the first attempt", below))
	}
	return errors.Join(problems...)
}
