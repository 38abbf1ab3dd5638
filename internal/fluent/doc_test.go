package fluent

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/fluentconf"
	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/plugin"
)

var update = flag.Bool("update", false, "write the tables of docs/pipeline.md and the golden files anew")

const page = "../../docs/pipeline.md"

// TestEveryPluginIsDocumented holds the tables of the page against what is declared, what
// runs, and what is not here: one row for each plugin of Fluent Bit.
func TestEveryPluginIsDocumented(t *testing.T) {
	var b strings.Builder
	for _, kind := range []struct {
		name, title string
		runs        func(string) bool
	}{
		{fluentconf.Input, "Inputs", func(name string) bool { return inputs[name] != nil || listeners[name] != nil }},
		{fluentconf.Filter, "Filters", func(name string) bool { return filters[name] != nil }},
		{fluentconf.Output, "Outputs", func(name string) bool { return outputs[name] != nil }},
	} {
		var rows [][3]string
		for _, p := range plugin.All().Plugins(kind.name) {
			state := "**runs**"
			if !kind.runs(p.Name) {
				state = "not yet"
			}
			rows = append(rows, [3]string{p.Name, state, sentence(p.What)})
		}
		for _, e := range plugin.NotHere() {
			for _, name := range e.Names {
				if e.Kind == kind.name {
					rows = append(rows, [3]string{name, "not here", sentence(e.Instead)})
				}
			}
		}
		slices.SortFunc(rows, func(a, b [3]string) int { return cmp.Compare(a[0], b[0]) })
		fmt.Fprintf(&b, "\n### %s\n\n| Plugin | | What it does, or what to do instead |\n| --- | --- | --- |\n", kind.title)
		for _, r := range rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r[0], r[1], r[2])
		}
	}
	b.WriteString("\n")
	holdsTable(t, "plugins", "TestEveryPluginIsDocumented", b.String())
}

// TestEveryServiceKeyIsDocumented is the same for [SERVICE].
func TestEveryServiceKeyIsDocumented(t *testing.T) {
	var b strings.Builder
	all := "[SERVICE]\n"
	for _, p := range plugin.ServiceSection().Properties {
		if p.Idle == "" && p.Gone == "" && p.Name != "parsers_file" {
			all += "    " + p.Name + " " + cmp.Or(p.Default, append(p.Words, "x")[0]) + "\n"
		}
	}
	c, _ := load(t, "f.conf", all+"[OUTPUT]\n    Name http\n")
	idle := map[string]bool{}
	for _, s := range c.Service.Unread() {
		idle[s.Name] = true
	}
	b.WriteString("\n| Key | Default | Meaning, or what becomes of it |\n| --- | --- | --- |\n")
	for _, p := range plugin.ServiceSection().Properties {
		meaning := sentence(p.What)
		switch {
		case p.Idle != "":
			meaning = "No effect: " + p.Idle + "."
		case idle[p.Name]:
			meaning = "No effect yet. " + meaning
		case p.Gone != "":
			meaning = "Refused: " + p.Gone + "."
		}
		byDefault := ""
		if p.Default != "" {
			byDefault = "`" + p.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, byDefault, meaning)
	}
	b.WriteString("\n")
	holdsTable(t, "service keys", "TestEveryServiceKeyIsDocumented", b.String())
}

// TestTheBuiltInParsersAreDocumented holds the lists of the page.
func TestTheBuiltInParsersAreDocumented(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Parsers and multiline\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var names []string
	for _, o := range parser.BuiltIn() {
		names = append(names, o.Name)
	}
	for _, o := range parser.BuiltInMultiline() {
		names = append(names, o.Name)
	}
	for _, name := range names {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("parser %s is not on the page", name)
		}
	}
}

// sentence is a text as it stands in a table.
func sentence(text string) string {
	text = strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;").Replace(text)
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// holdsTable compares a part of the page with what it must be, or writes it.
func holdsTable(t *testing.T, name, test, want string) {
	t.Helper()
	begin := "<!-- " + name + ": go test ./internal/fluent -run " + test + " -update -->\n"
	end := "<!-- end of " + name + " -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	switch {
	case !ok || !closed:
		t.Fatalf("%s has no place for the %s", page, name)
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case shown != want:
		t.Errorf("%s is stale; run: go test ./internal/fluent -run %s -update", page, test)
	}
}
