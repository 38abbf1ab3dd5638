package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
)

// guardSetting is one setting of what protects the target of a queue, for
// hints and docs/config.md. What it may hold is checked where the API checks
// it: the words and bounds are the same.
type guardSetting struct {
	key  string // in the file and in PATCH /queues/{name}
	def  string
	help string
	keys []string // what stands below it; none = it is a single value
}

var breakerKeys = []string{"window", "failure_ratio", "consecutive", "open_for_ms", "open_for_max_ms", "probes", "ramp_ms"}

var guardSettings = []guardSetting{
	{"max_running", "0", "runs of the queue at once, copies included; 0 = no limit", nil},
	{"rate", "", "takes of the queue: `per_second`, and `burst` at once after a pause", []string{"per_second", "burst"}},
	{"group_rate", "", "the same for each group", []string{"per_second", "burst"}},
	{"breaker", "", "circuit breaker of the queue; `{}` is one with the defaults", breakerKeys},
	{"group_breaker", "", "one for each group", breakerKeys},
	{"retry_budget", "", "retries among all takes: `retry_share`, and `floor_per_second` that are always allowed; `{}` is one with the defaults", []string{"retry_share", "floor_per_second"}},
	{"fair_share", "", "groups take turns; `weights` names how many jobs a group has in one, where it is not 1", []string{"weights"}},
}

// protection reads what protects the target of a queue, value by value, with
// the reader of the API, so that each problem has its line.
func (l *loader) protection(q *job.Queue, found map[string]*node, base string) {
	d := l.file
	var set jobs.Protection
	read := func(n *node, keys []string, value []byte) {
		for _, key := range slices.Backward(keys) {
			value = fmt.Appendf(nil, "{%s:%s}", jsonString(key), value)
		}
		if err := jobs.ReadPlain(value, &set, true); err != nil {
			d.refused(n, base, err)
		}
	}
	for _, s := range guardSettings {
		n := found[s.key]
		switch {
		case n == nil || n.kind == badNode:
		case n.kind == nullNode && s.keys != nil:
			d.problem(n.line, join(base, s.key), "has no value; write {} for its defaults, or remove the line")
		case s.keys == nil:
			l.single(n, join(base, s.key), func() { read(n, []string{s.key}, n.json()) })
		default:
			if n.kind == mapNode {
				read(n, []string{s.key}, []byte("{}"))
			}
			below := d.leaves(n, join(base, s.key), s.keys)
			for _, key := range s.keys {
				l.guardValue(below[key], []string{s.key, key}, base, read)
			}
		}
	}
	if err := set.Apply(&q.Protection); err != nil {
		for _, one := range refusals(err) {
			d.refused(guardNode(found, one.Field), base, one)
		}
		return
	}
	shown, err := json.Marshal(jobs.ProtectionOf(&q.Protection))
	var values map[string]json.RawMessage
	if err = errors.Join(err, json.Unmarshal(shown, &values)); err != nil {
		panic(err) // of numbers and names
	}
	for _, s := range guardSettings {
		if n := found[s.key]; n != nil {
			value := string(values[s.key])
			if value == "" {
				value = "0" // no limit
			}
			l.fileValue(join(base, s.key), value, n)
		}
	}
}

// guardValue reads a value below a setting, or those of each group.
func (l *loader) guardValue(n *node, keys []string, base string, read func(*node, []string, []byte)) {
	path := join(base, strings.Join(keys, "."))
	switch {
	case n == nil || n.kind == badNode:
	case keys[len(keys)-1] != "weights":
		l.single(n, path, func() { read(n, keys, n.json()) })
	case n.kind == nullNode: // a heading whose lines are all commented out
	case n.kind != mapNode:
		l.file.problem(n.line, path, "must be names of groups with their weights, not %s", n.kind)
	default:
		for _, e := range n.entries {
			if e.value.kind == badNode {
				continue
			}
			l.single(e.value, join(path, e.key), func() { read(e.value, append(slices.Clone(keys), e.key), e.value.json()) })
		}
	}
}

// single reads a value that must be one.
func (l *loader) single(n *node, path string, read func()) {
	switch n.kind {
	case scalarNode:
		read()
	case nullNode:
		l.file.problem(n.line, path, "has no value; remove the line to use the default")
	default:
		l.file.problem(n.line, path, "must be a single value, not %s", n.kind)
	}
}

// refused tells what the reader of the API says, at the line of a node.
func (d *document) refused(n *node, base string, err error) {
	path, text := base, err.Error()
	if e, ok := errors.AsType[*job.Error](err); ok && e.Field != "" {
		path = join(base, e.Field)
		text = strings.TrimPrefix(strings.TrimPrefix(text, e.Field), " ")
	}
	if n.any((*node).isSecret) {
		text = hidden("see the documentation of queues").Error()
	}
	d.problem(n.line, path, "%s", text)
}

// refusals takes a joined error apart.
func refusals(err error) (list []*job.Error) {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			list = append(list, refusals(one)...)
		}
		return list
	}
	if one, ok := errors.AsType[*job.Error](err); ok {
		list = append(list, one)
	}
	return list
}

// guardNode finds what a field such as rate.burst or fair_share.weights["a.b"]
// names, or the deepest node on the way to it.
func guardNode(found map[string]*node, field string) *node {
	field, group, _ := strings.Cut(field, "[")
	setting, rest, _ := strings.Cut(field, ".")
	n := found[setting].find(rest)
	if key, err := strconv.Unquote(strings.TrimSuffix(group, "]")); err == nil {
		if i := slices.IndexFunc(n.entries, func(e entry) bool { return e.key == key }); i >= 0 {
			n = n.entries[i].value
		}
	}
	return n
}
