package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
	"github.com/reprisehq/reprise/wire"
)

// cronsPath is where the file names cron groups.
const cronsPath = "crons"

// crons reads the cron groups of the file, each in the shape of PUT /crons/{group}.
func (l *loader) crons() {
	l.named(cronsPath, "cron groups", func(e entry) {
		at := join(cronsPath, e.key)
		if e.value.kind != mapNode {
			l.file.problem(e.line, at, "must have entries and what they share, not %s", e.value.kind)
			return
		}
		if e.value.any((*node).isBad) {
			return
		}
		body := e.value.json()
		g, err := readCron(body, l.cfg.BackoffCount)
		if err != nil {
			if e.value.any((*node).isSecret) {
				err = hidden("a cron group, see docs/cron.md")
			}
			l.file.problem(e.line, at, "%s", err)
			return
		}
		l.cfg.Crons = append(l.cfg.Crons, cron.Setting{Name: e.key, GroupAsk: g})
		l.fileValue(at, string(body), e.value)
	})
	slices.SortFunc(l.cfg.Crons, func(a, b cron.Setting) int { return strings.Compare(a.Name, b.Name) })
}

// readCron reads a group. Unlike over the API, members that are not known are refused.
func readCron(body []byte, count job.Count) (cron.GroupAsk, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&wire.CronGroup{}); err != nil && strings.Contains(err.Error(), "unknown field") {
		return cron.GroupAsk{}, errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	r := jobs.Reader{Count: count}
	r.Body.Write(body)
	g, err := r.CronGroup()
	if err == nil {
		err = cron.Check(&g)
	}
	return g, err
}

// ReadCron reads a cron group, the body of PUT /crons/{group}, from YAML or
// JSON, and returns it as JSON. References such as ${env:NAME} are not looked
// up. name is that of the file, for messages.
func ReadCron(name string, b []byte) ([]byte, error) {
	d := parseYAML(name, b, asWritten)
	if len(d.problems) > 0 {
		return nil, &job.Error{Kind: job.Invalid, Text: d.inOrder().Error()}
	}
	return d.root.json(), nil
}
