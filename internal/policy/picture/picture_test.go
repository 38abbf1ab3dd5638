package picture

import (
	"bytes"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/policy"
)

func TestTheBandIsDrawnWithBothItsLines(t *testing.T) {
	draw := func(line string) string {
		values := map[string][]string{}
		for _, pair := range strings.Fields(line) {
			name, value, _ := strings.Cut(pair, "=")
			values[name] = append(values[name], value)
		}
		r, _, err := policy.Read(values, "")
		var b bytes.Buffer
		if err == nil {
			err = Preview(&b, policy.Of(r, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	svg := draw("")
	for _, want := range []string{">earliest<", ">latest<", ">retry<", ">wait (logarithmic)<", ">1d<", "kind: polynomial"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the picture lacks %s", want)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 50 {
		t.Errorf("%d points, want 25 of each line", n)
	}
	if draw("") != svg {
		t.Error("the same policy gave other bytes")
	}
	for _, line := range []string{"limit=none", "curve=immediate", "limit=1", "curve=staircase limit=100", "curve=exponential limit=100"} {
		if svg := draw(line); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %s", line, svg)
		}
	}
}
