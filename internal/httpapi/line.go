package httpapi

import (
	"context"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// line is the writing side of an answer that goes on and on.
type line struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	h2 bool

	// Heartbeats (pulse) go straight to the socket where what is written there
	// is a chunk of HTTP/1.1; where not, or when the socket takes nothing, silent
	// tells the take to send one, which waits for its reader.
	socket *socket
	chunk  []byte
	silent chan struct{}
	due    time.Time // of the next heartbeat; the pulse's own

	mu     sync.Mutex // guards what follows, and that one at a time writes
	until  time.Time  // the reader has so long for what is written; of HTTP/2 not kept
	wrote  time.Time  // when something was written last
	closed bool
}

// newLine begins the answer.
func newLine(w http.ResponseWriter, r *http.Request, frames *framing) *line {
	l := &line{w: w, rc: http.NewResponseController(w), h2: r.ProtoMajor == 2, silent: make(chan struct{}, 1)}
	_ = l.rc.SetReadDeadline(time.Time{}) // a take outlives every request's time
	frames.head(w)
	if s, ok := r.Context().Value(socketKey{}).(*socket); ok && r.ProtoMajor == 1 && r.ProtoMinor == 1 {
		l.socket, l.chunk = s, frames.beat.chunk
	}
	return l
}

// close ends the heartbeats; what net/http writes afterwards has the
// connection for itself.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// write sends bytes as one piece, and gives up a reader that stalls for
// writeMax, or a third less: the time limit is not set anew for each of many
// pieces.
func (l *line) write(b []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.wrote = now
	if l.h2 || l.until.Sub(now) < writeMax*2/3 {
		l.until = now.Add(writeMax)
		_ = l.rc.SetWriteDeadline(l.until)
	}
	_, err := l.w.Write(b)
	if err == nil {
		err = l.rc.Flush()
	}
	if l.h2 { // there a deadline that passes resets the stream, whether it writes or not
		_ = l.rc.SetWriteDeadline(time.Time{})
	}
	return err == nil
}

// beat sends a heartbeat, or has it sent, if the line was silent for an
// interval; due says when it wants to be asked again, unless it is closed. It
// never waits.
func (l *line) beat(now time.Time, interval time.Duration) (open bool) {
	l.due = now.Add(interval)
	if !l.mu.TryLock() {
		return true // written to at this moment
	}
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if due := l.wrote.Add(interval); due.After(now) {
		l.due = due
		return true
	}
	sent := 0
	if l.socket != nil {
		sent = offer(l.socket.raw, l.chunk)
	}
	switch sent {
	case 0:
		select {
		case l.silent <- struct{}{}:
		default: // told before
		}
	case len(l.chunk):
		l.wrote = now
	default:
		_ = l.socket.conn.Close() // nothing can follow a part of a chunk
	}
	return true
}

// socket is a connection that HTTP is spoken on without TLS.
type socket struct {
	conn net.Conn
	raw  syscall.RawConn
}

type socketKey struct{}

// withSocket keeps a connection for the requests that come over it.
func withSocket(ctx context.Context, conn net.Conn) context.Context {
	under, ok := conn.(syscall.Conn)
	if !ok || !direct {
		return ctx
	}
	raw, err := under.SyscallConn()
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, socketKey{}, &socket{conn, raw})
}
