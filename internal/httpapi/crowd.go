package httpapi

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Crowd bounds the connections that are open at once, of all its listeners
// together. One more gets a clear answer where that can be given, and is
// closed; the log says so at most every ten seconds.
type Crowd struct {
	Total      int // most of them
	PerAddress int // most from one address; of IPv6 from one network of 64 bits
	Log        *slog.Logger

	mu   sync.Mutex // guards what follows
	open int
	from map[netip.Addr]int

	refused  tally
	farewell atomic.Int32 // refusals under way
}

// Open is the number of open connections.
func (c *Crowd) Open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// Refused is how many were refused so far.
func (c *Crowd) Refused() int64 { return c.refused.all.Load() }

// Limit makes a listener that lets in as many as there may be. plain says that
// HTTP is spoken without TLS, so that a refusal can be one of HTTP.
func (c *Crowd) Limit(l net.Listener, plain bool) net.Listener { return &limited{l, c, plain} }

type limited struct {
	net.Listener
	crowd *Crowd
	plain bool
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := sourceOf(conn.RemoteAddr())
		why := l.crowd.enter(from)
		if why == "" {
			return &guest{Conn: conn, crowd: l.crowd, from: from}, nil
		}
		l.crowd.turnAway(conn, from, why, l.plain)
	}
}

// sourceOf is what connections are counted by; zero = not at all.
func sourceOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return networkOf(tcp.AddrPort().Addr())
}

// networkOf is an address, or the network of one of IPv6.
func networkOf(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		network, _ := addr.Prefix(64) // 64 is always allowed
		return network.Addr()
	}
	return addr
}

// enter counts one in, or says which limit it is over.
func (c *Crowd) enter(from netip.Addr) (why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.open >= c.Total:
		return "max-connections"
	case from.IsValid() && c.from[from] >= c.PerAddress:
		return "max-connections-per-address"
	}
	c.open++
	if from.IsValid() {
		if c.from == nil {
			c.from = map[netip.Addr]int{}
		}
		c.from[from]++
	}
	return ""
}

func (c *Crowd) leave(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if !from.IsValid() {
		return
	}
	if c.from[from]--; c.from[from] <= 0 {
		delete(c.from, from)
	}
}

// Each is told why it cannot come in. For at most so many at the same time the
// server waits so long until they have read it: a close with a request unread may
// take the answer back.
const (
	farewells    = 64
	farewellTime = time.Second
)

func (c *Crowd) turnAway(conn net.Conn, from netip.Addr, why string, plain bool) {
	if n, tell := c.refused.more(time.Now()); tell {
		c.Log.Warn("connections refused", "connections", n, "limit", why, "latest_from", from.String())
	}
	if !plain {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Now().Add(farewellTime))
	body := `{"error":"too many connections (` + why + `); come back in a moment","code":"unavailable"}`
	_, err := io.WriteString(conn, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: "+
		itoa(int64(len(body)))+"\r\n\r\n"+body) // a connection that is new has room for it
	if c.farewell.Add(1) > farewells {
		c.farewell.Add(-1)
		_ = conn.Close()
		return
	}
	go func() {
		defer c.farewell.Add(-1)
		defer func() { _ = conn.Close() }()
		half, ok := conn.(interface{ CloseWrite() error })
		if err == nil && ok && half.CloseWrite() == nil {
			_, _ = io.CopyN(io.Discard, conn, bodyIgnored) // a close with something unread would take the answer back
		}
	}()
}

// guest is a connection that was let in.
type guest struct {
	net.Conn
	crowd *Crowd
	from  netip.Addr
	once  sync.Once
}

// SyscallConn implements syscall.Conn.
func (g *guest) SyscallConn() (syscall.RawConn, error) {
	if c, ok := g.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.once.Do(func() { g.crowd.leave(g.from) })
	return g.Conn.Close()
}

// tally counts what must not fill the log: it is told at most every ten
// seconds, and how often it happened since.
type tally struct {
	all    atomic.Int64
	untold atomic.Int64
	told   atomic.Int64 // nanoseconds
}

func (t *tally) more(now time.Time) (n int64, tell bool) {
	t.all.Add(1)
	t.untold.Add(1)
	last := t.told.Load()
	if now.UnixNano()-last < int64(10*time.Second) || !t.told.CompareAndSwap(last, now.UnixNano()) {
		return 0, false
	}
	return t.untold.Swap(0), true
}
