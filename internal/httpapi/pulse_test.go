package httpapi_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// Over HTTP/1.1 heartbeats go past net/http to the socket, so both must leave
// whole chunks to each other.
func TestHeartbeatsAndJobsDoNotMix(t *testing.T) {
	bothProtocols(t, httpapi.Options{Heartbeat: time.Millisecond}, func(t *testing.T, a *api) {
		resp, err := a.client.Do(a.request(http.MethodGet, "/jobs/take?prefetch=0", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewScanner(resp.Body)
		beats, want := 0, 0
		for round := range 40 {
			const burst = 20
			body := strings.TrimSuffix(strings.Repeat(`{"type":"t","queue":"q","payload":"`+strings.Repeat("x", 40*round)+`"},`, burst), ",")
			a.want(201, "*", "POST", "/jobs/bulk", `{"jobs":[`+body+`]}`)
			for want += burst; want > 0 && lines.Scan(); {
				if len(lines.Bytes()) == 0 {
					beats++
					continue
				}
				var got struct {
					Payload string `json:"payload"`
				}
				if err := json.Unmarshal(lines.Bytes(), &got); err != nil || len(got.Payload) != 40*round {
					t.Fatalf("round %d: a line is %q, %v", round, lines.Text(), err)
				}
				want--
			}
			for here := beats; beats < here+2 && lines.Scan(); beats++ {
				if len(lines.Bytes()) > 0 {
					t.Fatalf("after round %d: %q", round, lines.Text())
				}
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAStalledReaderKeepsNoHeartbeatFromOthers(t *testing.T) {
	a := start(t, httpapi.Options{Heartbeat: 5 * time.Millisecond})
	stalled, err := a.client.Do(a.request(http.MethodGet, "/jobs/take?prefetch=0&queue=big", "")) // and nobody reads it
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stalled.Body.Close() }()
	for range 4 { // more than the buffers of a connection hold
		a.want(201, "*", "POST", "/jobs", `{"type":"t","queue":"big","payload":"`+strings.Repeat("x", 8<<20)+`"}`)
	}
	resp, err := a.client.Do(a.request(http.MethodGet, "/jobs/take?queue=small", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for lines, beats := bufio.NewScanner(resp.Body), 0; beats < 20; beats++ {
		if !lines.Scan() || lines.Text() != "" {
			t.Fatalf("%d heartbeats, then %q, %v", beats, lines.Text(), lines.Err())
		}
	}
}

func TestNoHeartbeatFollowsTheEndOfATake(t *testing.T) {
	a := start(t, httpapi.Options{Heartbeat: time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	get := func(path string) (status int, body []byte) {
		t.Helper()
		if _, err := conn.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s answers %v", path, err)
		}
		if path == "/jobs/take" {
			if err := a.engine.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		defer func() { _ = resp.Body.Close() }()
		if body, err = io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body
	}
	if _, body := get("/jobs/take"); strings.Trim(string(body), "\n") != "" {
		t.Errorf("a take without jobs sends %q", body)
	}
	for range 100 { // a heartbeat in between would be no answer
		if status, body := get("/version"); status != 200 || !json.Valid(body) {
			t.Fatalf("then comes %d %q", status, body)
		}
	}
}
