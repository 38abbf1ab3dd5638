package httpapi_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// pages follows a list from page to page, and returns how many rows each has.
func (a *api) pages(path, rows string, next func(page map[string]any) string) (sizes []int) {
	a.t.Helper()
	for path != "" && len(sizes) < 9 {
		page := object(a.t, a.want(200, "*", "GET", path, ""))
		sizes = append(sizes, len(page[rows].([]any)))
		path = next(page)
	}
	return sizes
}

func TestAPageOfLargeRowsEndsEarlyAndGoesOn(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.client = http.DefaultClient // without a look at each body by the described shapes
	linked := func(page map[string]any) string {
		next, _ := page["pages"].(map[string]any)["next"].(string)
		return next
	}
	large := `"` + strings.Repeat("x", 7<<19) + `"`
	a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"g"},"batch":{"mode":"fail_first","query":"none"}}`)
	a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
	epoch := a.login("e", 1, "")
	for i := range 5 {
		a.want(201, "*", "POST", "/jobs", `{"queue":"q","type":"t","priority":7,"retry_limit":0,"payload":`+large+`}`)
		a.want(201, "*", "POST", "/inboxes/in/messages", large, "g", "1")
		a.want(201, "*", "POST", "/sessions/s/tasks", fmt.Sprintf(`{"tasks":[{"seq":%d,"payload":1}]}`, i+1))
		for _, j := range a.tasksOf("e", epoch, 1) {
			a.ends(j, `"outcome":"ok","result":`+large)
		}
	}
	want := "[4 1]"
	for _, path := range []string{"/jobs?queue=q&limit=2000", "/jobs?queue=q&limit=2000&priority=7"} {
		if got := fmt.Sprint(a.pages(path, "jobs", linked)); got != want {
			t.Errorf("%s: pages of %s, not %s", path, got, want)
		}
	}
	if got := fmt.Sprint(a.pages("/inboxes/in/messages?limit=100", "messages", func(page map[string]any) string {
		if page["next"] == nil {
			return ""
		}
		return "/inboxes/in/messages?limit=100&from=" + page["next"].(string)
	})); got != want {
		t.Errorf("messages: pages of %s", got)
	}
	if got := fmt.Sprint(a.pages("/sessions/s/results", "results", func(page map[string]any) string {
		if len(page["results"].([]any)) == 1 {
			return ""
		}
		return fmt.Sprintf("/sessions/s/results?after=%v", page["next"])
	})); got != want {
		t.Errorf("results: pages of %s", got)
	}
	for _, j := range object(t, a.want(200, "*", "POST", "/jobs/lease", `{"worker":"w","queues":["q"],"max":5}`))["jobs"].([]any) {
		a.ends(j.(map[string]any), `"outcome":"dead","message":"m"`)
	}
	if got := fmt.Sprint(a.pages("/dead?queue=q&limit=2000", "jobs", linked)); got != want {
		t.Errorf("the dead: pages of %s, not %s", got, want)
	}
	// A filter has a second for each payload, which a slow machine needs for large ones.
	const small = 45
	middle := strings.Repeat("x", 400<<10)
	for range small {
		a.want(201, "*", "POST", "/jobs", `{"queue":"small","type":"t","payload":"`+middle+`"}`)
	}
	if got := a.pages("/jobs?queue=small&limit=2000&filter=length%3E1", "jobs", linked); len(got) != 2 || got[0]+got[1] != small {
		t.Errorf("filtered: pages of %d", got)
	}
}

// What all pages on their way hold is bounded, also where nobody reads them;
// one alone always goes through.
func TestPagesOnTheirWayAreBoundedTogether(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 17 << 20, InflightMax: 17 << 20})
	a.want(201, "*", "POST", "/jobs", `{"queue":"q","type":"t","payload":"`+strings.Repeat("x", 16<<20)+`"}`)
	a.want(200, "*", "GET", "/jobs", "")
	slow, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	_ = slow.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := slow.Write([]byte("GET /jobs HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Read(make([]byte, 1)); err != nil { // its page is on its way
		t.Fatal(err)
	}
	got := object(t, a.want(503, "*", "GET", "/jobs", ""))
	if text, _ := got["error"].(string); !strings.Contains(text, "max_inflight_bytes") {
		t.Errorf("it says %v", got)
	}
	a.want(200, "*", "GET", "/jobs/count", "")
}

// Deliveries wait for room while others hold it, and have it when those are gone.
func TestDeliveriesWaitForRoom(t *testing.T) {
	const size = 8 << 20
	a := start(t, httpapi.Options{BodyMax: size + 1<<20, InflightMax: size + 1<<20})
	put := func() {
		a.want(201, "*", "POST", "/jobs", `{"queue":"q","type":"t","payload":"`+strings.Repeat("x", size)+`"}`)
	}
	put()
	slow, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = slow.Close() }()
	_ = slow.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := slow.Write([]byte("GET /jobs/take HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	a.eventually("a delivery is on its way", func() bool { return httpapi.BytesOfAnswers(a.handler) > size })
	put()
	leased := make(chan answer, 1)
	go func() { leased <- a.call("POST", "/jobs/lease", `{"wait_ms":60000}`) }()
	a.eventually("both are given out", func() bool {
		return strings.Contains(a.call("GET", "/jobs/count?status=in_flight", "").body, "2")
	})
	a.eventually("the second one waits for room", func() bool { return httpapi.RoomIsAwaited(a.handler) })
	if held := httpapi.BytesOfAnswers(a.handler); held > 3*size {
		t.Errorf("both have room: %d bytes", held)
	}
	_ = slow.Close()
	if got := <-leased; got.status != 200 || len(got.body) < size {
		t.Errorf("the lease: %d, %d bytes", got.status, len(got.body))
	}
	a.eventually("all room is given back", func() bool { return httpapi.BytesOfAnswers(a.handler) == 0 })
}

// What somebody asks for is kept as long as he waits.
func TestWhoTakesNamesABoundedNumberOfQueues(t *testing.T) {
	a := start(t, httpapi.Options{})
	list := func(n, size int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("%0*d", size, i)
		}
		return strings.Join(names, ",")
	}
	for _, c := range []struct {
		n, size int
		ok      bool
	}{{1000, 4, true}, {1001, 4, false}, {100, 655, true}, {100, 656, false}} {
		names := list(c.n, c.size)
		leased := a.call("POST", "/jobs/lease", `{"queues":["`+strings.ReplaceAll(names, ",", `","`)+`"]}`)
		took := a.call("HEAD", "/jobs/take?queue="+names, "")
		if (leased.status == 200) != c.ok || (took.status == 200) != c.ok || !c.ok && (leased.status != 400 || !strings.Contains(leased.body, "queues must not have more than")) {
			t.Errorf("%d names of %d bytes: %d and %d %s", c.n, c.size, leased.status, took.status, leased.body)
		}
	}
	props := `{"a":"` + strings.Repeat("x", 64<<10) + `"}`
	if got := a.call("POST", "/jobs/lease", `{"properties":`+props+`}`); got.status != 400 || !strings.Contains(got.body, "properties must not be more") {
		t.Errorf("large properties: %d %s", got.status, got.body)
	}
}
