package jobs_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
)

func page(t *testing.T, raw string, rows ...string) string {
	t.Helper()
	q, err := jobs.ListQuery(raw)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	var list []query.Listed
	for _, row := range rows {
		list = append(list, query.Listed{Job: &job.Job{ID: id(t, row)}})
	}
	limit := len(list)
	if values, _ := url.ParseQuery(raw); values.Has("limit") {
		limit, _ = strconv.Atoi(values.Get("limit"))
	}
	var found jobs.Found[query.Listed]
	found.Rows, found.More, _ = query.Fits(list, limit, query.Listed.Bytes)
	got := string(q.AppendList(nil, found))
	_, links, _ := strings.Cut(got, `"pages":`)
	return links
}

const idC = "03gq0x7k2m4v9c1d8f5h6j0a3"

func TestPagesLinkToTheirNeighbours(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		rows      []string
		links     string
	}{
		{"nothing", "", nil, `{"self":"/jobs?order=asc&limit=50","next":null,"prev":null}}`},
		{"the only page", "order=desc&limit=2", []string{idB, idA}, `{"self":"/jobs?order=desc&limit=2","next":null,"prev":null}}`},
		{
			"the first page", "limit=2",
			[]string{idA, idB, idC},
			`{"self":"/jobs?order=asc&limit=2","next":"/jobs?from=` + idB + `&order=asc&limit=2","prev":null}}`,
		},
		{
			"the last page", "limit=2&from=" + idA,
			[]string{idB, idC},
			`{"self":"/jobs?from=` + idA + `&order=asc&limit=2","next":null,"prev":"/jobs?from=` + idB + `&order=desc&limit=2"}}`,
		},
		{
			"an empty page after one", "from=" + idA, nil,
			`{"self":"/jobs?from=` + idA + `&order=asc&limit=50","next":null,"prev":null}}`,
		},
		{
			"what prev named", "order=desc&limit=1&from=" + idC,
			[]string{idB, idA},
			`{"self":"/jobs?from=` + idC + `&order=desc&limit=1","next":"/jobs?from=` + idB + `&order=desc&limit=1",` +
				`"prev":"/jobs?from=` + idB + `&order=asc&limit=1"}}`,
		},
		{
			"filters, sorted and escaped",
			"type=b,a,,a&queue=a%26b,%25+x&status=ready,dead&id=" + idB + "," + idA + "&filter=.a%3D%3D%22%26%22&priority=1..5&ready_at=..7&attempts=3&limit=1",
			[]string{idA, idB},
			`{"self":"/jobs?order=asc&limit=1&status=dead,ready&queue=%25+x,a%26b&type=a,b&id=` + idA + `,` + idB +
				`&priority=1..5&ready_at=..7&attempts=3&filter=.a%3D%3D%22%26%22","next":"/jobs?from=` + idA + `&order=asc&limit=1&status=dead,ready` +
				`&queue=%25+x,a%26b&type=a,b&id=` + idA + `,` + idB + `&priority=1..5&ready_at=..7&attempts=3&filter=.a%3D%3D%22%26%22","prev":null}}`,
		},
		{"empty filters", "status=&queue=,&id=", nil, `{"self":"/jobs?order=asc&limit=50","next":null,"prev":null}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := page(t, c.raw, c.rows...); got != c.links {
				t.Errorf("\n got %s\nwant %s", got, c.links)
			}
		})
	}
}

func TestQueriesRefuseByName(t *testing.T) {
	for raw, text := range map[string]string{
		"limit=0":             "limit must be between 1 and 2000",
		"limit=2001":          "limit must be between 1 and 2000",
		"limit=x":             "limit must be between 1 and 2000",
		"order=up":            "order must be asc or desc",
		"status=ready,leased": `status must be among scheduled, ready, in_flight, completed, dead; it has "leased"`,
		"status=none":         "status must be among",
		"id=" + idA + ",x":    `invalid job ID: "x"`,
		"from=x":              "from must be a job ID",
		"before=" + idB:       `invalid query parameters: unknown parameter "before"`,
		"priority=5..1":       "priority: range lower bound exceeds upper bound",
		"priority=a":          "priority must be a whole number or a range",
		"ready_at=1..2..3":    "ready_at must be a whole number or a range",
		"attempts=-1":         "attempts must be a whole number or a range",
		"filter=.a%7C":        "invalid filter: unexpected EOF",
		"filter=nonsense":     "invalid filter: function not defined: nonsense/0",
		"filter=input":        "invalid filter: input(s)/0 is not allowed",
		"nonsense=1":          `invalid query parameters: unknown parameter "nonsense"`,
		"queue=a&queue=b":     "invalid query parameters: queue is there twice",
		"queue=%zz":           "invalid query parameters: ",
		"a;b":                 "invalid query parameters: ",
	} {
		if _, err := jobs.ListQuery(raw); err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%s\n got %v\nwant %s", raw, err, text)
		}
	}
	if _, err := jobs.CountQuery("limit=5"); err == nil {
		t.Error("a count takes no limit")
	}
	for _, raw := range []string{"from=-1", "from=x", "before=1", "status=dead", "from=4294967296"} {
		if _, err := jobs.ErrorsQuery(job.ID{}, raw); err == nil {
			t.Errorf("errors?%s was taken", raw)
		}
	}
}

func TestRangesOfAnyAreTaken(t *testing.T) {
	for _, raw := range []string{"priority=..", "priority=5", "priority=5..5", "attempts=..3", "ready_at=3..", ""} {
		if _, err := jobs.CountQuery(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
