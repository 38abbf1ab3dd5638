package strict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

type inner struct {
	Count int    `json:"count"`
	Text  string `json:"text"`
}

type outer struct {
	Name   string            `json:"name"`
	One    *inner            `json:"one"`
	Many   []inner           `json:"many"`
	Retry  *job.Retry        `json:"retry"`
	Labels map[string]string `json:"labels"`
	inner
}

// told reads a body, and returns what is told of it.
func told(read func([]byte, any, func(Problem) bool) error, body string, most int) (v outer, list []string, err error) {
	err = read([]byte(body), &v, func(p Problem) bool {
		list = append(list, p.Error("x").Text)
		return len(list) < most
	})
	return v, list, err
}

func TestAllThatHasAWrongFormIsToldAtOnce(t *testing.T) {
	v, list, err := told(Read, `{"nme":1,"name":5,"one":{"count":"7","text":"kept","txt":0},"many":[{"count":1},{"count":true}],"retry":{"limit":-1},"labels":{"a":1},"count":3}`, 50)
	want := []string{
		"x.nme is not known here; did you mean name?", "x.name must be a string", "x.one.count must be a whole number",
		"x.one.txt is not known here; did you mean text?", "x.many[1].count must be a whole number",
		`x.retry is refused: `, "x.labels.a must be a string",
	}
	if err != nil || !slices.EqualFunc(list, want, strings.HasPrefix) {
		t.Errorf("%v, %q", err, list)
	}
	if v.One == nil || v.One.Text != "kept" || v.Count != 3 {
		t.Errorf("what has the right form was read as %+v, %+v", v, v.One)
	}
}

func TestReadingEndsWhenEnoughIsTold(t *testing.T) {
	if _, list, err := told(Read, `{"a":1,"b":1,"c":1}`, 2); err != nil || len(list) != 2 {
		t.Errorf("%v, %q", err, list)
	}
	for _, body := range []string{`7`, `[]`} {
		if _, list, err := told(Read, body, 50); err != nil || !slices.Equal(list, []string{"x must be an object"}) {
			t.Errorf("%s: %v, %q", body, err, list)
		}
	}
}

func TestReadKnownPassesOverTheRest(t *testing.T) {
	v, list, err := told(ReadKnown, `{"nme":1,"name":"n","one":{"txt":[1]}}`, 50)
	if err != nil || list != nil || v.Name != "n" {
		t.Errorf("%v, %q, %+v", err, list, v)
	}
}

func TestWhatIsNoJSONIsRefusedAsAWhole(t *testing.T) {
	for _, body := range []string{``, `{`, `{"name":5,"a":}`, `{"name":"a","name":"b"}`, `{} x`, `{"name":"` + "\xff" + `"}`} {
		_, _, err := told(Read, body, 50)
		if bad, ok := errors.AsType[*job.Error](err); !ok || bad.Kind != job.Invalid || !strings.HasPrefix(bad.Text, "invalid JSON: ") {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// However many problems a body has, finding some of them costs no more than reading it a
// few times.
func TestALargeBodyIsNotReadForEachOfItsProblems(t *testing.T) {
	type shape struct {
		Numbers map[string]string `json:"numbers"`
	}
	members := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":%s`, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	var v shape
	found := 0
	err := Read([]byte(`{"numbers":`+members(200_000, "1")+`}`), &v, func(Problem) bool { found++; return true })
	if err != nil || found != 1 {
		t.Errorf("%d problems were looked for, %v", found, err)
	}
	err = Read([]byte(members(257, "1")), &v, func(Problem) bool { t.Error("it was read"); return false })
	if err == nil || !strings.Contains(err.Error(), "more than 256 fields") {
		t.Error(err)
	}
	found = 0
	if err := Read([]byte(members(256, "1")), &v, func(Problem) bool { found++; return true }); err != nil || found != 256 {
		t.Errorf("%d of 256 problems, %v", found, err)
	}
}

// A body that is no JSON says so at its place, also behind a member that is not known.
func TestWhatIsNoJSONBehindAProblemIsToldAtItsPlace(t *testing.T) {
	for _, body := range []string{`{"a":1,}`, `{"a":1}}`, `{"a":1,"b"`} {
		var v struct{}
		err := Read([]byte(body), &v, func(Problem) bool { return true })
		if err == nil || strings.Contains(body, ",}") && !strings.Contains(err.Error(), "',' at start of value after offset 6") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
