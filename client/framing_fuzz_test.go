package client

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// pieces delivers bytes in pieces of the given sizes, as a network does; the
// last one with the end.
type pieces struct {
	rest  []byte
	sizes []byte
	at    int
}

func (p *pieces) Read(b []byte) (int, error) {
	size := 1
	if len(p.sizes) > 0 {
		size = 1 + int(p.sizes[p.at%len(p.sizes)])
		p.at++
	}
	n := copy(b[:min(size, len(b))], p.rest)
	if p.rest = p.rest[n:]; len(p.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// FuzzStreamLines cuts a stream into lines: whatever the network does to it,
// the lines are those of the bytes, and what has no line break at its end is
// never taken for a line.
func FuzzStreamLines(f *testing.F) {
	f.Add([]byte("{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n"), []byte{0})
	f.Add([]byte("\n\n\n"), []byte{5, 0, 1})
	f.Add([]byte("{\"id\":\"cut off"), []byte{3})
	f.Add(append(bytes.Repeat([]byte("long "), 20), '\n'), []byte{255})
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		r := bufio.NewReaderSize(&pieces{rest: stream, sizes: sizes}, 16) // the smallest there is
		whole := bytes.SplitAfter(stream, []byte("\n"))
		for _, want := range whole[:len(whole)-1] {
			if line, err := readLine(r); err != nil || !bytes.Equal(line, want) {
				t.Fatalf("a line is %q, %v; want %q", line, err, want)
			}
		}
		if line, err := readLine(r); err == nil {
			t.Fatalf("after the last line comes %q", line)
		}
	})
}

// FuzzRefusal reads an answer that is none of ours as well as one that is: it
// always says something, briefly, and never asks to wait for longer than a day.
func FuzzRefusal(f *testing.F) {
	f.Add(503, "1", `{"error":"the store cannot commit","code":"unavailable"}`)
	f.Add(502, "Wed, 21 Oct 2015 07:28:00 GMT", "<html>Bad Gateway</html>")
	f.Add(429, "18446744073709551616", "")
	f.Add(400, "-1", `{"error":7}`)
	f.Add(404, "Fri, 31 Dec 9999 23:59:59 GMT", "\xff\x00")
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		resp := &http.Response{
			StatusCode: status, Status: "status", Header: http.Header{"Retry-After": {after}},
			Body: io.NopCloser(strings.NewReader(body)),
		}
		e := errorOf(resp)
		if e.Message == "" || len(e.Error()) > 64<<10+100 {
			t.Errorf("%q is told as %.100q", body, e)
		}
		if e.RetryAfter < 0 || e.RetryAfter > 24*time.Hour {
			t.Errorf("Retry-After %q asks to wait for %s", after, e.RetryAfter)
		}
		if status >= 500 && !e.Temporary() {
			t.Errorf("%d is taken as final", status)
		}
	})
}
