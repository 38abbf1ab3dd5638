package httpapi_test

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
)

// twice is JSON with a member twice, and with letters that can be written in other ways.
const twice = `{"o":7,"a":1,"a":2,"s":"\u00e9\/é","n":1.0}`

// holds asks for something in both formats, and for twice in the answer.
func (a *api) holds(member, method, path, sent string) string {
	a.t.Helper()
	text := a.want(200, "*", method, path, sent)
	if want := `"` + member + `":` + twice; !strings.Contains(text, want) {
		a.t.Errorf("%s %s: %s, want %s", method, path, text, want)
	}
	if method == "GET" {
		inPack := a.want(200, "*", method, path, sent, "Accept", msgpackType)
		if want := packed(a.t, twice); !strings.Contains(inPack, want) {
			a.t.Errorf("%s %s: in MessagePack it is %q, want %q", method, path, inPack, want)
		}
	}
	return text
}

func TestAMessageIsWrittenAsItIsKept(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"json":".o"},"batch":{"query":"none"}}`)
		const path = "/inboxes/in/messages"
		a.want(201, "*", "POST", path, twice, "X-Correlate-Id", "m1")
		a.want(201, "*", "POST", path+"/bulk", `{"messages":[{"headers":{"X-Correlate-Id":"m2"},"payload":`+twice+`}]}`)
		a.want(201, "*", "POST", path, packed(t, twice), "X-Correlate-Id", "m3", "Content-Type", msgpackType)
		for _, m := range []string{"m1", "m2"} {
			a.holds("payload", "GET", path+"/"+m, "")
		}
		if text := a.want(200, "*", "GET", path+"/m3", ""); !strings.Contains(text, `"a":1,"a":2`) {
			t.Errorf("sent as MessagePack: %s", text)
		}
		if list := object(t, a.want(200, "*", "GET", path, ""))["messages"].([]any); len(list) != 3 {
			t.Errorf("listed are %v", list)
		}
		turn := object(t, a.holds("payload", "POST", "/inboxes/in/lease", `{"wait_ms":1000}`))
		if list := turn["messages"].([]any); len(list) != 3 {
			t.Errorf("%v", turn)
		}
	})
}

// A header may hold bytes that are no UTF-8. They are no reason to lease for nobody.
func TestAHeaderThatIsNoTextCanBeRead(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, "*", "PUT", "/inboxes/in", `{"group":{"header":"X-Group"},"batch":{"query":"none"}}`)
		next, _ := a.follow("?kind=enqueued")
		next() // the interval to come back in
		got := []string{
			a.want(201, "*", "POST", "/inboxes/in/messages", `{"o":7}`, "X-Group", "g\xff"),
			a.want(200, "*", "GET", "/inboxes/in/messages", ""),
			a.want(200, "*", "POST", "/inboxes/in/lease", `{"wait_ms":1000}`),
		}
		for _, text := range got {
			if !strings.Contains(text, "\"group\":\"g\uFFFD\"") {
				t.Error(text)
			}
		}
		if name, data := next(), next(); name != "event: enqueued" || !strings.Contains(data, "\"group\":\"g\uFFFD\"") {
			t.Error(name, data)
		}
	})
}

// resultLines are the lines of a session's results, and whether they end as they should.
func (a *api) resultLines(session string) (lines []string, whole bool) {
	a.t.Helper()
	resp, err := a.client.Do(a.request("GET", "/sessions/"+session+"/results", "", "Accept", "application/x-ndjson"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return strings.Fields(string(text)), err == nil
}

func TestAResultIsWrittenAsItIsKept(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
		a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1}]}`)
		a.ends(a.tasksOf("e", a.login("e", 1, ""), 1)[0], `"outcome":"ok","result":`+twice)
		a.want(200, "*", "POST", "/sessions/s/close", "")
		a.holds("result", "GET", "/sessions/s/results", "")
		a.holds("result", "GET", "/sessions/s/tasks/1", "")
		if lines, whole := a.resultLines("s"); !whole || len(lines) != 2 || !strings.Contains(lines[0], `"result":`+twice) {
			t.Errorf("as lines: %q, whole: %t", lines, whole)
		}
	})
}

// What the server keeps may be damaged. No line stands for such a result, or its client
// acknowledges what it did not get.
func TestAResultThatCannotBeWrittenBreaksTheStreamOff(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(201, "*", "POST", "/sessions", `{"id":"s"}`)
		a.want(201, "*", "POST", "/sessions/s/tasks", `{"tasks":[{"seq":1,"payload":1},{"seq":2,"payload":2},{"seq":3,"payload":3}]}`)
		for i, j := range a.tasksOf("e", a.login("e", 3, ""), 3) {
			id, _ := job.ParseID(j["id"].(string))
			token, err := job.ParseToken(j["lease"].(string))
			if err != nil {
				t.Fatal(err)
			}
			one := engine.Settle{ID: id, Token: token, Outcome: job.OK, Result: []byte(strconv.Itoa(i))}
			if i == 1 {
				one.Result = []byte(`{"damaged`)
			}
			if v, err := a.engine.Settle(t.Context(), []engine.Settle{one}); err != nil || v[0].Err != nil {
				t.Fatal(v, err)
			}
		}
		a.want(200, "*", "POST", "/sessions/s/close", "")
		if lines, whole := a.resultLines("s"); whole || len(lines) != 1 || !strings.Contains(lines[0], `"result":0`) {
			t.Errorf("the lines are %q, whole: %t", lines, whole)
		}
		a.want(500, "*", "GET", "/sessions/s/results", "")
	})
}
