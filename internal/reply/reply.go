// Package reply reads what a server over HTTP says: why it refused, when it
// wants to be asked again, and as much of its answer as is kept. It decides
// nothing about what becomes of the work.
package reply

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Bounds of what is kept of an answer.
const (
	ExcerptBytesMax = 2 << 10
	ReadBytesMax    = 64 << 10 // of an answer that only explains its status
)

// Refusal is what an answer says that is no success. mask takes secrets out of
// it, before anything is cut.
func Refusal(resp *http.Response, body []byte, mask *strings.Replacer) job.Failure {
	f := job.Failure{
		Type:      "http " + strconv.Itoa(resp.StatusCode),
		Message:   strings.TrimSpace("answered " + mask.Replace(resp.Status)),
		Status:    resp.StatusCode,
		Backtrace: Excerpt(mask.Replace(string(body[:min(len(body), ReadBytesMax)]))),
	}
	switch line := FirstLine(f.Backtrace); {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		f.Message += "; redirects are not followed: " + FirstLine(mask.Replace(HeaderText(resp.Header.Get("Location"))))
	case line != "":
		f.Message += ": " + line
	}
	return f
}

// After reads the header Retry-After: seconds, or a date. What is neither says nothing.
func After(text string) (span, date job.Millis) {
	const most = 24 * job.Hour
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return job.Millis(min(seconds, uint64(most/job.Second))) * job.Second, 0
	}
	if at, err := http.ParseTime(text); err == nil && at.UnixMilli() > 0 {
		return 0, job.Millis(at.UnixMilli())
	}
	return 0, 0
}

// Excerpt is the beginning of an answer, if it is text.
func Excerpt(body string) string {
	if strings.IndexByte(body, 0) >= 0 {
		return ""
	}
	return Clip(body, ExcerptBytesMax)
}

// Clip keeps the beginning of a text.
func Clip(text string, bytesMax int) string {
	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), bytesMax)], ""))
}

// FirstLine is as much of a text as a message has room for.
func FirstLine(text string) string {
	const bytesMax = 200
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > bytesMax {
		return strings.ToValidUTF8(line[:bytesMax], "") + "…"
	}
	return strings.TrimSpace(line)
}

// HeaderText keeps a text within what a header may hold.
func HeaderText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return '?'
		}
		return r
	}, s))
}

// IsToken reports whether a text may name a header (RFC 9110, 5.6.2).
func IsToken(s string) bool {
	return s != "" && len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// IsTimeout reports whether a call failed because its time was over.
func IsTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// Cause is an error of a call without the method and address that nobody need repeat.
func Cause(err error) string {
	if inner, ok := errors.AsType[*url.Error](err); ok {
		return inner.Err.Error()
	}
	return err.Error()
}
