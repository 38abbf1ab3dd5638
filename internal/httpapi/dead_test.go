package httpapi_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// kill lets n jobs die, each of an error of its own type.
func (a *api) kill(n int, queue string) {
	a.t.Helper()
	for range n {
		a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"`+queue+`","payload":{"pad":"`+strings.Repeat("x", 2000)+`"}}`)
	}
	leased := object(a.t, a.want(200, "*", "POST", "/jobs/lease", fmt.Sprintf(`{"worker":"w","queues":[%q],"max":%d}`, queue, n)))
	var ends []string
	for i, l := range leased["jobs"].([]any) {
		j := l.(map[string]any)
		ends = append(ends, fmt.Sprintf(`{"id":"%s","lease":"%s","outcome":"dead","error":{"message":"m","error_type":"E%d"}}`, j["id"], j["lease"], i))
	}
	a.want(200, "*", "POST", "/jobs/settle", "["+strings.Join(ends, ",")+"]")
}

func TestWhatIsWrongWithACallToTheDeadSetIsNamed(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.kill(1, "q")
	id := object(t, a.want(200, "*", "GET", "/dead", ""))["jobs"].([]any)[0].(map[string]any)["id"].(string)
	many := strings.TrimSuffix(strings.Repeat("a,", 1200), ",")
	for _, tt := range []struct{ method, path, body, says string }{
		{"GET", "/dead?reason=x", "", "reason"},
		{"GET", "/dead?fingerprint=x", "", "fingerprint"},
		{"GET", "/dead?id=x", "", "id"},
		{"GET", "/dead?from=x", "", "from"},
		{"GET", "/dead?before=" + id, "", "before"},
		{"GET", "/dead?filter=.a%7C", "", "invalid filter: "},
		{"GET", "/dead/export?filter=input", "", "invalid filter: "},
		{"POST", "/dead/replay", `{"filter":{"filter":"nonsense"}}`, "invalid filter: "},
		{"POST", "/dead/delete", `{"filter":{"filter":".["}}`, "invalid filter: "},
		{"GET", "/dead?limit=0", "", "limit"},
		{"GET", "/dead?order=up", "", "order"},
		{"GET", "/dead?attempts=5..1", "", "attempts"},
		{"GET", "/dead?died_from=x", "", "died_from"},
		{"GET", "/dead?died_from=-1", "", "died_from"},
		{"GET", "/dead?died_from=9&died_before=9", "", "died_before"},
		{"GET", "/dead?text=" + strings.Repeat("x", 1001), "", "text"},
		{"GET", "/dead?colour=red", "", "colour"},
		{"GET", "/dead?queue=a&queue=b", "", "queue is there twice"},
		{"GET", "/dead/export?limit=3", "", "limit"},
		{"GET", "/dead/export?reason=x", "", "reason"},
		{"GET", "/dead/groups?sort=size", "", "sort"},
		{"GET", "/dead/groups?muted=no", "", "muted"},
		{"GET", "/dead/groups?fingerprint=1", "", "fingerprint"},
		{"GET", "/dead/groups?offset=-1", "", "offset"},
		{"GET", "/dead/groups/x", "", "fingerprint"},
		{"GET", "/replays?from=x", "", "from"},
		{"GET", "/audit?limit=9999", "", "limit"},
		{"PATCH", "/dead/groups/x", `{"muted":true}`, "fingerprint"},
		{"PATCH", "/dead/groups/0000000000000001", `{}`, "muted, paused or note"},
		{"PATCH", "/dead/groups/0000000000000001", `{"fingerprint":"x","muted":true}`, "fingerprint"},
		{"PATCH", "/dead/groups/0000000000000001", `{"note":"` + strings.Repeat("x", 5000) + `"}`, "note"},
		{"PATCH", "/dead/groups/0000000000000001", `{"paused":1}`, "paused must be true or false"},
		{"POST", "/dead/replay", `{}`, "filter is empty"},
		{"POST", "/dead/replay", `{"filter":{}}`, "filter is empty"},
		{"POST", "/dead/replay", `{"filter":{"queues":["q"]}}`, "filter.queues is not known"},
		{"POST", "/dead/replay", `{"filter":{"queue":"q"}}`, "filter.queue must be an array"},
		{"POST", "/dead/replay", `{"filter":{"reason":["x"]}}`, "reason"},
		{"POST", "/dead/replay", `{"filter":{"queue":["` + strings.ReplaceAll(many, ",", `","`) + `"]}}`, "queue has more than 1000"},
		{"POST", "/dead/replay", `{"all":true,"rate":-1}`, "rate"},
		{"POST", "/dead/replay", `{"all":true,"rate":0.0001}`, "rate"},
		{"POST", "/dead/replay", `{"all":true,"rate":1e9}`, "rate"},
		{"POST", "/dead/replay", `{"all":true,"ramp_ms":5}`, "ramp_ms needs a rate"},
		{"POST", "/dead/replay", `{"all":true,"rate":1,"ramp_ms":-5}`, "ramp_ms"},
		{"POST", "/dead/replay", `{"all":true,"budget":"x"}`, "budget"},
		{"POST", "/dead/replay", `{"all":true,"place":"x"}`, "place"},
		{"POST", "/dead/replay", `{"all":true,"max_replays":-1}`, "max_replays"},
		{"POST", "/dead/replay", `{"all":true`, "invalid JSON"},
		{"POST", "/dead/delete", `{"all":true,"place":"front"}`, "place is not known"},
		{"POST", "/dead/delete", `{"filter":{"text":""}}`, "filter is empty"},
		{"POST", "/dead/" + id + "/replay", `{"budget":"x"}`, "budget"},
		{"POST", "/dead/" + id + "/replay", `{"place":"x"}`, "place"},
		{"POST", "/dead/" + id + "/replay", `{"speed":1}`, "speed"},
	} {
		if got := a.want(400, "*", tt.method, tt.path, tt.body); !strings.Contains(got, tt.says) || !strings.Contains(got, `"code":"invalid"`) {
			t.Errorf("%s %.80s %.80s: %s lacks %q", tt.method, tt.path, tt.body, got, tt.says)
		}
	}
	for _, name := range []string{strings.Repeat("x", 129), "a\tb"} {
		if got := a.want(400, "*", "POST", "/dead/"+id+"/replay", "", "Reprise-Actor", name); !strings.Contains(got, "Reprise-Actor") {
			t.Error(got)
		}
	}
	a.want(404, `{"error":"job not found","code":"not_found"}`, "GET", "/dead/x", "")
	a.want(404, `{"error":"replay not found","code":"not_found"}`, "GET", "/replays/x", "")
	a.want(404, `{"error":"replay not found","code":"not_found"}`, "DELETE", "/replays/x", "")
	a.want(404, "*", "GET", "/replays/"+id, "")
	a.want(404, "*", "GET", "/dead/groups/0000000000000001", "")
	a.want(405, "", "PUT", "/dead/"+id, "")
	a.want(204, "", "DELETE", "/dead/"+id, "")
	a.want(404, "*", "DELETE", "/dead/"+id, "")
}

func TestTheDeadArePagedBothWaysUnderAFilter(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.kill(7, "q")
	a.kill(1, "other")
	ids := func(path string) (list []string, pages map[string]any) {
		page := object(t, a.want(200, "*", "GET", path, ""))
		for _, j := range page["jobs"].([]any) {
			list = append(list, j.(map[string]any)["id"].(string))
		}
		return list, page["pages"].(map[string]any)
	}
	whole, _ := ids("/dead?queue=q")
	var paged []string
	path, last := "/dead?queue=q&limit=3", ""
	for path != "" {
		list, pages := ids(path)
		paged, last = append(paged, list...), path
		path, _ = pages["next"].(string)
	}
	if fmt.Sprint(paged) != fmt.Sprint(whole) || len(whole) != 7 {
		t.Errorf("page by page %v, at once %v", paged, whole)
	}
	_, pages := ids(last)
	list, _ := ids(pages["prev"].(string))
	slices.Reverse(list) // it comes nearest first
	if fmt.Sprint(list) != fmt.Sprint(whole[3:6]) {
		t.Errorf("the page before the last is %v of %v", list, whole)
	}
}

func TestAnExportIsALinePerDeadJob(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.kill(100, "q") // more than one burst
	a.kill(1, "other")
	seen := map[string]bool{}
	resp, err := a.client.Do(a.request("GET", "/dead/export?queue=q", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Fatal(resp.Header, err)
	}
	for line := range strings.Lines(string(text)) {
		var j struct {
			ID, Fingerprint string
			Payload         map[string]string
			Error           map[string]any
		}
		if err := json.Unmarshal([]byte(line), &j); err != nil || len(j.Payload["pad"]) != 2000 || j.Error["error_type"] == nil || len(j.Fingerprint) != 16 {
			t.Fatalf("%v in %.300s", err, line)
		}
		seen[j.ID] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d jobs", len(seen))
	}
	a.want(200, "", "GET", "/dead/export?queue=none", "")
}

func TestGroupsRunsAndTheAuditLogArePaged(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.kill(5, "q")
	for range 3 {
		a.want(202, "*", "POST", "/dead/replay", `{"filter":{"queue":["none"]}}`, "Reprise-Actor", "ann")
	}
	count := func(path, list string) (n int) {
		for path != "" {
			page := object(t, a.want(200, "*", "GET", path, ""))
			n += len(page[list].([]any))
			path, _ = page["next"].(string)
		}
		return n
	}
	if n := count("/dead/groups?limit=2&sort=last_seen", "groups"); n != 5 {
		t.Errorf("%d groups", n)
	}
	if n := count("/replays?limit=2", "replays"); n != 3 {
		t.Errorf("%d runs", n)
	}
	if n := count("/audit?limit=2", "entries"); n < 3 { // a run that ended is one more
		t.Errorf("%d entries", n)
	}
}
