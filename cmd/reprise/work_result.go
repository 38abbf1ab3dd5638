package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/client"
)

// resultBytesMax is the longest output that is kept as a result. A server may
// take less.
const resultBytesMax = 16 << 20

// output keeps what a command writes, so far as it may be kept.
type output struct {
	mu  sync.Mutex // guards what follows: what the command left behind may still write
	buf bytes.Buffer
	all int64
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all += int64(len(b))
	o.buf.Write(b[:min(len(b), resultBytesMax-o.buf.Len())])
	return len(b), nil
}

// keep makes the output the result of the job; without one there is none.
func (o *output) keep(d *client.Delivery) error {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all > resultBytesMax {
		return tooMuch("the command wrote more than")
	}
	return keepResult(d, o.buf.Bytes())
}

// keepBody makes an answer the result of the job.
func keepBody(d *client.Delivery, body io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(body, resultBytesMax+1))
	switch {
	case err != nil:
		return &client.Failure{Type: "network", Message: "reading the answer: " + err.Error(), Err: err}
	case len(text) > resultBytesMax:
		return tooMuch("the answer has more than")
	}
	return keepResult(d, text)
}

func tooMuch(what string) error {
	return &client.Failure{
		Type: "result", Message: fmt.Sprintf("%s %d MiB, which is too much for a result: keep what is large elsewhere, and tell its address", what, resultBytesMax>>20),
	}
}

// keepResult takes JSON as it is, and anything else as a text. Nothing but
// white space is no result.
func keepResult(d *client.Delivery, text []byte) error {
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil
	}
	if json.Valid(text) {
		return d.SetResult(json.RawMessage(text))
	}
	return d.SetResult(strings.ToValidUTF8(string(text), "�"))
}
