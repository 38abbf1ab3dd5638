package config

import (
	"errors"
	"slices"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/notation"
)

// egressNone is the line by which nothing at all may be set over the API.
const egressNone = "none"

// egressLine is a line of egress.allow.
var egressLine = notation.Kind[string]{
	Name: "name, address or range",
	Parse: func(s string) (string, error) {
		if s == egressNone {
			return s, nil
		}
		if _, err := connect.ParseEgress([]string{s}); err != nil {
			return "", errors.New(err.Error()) // the sentence alone
		}
		return s, nil
	},
	Show: same,
}

// Egress says which targets may be set over the API, and what those that are
// may be connected to: the lines of egress.allow, else the targets in the file.
// A target in the file is held against connect.Only: it may always be called,
// unless it is nowhere allowed.
func (c Config) Egress() (*connect.Egress, error) {
	switch {
	case len(c.EgressAllow) == 0:
		return connect.Only(c.Targets...)
	case slices.Contains(c.EgressAllow, egressNone):
		return connect.ParseEgress(nil)
	}
	return connect.ParseEgress(c.EgressAllow)
}

// egress refuses a list that looks like "nothing" and would be "the targets in
// the file".
func (l *loader) egress() {
	const path = "egress.allow"
	if n := l.leaves[path]; n != nil && n.kind == listNode && len(n.items) == 0 {
		l.file.problem(n.line, path, "is empty; write %s if no target may be set over the API, or leave it out for those in this file", egressNone)
	}
}

// egressProblem tells what the lines say together that cannot be meant.
func (c Config) egressProblem() error {
	switch {
	case len(c.EgressAllow) > 1 && slices.Contains(c.EgressAllow, egressNone):
		return job.Errorf(job.Invalid, "%s means that nothing is allowed; leave the other lines out", egressNone)
	case len(c.EgressAllow) > connect.EgressMax:
		return job.Errorf(job.Invalid, "there may be at most %d lines", connect.EgressMax)
	}
	return nil
}
