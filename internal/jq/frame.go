package jq

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// request is what a child is asked.
type request struct {
	source string
	vars   []string
	most   int // outputs; or sieve
	bytes  int // of an output
	values [][]byte
}

// write sends a request: numbers as varints, texts behind their lengths, nil as
// length 0 and others as one more than they have.
func (q *request) write(w *bufio.Writer) error {
	texts := append([][]byte{[]byte(q.source), []byte(strings.Join(q.vars, ","))}, q.values...)
	number(w, q.most)
	number(w, q.bytes)
	number(w, len(texts))
	for _, text := range texts {
		lengthy(w, text)
	}
	return w.Flush()
}

// sieve asks of each value whether the expression keeps it; nil is not looked at.
const sieve = 0

func (q *request) read(r *bufio.Reader) (err error) {
	n := 0
	for _, to := range []*int{&q.most, &q.bytes, &n} {
		if *to, err = count(r); err != nil {
			return err
		}
	}
	texts := make([][]byte, n)
	for i := range texts {
		if texts[i], err = text(r); err != nil {
			return err
		}
	}
	q.source, q.vars, q.values = string(texts[0]), nil, texts[2:]
	if len(texts[1]) > 0 {
		q.vars = strings.Split(string(texts[1]), ",")
	}
	return nil
}

// reply is what a child sends back.
type reply interface {
	// read receives it. It says when a time limit begins anew.
	read(r *bufio.Reader, begin func()) (last bool, err error)
	err() error
}

// What a child sends before an answer.
const (
	sendBegun  = 'b' // the payloads are read
	sendAnswer = 'a'
)

// What a child sends of each value of a sieve.
const (
	sendNo  = '0'
	sendYes = '1'
)

// sieved is the reply to a sieve.
type sieved struct {
	of    [][]byte
	keeps []bool
}

func (s *sieved) read(r *bufio.Reader, begin func()) (last bool, err error) {
	for range s.of {
		begin()
		c, err := r.ReadByte()
		if err != nil {
			return false, err
		}
		s.keeps = append(s.keeps, c == sendYes)
	}
	n, err := count(r)
	return n > 0, err
}

func (s *sieved) err() error { return nil }

// answer is what a child makes of a request.
type answer struct {
	kind    int
	text    string
	outputs [][]byte
}

// Kinds of answers.
const (
	isOK    = iota
	isError // the expression's own, or the payload's
	isBound
)

func (a *answer) write(w *bufio.Writer) {
	_ = w.WriteByte(sendAnswer) // Flush has the error
	number(w, a.kind)
	lengthy(w, []byte(a.text))
	number(w, len(a.outputs))
	for _, output := range a.outputs {
		lengthy(w, output)
	}
}

func (a *answer) read(r *bufio.Reader, begin func()) (last bool, err error) {
	for {
		switch c, err := r.ReadByte(); {
		case err != nil:
			return false, err
		case c == sendBegun:
			begin()
			continue
		}
		break
	}
	if a.kind, err = count(r); err != nil {
		return false, err
	}
	why, err := text(r)
	if err != nil {
		return false, err
	}
	a.text = string(why)
	n, err := count(r)
	for i := 0; i < n && err == nil; i++ {
		var output []byte
		output, err = text(r)
		a.outputs = append(a.outputs, output)
	}
	if err == nil {
		n, err = count(r)
	}
	return n > 0, err
}

func (a *answer) err() error {
	switch a.kind {
	case isOK:
		return nil
	case isBound:
		return fmt.Errorf("%s (%w)", a.text, ErrBound)
	}
	return errors.New(a.text)
}

func number(w *bufio.Writer, n int) {
	_, _ = w.Write(binary.AppendUvarint(w.AvailableBuffer(), uint64(n))) //nolint:gosec // never negative; Flush has the error
}

func lengthy(w *bufio.Writer, text []byte) {
	if text == nil {
		number(w, 0)
		return
	}
	number(w, len(text)+1)
	_, _ = w.Write(text) // Flush has the error
}

func count(r *bufio.Reader) (int, error) {
	n, err := binary.ReadUvarint(r)
	return int(n), err //nolint:gosec // written by number
}

func text(r *bufio.Reader) ([]byte, error) {
	n, err := count(r)
	if err != nil || n == 0 {
		return nil, err
	}
	b := make([]byte, n-1)
	_, err = io.ReadFull(r, b)
	return b, err
}
