package cron_test

import (
	_ "embed"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/cron"
	"github.com/reprisehq/reprise/internal/job"
)

//go:embed testdata/croner.txt
var cronerVectors string

// beyond are expressions that croner refuses and we take: LW, L-3, a star in a
// list or before a mark, a range before an L.
var beyond = regexp.MustCompile(`(?i)LW|L-|\*,|\*#|\d-\dL`)

func TestExpressionsTickAsCronersDo(t *testing.T) {
	type start struct {
		at   job.Millis
		zone *time.Location
	}
	starts := map[string]start{}
	taken := 0
	for line := range strings.Lines(cronerVectors) {
		line = strings.TrimSuffix(line, "\n")
		if line[0] == '#' {
			continue
		}
		if line[0] == 'S' {
			f := strings.Fields(line)
			seconds, _ := strconv.ParseInt(f[2], 10, 64)
			starts[f[1]] = start{job.Millis(seconds) * job.Second, mustZone(t, f[3])}
			continue
		}
		from := starts[line[:1]]
		eq := strings.LastIndex(line, " = ")
		expression, want := strings.ReplaceAll(line[2:eq], `\t`, "\t"), line[eq+3:]
		e, err := cron.Parse(expression)
		if err != nil {
			if want != "refused" {
				t.Errorf("%q is refused: %v", expression, err)
			}
			continue
		}
		if want == "refused" {
			if !beyond.MatchString(expression) {
				t.Errorf("%q is taken, and croner refuses it", expression)
			}
			continue
		}
		taken++
		s, got, at := e.In(from.zone), "", from.at
		for range 4 {
			next, ok := s.Next(at)
			if !ok {
				break
			}
			got += fmt.Sprint(" ", int64(next-at)/1000)
			at = next
		}
		if got == "" {
			got = " none"
		}
		if got[1:] != want {
			t.Errorf("%q after %s:%s, want %s", expression, show(from.at, from.zone), got, want)
		}
	}
	if taken < 2500 {
		t.Errorf("only %d were compared", taken)
	}
}
