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

// Options that are several settings: copies of tasks that take long, and engines
// that a session excludes. Each is "off", or an object; what an object does not
// say has its default, and is not shown.

const off = `"off"`

// setting is one member of such an object: a *float64, *int, *bool or
// *job.Millis.
type setting[T any] struct {
	name string
	of   func(*T) any
}

var redundancySettings = []setting[job.Redundancy]{
	{"tail_done", func(r *job.Redundancy) any { return &r.TailDone }},
	{"mean_factor", func(r *job.Redundancy) any { return &r.MeanFactor }},
	{"deviations", func(r *job.Redundancy) any { return &r.Deviations }},
	{"median_done", func(r *job.Redundancy) any { return &r.MedianDone }},
	{"median_factor", func(r *job.Redundancy) any { return &r.MedianFactor }},
	{"median_age", func(r *job.Redundancy) any { return &r.MedianAge }},
	{"left_factor", func(r *job.Redundancy) any { return &r.LeftFactor }},
	{"hedge_quantile", func(r *job.Redundancy) any { return &r.HedgeQuantile }},
	{"hedge_samples", func(r *job.Redundancy) any { return &r.HedgeSamples }},
	{"hedge_half_life", func(r *job.Redundancy) any { return &r.HedgeHalfLife }},
	{"clone_tasks", func(r *job.Redundancy) any { return &r.CloneTasks }},
	{"clone_risk", func(r *job.Redundancy) any { return &r.CloneRisk }},
	{"clone_copies", func(r *job.Redundancy) any { return &r.CloneCopies }},
	{"min_samples", func(r *job.Redundancy) any { return &r.MinSamples }},
	{"running_share", func(r *job.Redundancy) any { return &r.RunningShare }},
	{"seconds_share", func(r *job.Redundancy) any { return &r.SecondsShare }},
	{"seconds_burst", func(r *job.Redundancy) any { return &r.SecondsBurst }},
	{"also_busy", func(r *job.Redundancy) any { return &r.AlsoBusy }},
}

var exclusionSettings = []setting[job.Exclusion]{
	{"failures_before_exclusion", func(x *job.Exclusion) any { return &x.Failures }},
	{"each_failure", func(x *job.Exclusion) any { return &x.EachFailure }},
	{"ttl", func(x *job.Exclusion) any { return &x.TTL }},
	{"max_fraction", func(x *job.Exclusion) any { return &x.MaxFraction }},
}

func redundancyOption() Option {
	const shape = "`\"off\"`, or an object with `strategies` and the settings of docs/redundancy.md"
	return option("redundancy", shape, [2]string{off, `{"strategies":["median"]}`}, "which tasks are copied because they take long (REDUNDANT_RESCHEDULING_ENABLED)",
		at(func(q *job.Queue) **job.Redundancy { return &q.Grid.Redundancy }),
		func(v jsontext.Value) (*job.Redundancy, error) {
			members, err := membersOf(v)
			if members == nil {
				return nil, err
			}
			var names []string
			if text, given := members["strategies"]; given {
				if json.Unmarshal(text, &names) != nil || len(names) == 0 {
					return nil, errors.New("must have strategies that are a list of names, such as [\"median\"]")
				}
				delete(members, "strategies")
			}
			r := job.DefaultRedundancy()
			if r.Strategies, err = job.ParseRedundancy(names); err != nil {
				return nil, fmt.Errorf("must name strategies that exist: %w", err)
			}
			if err := readSettings(&r, redundancySettings, members); err != nil {
				return nil, err
			}
			return &r, inOne(r.Check(""))
		},
		func(r *job.Redundancy) any {
			if r == nil {
				return jsontext.Value(off)
			}
			names, _ := json.Marshal(r.Strategies.Names())
			usual := job.DefaultRedundancy()
			return showSettings(r, &usual, redundancySettings, `"strategies":`+string(names))
		})
}

func exclusionOption() Option {
	const shape = "`\"off\"`, or an object with `failures_before_exclusion`, `each_failure`, `ttl`, `max_fraction`"
	return option("exclusion", shape, [2]string{off, off}, "engines that get no more tasks of the session because so many failed there (ENGINE_BLACKLISTING, FAILURES_BEFORE_BLACKLIST)",
		at(func(q *job.Queue) **job.Exclusion { return &q.Grid.Exclusion }),
		func(v jsontext.Value) (*job.Exclusion, error) {
			members, err := membersOf(v)
			if members == nil {
				return nil, err
			}
			x := job.DefaultExclusion()
			if err := readSettings(&x, exclusionSettings, members); err != nil {
				return nil, err
			}
			return &x, inOne(x.Check(""))
		},
		func(x *job.Exclusion) any {
			if x == nil {
				return jsontext.Value(off)
			}
			usual := job.DefaultExclusion()
			return showSettings(x, &usual, exclusionSettings, "")
		})
}

// membersOf reads an object; nil is off, or an error.
func membersOf(v jsontext.Value) (map[string]jsontext.Value, error) {
	if string(v) == off {
		return nil, nil
	}
	members := map[string]jsontext.Value{}
	if v.Kind() != '{' || json.Unmarshal(v, &members) != nil {
		return nil, errors.New(`must be "off" or an object`)
	}
	return members, nil
}

func readSettings[T any](into *T, list []setting[T], members map[string]jsontext.Value) error {
	known := make([]string, len(list))
	for i, s := range list {
		known[i] = s.name
		text, given := members[s.name]
		if !given {
			continue
		}
		delete(members, s.name)
		var err error
		switch at := s.of(into).(type) {
		case *job.Millis:
			*at, err = readSpan(text)
		default:
			err = json.Unmarshal(text, at)
		}
		if err != nil {
			return fmt.Errorf("must have another %s than %s", s.name, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		return fmt.Errorf("must not have %q; it may have %s", name, strings.Join(known, ", "))
	}
	return nil
}

// showSettings writes what differs from the usual, in the order of the list.
func showSettings[T any](has, usual *T, list []setting[T], first string) jsontext.Value {
	var parts []string
	if first != "" {
		parts = append(parts, first)
	}
	for _, s := range list {
		mine, theirs := textOf(s.of(has)), textOf(s.of(usual))
		if mine != theirs {
			parts = append(parts, `"`+s.name+`":`+mine)
		}
	}
	return jsontext.Value("{" + strings.Join(parts, ",") + "}")
}

func textOf(at any) string {
	if m, ok := at.(*job.Millis); ok {
		at = m.String()
	}
	text, _ := json.Marshal(at)
	return string(text)
}

// inOne writes what is wrong on one line.
func inOne(err error) error {
	if err == nil {
		return nil
	}
	lines := strings.Split(err.Error(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, ".")
	}
	return fmt.Errorf("must be other settings: %s", strings.Join(slices.Compact(lines), "; "))
}
