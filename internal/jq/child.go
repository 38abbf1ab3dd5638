package jq

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/itchyny/gojq"
)

// mark in the environment makes a process of this binary a child. Behind it is how
// much memory the child may take from the system.
const mark = "REPRISE_EVALUATES_JQ="

const (
	memoryLook = time.Millisecond
	// memoryKept is how much a child may have and wait for the next request.
	memoryKept = 48 << 20
	stackMax   = 64 << 20
	nestingMax = 10_000
	errorMax   = 4 << 10
	codesMax   = 64 // compiled expressions that a child keeps
	flushEvery = 2 * time.Millisecond
)

// exitMemory is the exit code of a child that took too much.
const exitMemory = 77

// A process that was started as a child never gets to main. Every binary with
// this package in it can be one, and so can every test.
func init() {
	if len(os.Args) == 0 || os.Args[0] != childName || len(os.Environ()) != 1 {
		return
	}
	text, ok := strings.CutPrefix(os.Environ()[0], mark)
	if most, err := strconv.ParseUint(text, 10, 63); ok && err == nil {
		os.Exit(beChild(os.Stdin, os.Stdout, most))
	}
}

// beChild answers requests until there are no more. It ends when it has more memory
// than most; its collector works against that from three quarters on.
func beChild(in io.Reader, out io.Writer, most uint64) int {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // they are for the parent; without it there are no requests
	yield()                                      // to the server, whose clock ends this
	debug.SetMemoryLimit(int64(most / 4 * 3))    //nolint:gosec // of 63 bits
	debug.SetMaxStack(stackMax)
	go watchMemory(most)
	requests := make(chan *request)
	go func() {
		for r := bufio.NewReader(in); ; {
			q := new(request)
			if q.read(r) != nil {
				os.Exit(0) // also in the middle of an evaluation: nobody waits for it
			}
			requests <- q
		}
	}()
	c := &worker{out: bufio.NewWriter(out), codes: map[string]*gojq.Code{}}
	go c.flushes()
	for q := range requests {
		if q.most == sieve {
			c.sift(q)
		} else {
			c.answer(q)
		}
		last := 0
		if memory() > memoryKept {
			last = 1
		}
		if c.send(func() { number(c.out, last) }, true) != nil || last > 0 {
			break
		}
	}
	return 0
}

// worker is a child at work.
type worker struct {
	codes map[string]*gojq.Code

	mu  sync.Mutex // guards what follows
	out *bufio.Writer
}

// send writes to the parent, at once or soon.
func (c *worker) send(write func(), now bool) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	write()
	if now {
		err = c.out.Flush()
	}
	return err
}

// flushes sends what waits in the buffer: the parent takes the time from it.
func (c *worker) flushes() {
	for range time.Tick(flushEvery) {
		if c.send(func() {}, true) != nil {
			os.Exit(0)
		}
	}
}

// watchMemory ends the process when it has too much.
func watchMemory(most uint64) {
	for range time.Tick(memoryLook) {
		if memory() > most {
			os.Exit(exitMemory)
		}
	}
}

// memory is what this process has from the system.
func memory() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64() - sample[1].Value.Uint64()
}

// code is a compiled expression.
func (c *worker) code(q *request) (*gojq.Code, error) {
	key := fmt.Sprint(q.most == sieve, q.vars, q.source)
	if code := c.codes[key]; code != nil {
		return code, nil
	}
	code, err := compile(q.source, q.vars, q.most == sieve)
	if len(c.codes) == codesMax {
		clear(c.codes)
	}
	c.codes[key] = code
	return code, err
}

func (c *worker) answer(q *request) {
	a := &answer{}
	if err := c.run(q, a); err != nil {
		why := err.Error() // it may have a whole value in it
		a.kind, a.text = isError, strings.ToValidUTF8(why[:min(len(why), errorMax)], "")
	}
	_ = c.send(func() { a.write(c.out) }, false)
}

func (c *worker) run(q *request, a *answer) error {
	values := make([]any, len(q.values))
	for i, payload := range q.values {
		var err error
		if values[i], err = decode(payload); err != nil {
			return err
		}
	}
	code, err := c.code(q)
	if err != nil {
		return err
	}
	_ = c.send(func() { _ = c.out.WriteByte(sendBegun) }, true)
	return outputs(code, values, func(v any) (bool, error) {
		output, fits, err := encode(v, q.bytes)
		if !fits && err == nil {
			a.kind, a.text, a.outputs = isBound, fmt.Sprintf("the result is larger than %d bytes", q.bytes), nil
			return false, nil
		}
		a.outputs = append(a.outputs, output)
		return err == nil && len(a.outputs) < q.most, err
	})
}

func (c *worker) sift(q *request) {
	code, err := c.code(q)
	for _, payload := range q.values {
		says := byte(sendNo)
		if v, bad := decode(payload); payload != nil && err == nil && bad == nil {
			_ = outputs(code, []any{v}, func(v any) (bool, error) {
				if v != nil && v != false {
					says = sendYes
				}
				return says == sendNo, nil
			})
		}
		_ = c.send(func() { _ = c.out.WriteByte(says) }, false)
	}
}

// outputs gives outputs to each, until that has enough.
func outputs(code *gojq.Code, values []any, each func(any) (more bool, err error)) (err error) {
	defer func() { // a hostile expression may find a way to make the interpreter panic
		if why := recover(); why != nil {
			err = fmt.Errorf("the expression cannot be evaluated: %v", why)
		}
	}()
	for next, more := code.Run(values[0], values[1:]...), true; more; {
		v, ok := next.Next()
		if !ok {
			return nil
		}
		if err, bad := v.(error); bad {
			halt, halted := errors.AsType[*gojq.HaltError](err)
			switch {
			case !halted:
				return err
			case halt.Value() == nil:
				return nil // no more outputs
			}
			return errors.New("halt_error") // its own text may be as long as the value is
		}
		if more, err = each(v); err != nil {
			return err
		}
	}
	return nil
}

// encode writes an output as JSON, unless that has more than most bytes.
func encode(v any, most int) (text []byte, fits bool, err error) {
	if weigh(v, most, nestingMax) >= 0 {
		text, err = gojq.Marshal(v)
	}
	return text, len(text) > 0 && len(text) <= most, err
}

// weigh takes the size of a value as it would be written out from left: the
// bytes of texts and numbers, 1 for each value. It stops when nothing is left.
// Values share their parts: twenty short ones can stand for gigabytes.
func weigh(v any, left, nesting int) int {
	if left--; left < 0 || nesting == 0 {
		return -1
	}
	switch v := v.(type) {
	case string:
		left -= len(v)
	case json.Number:
		left -= len(v)
	case *big.Int:
		left -= v.BitLen() / 4
	case []any:
		for i := 0; i < len(v) && left >= 0; i++ {
			left = weigh(v[i], left, nesting-1)
		}
	case map[string]any:
		for key, value := range v {
			if left = weigh(value, left-len(key), nesting-1); left < 0 {
				break
			}
		}
	}
	return left
}

func decode(text []byte) (v any, err error) {
	if text == nil {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err = d.Decode(&v); err == nil {
		if _, err = d.Token(); err == io.EOF { //nolint:errorlint // a decoder returns it bare
			return v, nil
		}
		err = errors.New("more than one value")
	}
	return nil, fmt.Errorf("the payload is not JSON: %w", err)
}
