package connect

import (
	"io"
	"sync"
)

// pumpBytesMax is what a Pump reads ahead.
const pumpBytesMax = 1 << 20

// Pump reads a stream ahead, so that more comes while what came before is taken. It belongs
// to the goroutine that calls Read.
type Pump struct {
	idle func() error

	mu    sync.Mutex
	moved sync.Cond // by mu: what is below has changed
	ahead []byte
	err   error
}

// NewPump begins to read a stream. Before it waits for more, Read calls idle, which takes in
// what was read. What reads the stream ends when the stream does, or Stop was called and
// something comes.
func NewPump(r io.Reader, idle func() error) *Pump {
	p := &Pump{idle: idle}
	p.moved.L = &p.mu
	go p.run(r)
	return p
}

func (p *Pump) run(r io.Reader) {
	block := make([]byte, 64<<10)
	for {
		n, err := r.Read(block)
		p.mu.Lock()
		for p.err == nil && len(p.ahead) >= pumpBytesMax {
			p.moved.Wait()
		}
		if p.err == nil {
			p.ahead, p.err = append(p.ahead, block[:n]...), err
		}
		err = p.err
		p.moved.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Stop ends the stream for its reader, too.
func (p *Pump) Stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.moved.Broadcast()
}

func (p *Pump) Read(dst []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 {
		p.mu.Unlock()
		err := p.idle()
		p.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	for len(p.ahead) == 0 && p.err == nil {
		p.moved.Wait()
	}
	if len(p.ahead) == 0 {
		return 0, p.err
	}
	n := copy(dst, p.ahead)
	if p.ahead = p.ahead[n:]; len(p.ahead) == 0 {
		p.ahead = nil
	}
	p.moved.Broadcast()
	return n, nil
}
