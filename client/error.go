package client

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Error is a refusal by the server. Compare codes, never messages:
//
//	var refused *client.Error
//	if errors.As(err, &refused) && refused.Code == wire.CodeNotFound { ... }
type Error struct {
	Status     int    // of HTTP
	Code       string // one of wire.Codes; "" if something between us answered
	Message    string
	RetryAfter time.Duration // the server asked to wait so long; 0 = it did not say
	Lock       *wire.Lock    // of the code locked: who has it until when
}

func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("%s (HTTP %d)", e.Message, e.Status)
	}
	return fmt.Sprintf("%s (%s, HTTP %d)", e.Message, e.Code, e.Status)
}

// Temporary reports whether the same request may succeed later.
func (e *Error) Temporary() bool {
	switch e.Status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500
}

// NoAnswerError is a call to which no answer came: nobody could be reached, or the
// connection ended before. What was asked for may have been done nevertheless.
type NoAnswerError struct {
	URL   string // of the server
	Why   string // in words
	cause error
}

func (e *NoAnswerError) Error() string { return e.URL + " does not answer: " + e.Why }
func (e *NoAnswerError) Unwrap() error { return e.cause }

// whyNoAnswer says in words what became of a connection. Those of Go name the request
// and its address again.
func whyNoAnswer(err error) string {
	if cut := (*url.Error)(nil); errors.As(err, &cut) {
		err = cut.Err
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return "there is no host " + name.Name
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate cannot be verified (" + strings.TrimPrefix(err.Error(), "tls: failed to verify certificate: ") + ")"
	}
	why, isCall := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return "it speaks http, not https"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was cut"
	case isCall:
		return why.Error()
	}
	return err.Error()
}

// CodeOf returns the code of a refusal anywhere in err, "" if there is none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// errorOf reads a refusal.
func errorOf(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, RetryAfter: ParseRetryAfter(resp.Header.Get("Retry-After"), time.Now())}
	raw, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var body struct {
		wire.Error
		Lock *wire.Lock `json:"lock"`
	}
	if json.Unmarshal(raw, &body) == nil && body.Error.Error != "" {
		e.Code, e.Message, e.Lock = body.Code, body.Error.Error, body.Lock
		return e
	}
	e.Message = "the answer was " + resp.Status
	if text := strings.TrimSpace(string(raw)); text != "" && len(text) < 300 {
		e.Message = text
	}
	if to := resp.Header.Get("Location"); to != "" {
		e.Message += ", which points to " + to
	}
	return e
}

// ParseRetryAfter reads a Retry-After header: seconds or a date. What is
// neither is 0, and a day is the most.
func ParseRetryAfter(text string, now time.Time) time.Duration {
	const most = 24 * time.Hour
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		if seconds > uint64(most/time.Second) {
			return most
		}
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), most)
	}
	return 0
}

// again reports whether repeating a call that ended so can help: the server
// said "later", or there was no whole answer.
func again(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Temporary()
	}
	return true
}
