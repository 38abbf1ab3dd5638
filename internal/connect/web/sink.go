// Package web delivers to an HTTP endpoint by POST: one message as it is, or a
// batch of one group as JSON that is answered message by message.
//
// It tells what the target said and decides nothing: 2xx is OK, everything
// else a failure with its status, and what the target itself says of a message.
// Redirects are not followed, no proxy is used, and every dial is held against
// the rules of egress.
package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/reply"
)

// Options describe a sink. Zero values are the defaults.
type Options struct {
	URL    string
	Egress *connect.Egress // what may be called; nil = that URL and nothing else
	// Batch: the body is the JSON of a batch, also of one message. Else a
	// delivery is one message, and its body is sent as it is.
	Batch       bool
	Header      map[string]string // sent with each request, over what messages bring
	Timeout     time.Duration     // of a whole delivery; default 30 s, at most an hour
	Connections int               // kept open for the next delivery; default 16
	UserAgent   string            // default "reprise"
	Mask        []string          // secrets: not in what is kept of an answer; those below 4 bytes are left
}

// Bounds.
const (
	timeoutDefault     = 30 * time.Second
	TimeoutMax         = time.Hour
	connectionsDefault = 16
	ConnectionsMax     = 1024
	resultsBytesMax    = 8 << 20  // read of the results of a batch
	headerBytesMax     = 64 << 10 // of an answer
	headersMax         = 64       // of Options
)

// Sink is one endpoint. It implements connect.Sink.
type Sink struct {
	o    Options
	mask *strings.Replacer
	http *http.Client
}

var _ connect.Sink = (*Sink)(nil)

// New makes a sink, or tells which option is wrong: the field of its errors is
// url, header, timeout or connections. Nothing is called yet.
func New(o Options) (*Sink, error) {
	if o.Egress == nil {
		only, err := connect.Only(o.URL)
		if err != nil {
			return nil, wrong("url", err)
		}
		o.Egress = only
	}
	if err := o.Egress.Check(o.URL); err != nil {
		return nil, wrong("url", err)
	}
	switch {
	case o.Timeout < 0 || o.Timeout > TimeoutMax:
		return nil, bad("timeout", "must be between 1 ms and %s, or 0 for %s", TimeoutMax, timeoutDefault)
	case o.Connections < 0 || o.Connections > ConnectionsMax:
		return nil, bad("connections", "must be between 1 and %d, or 0 for %d", ConnectionsMax, connectionsDefault)
	case len(o.Header) > headersMax:
		return nil, bad("header", "there may be at most %d", headersMax)
	}
	for name, value := range o.Header {
		switch {
		case !reply.IsToken(name) || value != reply.HeaderText(value):
			return nil, bad("header", "%q is no header", name)
		case reserved(name):
			return nil, bad("header", "%q is set by Reprise itself", name)
		}
	}
	if o.Timeout == 0 {
		o.Timeout = timeoutDefault
	}
	if o.Connections == 0 {
		o.Connections = connectionsDefault
	}
	if o.UserAgent == "" {
		o.UserAgent = "reprise"
	}
	return &Sink{o: o, mask: reply.Masks(o.Mask), http: &http.Client{
		Transport: &http.Transport{
			DialContext:            o.Egress.Dial,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    o.Connections,
			IdleConnTimeout:        90 * time.Second,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: headerBytesMax,
			DisableCompression:     true, // what is read is bounded as it comes
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close implements connect.Sink.
func (s *Sink) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Same reports whether another sink sends the same headers.
func (s *Sink) Same(other connect.Sink) bool {
	o, ok := other.(*Sink)
	return ok && maps.Equal(s.o.Header, o.o.Header)
}

// Deliver implements connect.Sink. Without Options.Batch a batch holds one message.
func (s *Sink) Deliver(ctx context.Context, b *connect.Batch) []connect.Result {
	if len(b.Messages) == 0 || !s.o.Batch && len(b.Messages) > 1 {
		panic(fmt.Sprintf("web: a delivery of %d messages", len(b.Messages)))
	}
	own, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	req, err := s.request(own, b)
	if err != nil {
		return spread(b, failed(connect.TypeNetwork, err.Error()))
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return spread(b, s.unanswered(ctx, own, err))
	}
	defer func() { _ = resp.Body.Close() }()
	most := int64(reply.ReadBytesMax)
	if s.o.Batch {
		most = resultsBytesMax
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	whole := s.judge(resp, body)
	if !s.o.Batch {
		return []connect.Result{whole} // the status is the answer, whatever becomes of the body
	}
	switch {
	case err != nil && whole.Outcome == job.OK: // it may have said that some failed
		return spread(b, s.unanswered(ctx, own, fmt.Errorf("the answer broke off: %w", err)))
	case int64(len(body)) > most && whole.Outcome == job.OK:
		return spread(b, failed(connect.TypeAnswer, fmt.Sprintf("the answer is longer than %d bytes", most)))
	}
	return s.results(b, whole, resp, body)
}

// unanswered is the result when there is no answer. ctx is the caller's, own
// ends at the timeout too.
func (s *Sink) unanswered(ctx, own context.Context, err error) connect.Result {
	refused, isRefused := errors.AsType[*connect.Refused](err)
	switch {
	case isRefused:
		return failed(connect.TypeEgress, refused.Error())
	case ctx.Err() != nil: // the caller's time is nobody's failure
		return connect.Result{Outcome: job.Released}
	case own.Err() != nil || reply.IsTimeout(err):
		r := failed(connect.TypeTimeout, fmt.Sprintf("no answer within %s", s.o.Timeout))
		r.Failure.Timeout = true
		return r
	}
	return failed(connect.TypeNetwork, s.mask.Replace(reply.Cause(err)))
}

func failed(kind, message string) connect.Result {
	return connect.Result{Outcome: job.Retried, Failure: job.Failure{Type: kind, Message: message}}
}

func wrong(field string, err error) error {
	return &job.Error{Kind: job.Invalid, Field: field, Text: err.Error()}
}

func bad(field, format string, args ...any) error {
	e := job.Errorf(job.Invalid, field+" "+format, args...)
	e.Field = field
	return e
}
