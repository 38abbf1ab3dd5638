package main

import (
	"os"
	"os/user"
	"regexp"
	"strings"
	"testing"
)

func TestTheExamplesOfTheDeadSetPrintWhatIsShown(t *testing.T) { printsWhatIsShown(t, "dead.md", 15) }

func TestTheExamplesOfUniqueJobsPrintWhatIsShown(t *testing.T) { printsWhatIsShown(t, "unique.md", 12) }

// printsWhatIsShown runs every command of a page of docs against a new server
// and compares what it prints with the page: ids must agree with each other,
// dates and ages only in form.
func printsWhatIsShown(t *testing.T, name string, least int) {
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := startServer(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("REPRISE_URL", url)
	page := &page{ids: map[string]string{}}
	if me, err := user.Current(); err == nil {
		page.me = me.Username
	}
	commands := 0
	for _, block := range regexp.MustCompile("(?ms)^```console\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		for _, example := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, shown, _ := strings.Cut(example+"\n", "\n")
			commands++
			out, stderr, code := cli(t, "", page.words(line)...)
			if got, want := page.plain(out, false), page.plain(shown, true); code != 0 || got != want {
				t.Fatalf("%s\nends with %d and prints\n%s\nand not\n%s\n%s", line, code, got, want, stderr)
			}
		}
	}
	if commands < least {
		t.Errorf("the page has only %d commands", commands)
	}
}

// page relates what is shown to what a run prints.
type page struct {
	me  string
	ids map[string]string // as shown to as printed
	seq []string          // shown, of the output that is compared next
}

var (
	idShape   = regexp.MustCompile(`\b0[0-9a-z]{24}\b`)
	ageShape  = regexp.MustCompile(`\b[0-9.]+(ms|s|m|h)( ago)\b`)
	dateShape = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d:\d\d( [+-]\d\d:\d\d)?`)
)

// words takes a command line apart as a shell does, as far as the page needs
// it, and puts the ids of this run in.
func (p *page) words(line string) (list []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		list = append(list, idShape.ReplaceAllStringFunc(m[1]+m[2]+m[3], func(id string) string { return p.ids[id] }))
	}
	return list[1:] // reprise itself
}

// plain is an output without what differs from run to run. The printed one
// comes first; the ids of the shown one are then known by their place in it.
func (p *page) plain(text string, shown bool) string {
	n := 0
	text = idShape.ReplaceAllStringFunc(text, func(id string) string {
		if !shown {
			p.seq = append(p.seq[:n], id)
			n++
			return id
		}
		if p.ids[id] == "" && n < len(p.seq) {
			p.ids[id] = p.seq[n]
		}
		n++
		return p.ids[id]
	})
	text = dateShape.ReplaceAllString(ageShape.ReplaceAllString(text, "a moment ago"), "a date")
	if !shown && p.me != "" {
		text = regexp.MustCompile(`\b`+regexp.QuoteMeta(p.me)+`\b`).ReplaceAllString(text, "ann")
	}
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
