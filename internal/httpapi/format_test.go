package httpapi_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/msgpack"
)

const (
	msgpackType = "application/msgpack"
	streamType  = "application/vnd.zizq.msgpack-stream"
)

// packed is JSON as MessagePack, to send.
func packed(t testing.TB, text string) string {
	t.Helper()
	b, err := msgpack.Append(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// unpacked is MessagePack as JSON, to compare.
func unpacked(t testing.TB, msg string) string {
	t.Helper()
	b, err := msgpack.AppendJSON(nil, []byte(msg), 1<<26)
	if err != nil {
		t.Fatalf("%q: %v", msg, err)
	}
	return string(b)
}

func TestFormatsAreNegotiatedFirst(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		const not = `{"error":"not acceptable","supported":["application/json","application/msgpack"],"code":"not_acceptable"}`
		const noJob = `{"error":"job not found","code":"not_found"}`
		for accept, want := range map[string]string{
			"application/json": "application/json", "*/*": "application/json", "application/*": "application/json",
			"text/html, application/json;q=0": "application/json", "text/html,*/*;q=0.8": "application/json",
			"application/msgpack": msgpackType, "application/json, application/msgpack": msgpackType,
			"application/msgpack;q=0.1, */*": msgpackType,
			"text/html":                      "", "text/*": "", "": "", "application/x-msgpack": "", streamType: "", "msgpack": "",
		} {
			for _, path := range []string{"/jobs/" + noID, "/jobs?limit=0", "/nowhere"} {
				got := a.call("GET", path, "", "Accept", accept)
				typ := got.header.Get("Content-Type")
				switch {
				case want == "" && (got.status != 406 || got.body != not || typ != "application/json"):
					t.Errorf("%s, Accept %q: got %d %s %s", path, accept, got.status, typ, got.body)
				case want != "" && (got.status == 406 || typ != want):
					t.Errorf("%s, Accept %q: got %d %s", path, accept, got.status, typ)
				case want == msgpackType && path != "/jobs/"+noID:
				case want == msgpackType && unpacked(t, got.body) != noJob:
					t.Errorf("Accept %q: got %q", accept, got.body)
				}
			}
		}
		r := a.request("GET", "/jobs/"+noID, "", "Accept", "text/html", "Accept", msgpackType) // two lines
		if got := a.do(r); got.status != 404 {
			t.Errorf("the second line of Accept is not read: %d", got.status)
		}
		a.want(406, not, "POST", "/jobs", "{", "Accept", "text/html", "Content-Type", "text/html")
		const media = `{"error":"unsupported media type","supported":["application/json","application/msgpack"],"code":"unsupported_media_type"}`
		for _, typ := range []string{"application/x-www-form-urlencoded", "text/json", "", "application/x-msgpack"} {
			a.want(415, media, "POST", "/jobs", "{", "Content-Type", typ)
			a.want(415, media, "POST", "/jobs", "{", "Content-Type", typ, "Accept", msgpackType)
		}
		a.want(400, "*", "POST", "/jobs", "{", "Content-Type", "application/json; charset=utf-8")
		a.want(400, "*", "POST", "/jobs", "{")
		a.want(405, "", "PUT", "/jobs", "{", "Accept", "text/html")
		const noStream = `{"error":"not acceptable","supported":["text/event-stream","application/x-ndjson","application/vnd.zizq.msgpack-stream"],"code":"not_acceptable"}`
		for _, accept := range []string{"bogus", "", "text/html", "application/x-msgpack"} {
			a.want(406, noStream, "GET", "/jobs/take?nonsense=1", "", "Accept", accept)
		}
	})
}

// TestEveryAnswerIsTheSameInBothFormats compares each call's answer in
// MessagePack with the one in JSON, where repeating the call changes nothing.
func TestEveryAnswerIsTheSameInBothFormats(t *testing.T) {
	a := start(t, httpapi.Options{Version: "v1"})
	id := a.put(`,"retry_limit":2,"backoff":{"exponent":2.5,"base_ms":1,"jitter_ms":0}`)
	for _, c := range []struct{ method, path, sent string }{
		{"GET", "/health", ""},
		{"GET", "/ready", ""},
		{"GET", "/version", ""},
		{"GET", "/queues", ""},
		{"GET", "/jobs", ""},
		{"GET", "/jobs?limit=x", ""},
		{"GET", "/jobs/count", ""},
		{"GET", "/jobs/" + id, ""},
		{"GET", "/jobs/" + id + "/errors", ""},
		{"GET", "/jobs/" + id + "/explain", ""},
		{"GET", "/jobs/" + id + "/errors/1", ""},
		{"GET", "/queues/q", ""},
		{"GET", "/queues/q/groups", ""},
		{"GET", "/dead", ""},
		{"GET", "/dead/groups", ""},
		{"GET", "/replays", ""},
		{"GET", "/audit", ""},
		{"GET", "/policies/preview", ""},
		{"POST", "/jobs", `{"type":"t","queue":"q","payload":1,"priority":65536}`},
		{"POST", "/jobs", `{"type":"t"}`},
		{"POST", "/jobs/success", `{"ids":[]}`},
		{"POST", "/jobs/success", `{"ids":["` + noID + `"]}`},
		{"POST", "/jobs/" + noID + "/failure", `{"message":"m"}`},
		{"POST", "/jobs/settle", `[{"id":"` + noID + `","lease":"0000000000000000000000000000000000000000","outcome":"ok"}]`},
		{"POST", "/jobs/lease", `{"max":0}`},
		{"POST", "/jobs/extend", `{}`},
		{"POST", "/jobs/extend", `{"leases":[{"id":"x"}]}`},
		{"PATCH", "/queues/q", `{"max_jobs":-1}`},
		{"POST", "/dead/replay", `{"nonsense":1}`},
	} {
		plain := a.call(c.method, c.path, c.sent)
		sent := ""
		if c.sent != "" {
			sent = packed(t, c.sent)
		}
		got := a.call(c.method, c.path, sent, "Accept", msgpackType, "Content-Type", msgpackType)
		if got.status != plain.status || got.header.Get("Content-Type") != msgpackType ||
			unpacked(t, got.body) != unpacked(t, packed(t, plain.body)) { // 2.50 as it comes back: 2.5
			t.Errorf("%s %s %s\n got %d %q\nwant %d %s", c.method, c.path, c.sent, got.status, got.body, plain.status, plain.body)
		}
	}
	if got := a.call("DELETE", "/jobs/"+id, "", "Accept", msgpackType); got.status != 204 || got.body != "" {
		t.Errorf("a 204 has a body: %d %q", got.status, got.body)
	}
}

// numbers are what clients' suites send, as JSON that comes back unchanged.
const numbers = `{"exact":9007199254740993,"least":-9223372036854775808,"most":18446744073709551615,"float":1.0,"huge":1e+300,"text":"ü\u0000\u001f<&>"}`

func TestPayloadsCrossFormatsUnchanged(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for _, in := range []string{"json", "msgpack"} {
			for _, out := range []string{"json", "msgpack"} {
				t.Run(in+" in, "+out+" out", func(t *testing.T) {
					body, typ := `{"type":"t","queue":"`+in+out+`","payload":`+numbers+`,"backoff":{"exponent":2.0,"base_ms":1,"jitter_ms":2}}`, "application/json"
					if in == "msgpack" {
						body, typ = packed(t, body), msgpackType
					}
					read := func(got answer) string {
						t.Helper()
						if out == "msgpack" {
							return unpacked(t, got.body)
						}
						return got.body
					}
					accept := map[string]string{"json": "application/json", "msgpack": msgpackType}[out]
					enqueued := a.call("POST", "/jobs", body, "Content-Type", typ, "Accept", accept)
					if text := read(enqueued); enqueued.status != 201 || !strings.Contains(text, `"exponent":2,`) {
						t.Fatalf("%d %s", enqueued.status, text)
					}
					id := object(t, read(enqueued))["id"].(string)
					if text := read(a.call("GET", "/jobs/"+id, "", "Accept", accept)); !strings.Contains(text, `"payload":`+numbers) {
						t.Errorf("got %s\nwant %s", text, numbers)
					}
					if text := read(a.call("GET", "/jobs?queue="+in+out, "", "Accept", accept)); !strings.Contains(text, `"payload":`+numbers) {
						t.Errorf("listed as %s", text)
					}
				})
			}
		}
	})
}

func TestAMessagePackBodyIsRefusedWithItsReason(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 2000})
	for _, c := range []struct {
		sent   string
		status int
		text   string
	}{
		{"", 400, "the body is empty; send a JSON object with type, queue, payload"},
		{"\x81\xa1", 400, "invalid MessagePack: it ends early"},
		{"\xc1", 400, "invalid MessagePack: the byte 0xc1 begins no value"},
		{"{}", 400, "invalid MessagePack: there is more after the first value"}, // 123, 125
		{"\x83\xa4type\xa1t\xa5queue\xa1q\xa7payload\xc4\x01x", 400, "invalid MessagePack: payload: binary data (bin) is not allowed"},
		{"\x81\xa7payload\x91\xd6\xff\x00\x00\x00\x00", 400, "invalid MessagePack: payload[0]: extension types"},
		{"\xdf\xff\xff\xff\xff", 400, "longer than what is left"},
		{packed(t, `{"type":"t","queue":"a,b","payload":null}`), 400, "queue must not contain ','"},
		{packed(t, `[]`), 400, "the job must be an object"},
		{packed(t, `{"type":"t","queue":"q","payload":"`+strings.Repeat(`\u0000`, 400)+`"}`), 413, "larger than 2000 bytes"}, // as JSON
		{strings.Repeat("\xc0", 2001), 413, "larger than 2000 bytes"},
	} {
		got := a.call("POST", "/jobs", c.sent, "Content-Type", msgpackType)
		if got.status != c.status || !strings.Contains(got.body, c.text) || got.header.Get("Content-Type") != "application/json" {
			t.Errorf("%.30q: got %d %s, want %d %s", c.sent, got.status, got.body, c.status, c.text)
		}
	}
	a.want(200, `{"count":0}`, "GET", "/jobs/count", "")
}

// frame reads the next frame of a MessagePack stream, over heartbeats.
func frame(t *testing.T, r io.Reader) string {
	t.Helper()
	for {
		var n uint32
		if err := binary.Read(r, binary.BigEndian, &n); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return unpacked(t, string(b))
		}
	}
}

func TestATakeInEachFormat(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for accept, want := range map[string]string{
			"text/event-stream":                          "text/event-stream",
			"application/msgpack, text/event-stream":     "text/event-stream",
			streamType:                                   streamType,
			"application/json, application/msgpack":      streamType,
			"application/x-ndjson, " + streamType:        streamType,
			"application/json":                           "application/x-ndjson",
			"*/*":                                        "application/x-ndjson",
			"application/*":                              "application/x-ndjson",
			"text/html, application/x-ndjson, image/png": "application/x-ndjson",
		} {
			queue := fmt.Sprintf("q%x", accept)
			r := a.request("GET", "/jobs/take?prefetch=3&queue="+queue, "", "Accept", accept)
			resp, err := a.client.Do(r) // returns with the headers
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != want {
				t.Errorf("Accept %q: got %d %s, want %s", accept, resp.StatusCode, got, want)
			}
			for i := range 3 {
				a.want(201, "*", "POST", "/jobs", fmt.Sprintf(`{"type":"t","queue":"%s","payload":[%d,%s]}`, queue, i, numbers))
			}
			lines := func(n int, prefix string) string {
				t.Helper()
				text := ""
				for range n {
					var one bytes.Buffer
					for b := make([]byte, 1); !strings.HasSuffix(one.String(), "\n"); one.Write(b) {
						if _, err := io.ReadFull(resp.Body, b); err != nil {
							t.Fatal(err)
						}
					}
					text += one.String()
				}
				rest, ok := strings.CutPrefix(text, prefix)
				if !ok {
					t.Errorf("%q does not begin with %q", text, prefix)
				}
				return rest
			}
			for i := range 3 {
				var got string
				switch want {
				case streamType:
					got = frame(t, resp.Body)
				case "text/event-stream":
					got = lines(2, "data: ")
					if !strings.HasSuffix(got, "}\n\n") {
						t.Errorf("an event is %q", got)
					}
				default:
					got = lines(1, "")
				}
				if !strings.Contains(got, fmt.Sprintf(`"payload":[%d,%s]`, i, numbers)) || object(t, got)["status"] != "in_flight" {
					t.Errorf("Accept %q: job %d is %s", accept, i, got)
				}
			}
		}
	})
}

func TestHeartbeatsOfEachFormat(t *testing.T) {
	for accept, beat := range map[string]string{
		"application/x-ndjson": "\n", streamType: "\x00\x00\x00\x00", "text/event-stream": ": heartbeat\n\n",
	} {
		t.Run(accept, func(t *testing.T) {
			a := start(t, httpapi.Options{Heartbeat: 10 * time.Millisecond})
			resp, err := a.client.Do(a.request(http.MethodGet, "/jobs/take", "", "Accept", accept))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			got := make([]byte, 3*len(beat))
			if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != strings.Repeat(beat, 3) {
				t.Errorf("three heartbeats are %q, %v", got, err)
			}
		})
	}
}
