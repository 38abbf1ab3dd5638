package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
func (d *document) partialRetry(n *node, path string) job.Retry {
	if n.kind == nullNode || n.any((*node).isBad) {
		return job.Retry{}
	}
	r, err := job.ParseRetry(n.json())
	if err == nil {
		if r.Rules != nil {
			for i, rule := range *r.Rules {
				if at := fmt.Sprintf("rules[%d].curve", i); rule.Curve != nil {
					d.threeTogether(n.find(at), join(path, at), rule.Curve)
				}
			}
		}
		return r
	}
	var each job.Problems
	if !errors.As(err, &each) {
		d.problem(n.line, path, "%s", err)
	}
	for _, p := range each {
		text := strings.TrimPrefix(p.Text, p.Field+": ")
		if n.any((*node).isSecret) {
			text = hidden("see the documentation of retry").Error()
		}
		at := path
		if p.Field != "" {
			at = join(path, p.Field)
		}
		d.problem(n.find(p.Field).line, at, "%s", text)
	}
	return job.Retry{}
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
	q := job.NewQueue(e.key)
	base := join(queuesPath, e.key)
	known := []string{retryPath}
	for _, s := range queueSettings {
		known = append(known, s.yaml)
	}
	for _, s := range guardSettings {
		known = append(known, s.key)
	}
	found := l.file.leaves(e.value, base, known)
	for _, s := range queueSettings {
		n := found[s.yaml]
		if n == nil || n.kind == badNode {
			continue
		}
		at := join(base, s.yaml)
		if n.kind != scalarNode {
			l.file.problem(n.line, at, "must be a single value, not %s", n.kind)
			continue
		}
		if err := s.field.set(q, []string{n.text}); err != nil {
			if n.isSecret() {
				err = hidden(s.field.kind)
			}
			l.file.problem(n.line, at, "%s", err)
			continue
		}
		l.fileValue(at, s.field.show(q), n)
	}
	if n := found[retryPath]; n != nil {
		q.Retry = l.file.retry(n, join(base, retryPath))
		l.count(q.Retry, n)
		l.fileValue(join(base, retryPath), showRetry(q.Retry), n)
	}
	l.protection(q, found, base)
	if err := rule.ChangeQueue(job.NewQueue(e.key), q, 0); err != nil {
		at, n := base, e.value
		if e, ok := errors.AsType[*job.Error](err); ok && found[e.Field] != nil {
			at, n = join(base, e.Field), found[e.Field]
		}
		l.file.problem(n.line, at, "%s", err)
	}
	return q
}

func (l *loader) fileValue(name, value string, n *node) {
	l.fileValues = append(l.fileValues, l.value(name, value, l.fileOrigin(n)))
}
