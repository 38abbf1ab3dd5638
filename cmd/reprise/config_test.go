package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/reprisehq/reprise/internal/config"
)

func execute(t *testing.T, cmd *cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	cmd.SilenceErrors = true // as in main
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

func configFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "reprise.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConfigShowsValuesAndWhereTheyCameFrom(t *testing.T) {
	t.Setenv("REPRISE_MAX_QUEUES", "77")
	t.Setenv("HOST_OF_QUEUE", "secret.example")
	file := configFile(t, "server:\n  port: 81\n  allow_host: [\"${env:HOST_OF_QUEUE}\"]\nqueues: {mail: {order: strict}}\n")
	out, notes, err := execute(t, newConfigCommand(), "-c", file, "--sync=os")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		lines[words[0]] = strings.Join(words[1:], " ")
	}
	for name, want := range map[string]string{
		"SETTING":           "FROM VALUE",
		"config":            "flag --config " + file,
		"port":              "file " + file + ":2 81",
		"allow-host":        "file " + file + ":3 ********",
		"max-queues":        "environment REPRISE_MAX_QUEUES 77",
		"sync":              "flag --sync os",
		"host":              "default 127.0.0.1",
		"queues.mail.order": "file " + file + ":4 strict",
	} {
		if lines[name] != want {
			t.Errorf("%s: %q, want %q", name, lines[name], want)
		}
	}
	if notes != "note: sync os: a power cut can take accepted work\n" {
		t.Errorf("standard error got %q", notes)
	}
}

func TestConfigAsJSON(t *testing.T) {
	out, _, err := execute(t, newConfigCommand(), "--json", "--port=0")
	if err != nil {
		t.Fatal(err)
	}
	var report config.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	want := config.Value{Name: "port", Value: "0", Origin: config.Origin{From: config.FromFlag, At: "--port"}}
	for _, v := range report.Values {
		if v.Name == "port" && v != want {
			t.Errorf("%+v", v)
		}
	}
	if len(report.Values) < 20 {
		t.Errorf("%d values", len(report.Values))
	}
}

func TestConfigCheckTellsEverythingThatIsWrong(t *testing.T) {
	file := configFile(t, "server:\n  prot: 80\n")
	out, _, err := execute(t, newConfigCommand(), "--check", "-c", file, "--port=x")
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) != 2 || out != "" {
		t.Errorf("%v, %q", err, out)
	}
	out, _, err = execute(t, newConfigCommand(), "--check", "--json", "-c", file, "--port=x")
	var told struct{ Problems []config.Problem }
	if json.Unmarshal([]byte(out), &told) != nil || err == nil || len(told.Problems) != 2 ||
		told.Problems[0].Where != file+":2: server.prot" || told.Problems[1].Where != "--port" {
		t.Errorf("%v, %s", err, out)
	}

	out, _, err = execute(t, newConfigCommand(), "--check")
	if err != nil || out != "no problems\n" {
		t.Errorf("%v, %q", err, out)
	}
	out, _, err = execute(t, newConfigCommand(), "--check", "--json")
	if err != nil || strings.Join(strings.Fields(out), "") != `{"problems":[]}` {
		t.Errorf("%v, %q", err, out)
	}
}

func TestServeRefusesWhatConfigRefuses(t *testing.T) {
	_, _, err := execute(t, newServeCommand(), "--port=x", "--host=0.0.0.0")
	if problems, _ := errors.AsType[config.Problems](err); len(problems) != 2 {
		t.Errorf("%v", err)
	}
	if _, _, err := execute(t, newServeCommand(), "now"); err == nil {
		t.Error("an argument is accepted")
	}
	if _, _, err := execute(t, newServeCommand(), "--no-such-flag"); err == nil {
		t.Error("an unknown flag is accepted")
	}
}

func TestHelpShowsSectionsAndHidesWhatIsNotForPeople(t *testing.T) {
	for _, newCommand := range []func() *cobra.Command{newServeCommand, newConfigCommand} {
		out, _, err := execute(t, newCommand(), "--help")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\nStorage:\n", "\nOther flags:\n", "--sync always|interval|os ", "-c, --config path", "(default 7890)", "\nExamples:\n  reprise "} {
			if !strings.Contains(out, want) {
				t.Errorf("the help has no %q:\n%s", want, out)
			}
		}
		for _, hidden := range []string{"--null", "--license-key", "--no-admin", "--default-commit-mode"} {
			if strings.Contains(out, hidden) {
				t.Errorf("the help shows %s", hidden)
			}
		}
	}
}
