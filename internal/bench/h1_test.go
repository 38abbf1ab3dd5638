package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
)

// scripted is a connection that answers with fixed bytes.
type scripted struct {
	net.Conn
	answers io.Reader
}

func (s scripted) Read(p []byte) (int, error)  { return s.answers.Read(p) }
func (s scripted) Write(p []byte) (int, error) { return len(p), nil }
func (s scripted) Close() error                { return nil }

// splits are the ways in which the same bytes may arrive.
var splits = map[string]func(io.Reader) io.Reader{
	"at once":      func(r io.Reader) io.Reader { return r },
	"byte by byte": iotest.OneByteReader,
	"in halves":    iotest.HalfReader,
}

func TestAnswersAreReadHoweverTheyArrive(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 10_000)
	text := "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}" +
		"HTTP/1.1 204 No Content\r\nDate: now\r\n\r\n" +
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:  0 \r\n\r\n" +
		"HTTP/1.1 422 Unprocessable Entity\r\nTransfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\nA\r\n, chunked!\r\n0\r\nTrailer: x\r\n\r\n" +
		fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long) +
		"HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nlast"
	expected := []response{
		{201, []byte(`{"a":1}`)},
		{204, nil},
		{200, nil},
		{422, []byte("hello, chunked!")},
		{200, []byte(long[:bodyKeptBytes])},
		{201, []byte("last")},
	}
	for name, split := range splits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newConn(scripted{answers: split(strings.NewReader(text))})
			for i, want := range expected {
				got, err := c.roundTrip(nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i, err)
				}
				if got.status != want.status || !bytes.Equal(got.body, want.body) {
					t.Errorf("answer %d: %d %q, expected %d %q", i, got.status, clip(got.body), want.status, clip(want.body))
				}
			}
		})
	}
}

func TestAnswersThatCannotBeFramedAreRefused(t *testing.T) {
	t.Parallel()
	for text, expected := range map[string]string{
		"HTTP/1.1 200 OK\r\n\r\n":                                                                                   "neither Content-Length nor chunks",
		"SSH-2.0-OpenSSH_9.9\r\n\r\n":                                                                               "not an HTTP/1.1 answer",
		"HTTP/1.1 2x0 OK\r\n\r\n":                                                                                   "status line",
		"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n":                                                             "is not a length",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort":                                                         "unexpected EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n":                                              "is not a number",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n":                                "longer than it said",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab":                                              "unexpected EOF",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", headBytesMax+readBufferBytes):                                "16 KiB",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat(" ", headBytesMax+readBufferBytes): "no end",
	} {
		c := newConn(scripted{answers: strings.NewReader(text)})
		_, err := c.roundTrip(nil)
		if err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%q: error %v, expected one with %q", clip([]byte(text)), err, expected)
		}
	}
}

func TestAClientOfARealServerKeepsItsConnection(t *testing.T) {
	t.Parallel()
	remote := map[string]bool{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remote[r.RemoteAddr] = true
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
		for range 3 {
			w.Write(body)                         //nolint:errcheck // seen by the client
			http.NewResponseController(w).Flush() //nolint:errcheck // seen by the client
		}
	}))
	defer s.Close()
	addr := s.Listener.Addr().String()
	c, err := dial(t.Context(), site{host: addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for i := range 10 {
		body := strings.Repeat("ab", i*i)
		got, err := c.roundTrip(postRequest(addr, "/echo", body))
		if err != nil || got.status != 201 || string(got.body) != strings.Repeat(body, 3) {
			t.Fatalf("call %d: %d %q, %v", i, got.status, got.body, err)
		}
	}
	if len(remote) != 1 {
		t.Errorf("%d connections were used, expected one", len(remote))
	}
}

const sampleLine = `{"id":"03gq0x7k2m4v9c1d8f5h6j0a1","type":"bench","queue":"q","priority":32768,"status":"in_flight",` +
	`"payload":{"seq":"0000000000000042","pad":"xx"},"ready_at":1790000000000,"attempts":1,"dequeued_at":1790000000001}`

func TestATakeStreamIsReadLineByLineHoweverItArrives(t *testing.T) {
	t.Parallel()
	text := "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
	lines := "\n" + sampleLine + "\n\n" + sampleLine + "\n" + strings.Repeat("y", 3*readBufferBytes) + "\n"
	for _, size := range []int{1, 7, 100, len(lines)} {
		chunked, rest := text, lines
		for len(rest) > 3*readBufferBytes-1000 { // the long line ends in one long chunk
			n := min(size, len(rest))
			chunked += fmt.Sprintf("%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		if rest != "" {
			chunked += fmt.Sprintf("%X;last=1\r\n%s\r\n", len(rest), rest)
		}
		chunked += "0\r\n\r\n"
		for name, split := range splits {
			c := newConn(scripted{answers: split(strings.NewReader(chunked))})
			s, err := c.open(nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			var line []byte
			for line, err = s.next(); err == nil; line, err = s.next() {
				got = append(got, string(line))
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("chunks of %d %s: error %v, expected the end", size, name, err)
			}
			if len(got) != 3 || got[0] != sampleLine || got[1] != sampleLine || len(got[2]) != 3*readBufferBytes {
				t.Errorf("chunks of %d %s: %d lines, expected 3", size, name, len(got))
			}
		}
	}
}

func TestARefusedTakeIsAnError(t *testing.T) {
	t.Parallel()
	c := newConn(scripted{answers: strings.NewReader("HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\nfull")})
	if _, err := c.open(nil); err == nil || !strings.Contains(err.Error(), "503: full") {
		t.Errorf("error %v", err)
	}
}

func TestLinesAreScannedForWhatMatters(t *testing.T) {
	t.Parallel()
	const id = "03gq0x7k2m4v9c1d8f5h6j0a1"
	for line, expected := range map[string]string{
		sampleLine:                             id,
		`{"type":"x","id":"` + id + `"}`:       id,
		`{"id":"` + id:                         "",
		`{"id":"short"}`:                       "",
		`{"id":"` + id + `0","queue":"q"}`:     "",
		`{"type":"x","queue":"q","attempts":0`: "",
	} {
		if got, ok := lineID([]byte(line)); string(got) != expected || ok != (expected != "") {
			t.Errorf("id of %s: %q", line, got)
		}
	}
	for line, expected := range map[string]int64{
		sampleLine:                         42,
		`{"seq":"9999999999999999"}`:       9999999999999999,
		`{"seq":"12"}`:                     -1,
		`{"seq":"00000000000000x2"}`:       -1,
		`{"payload":{"pad":"no number"}}`:  -1,
		`{"payload":{"seq":"0000000000000`: -1,
	} {
		if got, ok := lineSequence([]byte(line)); ok != (expected >= 0) || ok && got != expected {
			t.Errorf("number of %s: %d %v", line, got, ok)
		}
	}
	for line, expected := range map[string]int{
		sampleLine:       1,
		`{"attempts":0}`: 0,
		`{"payload":{"attempts":7},"attempts":12}`: 12,
		`{"attempts":null}`:                        -1,
		`{}`:                                       -1,
	} {
		if got, ok := lineAttempts([]byte(line)); ok != (expected >= 0) || ok && got != expected {
			t.Errorf("attempts of %s: %d %v", line, got, ok)
		}
	}
}
