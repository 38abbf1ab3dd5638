package grid

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

var update = flag.Bool("update", false, "write the table of docs/grid.md anew")

// The table of the page lists every option with what each profile sets.
func TestTheOptionsAreDocumented(t *testing.T) {
	const (
		page  = "../../../docs/grid.md"
		begin = "<!-- options: go test ./internal/door/grid -run TestTheOptionsAreDocumented -update -->\n"
		end   = "<!-- end of options -->\n"
	)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the options", page)
	}
	var b strings.Builder
	b.WriteString("\n| Option | Holds | `seed` | `modern` | Meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, o := range Options {
		value := func(p job.Profile) string { return "`" + strings.Trim(o.Values[p], `"`) + "`" }
		named := ""
		if there := o.GridServer(); there != "" {
			named = " (" + there + ")"
		}
		b.WriteString("| `" + o.Name + "` | " + o.Shape + " | " + value(job.ProfileSeed) + " | " + value(job.ProfileModern) + " | " +
			strings.ToUpper(o.Help[:1]) + o.Help[1:] + named + ". |\n")
	}
	b.WriteString("\n")
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+b.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if shown != b.String() {
		t.Errorf("%s is stale; run: go test ./internal/door/grid -run TestTheOptionsAreDocumented -update", page)
	}
}

// GridServer is the name of the option there; "" = it has none.
func (o Option) GridServer() string {
	for _, there := range spell.Originals {
		if there.System == gridServer && there.Here == o.Name {
			return there.Names[0]
		}
	}
	return ""
}
