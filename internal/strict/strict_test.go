package strict

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

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

func TestAMemberThatIsThereTwiceIsOneProblemAmongOthers(t *testing.T) {
	_, list, err := told(Read, `{"name":"a","one":{"count":1,"text":5,"count":"x"},"name":"b","labels":7}`, 50)
	want := []string{"x.one.text must be a string", "x.one.count is there twice", "x.one.count must be a whole number", "x.labels must be an object"}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%v, %q", err, list)
	}
}

func TestABodyWithoutAValueIsToldWhatIsWanted(t *testing.T) {
	for _, body := range []string{"", " \n"} {
		if _, list, err := told(Read, body, 50); list != nil || err == nil || err.Error() != "the body is empty; send a JSON object with name, one, many, retry, labels, count, text" {
			t.Errorf("%q: %q, %v", body, list, err)
		}
	}
	if _, list, err := told(Read, " null ", 50); err != nil || !slices.Equal(list, []string{"x must be an object"}) {
		t.Errorf("null: %q, %v", list, err)
	}
}

func TestWhatIsNoJSONIsRefusedAsAWhole(t *testing.T) {
	for _, body := range []string{`{`, `{"name":5,"a":}`, `{"name":"a","name":"b"`, `{} x`, `{"name":"` + "\xff" + `"}`} {
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

func TestThePlaceOfAValueIsWrittenAsPath(t *testing.T) {
	long := strings.Repeat("a", 101)
	for at, want := range map[jsontext.Pointer]string{
		"": "", "/a": "a", "/a/b": "a.b", "/a/2/b": "a[2].b", "/2": "[2]", "/a/": `a[""]`, "/a.b": `["a.b"]`, "/x/a.b": `x["a.b"]`, `/a"`: `["a\""]`,
		jsontext.Pointer("/" + long[:100]): long[:100], jsontext.Pointer("/" + long): long[:100] + "…",
	} {
		if got := fieldOf(at); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
	for _, c := range [][3]string{{"", "", "the body"}, {"a", "", "a"}, {"", "b", "b"}, {"a", "b", "a.b"}} {
		if got := Join(c[0], c[1]); got != c[2] {
			t.Errorf("%q in %q: %s", c[1], c[0], got)
		}
	}
}

func TestMembersAreThoseOfTheDocument(t *testing.T) {
	type base struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
	}
	type all struct {
		*base
		A    int `json:"a"`
		Not  int `json:"-"`
		None int
		C    int `json:"c"`
	}
	if got := Members(reflect.TypeFor[**all]()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Error(got)
	}
	if Members(nil) != nil || Members(reflect.TypeFor[int]()) != nil {
		t.Error("what has no members has some")
	}
	if got := shapeOf(nil) + ", " + shapeOf(reflect.TypeFor[**bool]()); got != "something else, true or false" {
		t.Error(got)
	}
}

func TestWithoutTakesOneMemberOut(t *testing.T) {
	for _, c := range []struct {
		body, member, want string
		cut                bool
	}{
		{`{"a":1,"b":{"a":2}}`, "/a", `{"b":{"a":2}}`, true},
		{`{"a":1,"b":{"a":2}}`, "/b/a", `{"a":1,"b":{}}`, true},
		{`{"a":1}`, "/c", `{"a":1}`, false},
		{`[1,2]`, "/0", `[1,2]`, false},
		{`{"b":["a",1]}`, "/b/0", `{"b":["a",1]}`, false},
	} {
		got, cut, err := without([]byte(c.body), jsontext.Pointer(c.member))
		if err != nil || cut != c.cut || strings.Join(strings.Fields(string(got)), "") != c.want {
			t.Errorf("%s of %s: %s, %v, %v", c.member, c.body, got, cut, err)
		}
	}
	for _, body := range []string{`{"a":1`, `{"a":1} x`, `{"a"}`} {
		if got, cut, err := without([]byte(body), "/a"); err == nil || cut || string(got) != body {
			t.Errorf("%s: %s, %v, %v", body, got, cut, err)
		}
	}
}

func TestOnlyAnObjectHasTooManyMembers(t *testing.T) {
	many := func(open, each, end string, n int) []byte {
		return []byte(open + strings.TrimSuffix(strings.Repeat(each, n), ",") + end)
	}
	named := func(n int) []byte {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`"%d":0`, i)
		}
		return []byte("{" + strings.Join(list, ",") + "}")
	}
	unfinished := many("{", `"":0,`, "", membersMax+9)
	for name, c := range map[string]struct {
		body []byte
		want bool
	}{
		"as many as allowed": {named(membersMax), false},
		"one more":           {named(membersMax + 1), true},
		"a list":             {many("[", `12345,`, "]", 3*membersMax), false},
		"unfinished":         {unfinished[:len(unfinished)-1], false},
		"text":               {[]byte(strings.Repeat("x", 9*membersMax)), false},
	} {
		if got := tooMany(c.body); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
