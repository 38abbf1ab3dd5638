package jq_test

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/jq"
)

var limits = flag.Int("jqlimits", 0, "over how many values of 10 MB, up to 5, to measure how far 60 expressions each go over their time limit (make jqlimits)")

// programs are such as take long over large values: 60 of them, and each over five
// values.
func programs() (list []string) {
	for _, work := range []string{
		`[.[] | tostring] | length`, `tojson | length`, `[paths] | length`, `[.. | numbers] | add`, `map(.) | sort | length`, `group_by(.) | length`,
		`unique | length`, `tojson | gsub("[0-9]";"x") | length`, `tojson | [match("a";"g")] | length`, `tojson | explode | implode | length`,
		`tojson | split("") | length`, `tojson | @base64 | length`, `tojson | [scan(".")] | length`, `[.[], .[]] | length`, `map([.]) | add | length`,
		`to_entries | length`, `[paths(scalars)] | length`, `tojson | test("(a|b|ab)*c")`, `flatten | length`, `reverse | sort | reverse | length`,
	} {
		list = append(list, work, `def f: (`+work+`), f; last(f)`, `[limit(50; repeat(`+work+`))] | length`)
	}
	return list
}

func values() []string {
	const size = 10 << 20
	fill := func(piece string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(piece+",", size/(len(piece)+1)), ",") + "]"
	}
	return []string{
		fill(`12345`), fill(`"a text of some length, as they are"`), fill(`{"a":[1,2,{"b":null}],"c":"d"}`),
		`["` + strings.Repeat("a", size) + `"]`, fill(`[[[[[[1.5]]]]]]`),
	}
}

// Expressions end at their limit, and not much later, also while other work has the
// processors.
func TestExpressionsEndAtTheirLimit(t *testing.T) {
	if *limits == 0 {
		t.Skip("needs -jqlimits")
	}
	var busy atomic.Bool
	busy.Store(true)
	defer busy.Store(false)
	for range max(1, runtime.NumCPU()-1) {
		go func() {
			for busy.Load() { //nolint:revive // it is to be busy
			}
		}()
	}
	type run struct {
		over   time.Duration
		source string
	}
	const limit = time.Second
	var runs []run
	for i, value := range values()[:*limits] {
		for _, source := range programs() {
			took := time.Duration(0)
			restore := jq.Took(func(d time.Duration) { took = d })
			_, err := compile(t, source).Run(t.Context(), jq.Limits{Time: limit, Bytes: 32 << 20}, 1, []byte(value))
			restore()
			if err != nil && !errors.Is(err, jq.ErrBound) {
				t.Logf("value %d, %s: %v", i, source, err)
			}
			runs = append(runs, run{took - limit, fmt.Sprintf("value %d, %s", i, source)})
		}
	}
	slices.SortFunc(runs, func(a, b run) int { return int(b.over - a.over) })
	ended := slices.IndexFunc(runs, func(r run) bool { return r.over < 0 })
	if ended < 0 {
		ended = len(runs)
	}
	t.Logf("runs: %d, ended at the limit of %v: %d; the latest %v behind it: %s", len(runs), limit, ended, runs[0].over, runs[0].source)
	for _, r := range runs {
		if r.over > limit/10 {
			t.Errorf("%v behind its limit: %s", r.over, r.source)
		}
	}
}
