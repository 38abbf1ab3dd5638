package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// drip writes a text byte by byte, one at a tick, until it is out or somebody
// refuses to read on. It returns how much it wrote.
func drip(conn net.Conn, text string, every time.Duration) (n int) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n < len(text) {
		if _, err := io.WriteString(conn, text[n:n+1]); err != nil {
			return n
		}
		n++
		<-tick.C
	}
	return n
}

// TestSlowWritersHoldUpNobody lets a crowd send requests byte by byte. Those
// that never get their header done are cut off; those that are slow with a
// body are waited for, and their jobs are taken in when they are whole.
func TestSlowWritersHoldUpNobody(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	c := dial(s.url)
	defer c.close()
	const each, every = 150, 200 * time.Millisecond
	header := "POST /jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	body := `{"type":"t","queue":"slow","payload":"` + strings.Repeat("x", 20) + `"}`
	var lines, bodies sync.WaitGroup
	cut, taken := make(chan int, each), make(chan int, each)
	for range each {
		conn := raw(t, s.addr)
		lines.Go(func() { // 10 s for a header, however it comes
			defer func() { _ = conn.Close() }()
			go func() { _ = drip(conn, header+strings.Repeat("X-More: and more\r\n", 100), every) }()
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, conn); !errors.Is(err, os.ErrDeadlineExceeded) {
				cut <- 1 // closed by the server, politely or not
			}
		})
		slow := raw(t, s.addr)
		fmt.Fprintf(slow, "%sContent-Length: %d\r\n\r\n", header, len(body))
		bodies.Go(func() {
			defer func() { _ = slow.Close() }()
			drip(slow, body, every)
			_ = slow.SetReadDeadline(time.Now().Add(patience))
			if res, err := http.ReadResponse(bufio.NewReader(slow), nil); err == nil && res.StatusCode == 201 {
				_ = res.Body.Close()
				taken <- 1
			}
		})
	}
	over := make(chan struct{})
	go func() { lines.Wait(); close(over) }()
	for waiting := true; waiting; { // all the while, others are served
		serves(t, s)
		select {
		case <-over:
			waiting = false
		default:
		}
	}
	if len(cut) != each {
		t.Errorf("only %d of %d slow headers were cut off", len(cut), each)
	}
	bodies.Wait()
	if n := c.count(t, "queue=slow&status=ready"); len(taken) != each || n != int64(each) {
		t.Errorf("%d of %d slow enqueues were answered, %d jobs are there", len(taken), each, n)
	}
}
