package main

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestTheExamplesOfJobsPrintWhatIsShown runs every command of docs/jobs.md in a
// shell, against a new server, and compares what it prints with the page. Ids
// and tokens must agree with each other, times only in form.
func TestTheExamplesOfJobsPrintWhatIsShown(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("curl is not installed")
		}
		t.Skip("curl is not installed")
	}
	text, err := os.ReadFile("../../docs/jobs.md")
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
	here := strings.NewReplacer("localhost:7890", strings.TrimPrefix(url, "http://"))
	walk := walk{}
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, shown, _ := strings.Cut(example+"\n", "\n")
			for strings.HasPrefix(shown, "> ") { // the command goes on
				more, rest, _ := strings.Cut(shown[2:], "\n")
				line, shown = line+"\n"+more, rest
			}
			commands++
			sh := exec.CommandContext(t.Context(), "sh", "-c", here.Replace(walk.now(line)))
			sh.Dir = dir
			printed, _ := sh.CombinedOutput() // refusals are shown too
			walk.meet(shown, string(printed))
			if got, want := timeless(string(printed)), timeless(walk.now(shown)); got != want {
				t.Fatalf("%s\nprints\n%s\nand not\n%s", line, got, want)
			}
		}
	}
	if commands < 30 {
		t.Errorf("the page has only %d commands", commands)
	}
}

// walk is the ids and tokens that the page shows, and what they are in this run.
type walk map[string]string

var nameShape = regexp.MustCompile(`\b0[0-9a-z]{24}\b|\b[0-9a-f]{40}\b`)

// now is a text of the page with the ids and tokens of this run.
func (w walk) now(text string) string {
	return nameShape.ReplaceAllStringFunc(text, func(name string) string {
		if now, ok := w[name]; ok {
			return now
		}
		return name
	})
}

// meet learns the ids and tokens that an output has for the first time, by
// their place in it.
func (w walk) meet(shown, printed string) {
	now := nameShape.FindAllString(printed, -1)
	for i, name := range nameShape.FindAllString(shown, -1) {
		if _, known := w[name]; !known && i < len(now) {
			w[name] = now[i]
		}
	}
}

// timeless is an output without times and without spans that passed.
func timeless(text string) string {
	text = regexp.MustCompile(`\b1[0-9]{12}\b`).ReplaceAllString(text, "a time")
	text = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[0-9:.]+Z \([0-9.]+m?s\)`).ReplaceAllString(text, "a date")
	return strings.TrimSpace(text)
}
