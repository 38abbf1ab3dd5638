package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestTheExamplesOfSecurityPrintWhatIsShown(t *testing.T) { printsInAShell(t, "security.md", 15) }

func TestTheExamplesOfLocksPrintWhatIsShown(t *testing.T) { printsInAShell(t, "locks.md", 10) }

// printsInAShell runs every command of a page of docs in a shell, against a new
// server, and compares what it prints with the page; ids, tokens, dates and
// ages only in form. Lines that begin with "> " go on with a command.
func printsInAShell(t *testing.T, name string, least int) {
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	url, stop, err := startServer(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	self, err := filepath.Abs(os.Args[0])
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "reprise"))
	}
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, shown, _ := strings.Cut(example+"\n", "\n")
			for more, ok := strings.CutPrefix(shown, "> "); ok; more, ok = strings.CutPrefix(shown, "> ") {
				first, rest, _ := strings.Cut(more, "\n")
				line, shown = line+"\n"+first, rest
			}
			commands++
			sh := exec.CommandContext(t.Context(), "sh", "-c", line)
			sh.Dir = dir
			sh.Env = append(os.Environ(), "REPRISE_URL="+url, "PATH="+dir+":"+os.Getenv("PATH"))
			out, _ := sh.CombinedOutput() // refusals are shown too
			if got, want := inForm(string(out)), inForm(shown); got != want {
				t.Fatalf("%s\nprints\n%s\nand not\n%s", line, got, want)
			}
		}
	}
	if commands < least {
		t.Errorf("the page has only %d commands", commands)
	}
}

// inForm is an output without what differs from run to run.
func inForm(text string) string {
	text = idShape.ReplaceAllString(text, "an id")
	text = dateShape.ReplaceAllString(ageShape.ReplaceAllString(text, "a moment ago"), "a date")
	text = regexp.MustCompile(`\b(since|in) [0-9.]+m?s\b`).ReplaceAllString(text, "$1 a moment")
	text = regexp.MustCompile(`(?m)^(ci|ops)( +)[0-9a-v]{10} `).ReplaceAllString(text, "$1$2an id ")
	text = regexp.MustCompile(`token [0-9a-v]{10}:`).ReplaceAllString(text, "token an id:")
	if me, err := user.Current(); err == nil {
		text = regexp.MustCompile(fmt.Sprintf(`(?m)^a date +%s `, regexp.QuoteMeta(me.Username))).ReplaceAllString(text, "a date ann ")
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
