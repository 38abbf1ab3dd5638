package bench

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// spoken is a connection on which the other side says what it says and leaves.
type spoken struct{ *bytes.Reader }

func (spoken) Write(b []byte) (int, error)      { return len(b), nil }
func (spoken) Close() error                     { return nil }
func (spoken) LocalAddr() net.Addr              { return nil }
func (spoken) RemoteAddr() net.Addr             { return nil }
func (spoken) SetDeadline(time.Time) error      { return nil }
func (spoken) SetReadDeadline(time.Time) error  { return nil }
func (spoken) SetWriteDeadline(time.Time) error { return nil }

// FuzzAnswer reads what a server under test may answer. Where net/http reads
// an answer and we do too, it is the same answer.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"))
	f.Add([]byte("HTTP/1.1 503 Service Unavailable\r\ncontent-length:  3 \r\n\r\nabcdef"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		got, err := newConn(spoken{bytes.NewReader(answer)}).roundTrip(nil)
		if err != nil {
			if len(err.Error()) > 1<<10 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		r := bufio.NewReader(bytes.NewReader(answer))
		want, err := http.ReadResponse(r, nil)
		for err == nil && want.StatusCode < 200 { // interim
			want, err = http.ReadResponse(r, nil)
		}
		if err != nil {
			return // it is more particular about what we do not look at
		}
		body, err := io.ReadAll(want.Body)
		_ = want.Body.Close()
		if err != nil || strings.Contains(strings.ToLower(string(answer)), "transfer-encoding") && len(want.TransferEncoding) == 0 {
			return
		}
		if got.status != want.StatusCode || !bytes.HasPrefix(body, got.body) || len(got.body) < min(len(body), bodyKeptBytes) {
			t.Errorf("%q\nwas read as %d %q,\nby net/http as %d %q", answer, got.status, got.body, want.StatusCode, body)
		}
	})
}
