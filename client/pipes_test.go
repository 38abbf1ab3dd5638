package client

import (
	"context"
	"errors"
	"net"
	"sync"
)

// pipes is a listener in memory. down makes it refuse connections.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex // guards what follows
	down bool
	open []net.Conn
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	down := p.down
	p.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	p.open = append(p.open, theirs)
	p.mu.Unlock()
	return ours, nil
}

// fall breaks all connections and refuses new ones until rise.
func (p *pipes) fall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *pipes) rise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }
