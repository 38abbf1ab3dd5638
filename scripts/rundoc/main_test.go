package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sample = "# A\n\n$ not a command\n\n```sh\n$ neither\n```\n\n```console\n$ echo one\nold\nolder\n$ cat <<END\n> two\n> END\n```\n\nend\n"

func TestOnlyWhatCommandsPrintedIsReplaced(t *testing.T) {
	var ran []string
	got, err := replay(sample, func(command string) (string, error) {
		ran = append(ran, command)
		return "new\n", nil
	})
	want := strings.Replace(strings.Replace(sample, "old\nolder\n", "new\n", 1), "> END\n", "> END\nnew\n", 1)
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
	if strings.Join(ran, "|") != "echo one\n|cat <<END\ntwo\nEND\n" {
		t.Errorf("%q", ran)
	}
	if again, _ := replay(got, func(string) (string, error) { return "new\n", nil }); again != got {
		t.Errorf("a second run changed it:\n%s", again)
	}
}

func TestABlockWithoutEndAndAFailedCommandAreErrors(t *testing.T) {
	if _, err := replay("```console\n$ x\n", func(string) (string, error) { return "", nil }); err == nil {
		t.Error("a block without an end passed")
	}
	failed := errors.New("failed")
	if _, err := replay(sample, func(string) (string, error) { return "", failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
}

func TestAStaleDocumentOrPictureIsTold(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "```console\n$ echo hello; echo '<svg/>' >docs/a/b.svg\n```\n"
	if err := errors.Join(os.Mkdir("docs", 0o755), os.WriteFile("docs/a.md", []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	made, err := generate("docs/a.md", "")
	if err != nil || len(made) != 2 || string(made[filepath.Join("docs", "a", "b.svg")]) != "<svg/>\n" {
		t.Fatalf("%q %v", made, err)
	}
	if err := made.compare(); err == nil || !strings.Contains(err.Error(), "a.md") || !strings.Contains(err.Error(), "b.svg") {
		t.Errorf("before writing: %v", err)
	}
	if err := errors.Join(made.write(), made.compare()); err != nil {
		t.Errorf("after writing: %v", err)
	}
	if err := os.WriteFile("docs/a/b.svg", []byte("<svg>edited</svg>"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := made.compare(); err == nil || strings.Contains(err.Error(), "a.md") {
		t.Errorf("with an edited picture: %v", err)
	}
}

func TestACommandThatCannotRunFails(t *testing.T) {
	if _, err := shell("no-such-command-here", t.TempDir(), ""); err == nil {
		t.Error("it passed")
	}
	if out, err := shell("echo refused >&2; exit 2", t.TempDir(), ""); err != nil || out != "refused\n" {
		t.Errorf("%q %v", out, err)
	}
}
