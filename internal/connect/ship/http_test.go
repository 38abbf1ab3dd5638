package ship

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

func TestFormatsAreThoseOfTheOriginal(t *testing.T) {
	for _, c := range []struct {
		change      func(*HTTPOptions)
		contentType string
		want        string
	}{
		{nil, "application/json", `[{"date":1.0,"msg":"hello world"},{"date":2.0,"msg":"hello world"}]`},
		{func(o *HTTPOptions) { o.Format = "json_stream" }, "application/json", `{"date":1.0,"msg":"hello world"}{"date":2.0,"msg":"hello world"}`},
		{func(o *HTTPOptions) { o.Format = "json_lines" }, "application/x-ndjson", `{"date":1.0,"msg":"hello world"}` + "\n" + `{"date":2.0,"msg":"hello world"}` + "\n"},
		{func(o *HTTPOptions) { o.Format, o.DateKey = "json_lines", "False" }, "application/x-ndjson", `{"msg":"hello world"}` + "\n" + `{"msg":"hello world"}` + "\n"},
		{func(o *HTTPOptions) { o.DateKey, o.DateForm = "t", record.ISO8601 }, "application/json", `[{"t":"1970-01-01T00:00:01.000000Z","msg":"hello world"},{"t":"1970-01-01T00:00:02.000000Z","msg":"hello world"}]`},
		{func(o *HTTPOptions) { o.DateForm = record.EpochMillis }, "application/json", `[{"date":1000,"msg":"hello world"},{"date":2000,"msg":"hello world"}]`},
		{func(o *HTTPOptions) { o.Format = "gelf"; o.GELF.ShortMessageKey = "msg" }, "application/json", `{"version":"1.1","short_message":"hello world","timestamp":1.000}{"version":"1.1","short_message":"hello world","timestamp":2.000}`},
		{func(o *HTTPOptions) { o.Format = "msgpack" }, "application/msgpack", string(chunk(t, `{"msg":"hello world"}`, `{"msg":"hello world"}`))},
	} {
		for _, compress := range []string{"", "none", "gzip", "snappy", "zstd"} {
			x := newServer(t, answerWith(200, ""))
			s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) {
				if c.change != nil {
					c.change(o)
				}
				o.URI, o.Compress = "in?a=b", compress
			})
			for range 2 { // with buffers that were used
				whole(t, c.want, deliver(t.Context(), s, chunk(t, `{"msg":"hello world"}`, `{"msg":"hello world"}`)), job.OK, "")
				r, body := x.last()
				if body != c.want || r.Header.Get("Content-Type") != c.contentType || r.Method != http.MethodPost || r.RequestURI != "/in?a=b" || r.ContentLength <= 0 {
					t.Errorf("%s %s of %d bytes, %s: %q", r.Method, r.RequestURI, r.ContentLength, r.Header, body)
				}
				if want := strings.TrimPrefix(compress, "none"); r.Header.Get("Content-Encoding") != want || r.UserAgent() != "Fluent-Bit" {
					t.Errorf("%q: %s", compress, r.Header)
				}
			}
		}
	}
}

func TestGELFFlattensAndNamesFields(t *testing.T) {
	w := gelfWriter{keys: DefaultGELF()}
	text, records, err := w.appendChunk(nil, chunk(t, `{"short_message":"a\"b","host":"h","level":6,"full_message":"f","timestamp":7.5,"version":"x","id":1,"a b":{"c":[1,"x"],"d":{}},"t":true,"n":null,"é":"é"}`))
	want := `{"version":"1.1","short_message":"a\"b","host":"h","level":6,"full_message":"f","timestamp":7.5,"__id":1,"_a_b_c_0":1,"_a_b_c_1":"x","_t":"true","___":"\u00e9"}`
	if string(text) != want || records != 1 || err != nil {
		t.Errorf("%s, %d, %v", text, records, err)
	}
}

func TestHeadersAreThoseOfTheOptions(t *testing.T) {
	x := newServer(t, answerWith(201, ""))
	options := func(duplicates bool) func(*HTTPOptions) {
		return func(o *HTTPOptions) {
			o.Method, o.User, o.Password, o.HeaderTag, o.DuplicatedHeaders = "put", "u", "p:w", "X-Tag", duplicates
			o.Header = [][2]string{{"x-a", "1"}, {"X-A", "2"}, {"content-type", "application/cloudevents-batch+json"}, {"Host", "logs.example.com"}}
		}
	}
	deliver(t.Context(), newHTTP(t, x.Listener.Addr().String(), options(true)), chunk(t, `{}`))
	r, _ := x.last()
	user, password, _ := r.BasicAuth()
	if fmt.Sprint(r.Header["X-A"]) != "[1 2]" || fmt.Sprint(r.Header["Content-Type"]) != "[application/cloudevents-batch+json]" || r.Host != "logs.example.com" ||
		user != "u" || password != "p:w" || r.Header.Get("X-Tag") != "app.web" || r.Method != http.MethodPut {
		t.Errorf("%s to %s: %v", r.Method, r.Host, r.Header)
	}
	deliver(t.Context(), newHTTP(t, x.Listener.Addr().String(), options(false)), chunk(t, `{}`))
	if r, _ = x.last(); fmt.Sprint(r.Header["X-A"]) != "[2]" {
		t.Errorf("the last one counts: %v", r.Header)
	}
}

func TestStatusesAreJudgedByTheTable(t *testing.T) {
	codes, err := ParseCodes("404=retry, 500-501=error 409=OK 413=error")
	if err != nil {
		t.Fatal(err)
	}
	for status := 200; status < 600; status++ {
		want := job.Retried
		switch {
		case status <= 205:
			want = job.OK
		case status == 408 || status == 425 || status == 429:
		case status == 413:
			want = job.Died // of one record
		case status >= 400 && status < 500:
			want = job.Died
		}
		x := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			answerWith(status, "why\nmore")(w, nil)
		})
		s := newHTTP(t, x.Listener.Addr().String(), nil)
		r := deliver(t.Context(), s, chunk(t, `{"a":1}`))
		if r.Outcome != want || r.Parts != nil {
			t.Errorf("%d: %+v", status, r)
		}
		if want != job.OK && (r.Failure.Status != status || r.Failure.Type != fmt.Sprintf("http %d", status) || r.RetryAfter != 7*job.Second) {
			t.Errorf("%d: %+v", status, r)
		}
		if hasBody := status >= 300 && status != 304; hasBody && (r.Failure.Backtrace != "why\nmore" || status >= 400 && !strings.Contains(r.Failure.Message, ": why")) {
			t.Errorf("%d: %+v", status, r)
		}
		switch status {
		case 404:
			want = job.Retried
		case 409:
			want = job.OK
		case 500, 501:
			want = job.Died
		}
		s = newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Codes, o.LogResponsePayload = codes, false })
		if r = deliver(t.Context(), s, chunk(t, `{"a":1}`, `{}`)); r.Outcome != want || strings.Contains(r.Failure.Message+r.Failure.Backtrace, "why") {
			t.Errorf("%d by the codes: %+v", status, r)
		}
	}
	for _, text := range []string{"404", "404=maybe", "99=ok", "500-400=ok", "x=ok", "400-=ok", "600=ok"} {
		if _, err := ParseCodes(text); job.KindOf(err) != job.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoAnswerIsTriedAgain(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = gone.Close()
	quick := func(o *HTTPOptions) { o.ConnectTimeout, o.ResponseTimeout = 50*time.Millisecond, 50*time.Millisecond }
	for _, c := range []struct {
		name, address, text string
		kind                string
		change              func(*HTTPOptions)
	}{
		{"nobody listens", gone.Addr().String(), "connection refused", connect.TypeNetwork, nil},
		{"no such host", "no-such-host.invalid:80", "no-such-host.invalid", connect.TypeNetwork, nil},
		{"hung up at once", raw(t, "", true), "EOF", connect.TypeNetwork, nil},
		{"no HTTP", raw(t, "SSH-2.0-OpenSSH\r\n\r\n", true), "malformed HTTP", connect.TypeNetwork, nil},
		{"a status that is none", raw(t, "HTTP/1.1 9999 X\r\n\r\n", true), "malformed HTTP", connect.TypeNetwork, nil},
		{"a header without end", raw(t, "HTTP/1.1 200 OK\r\nA: "+strings.Repeat("x", 1<<20), true), "", connect.TypeNetwork, nil},
		{"an answer that is cut", raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", true), "the answer broke off", connect.TypeNetwork, nil},
		{"a refusal that is cut", raw(t, "HTTP/1.1 400 Bad\r\nContent-Length: 10\r\n\r\n12345", true), "the answer broke off", connect.TypeNetwork, nil},
		{"a broken chunk", raw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", true), "the answer broke off", connect.TypeNetwork, nil},
		{"a trailer that is cut", raw(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b", true), "the answer broke off", connect.TypeNetwork, nil},
		{"silence", raw(t, "", false), "no answer within 100ms", connect.TypeTimeout, quick},
		{"only 1xx", raw(t, "HTTP/1.1 103 Early Hints\r\n\r\n", false), "no answer within 100ms", connect.TypeTimeout, quick},
		{"half a header", raw(t, "HTTP/1.1 200 OK\r\nCont", false), "no answer within 100ms", connect.TypeTimeout, quick},
		{"half a body", raw(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345", false), "no answer within 100ms", connect.TypeTimeout, quick},
		{"no TLS there", newServer(t, answerWith(200, "")).Listener.Addr().String(), "HTTP response to HTTPS client", connect.TypeNetwork, func(o *HTTPOptions) { o.TLS.On = true }},
	} {
		r := deliver(t.Context(), newHTTP(t, c.address, c.change), chunk(t, `{"a":1}`, `{"a":2}`))
		whole(t, c.name, r, job.Retried, c.text)
		if r.Failure.Type != c.kind || r.Failure.Timeout != (c.kind == connect.TypeTimeout) || r.Failure.Status != 0 {
			t.Errorf("%s: %+v", c.name, r.Failure)
		}
	}
	switching := deliver(t.Context(), newHTTP(t, raw(t, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", true), nil), chunk(t, `{}`))
	whole(t, "101", switching, job.Retried, "101")
}

func TestAnAnswerWithoutLengthOrOfAnyLengthCounts(t *testing.T) {
	whole(t, "until the end", deliver(t.Context(), newHTTP(t, raw(t, "HTTP/1.0 200 OK\r\n\r\nthanks", true), nil), chunk(t, `{}`)), job.OK, "")
	endless := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("x", 4096)); err != nil {
				return
			}
		}
	})
	whole(t, "endless", deliver(t.Context(), newHTTP(t, endless.Listener.Addr().String(), nil), chunk(t, `{}`)), job.OK, "")
}

func TestWhoseTimeIsOverBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	x := newServer(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if r := deliver(ctx, newHTTP(t, x.Listener.Addr().String(), nil), chunk(t, `{}`)); r != (connect.Result{Outcome: job.Released}) {
		t.Errorf("%+v", r)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	second := newServer(t, answerWith(200, ""))
	for _, status := range []int{301, 302, 303, 307, 308} {
		first := newServer(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, second.URL, status) })
		r := deliver(t.Context(), newHTTP(t, first.Listener.Addr().String(), nil), chunk(t, `{}`))
		whole(t, "redirect", r, job.Retried, "redirects are not followed: "+second.URL)
	}
	if second.count() > 0 {
		t.Error("the other server was called")
	}
}

func TestAChunkThatIsTooLargeComesInHalves(t *testing.T) {
	const most = 100
	var x *server
	x = newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, body := x.last(); len(body) > most {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	})
	s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Format, o.DateKey = "json_lines", "" })
	var delivered, dead []string
	var try func(events []byte)
	try = func(events []byte) {
		switch r := deliver(t.Context(), s, events); r.Outcome {
		case job.OK:
			delivered = append(delivered, bodiesOf(t, events))
		case job.Died:
			dead = append(dead, bodiesOf(t, events))
			if r.Parts != nil || r.Failure.Status != 413 {
				t.Errorf("%+v", r)
			}
		case job.Released:
			if len(r.Parts.Pieces) != 1 || r.Parts.Pieces[0].Outcome != job.Released || r.Failure != (job.Failure{}) {
				t.Fatalf("%+v", r)
			}
			try(r.Parts.Rest)
			try(r.Parts.Pieces[0].Body)
		default:
			t.Fatalf("%+v", r)
		}
	}
	big := `{"n":2,"pad":"` + strings.Repeat("x", 200) + `"}`
	try(chunk(t, `{"n":0}`, `{"n":1}`, big, `{"n":3}`, `{"n":4}`))
	if got := strings.Join(delivered, "|"); strings.ReplaceAll(got, "|", " ") != `{"n":0} {"n":1} {"n":3} {"n":4}` || len(dead) != 1 || dead[0] != big {
		t.Errorf("delivered %s, dead %v", got, dead)
	}
}

func TestABrokenChunkIsSentAsFarAsItIsWhole(t *testing.T) {
	x := newServer(t, answerWith(200, ""))
	good := chunk(t, `{"a":1}`)
	for _, format := range []string{"json", "gelf", "msgpack"} {
		s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Format = format })
		r := deliver(t.Context(), s, append(good[:len(good):len(good)], 0xc1, 0xc1))
		if r.Outcome != job.Released || string(r.Parts.Rest) != string(good) || string(r.Parts.Pieces[0].Body) != "\xc1\xc1" ||
			r.Parts.Pieces[0].Outcome != job.Died || r.Parts.Pieces[0].Failure.Type != connect.TypeRecord {
			t.Errorf("%s: %+v", format, r)
		}
		whole(t, format, deliver(t.Context(), s, []byte{0xc1}), job.Died, "the chunk is broken: byte 0")
		whole(t, format, deliver(t.Context(), s, nil), job.OK, "")
	}
	if x.count() > 0 {
		t.Error("something was sent")
	}
}

// byRecord answers by the field "n" of what a record sends as its body.
func byRecord(t *testing.T, answers map[string]int) (*server, *HTTP) {
	t.Helper()
	var x *server
	x = newServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, body := x.last()
		w.WriteHeader(answers[body])
	})
	return x, newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.BodyKey, o.HeadersKey = "$b['text']", "$h" })
}

func TestRecordsThatAreRequestsHaveResultsOfTheirOwn(t *testing.T) {
	one := func(text string) string {
		return fmt.Sprintf(`{"b":{"text":%q},"h":{"X-N":%q,"Content-Length":"9"}}`, text, text)
	}
	x, s := byRecord(t, map[string]int{"": 200, "a": 200, "b": 400, "c": 500, "d": 201, "e": 429, "f": 200})
	whole(t, "all", deliver(t.Context(), s, chunk(t, one("a"), one("d"))), job.OK, "")
	if r, _ := x.last(); r.Header.Get("X-N") != "d" {
		t.Errorf("%v", r.Header)
	}
	whole(t, "an empty body", deliver(t.Context(), s, chunk(t, one(""))), job.OK, "")
	if r, _ := x.last(); r.ContentLength != 0 || r.TransferEncoding != nil {
		t.Errorf("%d bytes, %v", r.ContentLength, r.TransferEncoding)
	}
	r := deliver(t.Context(), s, chunk(t, one("a"), one("b"), one("c"), `{"b":{"text":1},"h":{}}`, `{"b":{"text":"a"}}`, one("d"), one("e"), one("f"), one("a")))
	if r.Outcome != job.Retried || bodiesOf(t, r.Parts.Rest) != strings.Join([]string{one("c"), one("e"), one("f"), one("a")}, " ") || r.Failure.Status != 500 {
		t.Errorf("%+v", r)
	}
	if p := r.Parts.Pieces; len(p) != 2 || bodiesOf(t, p[0].Body) != one("b") || p[0].Failure.Status != 400 ||
		bodiesOf(t, p[1].Body) != `{"b":{"text":1},"h":{}} {"b":{"text":"a"}}` || p[1].Failure.Type != connect.TypeRecord {
		t.Errorf("%+v", p)
	}
	if r = deliver(t.Context(), s, chunk(t, one("a"), one("b"))); r.Outcome != job.OK || len(r.Parts.Pieces) != 1 {
		t.Errorf("%+v", r)
	}
	whole(t, "one that dies", deliver(t.Context(), s, chunk(t, one("b"), one("b"))), job.Died, "400")
	before := x.count()
	whole(t, "all wait", deliver(t.Context(), s, chunk(t, one("e"), one("f"))), job.Retried, "429")
	if x.count() != before+1 {
		t.Error("what follows a 429 was sent")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	whole(t, "no time", deliver(ctx, s, chunk(t, one("a"), one("f"))), job.Released, "")
}

func TestTLS(t *testing.T) {
	x := &server{}
	x.Server = httptest.NewUnstartedServer(x.handler(t, answerWith(200, "")))
	x.Config.ErrorLog = log.New(io.Discard, "", 0)
	x.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	x.StartTLS()
	t.Cleanup(x.Close)
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	cert := x.TLS.Certificates[0]
	pkcs8, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err = errors.Join(err, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		tls        TLS
		outcome    job.Outcome
	}{
		{"unknown authority", "set tls.ca_file", TLS{Verify: true, VerifyHostname: true}, job.Retried},
		{"unknown authority, any name", "set tls.ca_file", TLS{Verify: true}, job.Retried},
		{"not verified", "", TLS{}, job.OK},
		{"verified", "", TLS{Verify: true, VerifyHostname: true, CAFile: ca, VHost: "example.com"}, job.OK},
		{"by its address", "", TLS{Verify: true, VerifyHostname: true, CAFile: ca}, job.OK},
		{"another name", "or tls.verify_hostname to off", TLS{Verify: true, VerifyHostname: true, CAFile: ca, VHost: "other.example.org"}, job.Retried},
		{"any name", "", TLS{Verify: true, CAFile: ca, VHost: "other.example.org"}, job.OK},
		{"with a certificate", "", TLS{Verify: true, VerifyHostname: true, CAFile: ca, CertFile: ca, KeyFile: key}, job.OK},
	} {
		c.tls.On = true
		s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.TLS = c.tls })
		whole(t, c.name, deliver(t.Context(), s, chunk(t, `{}`)), c.outcome, c.text)
	}
	if r, _ := x.last(); len(r.TLS.PeerCertificates) != 1 {
		t.Error("the client has shown no certificate")
	}
}

func TestAProxyIsAskedForTheServer(t *testing.T) {
	x := newServer(t, answerWith(200, ""))
	proxy := newServer(t, answerWith(200, ""))
	s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Proxy = proxy.URL })
	whole(t, "by a proxy", deliver(t.Context(), s, chunk(t, `{}`)), job.OK, "")
	if r, _ := proxy.last(); r.RequestURI != x.URL+"/" || x.count() > 0 {
		t.Errorf("the proxy was asked for %s", r.RequestURI)
	}
}

func TestKeepaliveIsAChoice(t *testing.T) {
	for _, keep := range []bool{true, false} {
		x := newServer(t, answerWith(200, "ok"))
		s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Keepalive = keep })
		deliver(t.Context(), s, chunk(t, `{}`))
		deliver(t.Context(), s, chunk(t, `{}`))
		if same := x.got[0].RemoteAddr == x.got[1].RemoteAddr; same != keep {
			t.Errorf("keepalive %v: %s, %s", keep, x.got[0].RemoteAddr, x.got[1].RemoteAddr)
		}
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	x := newServer(t, answerWith(403, "no entry for Basic dXNlcjpzZWNyZXQ=, secret, tok-en-1"))
	s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) {
		o.User, o.Password, o.Header = "user", "secret", [][2]string{{"X-Api-Key", "tok-en-1"}}
	})
	r := deliver(t.Context(), s, chunk(t, `{}`))
	if text := r.Failure.Message + r.Failure.Backtrace; strings.Contains(text, "secret") || strings.Contains(text, "dXNl") || strings.Contains(text, "tok-en") || !strings.Contains(text, "no entry") {
		t.Errorf("%+v", r.Failure)
	}
}

// properties are the fields that the faults name.
func properties(err error) (list []string) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, e := range joined.Unwrap() {
		if one, ok := errors.AsType[*job.Error](e); ok && one.Kind == job.Invalid && strings.HasPrefix(one.Error(), one.Field+" ") {
			list = append(list, one.Field)
		}
	}
	return list
}

func TestAllThatIsWrongIsToldAtOnce(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := DefaultHTTP()
	o.Host, o.Port, o.Method, o.URI, o.Format, o.DateForm, o.Compress = "a b", 0, "GET", "/%zz", "xml", "noon", "brotli"
	o.ConnectTimeout, o.ResponseTimeout, o.KeepaliveIdle, o.Proxy = 0, 2*TimeoutMax, -1, "socks5://x"
	o.Header, o.HeaderTag = [][2]string{{"a b", "c"}, {"X-A", "a\nb"}, {"Content-Length", "3"}}, "é"
	o.TLS.CAFile, o.TLS.CertFile, o.BodyKey, o.Codes = empty, empty, "$b", Codes{200: job.Released}
	_, err := NewHTTP(o)
	want := "[http_method uri format json_date_format compress header header header header_tag codes body_key host port net.connect_timeout http.response_timeout net.keepalive_idle_timeout tls.ca_file tls.crt_file proxy]"
	if got := fmt.Sprint(properties(err)); got != want {
		t.Errorf("%s\n%v", got, err)
	}
	o = DefaultHTTP()
	o.TLS = TLS{CAFile: filepath.Join(dir, "none"), CertFile: empty, KeyFile: empty}
	o.BodyKey, o.HeadersKey, o.Host = "$b[", "$[", "[::1"
	_, err = NewHTTP(o)
	if got := fmt.Sprint(properties(err)); got != "[body_key headers_key tls.ca_file tls.crt_file]" {
		t.Errorf("%s\n%v", got, err)
	}
	if _, err := NewHTTP(DefaultHTTP()); err != nil {
		t.Error(err)
	}
}

func TestManyDeliveriesAtOnceKeepTheirBodiesApart(t *testing.T) {
	x := newServer(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) })
	s := newHTTP(t, x.Listener.Addr().String(), func(o *HTTPOptions) { o.Format, o.DateKey = "json_lines", "" })
	const deliveries = 64
	done := make(chan connect.Result)
	for i := range deliveries {
		events := chunk(t, fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat(string(rune('a'+i%26)), 5000)))
		go func() { done <- deliver(t.Context(), s, events) }()
	}
	for range deliveries {
		whole(t, "one of many", <-done, job.OK, "")
	}
	seen := map[string]bool{}
	for _, body := range x.bodies {
		var n int
		if _, err := fmt.Sscanf(body, `{"n":%d`, &n); err != nil {
			t.Fatal(body, err)
		}
		if want := fmt.Sprintf(`{"n":%d,"pad":%q}`+"\n", n, strings.Repeat(string(rune('a'+n%26)), 5000)); body != want {
			t.Errorf("%d is torn", n)
		}
		seen[body] = true
	}
	if len(seen) != deliveries {
		t.Errorf("%d bodies", len(seen))
	}
}

func TestABufferIsNotUsedWhileARequestReadsIt(t *testing.T) {
	over := make(chan struct{})
	x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable) // before the body is read
		w.(http.Flusher).Flush()
		<-over
	}))
	t.Cleanup(x.Close)
	t.Cleanup(func() { close(over) })
	var b body
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	b.pack("", make([]byte, 32<<20)) // more than a connection holds
	b.attach(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if b.reusable() {
		t.Error("the buffer may be used while the request is written")
	}
	again, _ := req.GetBody()
	for range 2 { // as a transport may
		_, _ = again.Close(), resp.Body.Close()
	}
	if open := b.open.Load(); open < 0 || open > 1 {
		t.Errorf("%d readers are open", open)
	}
}
