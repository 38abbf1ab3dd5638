package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestPipelinesAreFilesBesideTheConfiguration(t *testing.T) {
	cfg, _, err := load(t, nil, nil, `
pipelines:
- file: fluent-bit.conf
- {file: /etc/fluent/logs.yaml, name: logs}
`)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(cfg.File)
	want := []Pipeline{{Name: "fluent-bit", Path: filepath.Join(dir, "fluent-bit.conf")}, {Name: "logs", Path: "/etc/fluent/logs.yaml"}}
	if !slices.Equal(cfg.Pipelines, want) {
		t.Errorf("%+v, want %+v", cfg.Pipelines, want)
	}
}

func TestBadPipelinesAreRefusedAtTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"pipelines: {a: b}":                               "must be a list of files",
		"pipelines:\n- a.conf":                            "each entry must have a file",
		"pipelines:\n- {name: a}":                         "file is missing",
		"pipelines:\n- {file: a.conf, fil: b}":            "unknown key",
		"pipelines:\n- {file: a/x.conf}\n- {file: x.yml}": `two pipelines named "x"`,
	} {
		if _, _, err := load(t, nil, nil, text+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
