package rule

import (
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// FuzzRequirement reads a requirement. What is read, written out and read
// again is the same, a holder without the property does not meet it unless it
// says so, and one that has exactly the value meets = and not !=.
func FuzzRequirement(f *testing.F) {
	for _, seed := range []string{"cpuMHz > 350", "region=eu", "a!=b", "a<=1e3", "a >= ", "=b", "a!b", "a==b", "a = b = c", "\x00=\xff", "x<y>z", "a >? 1", "a!=?b", "a=??", "a!?b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequirement(text)
		if err != nil {
			if (r != job.Requirement{}) || job.KindOf(err) != job.Invalid {
				t.Fatalf("%q: %+v with %v", text, r, err)
			}
			return
		}
		if !slices.Contains([]string{"=", "!=", "<", "<=", ">", ">="}, strings.TrimSuffix(r.Op, "?")) || r.Property == "" || r.Value == "" {
			t.Fatalf("%q was read as %+v", text, r)
		}
		if again, err := ParseRequirement(r.Property + " " + r.Op + " " + r.Value); err != nil || again != r {
			t.Fatalf("%q was read as %+v, and that as %+v, %v", text, r, again, err)
		}
		if !strings.Contains(text, r.Property) || !strings.Contains(text, r.Value) {
			t.Fatalf("%q was read as %+v", text, r)
		}
		same := []job.Requirement{r}
		has := Seeker{Properties: map[string]string{r.Property: r.Value}}
		op, missing := strings.CutSuffix(r.Op, "?")
		switch meets := Fits(Class{}, same, has); {
		case op == "=" && !meets, op == "!=" && meets:
			t.Fatalf("a holder with the very value: %q is %v", text, meets)
		case Fits(Class{}, same, Seeker{}) != (op == "!=" || missing):
			t.Fatalf("a holder without the property meets %q: %v", text, missing)
		}
	})
}
