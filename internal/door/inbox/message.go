package inbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

// Message is a message as it came in.
type Message struct {
	Headers []job.Label // sorted by name, names canonical
	Payload []byte      // JSON, as it was given
	Err     error       // what is wrong with this message alone; nil = nothing
}

// MessagesMax is how many messages one bulk may have.
const MessagesMax = 100_000

// TypeDefault is the type of a message that names none.
const TypeDefault = "message"

// spelled are the headers of the reference as it writes them.
var spelled = func() map[string]string {
	list := map[string]string{}
	for _, name := range []string{
		wire.CorrelateID, wire.CorrelateTimestamp, wire.CorrelateTTL, wire.CorrelateExpiration, wire.CorrelateEncoding,
		wire.CorrelateType, wire.CorrelateNamespace, wire.CorrelateName, wire.CorrelateRevision,
	} {
		list[name], list[strings.ToLower(name)] = name, name
	}
	return list
}()

// Keeps reports whether a header of a request belongs to the message: those
// of the reference, and the ones that the settings look at.
func (s *Settings) Keeps(name string) bool {
	const prefix = "x-correlate-"
	return len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) ||
		s.Group.header != "" && strings.EqualFold(name, s.Group.header) ||
		s.Sort.header != "" && strings.EqualFold(name, s.Sort.header)
}

// Single makes a message of the headers of a request, those that Keeps keeps,
// and its body.
func Single(headers map[string][]string, s *Settings, body []byte) Message {
	m := Message{Payload: own(body)}
	for name, values := range headers {
		if s.Keeps(name) {
			m.put(name, strings.Join(values, ", "))
		}
	}
	m.seal()
	if len(m.Payload) == 0 {
		m.fail("payload", "the body is empty; send the payload, which is any JSON")
	}
	if value := jsontext.Value(m.Payload); m.Err == nil && !value.IsValid(jsontext.AllowDuplicateNames(true)) {
		m.Err = undecodable(value.Compact(jsontext.AllowInvalidUTF8(false)))
	}
	m.readable()
	return m
}

// readable refuses a payload that who gets the message could not read.
func (m *Message) readable() {
	if m.Err != nil {
		return
	}
	if at, why := job.Unreadable(m.Payload); why != "" {
		m.Err = refuse("payload"+at, "payload"+at+" "+why)
	}
}

// own copies a payload out of the buffer it was read from. A line break in it,
// which can only be white space, would end a line where messages are exported.
func own(raw []byte) []byte {
	value := jsontext.Value(bytes.Clone(bytes.TrimSpace(raw)))
	if bytes.ContainsAny(value, "\r\n") {
		_ = value.Compact(jsontext.AllowDuplicateNames(true)) // what is not well formed is refused later
	}
	return value
}

func undecodable(err error) error {
	return refuse("payload", "the payload is not JSON: "+shorten(strings.TrimPrefix(fmt.Sprint(err), "jsontext: ")))
}

// put adds a header.
func (m *Message) put(name, value string) {
	if why := wrongHeader(name); why != "" {
		m.fail("headers", "the header "+strconv.Quote(shorten(name))+" "+why)
	}
	if strings.ContainsAny(value, "\x00\r\n") {
		m.fail("headers", "the header "+shorten(name)+" contains line breaks or null bytes")
	}
	m.Headers = append(m.Headers, job.Label{Key: canonical(name), Value: value})
}

// seal puts the headers in order, once all are there.
func (m *Message) seal() {
	slices.SortFunc(m.Headers, func(a, b job.Label) int { return cmp.Compare(a.Key, b.Key) })
	size := 0
	for i, h := range m.Headers {
		size += len(h.Key) + len(h.Value)
		if i > 0 && m.Headers[i-1].Key == h.Key {
			m.fail("headers", "the header "+h.Key+" is there twice")
		}
	}
	if len(m.Headers) > job.LabelsMax || size > job.LabelBytesMax {
		m.fail("headers", "the headers of a message must not be more than "+strconv.Itoa(job.LabelsMax)+", or "+strconv.Itoa(job.LabelBytesMax)+" bytes together")
	}
}

func (m *Message) fail(field, text string) {
	if m.Err == nil {
		m.Err = refuse(field, text)
	}
}

// header is the value of a header by its canonical name, "" if it is not there.
func (m *Message) header(name string) string {
	for i := range m.Headers {
		if m.Headers[i].Key == name {
			return m.Headers[i].Value
		}
	}
	return ""
}

// Fill makes n, which is empty, the message as the engine takes it, received now.
// What is wrong with it, if anything, is m.Err from then on.
func (m *Message) Fill(ctx context.Context, n *engine.NewJob, inbox string, s *Settings, now job.Millis) {
	n.Payload, n.Key = m.Payload, m.header(wire.CorrelateID)
	j := &n.Job
	j.Door, j.Queue, j.Priority, j.RetainDone, j.RetainDead = job.DoorInbox, inbox, job.PriorityDefault, job.Unset, job.Unset
	if len(m.Headers) > 0 {
		j.Extras = &job.Extras{Labels: m.Headers}
	}
	if len(n.Key) > groupMax {
		m.fail(wire.CorrelateID, wire.CorrelateID+" must not be longer than "+strconv.Itoa(groupMax)+" bytes")
	}
	switch e := m.header(wire.CorrelateEncoding); strings.ToLower(e) {
	case "", "json", "jackson":
	default:
		m.fail(wire.CorrelateEncoding, "the payload cannot be decoded: "+wire.CorrelateEncoding+" is "+strconv.Quote(shorten(e))+"; use json (or jackson, which is the same)")
	}
	j.Type = m.typeName()
	timestamp := m.instant(wire.CorrelateTimestamp)
	j.ExpiresAt = job.Millis(max(m.instant(wire.CorrelateExpiration)/1000, 0))
	ttl := s.TTL
	if text := m.header(wire.CorrelateTTL); text != "" {
		var err error
		if ttl, err = job.ParseSpan(text); err != nil {
			m.fail(wire.CorrelateTTL, wire.CorrelateTTL+" is no span of time: "+err.Error())
		} else if ttl > ttlMost {
			m.fail(wire.CorrelateTTL, wire.CorrelateTTL+" must be at most "+iso(ttlMost))
		}
	}
	if ttl > 0 {
		j.GraceUntil = now.Add(ttl)
	}
	j.Ranked, j.Rank = s.Sort != Sort{}, m.rank(s.Sort, timestamp, now)
	if m.Err == nil {
		j.Group, m.Err = s.Group.of(ctx, m)
	}
}

// rank is the place of the message in its group, by which it is sorted.
func (m *Message) rank(by Sort, timestamp int64, now job.Millis) int64 {
	switch by.by {
	case byTimestamp:
		if timestamp == 0 {
			return int64(now) * 1000
		}
		return timestamp
	case byHeader:
		n, err := strconv.ParseInt(m.header(by.header), 10, 64)
		if err != nil {
			m.fail(by.header, "the header "+by.header+", by which the inbox sorts, must be a whole number")
		}
		return n
	case bySequence:
	}
	return 0
}

// typeName is the full name of the type, as the reference makes it up.
func (m *Message) typeName() string {
	name := m.header(wire.CorrelateType)
	if space, short := m.header(wire.CorrelateNamespace), m.header(wire.CorrelateName); name == "" && space != "" && short != "" {
		name = space + "." + short
	}
	if len(name) > groupMax || strings.ContainsAny(name, ",*?[]{}\\") {
		m.fail(wire.CorrelateType, "the type of the payload must be at most "+strconv.Itoa(groupMax)+" bytes, without , * ? [ ] { } \\")
	}
	return cmp.Or(name, TypeDefault)
}

// instant reads a header that holds a date, in microseconds since the epoch; 0
// = it is not there.
func (m *Message) instant(name string) int64 {
	text := m.header(name)
	if text == "" {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if year := t.Year(); err != nil || year < 1970 || year > 9999 {
		m.fail(name, name+" must be a date such as 2026-11-18T08:18:51.112Z, with its zone, not "+strconv.Quote(shorten(text)))
		return 0
	}
	return t.UnixMicro()
}

// ReadBulk reads {"messages": [{"headers": {...}, "payload": ...}, ...]}. What
// is wrong with one message is in its Err; an error is about the whole body.
func ReadBulk(body []byte) ([]Message, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, strict.Empty(`{"messages": [...]}, JSON`, nil)
	}
	b := bulk{dec: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true))}
	b.object(func() string { return "the body" }, func(name string) {
		if name != "messages" {
			b.fail(name, "is not known here; the body is {\"messages\": [...]}")
			return
		}
		b.there = true
		b.begin(func() string { return "messages" }, jsontext.KindBeginArray, "an array")
		for b.err == nil && b.dec.PeekKind() != jsontext.KindEndArray {
			if len(b.list) == MessagesMax {
				b.fail("messages", "must not be more than "+strconv.Itoa(MessagesMax))
				return
			}
			b.message()
		}
		b.token()
	})
	if b.err == nil && !b.there {
		b.fail("messages", "is missing; the body is {\"messages\": [...]}")
	}
	if b.err == nil {
		if _, err := b.dec.ReadToken(); !errors.Is(err, io.EOF) {
			b.err = refuse("", "invalid JSON: there is more after the first value")
		}
	}
	return b.list, b.err
}

// bulk reads a body from the left.
type bulk struct {
	dec   *jsontext.Decoder
	list  []Message
	there bool
	err   error
}

func (b *bulk) fail(field, why string) {
	if b.err == nil {
		b.err = refuse(field, field+" "+why)
	}
}

func (b *bulk) token() jsontext.Token {
	if b.err != nil {
		return jsontext.Token{}
	}
	t, err := b.dec.ReadToken()
	if err != nil {
		b.err = refuse("", "invalid JSON: "+shorten(strings.TrimPrefix(err.Error(), "jsontext: ")))
	}
	return t
}

func (b *bulk) begin(field func() string, kind jsontext.Kind, want string) {
	if b.err == nil && b.dec.PeekKind() != kind && b.dec.PeekKind() != jsontext.KindInvalid {
		b.fail(field(), "must be "+want)
	}
	b.token()
}

// object reads an object; member reads the value of each. field is only asked for
// when something is wrong.
func (b *bulk) object(field func() string, member func(name string)) {
	b.begin(field, jsontext.KindBeginObject, "an object")
	for b.err == nil && b.dec.PeekKind() != jsontext.KindEndObject {
		if name := b.token().String(); b.err == nil {
			member(name)
		}
	}
	b.token()
}

func (b *bulk) message() {
	var m Message
	at := func() string { return "messages[" + strconv.Itoa(len(b.list)) + "]" }
	b.object(at, func(name string) {
		switch name {
		case "headers":
			b.object(func() string { return at() + ".headers" }, func(name string) {
				if b.dec.PeekKind() != jsontext.KindString {
					b.fail(at()+".headers."+name, "must be a text")
					return
				}
				m.put(name, b.token().String())
			})
		case "payload":
			raw, err := b.dec.ReadValue()
			if err != nil {
				b.err = refuse("", "invalid JSON: "+shorten(strings.TrimPrefix(err.Error(), "jsontext: ")))
			}
			m.Payload = own(raw)
		default:
			b.fail(at()+"."+name, "is not known here; a message has headers and payload")
		}
	})
	if m.seal(); m.Payload == nil {
		m.fail("payload", "payload is missing")
	}
	m.readable()
	b.list = append(b.list, m)
}
