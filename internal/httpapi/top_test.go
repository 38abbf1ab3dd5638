package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// topFrame is a frame as `zizq top` reads it.
type topFrame struct {
	Event  string `json:"event"`
	Server struct {
		Version   string `json:"version"`
		Uptime    *int64 `json:"uptime_ms"`
		Tier      string `json:"tier"`
		Ready     *int64 `json:"total_ready"`
		InFlight  *int64 `json:"total_in_flight"`
		Scheduled *int64 `json:"total_scheduled"`
		Limit     *int64 `json:"subscription_limit"`
	} `json:"server"`
	Ready     *topWindow      `json:"ready"`
	InFlight  *topWindow      `json:"in_flight"`
	Scheduled *topWindow      `json:"scheduled"`
	ID        string          `json:"id"`
	Status    string          `json:"status"`
	Job       json.RawMessage `json:"job"`
	List      string          `json:"list"`
	Matched   *int64          `json:"matched_position"`
	Window    *topWindow      `json:"window"`
}

type topWindow struct {
	Items []map[string]any `json:"items"`
	First int64            `json:"first_position"`
	Total int64            `json:"total"`
}

func (w *topWindow) types() string {
	var names []string
	for _, item := range w.Items {
		names = append(names, item["job_type"].(string))
	}
	return fmt.Sprint(w.First, "/", w.Total, " ", strings.Join(names, " "))
}

// top is a client that follows the frames of Zizq's admin API.
type top struct {
	t *testing.T
	c *websocket.Conn
}

// read waits a minute at most.
func (w *top) read() (websocket.MessageType, []byte, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	return w.c.Read(ctx)
}

func (a *api) dial(header ...string) (*websocket.Conn, *http.Response, error) {
	o := &websocket.DialOptions{HTTPHeader: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		o.HTTPHeader.Add(header[i], header[i+1])
	}
	return websocket.Dial(a.t.Context(), a.url+"/events", o)
}

func watchTop(t *testing.T, a *api, header ...string) *top {
	t.Helper()
	c, _, err := a.dial(header...) //nolint:bodyclose // see dial
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(16 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &top{t, c}
}

// next is the next frame that is no heartbeat, unless that is asked for.
func (w *top) next(events ...string) topFrame {
	w.t.Helper()
	for {
		kind, text, err := w.read()
		if err != nil {
			w.t.Fatal(err)
		}
		var f topFrame
		if err := json.Unmarshal(text, &f); err != nil || kind != websocket.MessageText {
			w.t.Fatalf("%s: %v", text, err)
		}
		s := f.Server
		if s.Version == "" || s.Tier == "" || s.Uptime == nil || s.Ready == nil || s.InFlight == nil || s.Scheduled == nil || s.Limit != nil {
			w.t.Fatalf("the server's part of %s", text)
		}
		if slices.Contains(events, f.Event) || len(events) == 0 && f.Event != "heartbeat" {
			return f
		}
	}
}

func (w *top) says(text string) {
	w.t.Helper()
	if err := w.c.Write(w.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// until reads snapshots until one is as it should be.
func (w *top) until(is func(f topFrame) bool) topFrame {
	w.t.Helper()
	for {
		if f := w.next("job_snapshot"); is(f) {
			return f
		}
	}
}

func (a *api) putAs(kind, more string) string {
	a.t.Helper()
	got := a.call("POST", "/jobs", `{"queue":"q","payload":{"n":1},"type":"`+kind+`"`+more+`}`)
	if got.status != 201 {
		a.t.Fatal(got.body)
	}
	var j struct{ ID string }
	if err := json.Unmarshal([]byte(got.body), &j); err != nil {
		a.t.Fatal(err)
	}
	return j.ID
}

func TestTopSeesTheThreeLists(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.putAs("out", `,"priority":0`)
	out := a.take("?prefetch=1").next()["id"].(string)
	a.putAs("last", `,"priority":65535`)
	a.putAs("second", "")
	a.putAs("first", `,"priority":1`)
	a.putAs("later", `,"ready_at":4000000000000`)
	a.putAs("sooner", `,"ready_at":3900000000000`)
	w := watchTop(t, a)
	f := w.next()
	if f.Event != "job_snapshot" || *f.Server.Ready != 3 || *f.Server.InFlight != 1 || *f.Server.Scheduled != 2 || f.Server.Version != "0.7.0" {
		t.Fatalf("%+v", f)
	}
	for _, c := range []struct {
		got  *topWindow
		want string
	}{
		{f.Ready, "0/3 first second last"}, {f.InFlight, "0/1 out"}, {f.Scheduled, "0/2 sooner later"},
	} {
		if c.got.types() != c.want {
			t.Errorf("got %s, want %s", c.got.types(), c.want)
		}
	}
	item := f.InFlight.Items[0]
	for _, name := range []string{"id", "queue", "job_type", "priority", "ready_at", "attempts", "dequeued_at"} {
		if _, there := item[name]; !there {
			t.Errorf("the row has no %s: %v", name, item)
		}
	}
	if len(item) != 7 {
		t.Errorf("a row without detail has more: %v", item)
	}

	id := a.putAs("fresh", "")
	if f = w.next(); f.Event != "job_changed" || f.Status != "ready" || f.ID != id || f.Job == nil {
		t.Fatalf("%+v", f)
	}
	if f = w.next(); f.Event != "job_snapshot" || f.Ready.types() != "0/4 first second fresh last" {
		t.Fatalf("%+v", f)
	}
	a.want(200, "*", "POST", "/jobs/"+out+"/failure", `{"message":"m","kill":true}`)
	for _, status := range []string{"in_flight_removed", "dead"} {
		for f = w.next("job_changed"); f.ID != out; { // the stream has room, and takes the next job
			f = w.next("job_changed")
		}
		if f.Status != status {
			t.Fatalf("%+v", f)
		}
	}
	w.until(func(f topFrame) bool { return f.InFlight.types() == "0/1 first" && *f.Server.InFlight == 1 })
	w.next("heartbeat")
}

func TestAWindowOfTopMoves(t *testing.T) {
	a := start(t, httpapi.Options{})
	var ids []string
	for i := range 30 {
		ids = append(ids, a.putAs(fmt.Sprintf("t%02d", i), ""))
	}
	w := watchTop(t, a)
	w.next()
	for _, c := range []struct{ anchor, limit, want string }{
		{`{"kind":"offset","offset":7}`, "3", "7/30 t07 t08 t09"},
		{`{"kind":"offset","offset":29}`, "3", "27/30 t27 t28 t29"},
		{`{"kind":"offset","offset":999999999999}`, "2", "28/30 t28 t29"},
		{`{"kind":"tail"}`, "2", "28/30 t28 t29"},
		{`{"kind":"head"}`, "1", "0/30 t00"},
		{`{"kind":"head"}`, "0", "0/30 "},
		{`{"kind":"around","id":"` + ids[10] + `"}`, "4", "8/30 t08 t09 t10 t11"},
		{`{"kind":"around","id":"` + noID + `"}`, "4", "0/30 "},
		{`{"kind":"around","id":"` + noID + `","fallback":"tail"}`, "1", "29/30 t29"},
		{`{"kind":"around","id":"` + ids[0] + `"}`, "2", "0/30 t00 t01"},
	} {
		w.says(`{"type":"subscribe","list":"ready","anchor":` + c.anchor + `,"limit":` + c.limit + `}`)
		if f := w.next(); f.Event != "job_snapshot" || f.Ready.types() != c.want {
			t.Errorf("%s: got %s %s, want %s", c.anchor, f.Event, f.Ready.types(), c.want)
		}
	}
	for _, c := range []struct{ direction, anchor, query, want string }{
		{"forward", `{"kind":"start"}`, `{"queues":[],"types":["t1"]}`, "10 9/30 t09 t10"},
		{"forward", `{"kind":"job_id","id":"` + ids[10] + `"}`, `{"queues":[],"types":["t1"]}`, "11 10/30 t10 t11"},
		{"backward", `{"kind":"job_id","id":"` + ids[10] + `"}`, `{"queues":["q"],"types":["9"]}`, "9 8/30 t08 t09"},
		{"backward", `{"kind":"end"}`, `{"queues":[],"types":["0"]}`, "20 19/30 t19 t20"},
		{"locate", `{"kind":"job_id","id":"` + ids[10] + `"}`, `{"queues":[],"types":[]}`, "10 9/30 t09 t10"},
		{"forward", `{"kind":"start"}`, `{"queues":["else"],"types":[]}`, "none 9/30 t09 t10"},
		{"backward", `{"kind":"job_id","id":"` + ids[0] + `"}`, `{"queues":["q"],"types":[]}`, "none 9/30 t09 t10"},
	} {
		w.says(`{"type":"find","list":"ready","anchor":` + c.anchor + `,"direction":"` + c.direction + `","query":` + c.query + `,"limit":2}`)
		f := w.next("find_result")
		got := "none"
		if f.Matched != nil {
			got = fmt.Sprint(*f.Matched)
		}
		if got += " " + f.Window.types(); got != c.want || f.List != "ready" {
			t.Errorf("%s %s %s: got %s, want %s", c.direction, c.anchor, c.query, got, c.want)
		}
	}
	// The window stays where the last find left it, and only what became of jobs is told.
	a.want(204, "", "DELETE", "/jobs/"+ids[9], "")
	w.until(func(f topFrame) bool { return f.Ready.types() == "9/29 t10 t11" })
}

func TestTopShowsDetailAndDeletes(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := a.putAs("t", `,"retry_limit":3,"backoff":{"exponent":2,"base_ms":1,"jitter_ms":2},"retention":{"dead_ms":5},"unique_key":"k"`)
	w := watchTop(t, a)
	w.next()
	w.says(`{"type":"set_detail_level","detail":true}`)
	item := w.next().Ready.Items[0]
	for name, want := range map[string]string{
		"payload": `map[n:1]`, "retry_limit": "3", "retention": "map[dead_ms:5]", "unique_key": "k", "unique_while": "queued",
		"backoff": "map[base_ms:1 exponent:2 jitter_ms:2]",
	} {
		if got := fmt.Sprint(item[name]); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	w.says(`{"type":"set_detail_level","detail":false}`)
	if item = w.next().Ready.Items[0]; item["payload"] != nil {
		t.Errorf("%v", item)
	}
	w.says(`{"type":"delete_job","id":"` + noID + `"}`) // nothing is said
	w.says(`{"type":"delete_job","id":"` + id + `"}`)
	w.until(func(f topFrame) bool { return f.Ready.types() == "0/0 " })
	a.want(404, "*", "GET", "/jobs/"+id, "")
}

func TestAMessageThatTopCannotMeanIsRefused(t *testing.T) {
	a := start(t, httpapi.Options{})
	for text, reason := range map[string]string{
		`{`:                                  "invalid JSON",
		`{"type":"nope"}`:                    `type "nope" is none of subscribe, set_detail_level, delete_job, find`,
		`{"type":"subscribe","list":"dead"}`: `list "dead" is none of ready, in_flight, scheduled`,
		`{"type":"subscribe","list":"ready","anchor":{"kind":"x"}}`:                                         `anchor.kind "x" is none of around, offset, head, tail`,
		`{"type":"subscribe","list":"ready","anchor":{"kind":"around","id":"x"}}`:                           "anchor.id must be",
		`{"type":"subscribe","list":"ready","anchor":{"kind":"around","id":"` + noID + `","fallback":"x"}}`: "anchor.fallback",
		`{"type":"find","list":"ready","direction":"up","anchor":{"kind":"start"}}`:                         "direction",
		`{"type":"find","list":"ready","direction":"forward","anchor":{"kind":"head"}}`:                     "anchor.kind",
		`{"type":"delete_job","id":"x"}`:                                                                    "id must be",
	} {
		w := watchTop(t, a)
		w.next()
		w.says(text)
		for err := error(nil); err == nil; {
			_, _, err = w.read()
			if end := new(websocket.CloseError); err != nil && (!asClose(err, end) || !strings.Contains(end.Reason, reason) || end.Code != websocket.StatusPolicyViolation) {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

func TestTopIsForThoseWhoMayRead(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, h := range [][]string{{"Origin", "http://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		if _, resp, err := a.dial(h...); err == nil || resp.StatusCode != 403 { //nolint:bodyclose // see dial
			t.Errorf("%v: %v", h, err)
		}
	}
	id := a.putAs("t", "")
	root := a.token("", `{"name":"root","scopes":["admin"]}`)
	work := a.token(root, `{"name":"work","scopes":["work"]}`)
	some := a.token(root, `{"name":"some","scopes":["read"],"queues":["q"]}`)
	read := a.token(root, `{"name":"read","scopes":["read"]}`)
	for text, status := range map[string]int{"": 401, work: 403, some: 403} {
		h := []string(nil)
		if text != "" {
			h = bearer(text)
		}
		if _, resp, err := a.dial(h...); err == nil || resp.StatusCode != status { //nolint:bodyclose // see dial
			t.Errorf("%d: %v", status, err)
		}
	}
	for _, path := range []string{"/events", "/events?queue=q", "/events?queue=other"} {
		got := a.call("GET", path, "", append(bearer(some), "Connection", "Upgrade", "Upgrade", "websocket")...)
		want := `the token \"some\" is for the queues q, and a WebSocket shows all; GET /events without a WebSocket has ?queue=`
		if got.status != 403 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	w := watchTop(t, a, bearer(read)...)
	w.next()
	w.says(`{"type":"delete_job","id":"` + id + `"}`)
	w.says(`{"type":"subscribe","list":"ready","anchor":{"kind":"head"}}`)
	if f := w.next(); f.Ready.types() != "0/1 t" {
		t.Errorf("a token that only reads deleted the job: %s", f.Ready.types())
	}
	a.want(204, "", "DELETE", "/tokens/"+read[3:13], "", bearer(root)...)
	for err := error(nil); err == nil; {
		if _, _, err = w.read(); errors.Is(err, context.DeadlineExceeded) {
			t.Error("a revoked token watches on")
		}
	}
}

func TestWatchersAreBounded(t *testing.T) {
	a := start(t, httpapi.Options{})
	full := func(watch int, header ...string) {
		t.Helper()
		for range watch {
			watchTop(t, a, header...).next()
		}
		_, resp, err := a.dial(header...) //nolint:bodyclose // see dial
		if err == nil || resp.StatusCode != 503 {
			t.Fatalf("one more than %d: %v", watch, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(body), "at most 16, and 8 with one token or, without tokens, from one address") {
			t.Errorf("one more than %d: %s, %v", watch, body, err)
		}
	}
	full(8)
	root := a.token("", adminToken)
	a.eventually("who came without a token is gone", func() bool { return httpapi.PlacesTaken(a.handler) == 0 })
	one, two := a.token(root, `{"name":"one","scopes":["read"]}`), a.token(root, `{"name":"two","scopes":["read"]}`)
	full(8, bearer(one)...)
	full(8, bearer(two)...)
	full(0, bearer(root)...)
}

func TestAWatcherThatTakesNothingIsCutOff(t *testing.T) {
	a := start(t, httpapi.Options{Watch: httpapi.Watch{Most: 1, Within: time.Millisecond}})
	w := watchTop(t, a)
	w.next()
	w.says(`{"type":"set_detail_level","detail":true}`) // and reads nothing any more
	a.call("POST", "/jobs", `{"type":"t","queue":"q","payload":"`+strings.Repeat("x", 1_000_000)+`"}`)
	a.eventually("there is room for another watcher", func() bool {
		a.putAs("another", "") // so that the next look finds something to send
		c, _, err := a.dial()  //nolint:bodyclose // see dial
		if err == nil {
			_ = c.CloseNow()
		}
		return err == nil
	})
}

func asClose(err error, end *websocket.CloseError) bool { return errors.As(err, end) }
