package httpapi_test

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// listed are the payloads of a list page, as they are written.
func (a *api) listed(path string) (payloads []string) {
	a.t.Helper()
	for _, j := range object(a.t, a.want(200, "*", "GET", path, ""))["jobs"].([]any) {
		payloads = append(payloads, fmt.Sprint(j.(map[string]any)["payload"]))
	}
	return payloads
}

func (a *api) enqueue(queue, payload, more string) string {
	a.t.Helper()
	got := a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"`+queue+`","payload":`+payload+more+`}`)
	return object(a.t, got)["id"].(string)
}

func TestAFilterLooksAtPayloads(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		payloads := []string{`{"to":"ann","n":9007199254740993}`, `{"to":"bob","n":9007199254740992}`, `[1,2,3]`, `null`, `"text"`, `{"a":{"b":1,"c":[1,2]}}`, `false`, `0`}
		for _, p := range payloads {
			a.enqueue("q", p, "")
		}
		a.enqueue("other", payloads[0], "")
		for _, c := range []struct {
			filter string
			keeps  []int
		}{
			{`true`, []int{0, 1, 2, 3, 4, 5, 6, 7}},
			{`.`, []int{0, 1, 2, 4, 5, 7}},    // null and false are not truthy, 0 is
			{`.to`, []int{0, 1}},              // a run-time error on the others is no match
			{`empty`, nil},                    // no output is none either
			{`false, .to == "bob"`, []int{1}}, // any output will do
			{`error("no")`, nil},
			{`. == {"to":"ann","n":9007199254740993}`, []int{0}},
			{`.n? == 9007199254740992`, []int{1}}, // digits are not lost
			{`. | contains({"a":{"c":[2]}})`, []int{5}},
			{`.[0:2] == [1,2]`, []int{2}},
			{`(.to == "ann") and (.n > 1)`, []int{0}},
			{`.to | test("^[ab]")`, []int{0, 1}},
			{`type == "string" and ascii_downcase == "text"`, []int{4}},
		} {
			var want []string
			for _, at := range c.keeps {
				want = append(want, fmt.Sprint(value(t, payloads[at])))
			}
			query := "queue=q&filter=" + url.QueryEscape(c.filter)
			if got := a.listed("/jobs?" + query); !slices.Equal(got, want) {
				t.Errorf("%s\n got %v\nwant %v", c.filter, got, want)
			}
			a.want(200, fmt.Sprintf(`{"count":%d}`, len(want)), "GET", "/jobs/count?"+query, "")
		}
		a.want(200, `{"count":2}`, "GET", "/jobs/count?filter="+url.QueryEscape(`.to=="ann"`), "")
		for _, path := range []string{"/jobs", "/jobs/count"} {
			for _, filter := range []string{".a |", "nonsense", "input", "$ENV.PATH | foo", strings.Repeat(".", 20000)} {
				got := object(t, a.want(400, "*", "GET", path+"?filter="+url.QueryEscape(filter), ""))
				if !strings.HasPrefix(got["error"].(string), "invalid filter: ") {
					t.Errorf("%s: %v", filter, got)
				}
			}
		}
	})
}

// value is a JSON text as the tests decode it.
func value(t *testing.T, text string) any {
	t.Helper()
	return object(t, `{"v":`+text+`}`)["v"]
}

func TestAFilterThatTakesTooLongIsRefusedByTheJob(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := a.enqueue("q", `1`, "")
	for _, filter := range []string{`until(false; .)`, `"x" * 1000000000`, `(reduce range(60) as $i (1; [., .])) | tojson`} {
		got := object(t, a.want(400, "*", "GET", "/jobs?filter="+url.QueryEscape(filter), ""))
		if text := got["error"].(string); !strings.HasPrefix(text, "filter over job "+id) {
			t.Errorf("%s: %s", filter, text)
		}
	}
	a.want(200, `{"count":1}`, "GET", "/jobs/count", "") // the server is well
}

// The server has some hundred candidates under one view of its store.
func TestFilteredListsPageThroughManyCandidates(t *testing.T) {
	a := start(t, httpapi.Options{})
	const all = 1300
	var list []string
	for i := range all {
		list = append(list, fmt.Sprintf(`{"type":"t","queue":"q&%%","payload":{"n":%d},"priority":%d}`, i, i%100))
	}
	a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[`+strings.Join(list, ",")+`]}`)
	for _, query := range []string{"filter=" + url.QueryEscape(`.n % 100 == 7`), "priority=7", "priority=7&filter=" + url.QueryEscape(`.n >= 0`)} {
		path, seen, last := "/jobs?limit=3&queue=q%26%25&"+query, []string(nil), ""
		for path != "" {
			got := a.listed(path)
			if len(got) > 3 {
				t.Fatalf("%s has %d rows", path, len(got))
			}
			seen, last = append(seen, got...), path
			path, _ = object(t, a.want(200, "*", "GET", path, ""))["pages"].(map[string]any)["next"].(string)
		}
		var want []string
		for i := 7; i < all; i += 100 {
			want = append(want, fmt.Sprintf("map[n:%d]", i))
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%s\n got %v\nwant %v", query, seen, want)
		}
		prev := object(t, a.want(200, "*", "GET", last, ""))["pages"].(map[string]any)["prev"].(string)
		if got := a.listed(prev); !slices.Equal(got, []string{want[11], want[10], want[9]}) {
			t.Errorf("%s: before the last page, nearest first: %v", query, got)
		}
		a.want(200, `{"count":13}`, "GET", "/jobs/count?queue=q%26%25&"+query, "")
	}
}

func TestEmptyValuesAreNoFilter(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	for _, query := range []string{"status=", "queue=,", "type=", "id=", "priority=", "ready_at=..", "attempts=", "filter=", "order=&limit=&from="} {
		if got := a.listed("/jobs?" + query); len(got) != 1 {
			t.Errorf("%s: %v", query, got)
		}
	}
}

func TestTheDeadAreFoundAndReplayedByTheirPayload(t *testing.T) {
	a := start(t, httpapi.Options{})
	for i := range 6 {
		a.enqueue("q", fmt.Sprintf(`{"n":%d}`, i), "")
	}
	s := a.take("?queue=q&prefetch=9")
	for range 6 {
		id := s.next()["id"].(string)
		a.want(200, "*", "POST", "/jobs/"+id+"/failure", `{"message":"m","kill":true}`)
	}
	odd := url.QueryEscape(`.n % 2 == 1`)
	if got := a.listed("/dead?limit=2&filter=" + odd); !slices.Equal(got, []string{"map[n:1]", "map[n:3]"}) {
		t.Errorf("the odd dead are %v", got)
	}
	lines := a.want(200, "*", "GET", "/dead/export?filter="+odd, "")
	if strings.Count(lines, "\n") != 3 || strings.Contains(lines, `{"n":2}`) {
		t.Errorf("exported: %s", lines)
	}
	dry := object(t, a.want(200, "*", "POST", "/dead/replay", `{"filter":{"filter":".n > 3"},"dry_run":true}`))
	if fmt.Sprint(dry["count"]) != "2" || len(dry["sample"].([]any)) != 2 {
		t.Errorf("a dry run: %v", dry)
	}
	run := func(path, body string, total int) {
		t.Helper()
		got := object(t, a.want(202, "*", "POST", path, body))
		if fmt.Sprint(got["total"]) != fmt.Sprint(total) || got["filter"].(map[string]any)["id"] != nil {
			t.Errorf("%s %s: %v", path, body, got)
		}
		for got["status"] == "running" {
			got = object(t, a.want(200, "*", "GET", "/replays/"+got["id"].(string), ""))
		}
		if fmt.Sprint(got["done"]) != fmt.Sprint(total) {
			t.Errorf("%s %s ended as %v", path, body, got)
		}
	}
	run("/dead/replay", `{"filter":{"filter":".n == 77"}}`, 0) // nobody, and not everybody
	run("/dead/delete", `{"filter":{"filter":"empty"}}`, 0)
	a.want(200, `{"count":6}`, "GET", "/jobs/count?status=dead", "")
	run("/dead/replay", `{"filter":{"filter":".n % 2 == 1"}}`, 3)
	run("/dead/delete", `{"filter":{"filter":".n > 1"}}`, 2)
	if got := a.listed("/dead"); !slices.Equal(got, []string{"map[n:0]"}) {
		t.Errorf("dead are %v", got)
	}
	if got := a.listed("/jobs?status=ready,in_flight"); !slices.Equal(got, []string{"map[n:1]", "map[n:3]", "map[n:5]"}) {
		t.Errorf("replayed are %v", got)
	}
}

func TestGroupsAndLabelsChooseJobs(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for i, more := range []string{
			`,"group":"ann","labels":{"team":"red","a=b":"c"}`,
			`,"group":"bob","labels":{"team":"red","size":"big=1"}`,
			`,"labels":{"team":"blue","size":""}`,
			``,
		} {
			a.enqueue("q", strconv.Itoa(i), more)
		}
		for query, want := range map[string][]string{
			"group=ann":                           {"0"},
			"group=ann,bob,nobody":                {"0", "1"},
			"group=nobody":                        nil,
			"label=team%3Dred":                    {"0", "1"},
			"label=team%3Dred,team%3Dblue":        {"0", "1", "2"}, // of one name any value will do
			"label=team%3Dred,size%3Dbig%3D1":     {"1"},           // of two names both must fit
			"label=size%3D":                       {"2"},
			"label=team%3D":                       nil,
			"label=team%3Dblue&group=ann":         nil,
			"label=team%3Dred&group=ann,bob":      {"0", "1"},
			"group=":                              {"0", "1", "2", "3"},
			"label=team%3Dred&order=desc&limit=9": {"1", "0"},
		} {
			if got := a.listed("/jobs?" + query); !slices.Equal(got, want) {
				t.Errorf("%s\n got %v\nwant %v", query, got, want)
			}
			if !strings.Contains(query, "order") {
				a.want(200, fmt.Sprintf(`{"count":%d}`, len(want)), "GET", "/jobs/count?"+query, "")
			}
		}
		for _, wrong := range []string{"team", "%3Dred", "team%3Dred,x"} {
			got := object(t, a.want(400, "*", "GET", "/jobs?label="+wrong, ""))
			if !strings.HasPrefix(got["error"].(string), "label must be name=value") {
				t.Errorf("%s: %v", wrong, got)
			}
		}
		for _, call := range [][2]string{{"PATCH", "/jobs"}, {"DELETE", "/jobs"}, {"POST", "/jobs/cancel"}} {
			for _, name := range []string{"group", "label"} {
				a.want(400, `{"error":"`+name+` must not be empty; leave it out to choose by other filters only","code":"invalid"}`, call[0], call[1]+"?"+name+"=", `{}`)
			}
		}
		a.want(200, `{"patched":2}`, "PATCH", "/jobs?label=team%3Dred", `{"priority":1}`)
		a.want(200, `{"cancelled":1}`, "POST", "/jobs/cancel?group=ann", "")
		a.want(200, `{"deleted":2}`, "DELETE", "/jobs?label=team%3Dred", "")
		a.want(200, `{"deleted":1}`, "DELETE", "/jobs?label=team%3Dblue", "")
		a.want(200, `{"count":1}`, "GET", "/jobs/count", "")
	})
}

// No index knows labels: a page ends behind so many candidates, and says where the next one begins.
func TestAPageByLabelsLooksAtSoManyJobs(t *testing.T) {
	a := start(t, httpapi.Options{})
	const all, most = 20_700, 20_000
	list := make([]string, all)
	for i := range list {
		list[i] = `{"type":"t","queue":"q","payload":0}`
	}
	list[0], list[all-1] = `{"type":"t","queue":"q","payload":1,"labels":{"l":"v"}}`, `{"type":"t","queue":"q","payload":2,"labels":{"l":"v"}}`
	a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[`+strings.Join(list, ",")+`]}`)
	for _, order := range []string{"asc", "desc"} {
		var seen []string
		pages := 0
		for path := "/jobs?label=l%3Dv&order=" + order; path != ""; pages++ {
			seen = append(seen, a.listed(path)...)
			path, _ = object(t, a.want(200, "*", "GET", path, ""))["pages"].(map[string]any)["next"].(string)
		}
		if want := 2; pages != want || len(seen) != 2 {
			t.Errorf("%s: %d pages with %v, not %d; %d candidates make one", order, pages, seen, want, most)
		}
	}
	a.want(200, `{"count":2}`, "GET", "/jobs/count?label=l%3Dv", "") // a count looks at all
}
