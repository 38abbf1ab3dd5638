// Package listen holds the sources to which others send records: http, tcp, syslog and
// forward. Nothing is answered or acknowledged before it was taken. Whoever sends is a
// stranger: each has bounds of bytes, depth and time, and so have all together.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tinylib/msgp/msgp"
)

const (
	connectionsMost = 4096
	silenceMost     = 10 * time.Minute // of a connection that may send at any time
	writeTime       = 10 * time.Second
)

// Address is where a source listens, and what all of them have.
type Address struct {
	Listen string // an address of this machine; "" = 127.0.0.1
	Port   int
	TLS    *tls.Config    // nil = none
	Opened func(net.Addr) // told once it listens; nil = nobody
	Now    func() time.Time
	Log    *slog.Logger // nil = nothing is said
}

func (a *Address) faults(add func(format string, args ...any)) {
	if a.Listen == "" {
		a.Listen = "127.0.0.1"
	}
	if strings.ContainsAny(a.Listen, " /") {
		add("listen: %q is no address of a machine; give one such as 127.0.0.1", a.Listen)
	}
	if a.Port < 0 || a.Port > 65535 {
		add("port: %d is not between 1 and 65535", a.Port)
	}
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
}

func (a *Address) text() string { return net.JoinHostPort(a.Listen, strconv.Itoa(a.Port)) }

// open listens on the port, for so many connections at once.
func (a *Address) open(ctx context.Context, connections int) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.text())
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return a.opened(l, connections), nil
}

func (a *Address) opened(l net.Listener, connections int) net.Listener {
	if a.Opened != nil {
		a.Opened(l.Addr())
	}
	l = &limited{Listener: l, places: make(chan struct{}, connections), end: make(chan struct{})}
	if a.TLS != nil {
		l = tls.NewListener(l, a.TLS)
	}
	return l
}

// faults gathers what is wrong with options.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }
func (f faults) err() error                      { return errors.Join(f...) }

// size checks a number of bytes.
func (f *faults) size(name string, value *int, zero, most int) {
	if *value == 0 {
		*value = zero
	}
	if *value < 1 || *value > most {
		f.add("%s: %d bytes is not between 1 and %d", name, *value, most)
	}
}

// serve gives each connection of a listener to a function, until ctx ends and all of them
// have.
func serve(ctx context.Context, l net.Listener, log *slog.Logger, handle func(ctx context.Context, c net.Conn) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })() // nobody comes in then
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close() // it is too late
			}
			return nil
		case err != nil && !pause(ctx, err):
			cancel()
			return fmt.Errorf("listen: %w", err)
		case err != nil:
			continue
		}
		all.Go(func() {
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			defer c.Close() //nolint:errcheck // what was to be said was said
			if err := handle(ctx, c); err != nil && ctx.Err() == nil {
				log.Warn("a connection is closed", "remote", remote(c), "error", err)
			}
		})
	}
}

// pause waits a little when there are no descriptors, say, and reports whether it goes on.
func pause(ctx context.Context, err error) bool {
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// remote is the address of whoever sends.
func remote(c net.Conn) string { return host(c.RemoteAddr()) }

func host(a net.Addr) string {
	if a == nil {
		return ""
	}
	if name, _, err := net.SplitHostPort(a.String()); err == nil {
		return name
	}
	return a.String()
}

// field is a key and a text as they stand in the body of an event.
func field(key, value string) []byte { return msgp.AppendString(msgp.AppendString(nil, key), value) }

// limited is a listener with so many connections at once.
type limited struct {
	net.Listener
	places chan struct{}
	closed sync.Once
	end    chan struct{} // closed with the listener
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.places <- struct{}{}:
	case <-l.end:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	return &place{Conn: c, free: sync.OnceFunc(func() { <-l.places })}, nil
}

type place struct {
	net.Conn
	free func()
}

func (p *place) Close() error {
	defer p.free()
	return p.Conn.Close()
}

func (l *limited) Close() error {
	l.closed.Do(func() { close(l.end) })
	return l.Listener.Close()
}
