package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

func TestTheOutputOfACommandIsItsResultWhereItIsAskedFor(t *testing.T) {
	for line, want := range map[string]string{
		`echo '{"n": 9007199254740993}'`: `{"n":9007199254740993}`, // JSON as it is
		`echo 1; echo 2 >&2`:             `1`,
		`printf 'two\nlines\n'`:          `"two\nlines"`,
		`printf '\377'`:                  `"�"`,
		`true`:                           ``,
		`printf ' \n'`:                   ``,
		`echo null`:                      `null`, // which the server takes for none
	} {
		d, c := delivery(), shell(line)
		c.result = true
		if err := c.handle(t.Context(), d); err != nil || string(d.Result()) != want {
			t.Errorf("%s: result %s, want %s (%v)", line, d.Result(), want, err)
		}
	}
	d := delivery()
	if err := shell("echo 1").handle(t.Context(), d); err != nil || d.Result() != nil {
		t.Errorf("nobody asked: %s, %v", d.Result(), err)
	}
	d, c := delivery(), shell("echo 1; exit 3")
	c.result = true
	if err := c.handle(t.Context(), d); err == nil || d.Result() != nil {
		t.Errorf("of a failure: %s, %v", d.Result(), err)
	}
	d, c = delivery(), shell("head -c 17000000 /dev/zero")
	c.result = true
	if got := outcome(c.handle(t.Context(), d)); !strings.HasPrefix(got, "retry result: the command wrote more than 16 MiB") || d.Result() != nil {
		t.Errorf("too much of it: %s", got)
	}
}

func TestWorkKeepsResultsWithTheirJobs(t *testing.T) {
	url := serverURL(t)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"sent": true}`))
	}))
	defer target.Close()
	for queue, x := range map[string]struct {
		work []string
		want string
	}{
		"made by command": {[]string{"--exec", `sed 's/^/{"got":/; s/$/}/'`}, `{"got":[1,2,3]}`},
		"made by target":  {[]string{"--http", target.URL}, `{"sent":true}`},
	} {
		id := field(t, well(t, "enqueue", "--url", url, "--queue", queue, "--type", "t", "--payload", "[1,2,3]", "--keep", "1h", "--json"), "id")
		well(t, append([]string{"work", "--url", url, "--queue", queue, "--result", "--max", "1"}, x.work...)...)
		var shown struct {
			Job wire.Job `json:"job"`
		}
		if err := json.Unmarshal([]byte(well(t, "jobs", "show", "--url", url, id, "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		if string(shown.Job.Result) != x.want || shown.Job.ResultBytes == 0 {
			t.Errorf("%s: result %s of %d bytes", queue, shown.Job.Result, shown.Job.ResultBytes)
		}
		if out := well(t, "jobs", "show", "--url", url, id); !strings.Contains(out, "\nresult\n  {\n") {
			t.Errorf("%s is shown as\n%s", queue, out)
		}
	}
}
