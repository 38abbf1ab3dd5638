package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// The parts of the file that have a shape of their own.
const (
	retryPath  = "retry"
	typesPath  = "types"
	doorsPath  = "doors"
	queuesPath = "queues"
)

// retry reads a policy in the shape of spec/retry.md section 1. A refused one
// is empty.
func (d *document) retry(n *node, path string) job.Retry {
	r := d.partialRetry(n, path)
	if r.Curve != nil {
		d.threeTogether(n.find("curve"), join(path, "curve"), r.Curve)
	}
	return r
}

// threeTogether holds that a polynomial curve names exponent, base and jitter, or
// none of them: they are one formula (the Zizq seed).
func (d *document) threeTogether(n *node, path string, c *job.Curve) {
	if c.Kind != job.CurvePolynomial {
		return
	}
	var missing []string
	for _, b := range backoffSettings {
		if n.find(b.key) == n {
			missing = append(missing, b.key)
		}
	}
	if len(missing) > 0 && len(missing) < len(backoffSettings) {
		d.problem(n.line, path, "a polynomial curve needs exponent, base and jitter together, or none of them; missing: %s", strings.Join(missing, ", "))
	}
}

// partialRetry is retry without a look at whether its curve is whole.
func (d *document) partialRetry(n *node, path string) (r job.Retry) {
	d.body(n, path, func(body []byte) (err error) {
		r, err = job.ParseRetry(body)
		for _, one := range refusals(err) { // they compare values, of which another one may be the secret
			if n.any((*node).isSecret) {
				one.Text = hidden("see docs/retries.md").Error()
			}
		}
		return err
	})
	if r.Rules == nil {
		return r
	}
	for i, rule := range *r.Rules {
		if at := fmt.Sprintf("rules[%d].curve", i); rule.Curve != nil {
			d.threeTogether(n.find(at), join(path, at), rule.Curve)
		}
	}
	return r
}

// body hands a part of the file to the reader of the API call that takes the same, as
// JSON. It tells everything that is wrong at its line, and reports whether nothing is.
func (d *document) body(n *node, at string, read func(body []byte) error) bool {
	return n != nil && n.kind > nullNode && !n.any((*node).isBad) && d.all(n, at, read(n.json()))
}

// named goes through a part of the file that is keys with settings below.
func (l *loader) named(path, what string, read func(e entry)) {
	n := l.leaves[path]
	if n == nil || n.kind <= nullNode {
		return
	}
	if n.kind != mapNode {
		l.file.problem(n.line, path, "must be names of %s with their settings, not %s", what, n.kind)
		return
	}
	for _, e := range n.entries {
		if err := jobs.CheckName("the name", e.key); err != nil {
			l.file.problem(e.line, join(path, e.key), "%s", err)
			continue
		}
		read(e)
	}
}

// types reads the policies of job types.
func (l *loader) types() {
	l.named(typesPath, "job types", func(e entry) {
		if l.cfg.Types == nil {
			l.cfg.Types = map[string]*job.Retry{}
		}
		l.cfg.Types[e.key] = l.policy(typesPath, e)
	})
}

// doors reads the policies of the doors that this version has.
func (l *loader) doors() {
	l.named(doorsPath, "doors", func(e entry) {
		for _, door := range []job.Door{job.DoorJobs, job.DoorGrid, job.DoorInbox} {
			if e.key == door.String() {
				l.cfg.Doors[door] = l.policy(doorsPath, e)
				return
			}
		}
		l.file.problem(e.line, join(doorsPath, e.key), "is no door of this version; it has jobs, grid and inbox")
	})
}

// policy reads an entry that holds nothing but a policy, under retry.
func (l *loader) policy(path string, e entry) *job.Retry {
	base := join(path, e.key)
	n := l.file.leaves(e.value, base, []string{retryPath})[retryPath]
	if n == nil {
		return nil
	}
	r := l.file.retry(n, join(base, retryPath))
	l.count(r, n)
	l.fileValue(join(base, retryPath), showRetry(r), n)
	return &r
}

// queues reads the queues of the file, by name.
func (l *loader) queues() {
	l.named(queuesPath, "queues", func(e entry) { l.cfg.Queues = append(l.cfg.Queues, l.queue(e)) })
	slices.SortFunc(l.cfg.Queues, func(a, b *job.Queue) int { return strings.Compare(a.Name, b.Name) })
}

func (l *loader) queue(e entry) *job.Queue {
	q, base := job.NewQueue(e.key), join(queuesPath, e.key)
	var known []string
	for _, s := range jobs.QueueSettings {
		known = append(known, s.Name)
	}
	found := l.file.leaves(e.value, base, known)
	for _, s := range jobs.QueueSettings {
		n, at := found[s.Name], join(base, s.Name)
		switch {
		case n == nil || n.kind == badNode:
		case s.Name == retryPath:
			q.Retry = l.file.retry(n, at)
			l.count(q.Retry, n)
			l.fileValue(at, showRetry(q.Retry), n)
		case l.file.all(e.value, base, l.file.queueSetting(q, s, n, at)):
			l.fileValue(at, cmp.Or(s.Show(q), "0"), n) // 0 = no limit
		}
	}
	l.file.all(e.value, base, rule.ChangeQueue(job.NewQueue(e.key), q, 0))
	return q
}

// ReadQueueSettings reads settings of a queue as a command has them, in the words of
// queues.NAME or as JSON, and returns the body of PATCH /queues/{name}. "off" is the
// default. What is no setting is left to the server, which tells what was meant.
func ReadQueueSettings(given map[string]string) (map[string]any, error) {
	body := map[string]any{}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, into, wire := given[name], body, name
		s := jobs.QueueSettingNamed(name)
		var value any = text
		switch isJSON := jsontext.Value(text).IsValid(); {
		case s != nil && (text == "off" && s.Kind != "bool" || text == "null"):
			value = nil
		case s != nil && (!isJSON || s.Kind != "keys" || jsontext.Value(text).Kind() == '0'):
			word, err := s.Word(text)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
			value = word
		case isJSON:
			value = jsontext.Value(text)
		}
		if s != nil {
			wire = s.Wire
		}
		if heading, leaf, isBelow := strings.Cut(wire, "."); isBelow {
			if below, there := body[heading].(map[string]any); there {
				into = below
			} else if into = map[string]any{}; body[heading] == nil {
				body[heading] = into
			} else {
				problems = append(problems, fmt.Errorf("%s and %s: give one of them", heading, name))
			}
			wire = leaf
		}
		if _, twice := into[wire]; twice {
			problems = append(problems, fmt.Errorf("%s is there twice", name))
		}
		into[wire] = value
	}
	return body, errors.Join(problems...)
}

// queueSetting reads a setting of a queue with the reader of the API, where it has
// values below it.
func (d *document) queueSetting(q *job.Queue, s jobs.QueueSetting, n *node, at string) error {
	hasKeys := s.Kind == "keys"
	switch {
	case n.kind == mapNode && hasKeys:
		d.blanks(n, at)
		return s.Read(q, n.json())
	case n.kind == nullNode && hasKeys:
		return refusal(s.Name, "has no value; write {} for its defaults, or remove the line")
	case n.kind == nullNode:
		return refusal(s.Name, "has no value; remove the line to use the default")
	case n.kind != scalarNode && hasKeys:
		return refusal(s.Name, "must have keys, not "+n.kind.String())
	case n.kind != scalarNode:
		return refusal(s.Name, "must be a single value, not "+n.kind.String())
	}
	err := s.Set(q, n.text)
	switch {
	case err == nil || job.KindOf(err) == job.Invalid && hasKeys:
		return err
	case n.isSecret():
		err = hidden(s.Kind)
	}
	return refusal(s.Name, err.Error())
}

func refusal(field, text string) error {
	return &job.Error{Kind: job.Invalid, Field: field, Text: text}
}

// blanks tells of keys below a node that have no value. Weights may be a heading.
func (d *document) blanks(n *node, at string) {
	for _, e := range n.entries {
		if d.blanks(e.value, join(at, e.key)); e.value.kind == nullNode && e.key != "weights" {
			d.problem(e.line, join(at, e.key), "has no value; remove the line to use the default")
		}
	}
}

// all tells every problem of an error at the line of its field below n, and
// reports whether there was none.
func (d *document) all(n *node, base string, err error) bool {
	for _, one := range refusals(err) {
		d.refused(n.find(one.Field), base, one)
	}
	return err == nil
}

// refused tells what a reader says at the line of a node.
func (d *document) refused(n *node, base string, e *job.Error) {
	text := strings.TrimLeft(strings.TrimPrefix(e.Error(), e.Field), ": ")
	switch {
	case n.any((*node).isSecret) && !strings.HasPrefix(text, hiddenText):
		text = hidden("see docs/config.md").Error()
	case text == "must be an object" && n.kind != mapNode:
		text = "must have keys, not " + n.kind.String()
	}
	d.problem(n.line, join(base, e.Field), "%s", text)
}

// refusals takes a joined error apart.
func refusals(err error) (list []*job.Error) {
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, one := range many.Unwrap() {
			list = append(list, refusals(one)...)
		}
		return list
	}
	one, ok := errors.AsType[*job.Error](err)
	if !ok && err != nil {
		one, ok = &job.Error{Text: err.Error()}, true
	}
	if ok {
		list = append(list, one)
	}
	return list
}

func (l *loader) fileValue(name, value string, n *node) {
	l.fileValues = append(l.fileValues, l.value(name, value, l.fileOrigin(n)))
}
