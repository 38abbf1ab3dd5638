package jq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	childName = "reprise: jq" // as it stands in the list of processes
	idleMax   = time.Minute   // that a child waits for a request
)

// readMin and readByte bound the reading of payloads, which takes as long as
// they are large.
const (
	readMin  = 5 * time.Second
	readByte = 500 * time.Nanosecond
)

// pool holds children. They belong to the process: as many as can work at a
// time, whoever asks.
type pool struct {
	room chan struct{} // one for each that works

	mu   sync.Mutex // guards what follows
	idle []*child   // the one that worked last is the last
}

// Filters take half of the processors at most (Engine.judges), so with two more
// there is always a child for a fold, which takes 10 ms.
var children = &pool{room: make(chan struct{}, runtime.GOMAXPROCS(0)+2)}

// memoryMax is how much memory a child may have.
var memoryMax atomic.Int64

func init() { memoryMax.Store(512 << 20) }

// SetMemory changes how much memory each process that evaluates may have, from the
// next that begins.
func SetMemory(bytes int64) { memoryMax.Store(bytes) }

type child struct {
	pid  int
	in   *bufio.Writer
	out  *bufio.Reader
	end  func()
	used bool        // it has answered before
	rest *time.Timer // its end, when nobody asks it
}

// ask has a child evaluate a request.
func (p *pool) ask(ctx context.Context, limit time.Duration, q *request, to reply) error {
	select {
	case p.room <- struct{}{}:
		defer func() { <-p.room }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c, err := p.take()
		if err != nil {
			return fmt.Errorf("no process for the expression: %w (%w)", err, ErrBound)
		}
		keep, err := c.ask(ctx, limit, q, to)
		p.give(c, keep)
		if err != errLost { //nolint:errorlint // made here and never wrapped
			return err
		}
	}
}

// take has the child that worked last, or a new one.
func (p *pool) take() (*child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.idle); n > 0; n-- {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if c.rest.Stop() {
			c.used = true
			return c, nil
		}
	}
	return start()
}

func (p *pool) give(c *child, keep bool) {
	if !keep {
		c.end()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	c.rest = time.AfterFunc(idleMax, c.end)
}

func start() (*child, error) {
	path := "/proc/self/exe" // this very binary, also when its file was replaced
	if runtime.GOOS != "linux" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := &exec.Cmd{Path: path, Args: []string{childName}, Env: []string{mark + strconv.FormatInt(memoryMax.Load(), 10)}}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	// To take a large process down may take a while. Who waits for it wakes up
	// at once, for the pipes are closed here.
	end := sync.OnceFunc(func() {
		_, _ = in.Close(), out.Close()
		_ = cmd.Process.Kill()
		go func() { _ = cmd.Wait() }()
	})
	return &child{pid: cmd.Process.Pid, in: bufio.NewWriterSize(in, 64<<10), out: bufio.NewReader(out), end: end}, nil
}

var errLost = errors.New("the process that was to evaluate the expression is gone")

// took is told how long the last evaluation of a request took; nil but in tests.
var took func(time.Duration)

// ask sends a request and waits for the reply. keep reports whether the child
// can take another request.
func (c *child) ask(ctx context.Context, limit time.Duration, q *request, to reply) (keep bool, err error) {
	over, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(over, c.end)()
	endsIn := func(d time.Duration, what string) *time.Timer {
		return time.AfterFunc(d, func() { stop(fmt.Errorf("%s took longer than %v (%w)", what, d, ErrBound)) })
	}
	size := 0
	for _, v := range q.values {
		size += len(v)
	}
	timer, begun := endsIn(readMin+time.Duration(size)*readByte, "reading the payload"), false
	defer func() { timer.Stop() }()
	sent := make(chan struct{})
	go func() { // replies come while it sends; an error ends those, too
		defer close(sent)
		_ = q.write(c.in)
	}()
	var began time.Time
	last, err := to.read(c.out, func() {
		timer.Stop()
		timer, begun, began = endsIn(limit, "it"), true, time.Now() //nolint:forbidigo // a limit of real time is measured
	})
	if took != nil && begun {
		took(time.Since(began)) //nolint:forbidigo // as above
	}
	if err != nil {
		c.end()
	}
	<-sent
	switch {
	case err == nil:
		return !last, to.err()
	case over.Err() != nil:
		return false, context.Cause(over)
	case c.used && !begun:
		return false, errLost
	}
	return false, fmt.Errorf("it needs too much memory (%w)", ErrBound)
}
