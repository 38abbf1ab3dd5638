package filter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/record"
)

// NestOptions are the settings of the filter nest.
type NestOptions struct {
	Operation    string   // nest or lift
	Wildcards    []string // nest: the fields, by the beginnings of their keys
	NestUnder    string   // nest: the key of the map they go into
	NestedUnder  string   // lift: the key of the map they come from
	AddPrefix    string   // of the keys of the fields that are moved
	RemovePrefix string
}

type nest struct {
	o      NestOptions
	chosen []func(record.Field) bool
}

// NewNest makes the filter that moves fields into a map, or out of one.
func NewNest(o NestOptions) (Filter, error) {
	n := &nest{o: o}
	n.o.Operation = strings.ToLower(o.Operation)
	var problems []error
	switch n.o.Operation {
	case "nest":
		if len(o.Wildcards) == 0 || o.NestUnder == "" {
			problems = append(problems, errors.New("operation nest needs wildcard and nest_under"))
		}
	case "lift":
		if o.NestedUnder == "" {
			problems = append(problems, errors.New("operation lift needs nested_under"))
		}
	default:
		problems = append(problems, fmt.Errorf("operation %q is not known; it is nest or lift", o.Operation))
	}
	for _, wildcard := range o.Wildcards {
		n.chosen = append(n.chosen, anyKey([]string{wildcard}))
	}
	return n, named("nest", problems)
}

func (n *nest) Filter(in Input, out *Output) Verdict {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if !s.parse(in.Event) {
		return Keep
	}
	if n.o.Operation == "lift" {
		return n.lift(s, in, out)
	}
	var moved record.Body
	s.body = s.body.RemoveFunc(func(f record.Field) bool {
		for _, chosen := range n.chosen {
			if chosen(f) {
				moved = append(moved, n.rename(f))
				return true
			}
		}
		return false
	})
	if len(moved) == 0 {
		return Keep
	}
	s.body = append(s.body.Remove(n.o.NestUnder), record.Field{Key: []byte(n.o.NestUnder), Value: moved.Append(nil)})
	return s.emit(out, in.Time, in.Event)
}

// lift moves the fields of a map behind all others. One whose key is there
// already takes its place.
func (n *nest) lift(s *scratch, in Input, out *Output) Verdict {
	at := s.body.Index(n.o.NestedUnder)
	if at < 0 || !record.IsMap(s.body[at].Value) {
		return Keep
	}
	inner, err := record.ParseBody(nil, s.body[at].Value)
	if err != nil {
		return Keep
	}
	s.body = s.body.Remove(n.o.NestedUnder)
	for _, f := range inner {
		if f = n.rename(f); len(f.Key) > 0 {
			s.body = s.body.Remove(string(f.Key))
		}
		s.body = append(s.body, f)
	}
	return s.emit(out, in.Time, in.Event)
}

func (n *nest) rename(f record.Field) record.Field {
	if n.o.AddPrefix != "" || n.o.RemovePrefix != "" {
		f.Key = []byte(n.o.AddPrefix + strings.TrimPrefix(string(f.Key), n.o.RemovePrefix))
	}
	return f
}
