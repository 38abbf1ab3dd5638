package httpapi

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/msgpack"
)

// The doors read and write JSON only. What a client sends or wants as
// MessagePack is carried over at the edge: in (*handler).unpack before a door
// reads it, in packing when its answer is written, in framing for streams.

const (
	mediaJSON          = "application/json"
	mediaMsgpack       = "application/msgpack"
	mediaNDJSON        = "application/x-ndjson"
	mediaMsgpackStream = "application/vnd.zizq.msgpack-stream"
	mediaEvents        = "text/event-stream"

	supported        = `"` + mediaJSON + `","` + mediaMsgpack + `"`
	supportedStreams = `"` + mediaEvents + `","` + mediaNDJSON + `","` + mediaMsgpackStream + `"`
)

var typeMsgpack = []string{mediaMsgpack}

// names reports whether a header names one of the media types. Headers are
// searched as Zizq does: by text, without weights.
func names(header []string, types ...string) bool {
	return slices.ContainsFunc(header, func(value string) bool {
		return slices.ContainsFunc(types, func(t string) bool { return strings.Contains(value, t) })
	})
}

// anything are the wildcards. Zizq does not know the second.
var anything = []string{"*/*", "application/*"}

// accepts reports whether one of the media types is asked for: by name, by a
// wildcard, or by asking for nothing.
func accepts(accept []string, types ...string) bool {
	return len(accept) == 0 || names(accept, types...) || names(accept, anything...)
}

// negotiate finds the format of an answer that is no stream, before any other
// work, and returns what it is written through. If there is none it has
// answered, always as JSON.
func negotiate(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
	accept := r.Header["Accept"]
	switch {
	case names(accept, mediaMsgpack):
		return packing{w}, true
	case accepts(accept, mediaJSON):
		return w, true
	}
	notAcceptable(w, supported)
	return w, false
}

// bodyFormat finds the format of a request's body; nothing said is JSON.
func bodyFormat(contentType []string) (packed, ok bool) {
	packed = names(contentType, mediaMsgpack)
	return packed, packed || len(contentType) == 0 || names(contentType, mediaJSON)
}

// packing answers in MessagePack.
type packing struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (p packing) Unwrap() http.ResponseWriter { return p.ResponseWriter }

func (p packing) send(status int, body []byte) {
	s := scratches.Get().(*scratch)
	defer s.release(false)
	s.out = pack(s.out, body)
	sendAs(p.ResponseWriter, status, typeMsgpack, s.out)
}

// pack appends the MessagePack of JSON that we wrote.
func pack(b, text []byte) []byte {
	b, err := msgpack.Append(b, text)
	if err != nil {
		panic(fmt.Sprintf("httpapi: an answer is no JSON: %v: %.100q", err, text))
	}
	return b
}

// framing is a format of a take stream.
type framing struct {
	media []string
	beat  heartbeat
	job   func(b []byte, d *engine.Delivery, token bool) []byte
}

// heartbeat is what a stream sends as a sign of life.
type heartbeat struct {
	plain []byte
	chunk []byte // as a chunk of HTTP/1.1
}

func beatOf(text string) heartbeat {
	return heartbeat{plain: []byte(text), chunk: fmt.Appendf(nil, "%x\r\n%s\r\n", len(text), text)}
}

var (
	lines = framing{typeNDJSON, beatOf("\n"), jobs.AppendLine}

	// events are server-sent events; a line that begins with a colon is a
	// comment there.
	events = framing{[]string{mediaEvents}, beatOf(": heartbeat\n\n"), func(b []byte, d *engine.Delivery, token bool) []byte {
		return append(jobs.AppendLine(append(b, "data: "...), d, token), '\n')
	}}

	// frames are maps of MessagePack, each after its length in four bytes.
	frames = framing{[]string{mediaMsgpackStream}, beatOf("\x00\x00\x00\x00"), func(b []byte, d *engine.Delivery, token bool) []byte {
		s := scratches.Get().(*scratch)
		defer s.release(false)
		s.out = jobs.AppendLine(s.out, d, token)
		at := len(b)
		b = pack(append(b, make([]byte, frameHead)...), s.out)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-frameHead))
		return b
	}}
)

const frameHead = 4

// takeFormat finds the format of a take stream; nil = none that we have.
func takeFormat(accept []string) *framing {
	switch {
	case names(accept, mediaEvents):
		return &events
	case names(accept, mediaMsgpackStream, mediaMsgpack):
		return &frames
	case accepts(accept, mediaNDJSON, mediaJSON):
		return &lines
	}
	return nil
}

// head begins the answer of a stream.
func (f *framing) head(w http.ResponseWriter) {
	head := w.Header()
	head["Content-Type"] = f.media
	head["Cache-Control"] = noStore
	w.WriteHeader(http.StatusOK)
}

// noStore keeps whoever is between from waiting for the end of a stream.
var noStore = []string{"no-store"}
