package config

import (
	"strings"
	"testing"
)

func TestEgressIsWhatTheLinesSayElseTheTargetsOfTheFile(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		file    string
		targets []string
		want    string
	}{
		{"nothing said, nothing in the file", nil, "", nil, ""},
		{"the targets of the file", nil, "", []string{"http://127.0.0.1:9000/a", "https://hooks.example.com/in"}, "127.0.0.1:9000 hooks.example.com:443"},
		{"lines, and not the targets", []string{"--egress-allow=*.example.com,10.0.0.0/8"}, "", []string{"http://127.0.0.1:9000/a"}, "*.example.com 10.0.0.0/8"},
		{"in the file", nil, "egress:\n  allow: [hooks.example.com:443, '*']\n", nil, "hooks.example.com:443 *"},
		{"none", nil, "egress: {allow: none}\n", []string{"http://127.0.0.1:9000/a"}, ""},
	} {
		cfg, _, err := load(t, c.args, nil, c.file)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		cfg.Targets = c.targets
		e, err := cfg.Egress()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(e.Lines(), " "); got != c.want {
			t.Errorf("%s: allowed is %q, want %q", c.name, got, c.want)
		}
	}
}

func TestEgressLinesThatCannotBeMeantAreRefused(t *testing.T) {
	for file, want := range map[string]string{
		"egress: {allow: 'http://x/'}":             `--egress`,
		"egress: {allow: [a.example, 'http://x']}": `reprise.yaml:1: egress.allow: "http://x" is no name, address or range`,
		"egress: {allow: 169.254.0.0/16}":          `reprise.yaml:1: egress.allow: "169.254.0.0/16" is link-local, where metadata is, which is never called`,
		"egress: {allow: [none, a.example]}":       `reprise.yaml:1: egress.allow: none means that nothing is allowed; leave the other lines out`,
		"egress: {allow: []}":                      `reprise.yaml:1: egress.allow: is empty; write none`,
		"egress: {alow: a.example}":                `did you mean`,
	} {
		if want == "--egress" {
			want = `reprise.yaml:1: egress.allow: "http://x/" is no name`
		}
		if _, _, err := load(t, nil, nil, file+"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
