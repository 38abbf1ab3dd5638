package ship

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

func newES(t *testing.T, address string, change func(*ESOptions)) *ES {
	t.Helper()
	o := DefaultES()
	o.Now = func() time.Time { return time.Date(2026, 11, 23, 1, 2, 3, 0, time.FixedZone("", 7200)) }
	at(t, &o.Target, address)
	if change != nil {
		change(&o)
	}
	s, err := NewES(o)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	return s
}

// items is a whole answer of these items.
func items(list ...string) string {
	return `{"took":3,"errors":true,"ingest_took":0,"items":[` + strings.Join(list, ",") + `]}`
}

// did is an item with a status, and an error if there is one.
func did(status int, kind, reason string) string {
	if kind == "" {
		return fmt.Sprintf(`{"create":{"_index":"fluent-bit","_id":"a\"status\":9","_shards":{"total":2},"status":%d}}`, status)
	}
	return fmt.Sprintf(`{"create":{"status":%d,"error":{"type":%q,"reason":%q,"caused_by":{"type":"x","reason":"why"}}}}`, status, kind, reason)
}

const when = 1448403340 // 2015-11-24T22:15:40Z

func TestDocumentsAreThoseOfTheOriginal(t *testing.T) {
	const action, document = `{"create":{"_index":"fluent-bit","_type":"_doc"}}`, `{"@timestamp":"2015-11-24T22:15:40.000Z","k":"v"}`
	for _, c := range []struct {
		change func(*ESOptions)
		body   string
		want   string
	}{
		{nil, `{"k":"v"}`, action + "\n" + document + "\n"},
		{func(o *ESOptions) { o.LogstashFormat = true }, `{"k":"v"}`, `{"create":{"_index":"logstash-2015.11.24","_type":"_doc"}}` + "\n" + document + "\n"},
		{func(o *ESOptions) {
			o.LogstashFormat, o.CurrentTimeIndex, o.LogstashPrefix, o.LogstashSeparator = true, true, "l", "_"
		}, `{"k":"v"}`, `{"create":{"_index":"l_2026.11.22","_type":"_doc"}}` + "\n" + document + "\n"},
		{
			func(o *ESOptions) { o.LogstashFormat, o.LogstashPrefixKey, o.TimeKeyNanos = true, "$k['n']", true }, `{"k":{"n":"x\"}}\n"}}`,
			`{"create":{"_index":"x\"}}\n-2015.11.24","_type":"_doc"}}` + "\n" + `{"@timestamp":"2015-11-24T22:15:40.000000000Z","k":{"n":"x\"}}\n"}}` + "\n",
		},
		{func(o *ESOptions) { o.LogstashFormat, o.LogstashPrefixKey = true, "none" }, `{"k":"v"}`, `{"create":{"_index":"logstash-2015.11.24","_type":"_doc"}}` + "\n" + document + "\n"},
		{func(o *ESOptions) { o.SuppressType, o.Index = true, "logs-%Y.%m.%d" }, `{"k":"v"}`, `{"create":{"_index":"logs-2026.11.22"}}` + "\n" + document + "\n"},
		{func(o *ESOptions) { o.WriteOperation, o.IDKey, o.Type = "index", "$a['id']", "t" }, `{"a":{"id":"é1"}}`, `{"index":{"_index":"fluent-bit","_type":"t","_id":"é1"}}` + "\n" + `{"@timestamp":"2015-11-24T22:15:40.000Z","a":{"id":"\u00e91"}}` + "\n"},
		{func(o *ESOptions) { o.IDKey = "id" }, `{"id":"a\"},{"}`, action + "\n" + `{"@timestamp":"2015-11-24T22:15:40.000Z","id":"a\"},{"}` + "\n"},
		{func(o *ESOptions) { o.WriteOperation, o.IDKey = "update", "k" }, `{"k":"v"}`, `{"update":{"_index":"fluent-bit","_type":"_doc","_id":"v"}}` + "\n" + `{"doc":` + document + "}\n"},
		{func(o *ESOptions) { o.WriteOperation, o.IDKey = "upsert", "k" }, `{"k":"v"}`, `{"update":{"_index":"fluent-bit","_type":"_doc","_id":"v"}}` + "\n" + `{"doc_as_upsert":true,"doc":` + document + "}\n"},
		{func(o *ESOptions) { o.IncludeTag, o.TimeKey, o.TimeKeyFormat = true, "t", "%s" }, `{"t":"mine","flb-key":1,"k":"v"}`, action + "\n" + `{"t":"1448403340.000Z","flb-key":"app.web","k":"v"}` + "\n"},
		{
			func(o *ESOptions) { o.ReplaceDots, o.EscapeUnicode = true, false }, `{"a.b":{"c.d":[{"e.f.g":"h.i"}]},"@timestamp":1,"ü":"ö"}`,
			action + "\n" + `{"@timestamp":"2015-11-24T22:15:40.000Z","a_b":{"c_d":[{"e_f_g":"h.i"}]},"ü":"ö"}` + "\n",
		},
	} {
		for _, compress := range []string{"", "gzip"} {
			x := newServer(t, answerWith(200, items(did(201, "", ""))))
			s := newES(t, x.Listener.Addr().String(), func(o *ESOptions) {
				if o.Compress = compress; c.change != nil {
					c.change(o)
				}
			})
			events := record.AppendEvent(nil, record.Time{Sec: when}, nil, object(t, c.body))
			whole(t, c.want, deliver(t.Context(), s, events), job.OK, "")
			r, body := x.last()
			if body != c.want || r.RequestURI != "/_bulk" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-ndjson" || r.UserAgent() != "Fluent-Bit" {
				t.Errorf("%s %s %v:\n%s\nwant\n%s", r.Method, r.RequestURI, r.Header, body, c.want)
			}
		}
	}
}

func TestMurmur3(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"":                                     {0xf02aa77dfa1b8523, 0xd1016610da11cbb9},
		"a":                                    {0x28259ca4fdf626b0, 0x25ebca9125f82b15},
		"hello, world":                         {0xb91864d797caa956, 0xd5d139a55afe6150},
		"0123456789abcdef":                     {0x818ea26bed3cb2a4, 0xf604d245f9269fde},
		strings.Repeat("0123456789abcdefg", 3): {0x615fcd90050d3bea, 0xa4eb3233c357eded},
	} {
		if h1, h2 := murmur3([]byte(text), 42); h1 != want[0] || h2 != want[1] {
			t.Errorf("%q: %x %x", text, h1, h2)
		}
	}
	if id := string(appendUUID(nil, []byte("hello, world"))); id != "a95697ca-64d7-b918-6150-5afe39a5d5d1" { // 16 bits each, the low ones first
		t.Error(id)
	}
}

func TestEqualDocumentsHaveOneID(t *testing.T) {
	x := newServer(t, answerWith(200, items(did(201, "", ""), did(409, "version_conflict_engine_exception", "exists"), did(201, "", ""))))
	s := newES(t, x.Listener.Addr().String(), func(o *ESOptions) { o.GenerateID, o.WriteOperation = true, "create" })
	same := record.AppendEvent(nil, record.Time{Sec: when}, nil, object(t, `{"a":1}`))
	events := append(append(same, same...), record.AppendEvent(nil, record.Time{Sec: when + 1}, nil, object(t, `{"a":1}`))...)
	whole(t, "409 on create", deliver(t.Context(), s, events), job.OK, "")
	_, body := x.last()
	lines := strings.Split(body, "\n")
	if lines[0] != lines[2] || lines[0] == lines[4] || !strings.Contains(lines[0], `"_id":"`) {
		t.Error(body)
	}
}

func TestEachItemHasItsOutcome(t *testing.T) {
	const mapping, busy = "mapper_parsing_exception", "es_rejected_execution_exception"
	five := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`}
	for _, c := range []struct {
		name    string
		answer  string
		outcome job.Outcome
		rest    string
		pieces  []string
		text    string // in the failure
	}{
		{"no errors", strings.Replace(items(did(201, "", ""), did(200, "", ""), did(201, "", ""), did(201, "", ""), did(201, "", "")), "true", "false", 1), job.OK, "", nil, ""},
		{"all 409", items(did(409, "v", "r"), did(409, "v", "r"), did(409, "v", "r"), did(409, "v", "r"), did(409, "", "")), job.OK, "", nil, ""},
		{"201 and 409", items(did(201, "", ""), did(409, "v", "r"), did(201, "", ""), did(409, "v", "r"), did(201, "", "")), job.OK, "", nil, ""},
		{"201 and 429", items(did(201, "", ""), did(429, busy, "queue full"), did(201, "", ""), did(429, busy, "queue full"), did(201, "", "")), job.Retried, `{"n":1} {"n":3}`, nil, "2 of the records are left: queue full: why"},
		{"201 and 5xx", items(did(503, "unavailable_shards_exception", "r"), did(201, "", ""), did(201, "", ""), did(201, "", ""), did(500, "", "")), job.Retried, `{"n":0} {"n":4}`, nil, "r: why"},
		{
			"201 and 400", items(did(201, "", ""), did(400, mapping, "field [k] with id 'a1'. Preview: 'x'"), did(400, mapping, "field [k] with id 'b2'. Preview: 'y'"), did(404, "index_not_found_exception", "none"), did(201, "", "")), job.OK, "",
			[]string{`{"n":1} {"n":2}`, `{"n":3}`},
			"",
		},
		{"all kinds", items(did(201, "", ""), did(400, mapping, "field"), did(429, busy, "full"), did(409, "v", "r"), `{"create":{"error":{}}}`), job.Retried, `{"n":2} {"n":4}`, []string{`{"n":1}`}, "full"},
		{"all 429", items(did(429, busy, "full"), did(429, busy, "full"), did(429, busy, "full"), did(429, busy, "full"), did(429, busy, "full")), job.Retried, "", nil, "full: why"},
		{"all 400", items(did(400, mapping, "m"), did(400, mapping, "m"), did(400, mapping, "m"), did(400, mapping, "m"), did(400, mapping, "m")), job.Died, "", nil, "m: why"},
		{"all 400 of two kinds", items(did(400, mapping, "m"), did(400, mapping, "o"), did(400, mapping, "m"), did(400, mapping, "o"), did(400, mapping, "m")), job.Died, `{"n":0} {"n":2} {"n":4}`, []string{`{"n":1} {"n":3}`}, "m: why"},
		{"old servers", items(did(201, "", ""), `{"create":{"status":400,"error":"MapperParsingException[x]"}}`, did(201, "", ""), did(201, "", ""), did(201, "", "")), job.OK, "", []string{`{"n":1}`}, ""},
		{"odd statuses", items(did(302, "", ""), did(201, "", ""), `{"create":{"status":"201"}}`, `7`, `{"create":{"status":-1}}`), job.Retried, `{"n":0} {"n":2} {"n":3} {"n":4}`, nil, "302"},
	} {
		x := newServer(t, answerWith(200, c.answer))
		s := newES(t, x.Listener.Addr().String(), nil)
		r := deliver(t.Context(), s, chunk(t, five...))
		rest, pieces := "", []connect.Piece(nil)
		if r.Parts != nil {
			rest, pieces = bodiesOf(t, r.Parts.Rest), r.Parts.Pieces
		}
		if r.Outcome != c.outcome || rest != c.rest || len(pieces) != len(c.pieces) || !strings.Contains(r.Failure.Message, c.text) {
			t.Errorf("%s: %+v, %s, %+v", c.name, r, rest, pieces)
			continue
		}
		for i, p := range pieces {
			if bodiesOf(t, p.Body) != c.pieces[i] || p.Outcome != job.Died || p.Failure.Status < 400 || p.Failure.Type == "" || p.Failure.Message == "" {
				t.Errorf("%s: piece %d: %+v", c.name, i, p)
			}
		}
		if c.name == "201 and 400" && (pieces[0].Failure.Type != mapping || pieces[0].Failure.Message != "field [k] with id 'a1'. Preview: 'x': why" || pieces[0].Failure.Status != 400) {
			t.Errorf("%+v", pieces[0].Failure)
		}
	}
	conflict := newES(t, newServer(t, answerWith(200, items(did(409, "v", "r")))).Listener.Addr().String(), func(o *ESOptions) { o.WriteOperation, o.IDKey = "update", "k" })
	whole(t, "409 on update", deliver(t.Context(), conflict, chunk(t, `{"k":"v"}`)), job.Died, "r")
}

func TestAnAnswerThatIsNotWholeSaysNothing(t *testing.T) {
	ok := did(201, "", "")
	good := items(ok, ok)
	for _, text := range []string{
		"", " ", "{}", "[]", "null", "<html>", `{"items":[]}`, `{"items":{}}`, `{"items":null}`, `{"errors":false}`, `{"errors":false,"items":[`,
		items(ok), items(ok, ok, ok), good[:len(good)-1], good[:len(good)-2], good + "x", good + good, good[:40], strings.Replace(good, "3,", "3;", 1),
		`{"items":[` + ok + "," + ok + `],"items":[` + ok + "," + ok + `]}`, `{"items":[` + ok + "," + ok + `,]}`,
		`{"took":"` + strings.Repeat("x", 520<<10) + `","items":[` + ok + "," + ok + "]}",
	} {
		s := newES(t, newServer(t, answerWith(200, text)).Listener.Addr().String(), nil)
		r := deliver(t.Context(), s, chunk(t, `{"a":1}`, `{"a":2}`))
		if whole(t, text[:min(len(text), 60)], r, job.Retried, "the answer cannot be understood: "); r.Failure.Type != connect.TypeAnswer {
			t.Errorf("%+v", r)
		}
	}
	cut := raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good)+1, good), true)
	whole(t, "cut", deliver(t.Context(), newES(t, cut, nil), chunk(t, `{}`, `{}`)), job.Retried, "unexpected EOF")
	slow := raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(good)+1, good), false)
	quick := func(o *ESOptions) { o.ConnectTimeout, o.ResponseTimeout = 50*time.Millisecond, 50*time.Millisecond }
	whole(t, "slow", deliver(t.Context(), newES(t, slow, quick), chunk(t, `{}`, `{}`)), job.Retried, "no answer within 100ms")
	whole(t, "created", deliver(t.Context(), newES(t, newServer(t, answerWith(201, good)).Listener.Addr().String(), nil), chunk(t, `{}`, `{}`)), job.OK, "")
}

func TestARefusedRequestIsNeverTheRecordsFault(t *testing.T) {
	for _, status := range []int{202, 204, 301, 400, 401, 403, 404, 406, 408, 413, 415, 429, 500, 502, 503} {
		x := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			answerWith(status, `{"error":{"reason":"unknown parameter [_type]"}}`)(w, nil)
		})
		s := newES(t, x.Listener.Addr().String(), nil)
		r := deliver(t.Context(), s, chunk(t, `{"n":1}`, `{"n":2}`, `{"n":3}`))
		if status == 413 {
			if r.Outcome != job.Released || bodiesOf(t, r.Parts.Rest) != `{"n":1} {"n":2}` || bodiesOf(t, r.Parts.Pieces[0].Body) != `{"n":3}` {
				t.Errorf("%+v", r)
			}
			whole(t, "413", deliver(t.Context(), s, chunk(t, `{"n":1}`)), job.Died, "413")
			continue
		}
		whole(t, fmt.Sprint(status), r, job.Retried, fmt.Sprint(status))
		if r.Failure.Status != status || r.RetryAfter != 5*job.Second || status != 204 && !strings.Contains(r.Failure.Message, "set suppress_type_name to on") {
			t.Errorf("%+v", r)
		}
	}
}

func TestRecordsWithoutAnIDCannotBeUpdated(t *testing.T) {
	x := newServer(t, answerWith(200, items(did(200, "", ""))))
	s := newES(t, x.Listener.Addr().String(), func(o *ESOptions) { o.WriteOperation, o.IDKey = "upsert", "id" })
	r := deliver(t.Context(), s, chunk(t, `{"id":7}`, `{"id":"a"}`, `{"id":"a\nb"}`, `{"id":""}`, `{}`))
	if r.Outcome != job.OK || len(r.Parts.Pieces) != 1 || bodiesOf(t, r.Parts.Pieces[0].Body) != `{"id":7} {"id":"a\nb"} {"id":""} {}` {
		t.Errorf("%+v", r)
	}
	if _, body := x.last(); strings.Count(body, "\n") != 2 {
		t.Error(body)
	}
	whole(t, "none has one", deliver(t.Context(), s, chunk(t, `{}`, `{}`)), job.Died, "no id in id")
	whole(t, "broken", deliver(t.Context(), s, []byte("\xc1")), job.Died, "broken")
	whole(t, "empty", deliver(t.Context(), s, nil), job.OK, "")
}

func TestManyReasonsMakeFewPieces(t *testing.T) {
	list, bodies := []string{}, []string{}
	for i := range 100 {
		list = append(list, did(400, "t", fmt.Sprintf("reason %d", i)))
		bodies = append(bodies, fmt.Sprintf(`{"n":%d}`, i))
	}
	s := newES(t, newServer(t, answerWith(200, items(list...))).Listener.Addr().String(), nil)
	r := deliver(t.Context(), s, chunk(t, bodies...))
	total, _, _ := record.Count(r.Parts.Rest)
	for _, p := range r.Parts.Pieces {
		n, _, _ := record.Count(p.Body)
		total += n
	}
	if r.Outcome != job.Died || len(r.Parts.Pieces) != groupsMax-1 || total != 100 {
		t.Errorf("%s: %d pieces, %d records", r.Outcome, len(r.Parts.Pieces), total)
	}
}

func TestWaysToReachACluster(t *testing.T) {
	x := newServer(t, answerWith(200, items(did(201, "", ""))))
	s := newES(t, x.Listener.Addr().String(), func(o *ESOptions) { o.Path, o.Pipeline, o.APIKey = "/es/", "a&b", "k==" })
	deliver(t.Context(), s, chunk(t, `{}`))
	if r, _ := x.last(); r.RequestURI != "/es/_bulk?pipeline=a%26b" || r.Header.Get("Authorization") != "ApiKey k==" {
		t.Errorf("%s %v", r.RequestURI, r.Header)
	}
	s = newES(t, x.Listener.Addr().String(), func(o *ESOptions) { o.CloudAuth, o.APIKey = "elastic:pw:1", "k" })
	deliver(t.Context(), s, chunk(t, `{}`))
	r, _ := x.last()
	if user, password, _ := r.BasicAuth(); user != "elastic" || password != "pw:1" {
		t.Error(user, password)
	}
	for text, want := range map[string]string{
		"eu-west-1.aws.found.io$abc$kib":      "https://abc.eu-west-1.aws.found.io:443",
		"eu-west-1.aws.found.io:9243$abc$kib": "https://abc.eu-west-1.aws.found.io:9243",
		"x.io$abc":                            "https://abc.x.io:443",
	} {
		o := DefaultES()
		o.CloudID = "name:" + base64.StdEncoding.EncodeToString([]byte(text))
		if s, err := NewES(o); err != nil || s.base != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	hung := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	whole(t, "no time", deliver(ctx, newES(t, hung.Listener.Addr().String(), nil), chunk(t, `{}`)), job.Released, "")
}

func TestAllThatIsWrongWithESIsToldAtOnce(t *testing.T) {
	o := DefaultES()
	o.Path, o.Compress, o.CloudID, o.CloudAuth, o.APIKey, o.BufferSize = "a?b", "zstd", "name", "user", "a\nb", -1
	o.WriteOperation, o.Index, o.TimeKey, o.LogstashPrefix, o.IncludeTag, o.TagKey = "delete", "", "", "", true, ""
	o.LogstashPrefixKey, o.IDKey, o.ResponseTimeout = "$a['b", "$a[", 0
	_, err := NewES(o)
	want := "[buffer_size cloud_auth cloud_id compress http_api_key id_key index logstash_prefix logstash_prefix_key path tag_key time_key write_operation http.response_timeout]"
	if got := fmt.Sprint(properties(err)); got != want {
		t.Errorf("%s\n%v", got, err)
	}
	for _, operation := range []string{"update", "upsert"} {
		o = DefaultES()
		o.WriteOperation = operation
		if _, err = NewES(o); fmt.Sprint(properties(err)) != "[write_operation]" {
			t.Error(err)
		}
	}
}
