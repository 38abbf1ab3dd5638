package server

import (
	"github.com/reprisehq/reprise/internal/job"
)

// ReadCron reads a cron group, the body of PUT /crons/{group}, from YAML or
// JSON, and returns it as JSON. References such as ${env:NAME} are not looked
// up. name is that of the file, for messages.
func ReadCron(name string, b []byte) ([]byte, error) {
	d := parseYAML(name, b, func(text string) (string, bool, error) { return text, false, nil })
	if len(d.problems) > 0 {
		return nil, &job.Error{Kind: job.Invalid, Text: d.inOrder().Error()}
	}
	return d.root.json(), nil
}
