package web

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"mime"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/reply"
)

// The modes of a batch.
const (
	modeAll       = "all"
	modeFailFirst = connect.FailFirst
)

// batch is the body of a request with Options.Batch.
type batch struct {
	Queue    string    `json:"queue"`
	Group    string    `json:"group,omitempty"`
	Mode     string    `json:"mode"` // fail_first: stop at the first message that fails
	Messages []message `json:"messages"`
}

// message is one of them. A body that is no JSON stands in payload_base64.
type message struct {
	ID          string            `json:"id"`
	Attempt     int               `json:"attempt"`
	Type        string            `json:"type,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content_type,omitempty"` // where it is not application/json
	Payload     json.RawMessage   `json:"payload,omitempty"`
	Base64      []byte            `json:"payload_base64,omitempty"`
}

func (s *Sink) request(ctx context.Context, b *connect.Batch) (*http.Request, error) {
	header := http.Header{}
	first := &b.Messages[0]
	body, kind := first.Body, first.ContentType
	if s.o.Batch {
		var err error
		if body, err = batchBody(b); err != nil {
			return nil, err
		}
		kind = jsonType
		header.Set("Reprise-Messages", strconv.Itoa(len(b.Messages)))
	} else {
		carry(header, first.Header)
		header.Set("Reprise-Id", reply.HeaderText(first.ID))
		header.Set("Reprise-Attempt", strconv.Itoa(first.Attempt))
		if first.Type != "" {
			header.Set("Reprise-Type", reply.HeaderText(first.Type))
		}
	}
	for name, value := range s.o.Header {
		header.Set(name, value)
	}
	header.Set("Reprise-Queue", reply.HeaderText(b.Queue))
	if b.Group != "" {
		header.Set("Reprise-Group", reply.HeaderText(b.Group))
	}
	header.Set("Idempotency-Key", idempotencyKey(b))
	if kind = reply.HeaderText(kind); kind == "" {
		kind = jsonType
	}
	header.Set("Content-Type", kind)
	header.Set("User-Agent", s.o.UserAgent)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return req, nil
}

const jsonType = "application/json"

func batchBody(b *connect.Batch) ([]byte, error) {
	out := batch{Queue: b.Queue, Group: b.Group, Mode: modeAll, Messages: make([]message, len(b.Messages))}
	if b.Stop {
		out.Mode = modeFailFirst
	}
	for i := range b.Messages {
		m := &b.Messages[i]
		to := &out.Messages[i]
		*to = message{ID: m.ID, Attempt: m.Attempt, Type: m.Type, Headers: m.Header}
		if m.ContentType != jsonType {
			to.ContentType = m.ContentType
		}
		if isJSON(m.ContentType) && json.Valid(m.Body) {
			to.Payload = m.Body
		} else {
			to.Base64 = m.Body
		}
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	err := e.Encode(&out)
	return buf.Bytes(), err
}

func isJSON(contentType string) bool {
	if contentType == "" || contentType == jsonType {
		return true
	}
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == jsonType || strings.HasSuffix(kind, "+json"))
}

// idempotencyKey is the same for the same messages, at every attempt.
func idempotencyKey(b *connect.Batch) string {
	if len(b.Messages) == 1 {
		return reply.HeaderText(b.Messages[0].ID)
	}
	h := sha256.New()
	for i := range b.Messages {
		_, _ = h.Write([]byte(b.Messages[i].ID + "\x00")) // a hash takes everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// carry copies the headers of a message that a request can have.
func carry(to http.Header, from map[string]string) {
	for name, value := range from {
		if reply.IsToken(name) && !reserved(name) {
			to.Set(name, reply.HeaderText(value))
		}
	}
}

// reserved are the headers that a request has from Reprise or its connection.
func reserved(name string) bool {
	switch name = textproto.CanonicalMIMEHeaderKey(name); name {
	case "Host", "Connection", "Content-Length", "Content-Type", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "User-Agent",
		"Accept-Encoding", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Expect", "Idempotency-Key":
		return true
	}
	return strings.HasPrefix(name, "Reprise-")
}
