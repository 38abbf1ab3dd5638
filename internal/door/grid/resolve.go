package grid

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
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

// Check names everything that is wrong with the options, each below the name
// of their object.
func (g Given) Check(below string) error {
	var scratch Settings
	return g.apply(&scratch, below, nil)
}

// apply writes the options to s. It goes through all of them, so that what is
// wrong is told together.
func (g Given) apply(s *Settings, below string, set func(name string)) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(g)) {
		o := optionOf(name)
		if o == nil {
			problems = append(problems, refuse(below+"."+name, "%s.%s is no option%s", below, short(name), nearest(name)))
			continue
		}
		if g[name].Kind() == 'n' {
			problems = append(problems, refuse(below+"."+name, "%s.%s must not be null; leave it out to inherit it", below, name))
			continue
		}
		if err := o.read(s, g[name]); err != nil {
			problems = append(problems, wrongValue(below+"."+name, err))
			continue
		}
		if set != nil {
			set(name)
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

func short(name string) string {
	const bytesMax = 64
	return name[:min(len(name), bytesMax)]
}

// nearest suggests the option that was meant, where one begins or ends alike.
func nearest(name string) string {
	for _, o := range Options {
		if len(name) >= 4 && (strings.Contains(o.Name, name) || strings.Contains(name, o.Name)) {
			return fmt.Sprintf("; did you mean %s?", o.Name)
		}
	}
	return ""
}

// Resolved are the options of a session, and who chose each.
type Resolved struct {
	Settings
	From map[string]Level // by the name of the option; all are there
}

// Resolve gives every option a value: of the strongest level that names it
// (grid.md, decision 5).
func Resolve(p Profile, broker, service, session Given) (Resolved, error) {
	return resolve(p, said{"grid.defaults", broker}, said{"grid.services", service}, said{"options", session})
}

// said is what one level names, and where it stands.
type said struct {
	below string
	given Given
}

// resolve lays the levels over the profile, the weakest first; all or some of
// FromBroker, FromService and FromSession.
func resolve(p Profile, list ...said) (Resolved, error) {
	r := Resolved{From: make(map[string]Level, len(Options))}
	for i := range Options {
		o := &Options[i]
		if err := o.read(&r.Settings, jsontext.Value(o.Values[p])); err != nil {
			return r, fmt.Errorf("the value of %s in the profile %s: %w", o.Name, p, err)
		}
		r.From[o.Name] = FromProfile
	}
	var problems []error
	for i, level := range list {
		is := FromBroker + Level(i)
		problems = append(problems, level.given.apply(&r.Settings, level.below, func(name string) { r.From[name] = is }))
	}
	if err := errors.Join(problems...); err != nil {
		return r, err
	}
	if len(list) > 0 {
		problems = r.contradictions(list[len(list)-1].below)
	}
	if !r.Idempotent { // wins over a weaker level that asks for copies
		r.Strategies, r.From["redundancy"] = nil, r.From["idempotent"]
	}
	return r, errors.Join(problems...)
}

// contradictions are options that are fine alone and not together. below is
// where the strongest level stands.
func (r *Resolved) contradictions(below string) (list []error) {
	wrong := func(name, why string) {
		list = append(list, refuse(below+"."+name, "%s.%s %s", below, name, why))
	}
	if !r.Idempotent && len(r.Strategies) > 0 && r.From["redundancy"] == FromSession {
		wrong("redundancy", "asks for copies of tasks that are not idempotent; leave one of the two out")
	}
	if !r.Idempotent && r.OnTimeout == TimeoutReschedule {
		wrong("on_timeout", "is reschedule, which runs a task beside its copy, but its tasks are not idempotent; use retry")
	}
	if r.OnTimeout == TimeoutReschedule && r.MaxCopies < 2 {
		wrong("max_copies", "must be at least 2 for on_timeout: reschedule, which runs a copy beside the first attempt")
	}
	if r.RetryBackoff > r.RetryCap {
		wrong("retry_backoff", fmt.Sprintf("%s must not be above retry_backoff_cap %s", r.RetryBackoff, r.RetryCap))
	}
	return list
}

// Shown is an option as GET tells it.
type Shown struct {
	Value any    `json:"value"`
	From  string `json:"from"`
}

// Show is every option with its value and who chose it.
func (r *Resolved) Show() map[string]Shown {
	out := make(map[string]Shown, len(Options))
	for i := range Options {
		out[Options[i].Name] = Shown{Options[i].show(&r.Settings), r.From[Options[i].Name].String()}
	}
	return out
}

// Encode writes the options as they are kept with the session, so that a
// change of the configuration changes nothing about those that are open.
func (r *Resolved) Encode() ([]byte, error) { return json.Marshal(r.Show(), json.Deterministic(true)) }

// DecodeResolved reads what Encode wrote. An option that it does not know, of
// an older version, has the value of the profile.
func DecodeResolved(p Profile, b []byte) (Resolved, error) {
	var kept map[string]struct {
		Value jsontext.Value `json:"value"`
		From  string         `json:"from"`
	}
	r, err := resolve(p)
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	if err != nil {
		return r, fmt.Errorf("reading the options of a session: %w", err)
	}
	for name, k := range kept {
		o := optionOf(name)
		if o == nil {
			continue
		}
		if err := o.read(&r.Settings, k.Value); err != nil {
			return r, fmt.Errorf("reading the option %s of a session: %w", name, err)
		}
		for l := range levels {
			if l.String() == k.From {
				r.From[name] = l
			}
		}
	}
	return r, nil
}
