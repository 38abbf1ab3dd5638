package config

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/inbox"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
)

// Where the file names inboxes, and how their runs share several servers.
const (
	inboxesPath = "inboxes"
	clusterPath = "cluster"
)

// inboxes reads the inboxes of the file, each in the shape of PUT /inboxes/{name}.
func (l *loader) inboxes() {
	l.named(inboxesPath, "inboxes", func(e entry) {
		at := join(inboxesPath, e.key)
		if e.value.kind != mapNode {
			l.file.problem(e.line, at, "must have the settings of an inbox, at least its group, not %s", e.value.kind)
			return
		}
		if slices.ContainsFunc(l.cfg.Queues, func(q *job.Queue) bool { return q.Name == e.key }) {
			l.file.problem(e.line, at, "has the name of a queue with settings; an inbox is a queue, and its settings stand here")
			return
		}
		var s *inbox.Settings
		if !l.file.body(e.value, at, func(body []byte) (err error) { s, err = inbox.ReadSettings(body); return err }) {
			return
		}
		l.cfg.Inboxes = append(l.cfg.Inboxes, inbox.Named{Name: e.key, Settings: s, Secret: e.value.any((*node).isSecret)})
		if s.HTTP != nil {
			e.value.any(func(n *node) bool { s.HTTP.Mask = append(s.HTTP.Mask, n.secrets...); return false })
			l.cfg.Targets = append(l.cfg.Targets, s.HTTP.URL)
		}
		l.fileValue(at, string(e.value.json()), e.value)
	})
	slices.SortFunc(l.cfg.Inboxes, func(a, b inbox.Named) int { return strings.Compare(a.Name, b.Name) })
}

// cluster reads how the runs of inboxes share several servers.
func (l *loader) cluster() {
	n := l.leaves[clusterPath]
	if n == nil || n.kind <= nullNode {
		return
	}
	if n.kind != mapNode {
		l.file.problem(n.line, clusterPath, "must have enabled and queuePollLockMostInterval, not %s", n.kind)
		return
	}
	found := l.file.leaves(n, clusterPath, []string{"enabled", "queuePollLockMostInterval"})
	enabled, most := found["enabled"], found["queuePollLockMostInterval"]
	l.shared(enabled, "enabled", of(notation.YesNo, func(c *Config) *bool { return &c.Cluster.Enabled }))
	l.shared(most, "queuePollLockMostInterval", of(unitOnly(notation.Millis(job.Second, job.Day)), func(c *Config) *job.Millis { return &c.Cluster.LockMost }))
	if l.cfg.Cluster.Enabled && most == nil {
		l.file.problem(n.line, clusterPath, "queuePollLockMostInterval is missing: after how long another server may take over the run of one that vanished, such as PT5M")
	}
}

func (l *loader) shared(n *node, key string, f field) {
	if n == nil {
		return
	}
	at := join(clusterPath, key)
	l.file.single(n, at, func() {
		if err := f.set(&l.cfg, []string{n.text}); err != nil {
			l.file.problem(n.line, at, "%s", err)
			return
		}
		l.fileValue(at, f.show(&l.cfg), n)
	})
}

// single reads a value that must be one.
func (d *document) single(n *node, path string, read func()) {
	switch n.kind {
	case scalarNode:
		read()
	case nullNode:
		d.problem(n.line, path, "has no value; remove the line to use the default")
	default:
		d.problem(n.line, path, "must be a single value, not %s", n.kind)
	}
}

// Cluster is how the runs of inboxes share several servers.
type Cluster struct {
	Enabled  bool       // a run of an inbox takes a named lock
	LockMost job.Millis // which ends so long after it was taken, if its server vanished
}
