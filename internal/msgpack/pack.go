package msgpack

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"
)

var errJSON = errors.New("malformed JSON")

// Append appends the MessagePack of one JSON value. It is for JSON that was
// checked or written by ourselves, nested as deep as it likes: what is
// malformed gives an error or something else, but never harm.
func Append(dst, text []byte) ([]byte, error) {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.out, w.headers, w.open = dst, w.headers[:0], w.open[:0]
	err := w.walk(text)
	w.shrink()
	out := w.out
	if w.out = nil; cap(w.headers) > 4096 {
		w.headers, w.open = nil, nil
	}
	return out, err
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// writer walks over JSON and writes MessagePack, whose maps and arrays begin
// with a length that is known at their end only. So room is left for the
// longest header, and taken out at the end, all of it in one go.
type writer struct {
	out     []byte
	headers []header // in the order of their places
	open    []int    // those whose end has not come, outermost first
}

// header is a place in out where a map or an array begins.
type header struct {
	at    int
	isMap bool
	n     uint32 // values so far; a map counts its keys too
}

const headerBytesMax = 5

func (w *writer) walk(text []byte) error {
	whole := false // the value has begun
	for at := 0; at < len(text); {
		c := text[at]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == ',' || c == ':' {
			at++
			continue
		}
		if c == ']' || c == '}' {
			if len(w.open) == 0 {
				return errJSON
			}
			w.open = w.open[:len(w.open)-1]
			at++
			continue
		}
		if n := len(w.open); n > 0 {
			w.headers[w.open[n-1]].n++
		} else if whole {
			return errJSON // a second value
		}
		whole = true
		if c == '[' || c == '{' {
			w.open = append(w.open, len(w.headers))
			w.headers = append(w.headers, header{at: len(w.out), isMap: c == '{'})
			w.out = append(w.out, make([]byte, headerBytesMax)...)
			at++
			continue
		}
		end := at + scalarEnd(text[at:])
		if err := w.scalar(text[at:end]); err != nil {
			return err
		}
		at = end
	}
	if len(w.open) > 0 || !whole {
		return errJSON
	}
	return nil
}

// scalarEnd is the length of the scalar at the beginning of text.
func scalarEnd(text []byte) int {
	if text[0] != '"' {
		for i, c := range text {
			switch c {
			case ' ', '\n', '\t', '\r', ',', ':', ']', '}', '[', '{', '"':
				return i
			}
		}
		return len(text)
	}
	for at := 1; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return len(text)
		}
		at += n + 1
		slashes := 0
		for text[at-2-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 { // they escape each other
			return at
		}
	}
}

func (w *writer) scalar(text []byte) error {
	switch text[0] {
	case '"':
		return w.text(text)
	case 'n':
		w.out = msgp.AppendNil(w.out)
	case 't', 'f':
		w.out = msgp.AppendBool(w.out, text[0] == 't')
	default:
		return w.number(string(text))
	}
	return nil
}

func (w *writer) text(quoted []byte) error {
	if n := len(quoted); n > 1 && quoted[n-1] == '"' && bytes.IndexByte(quoted, '\\') < 0 {
		w.out = msgp.AppendStringFromBytes(w.out, quoted[1:n-1])
		return nil
	}
	plain, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		return errJSON
	}
	w.out = msgp.AppendStringFromBytes(w.out, plain)
	return nil
}

func (w *writer) number(text string) error {
	if !strings.ContainsAny(text, ".eE") {
		if text[0] == '-' {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				w.out = msgp.AppendInt64(w.out, n)
				return nil
			}
		} else if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			w.out = msgp.AppendUint64(w.out, n)
			return nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: the nearest, which is infinite
		return errJSON
	}
	w.out = msgp.AppendFloat64(w.out, f)
	return nil
}

// shrink puts the headers in.
func (w *writer) shrink() {
	if len(w.headers) == 0 {
		return
	}
	out := w.out[:w.headers[0].at]
	for i, h := range w.headers {
		end := len(w.out)
		if i+1 < len(w.headers) {
			end = w.headers[i+1].at
		}
		if h.isMap {
			out = msgp.AppendMapHeader(out, h.n/2)
		} else {
			out = msgp.AppendArrayHeader(out, h.n)
		}
		out = append(out, w.out[h.at+headerBytesMax:end]...)
	}
	w.out = out
}
