package main

import (
	"strings"
	"testing"
)

// Flags that look at something start no server.
func TestFlagsOfPipelineThatStartNothing(t *testing.T) {
	for _, tt := range []struct {
		line, out, err string
		code           int
	}{
		{"pipeline -V", "reprise " + thisBuild().Version, "", 0},
		{"pipeline -J", "", "--dry-run tells", 2},
		{"pipeline -h", "-i, -F, -o", "", 0},
		{"pipeline -i dummy -o null -m * -D", "", "configuration test is successful", 0},
		{"pipeline -x", "", "-h shows all", 2},
	} {
		out, stderr, code := cli(t, "", strings.Fields(tt.line)...)
		if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(stderr, tt.err) {
			t.Errorf("%s: %d\n%s\n%s", tt.line, code, out, stderr)
		}
	}
}
