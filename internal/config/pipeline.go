package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/fluentconf"
)

// pipelinesPath is where the file names the configurations of Fluent Bit that the server runs.
const pipelinesPath = "pipelines"

// Pipeline is a configuration of Fluent Bit that the server runs.
type Pipeline struct {
	Name  string                // of its queues
	Path  string                // "" = it is in the flags
	Flags *fluentconf.Arguments // of `reprise pipeline`; nil = none
	Ends  bool                  // the server ends when its inputs have, and all is delivered
}

// PipelineName is the name of a pipeline after its file, without folder and ending.
func PipelineName(path string) string {
	base := filepath.Base(path)
	return cmp.Or(strings.Trim(strings.TrimSuffix(base, filepath.Ext(base)), "."), "pipeline")
}

// pipelines reads a list of files, each with a name of its own or that of the file. Files
// are beside this one, unless their paths are absolute.
func pipelines(l *loader) {
	n := l.leaves[pipelinesPath]
	if n == nil || n.kind <= nullNode {
		return
	}
	if n.kind != listNode {
		l.file.problem(n.line, pipelinesPath, "must be a list of files, each as {file: fluent-bit.conf}, not %s", n.kind)
		return
	}
	for _, item := range n.items {
		if item.kind != mapNode {
			l.file.problem(item.line, pipelinesPath, "each entry must have a file, as {file: fluent-bit.conf}, not %s", item.kind)
			continue
		}
		found := l.file.leaves(item, pipelinesPath, []string{"file", "name"})
		text := func(key string) (value string) {
			if v := found[key]; v != nil {
				l.file.single(v, join(pipelinesPath, key), func() { value = v.text })
			}
			return value
		}
		p := Pipeline{Path: text("file"), Name: text("name")}
		if p.Path == "" {
			l.file.problem(item.line, pipelinesPath, "file is missing: the path of a configuration of Fluent Bit")
			continue
		}
		if !filepath.IsAbs(p.Path) {
			p.Path = filepath.Join(filepath.Dir(l.cfg.File), p.Path)
		}
		p.Name = cmp.Or(p.Name, PipelineName(p.Path))
		if err := jobs.CheckName("the name of a pipeline", p.Name); err != nil {
			l.file.problem(item.line, pipelinesPath, "%s; give it another one by name", err)
			continue
		}
		if slices.ContainsFunc(l.cfg.Pipelines, func(o Pipeline) bool { return o.Name == p.Name }) {
			l.file.problem(item.line, pipelinesPath, "there are two pipelines named %q; give one of them another name", p.Name)
			continue
		}
		l.cfg.Pipelines = append(l.cfg.Pipelines, p)
		l.fileValue(join(pipelinesPath, p.Name), p.Path, item)
	}
}
