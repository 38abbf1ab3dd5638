package config

import (
	"github.com/reprisehq/reprise/internal/job"
)

// ReadPolicy reads a retry policy (spec/retry.md section 1) from YAML or JSON,
// as the configuration file has it, with or without the key retry around it.
// References such as ${env:NAME} are not looked up. name is that of the file,
// for messages; everything that is wrong is told at once, with its line.
func ReadPolicy(name string, b []byte) (job.Retry, error) {
	d := parseYAML(name, b, asWritten)
	root, path := d.root, ""
	if len(root.entries) > 0 && root.entries[0].key == retryPath {
		for _, e := range root.entries[1:] {
			d.problem(e.line, e.key, "stands beside retry, which is all that is read here")
		}
		root, path = root.entries[0].value, retryPath
		if root.kind > nullNode && root.kind != mapNode {
			d.problem(root.line, path, "must have keys, not %s", root.kind)
		}
	}
	r := job.Retry{}
	if len(d.problems) == 0 {
		r = d.retry(root, path)
	}
	if len(d.problems) == 0 {
		return r, nil
	}
	found := d.inOrder()
	each := make(job.Problems, 0, len(found))
	for _, p := range found {
		each = append(each, &job.Error{Kind: job.Invalid, Text: p.String()})
	}
	return job.Retry{}, &job.Error{Kind: job.Invalid, Text: "policy refused", Cause: each}
}

// ReadBody reads the body of a call, such as PUT /inboxes/{name} or PUT /crons/{group},
// from YAML or JSON, and returns it as JSON. References such as ${env:NAME} are not
// looked up. file is the name of that, for messages.
func ReadBody(file string, text []byte) ([]byte, error) {
	d := parseYAML(file, text, asWritten)
	if len(d.problems) > 0 {
		return nil, &job.Error{Kind: job.Invalid, Text: d.inOrder().Error()}
	}
	return d.root.json(), nil
}
