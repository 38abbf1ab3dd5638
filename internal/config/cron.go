package config

import (
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/cron"
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
		var g cron.GroupAsk
		if l.file.body(e.value, at, func(body []byte) (err error) { g, err = readCron(body, l.cfg.BackoffCount); return err }) {
			l.cfg.Crons = append(l.cfg.Crons, cron.Setting{Name: e.key, GroupAsk: g})
			l.fileValue(at, string(e.value.json()), e.value)
		}
	})
	slices.SortFunc(l.cfg.Crons, func(a, b cron.Setting) int { return strings.Compare(a.Name, b.Name) })
}

// readCron reads a group. Unlike over the API, members that are not known are refused.
func readCron(body []byte, count job.Count) (cron.GroupAsk, error) {
	r := jobs.Reader{Count: count}
	r.Unknown = func(path, why string) error { return refusal(path, path+" "+why) }
	r.Body.Write(body)
	g, err := r.CronGroup()
	if err == nil {
		err = cron.Check(&g)
	}
	return g, err
}
