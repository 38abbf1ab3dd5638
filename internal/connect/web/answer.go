package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
)

// Bounds of what is kept of an answer.
const (
	excerptBytesMax = 2 << 10
	typeBytesMax    = 256
)

// judge is what an answer says as a whole: 2xx is OK, everything else a
// failure with its status, for the policy to decide about.
func (s *Sink) judge(resp *http.Response, body []byte) connect.Result {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return connect.Result{Outcome: job.OK}
	}
	r := failed("http "+strconv.Itoa(code), strings.TrimSpace("answered "+s.mask.Replace(resp.Status)))
	r.Failure.Status, r.Failure.Backtrace = code, excerpt(s.mask.Replace(string(body[:min(len(body), answerBytesMax)])))
	switch line := firstLine(r.Failure.Backtrace); {
	case code >= 300 && code < 400:
		r.Failure.Message += "; redirects are not followed: " + firstLine(s.mask.Replace(headerText(resp.Header.Get("Location"))))
	case line != "":
		r.Failure.Message += ": " + line
	}
	r.RetryAfter, r.NotBefore = retryAfter(resp.Header.Get("Retry-After"))
	return r
}

// retryAfter reads the header: seconds, or a date. What is neither says nothing.
func retryAfter(text string) (span, date job.Millis) {
	const most = 24 * job.Hour
	if seconds, err := strconv.ParseUint(text, 10, 63); err == nil {
		return job.Millis(min(seconds, uint64(most/job.Second))) * job.Second, 0
	}
	if at, err := http.ParseTime(text); err == nil && at.UnixMilli() > 0 {
		return 0, job.Millis(at.UnixMilli())
	}
	return 0, 0
}

// answer is what a target may say of each message of a batch, whatever the
// status of its answer.
type answer struct {
	Results *[]said `json:"results"`
}

type said struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"` // ok, retry, dead or release
	Error   struct {
		Message   string `json:"message"`
		ErrorType string `json:"error_type"`
		Backtrace string `json:"backtrace"`
		Status    int    `json:"status"`
		Timeout   bool   `json:"timeout"`
	} `json:"error"`
	RetryAfterMS int64  `json:"retry_after_ms"` // of retry and dead
	RetryAfter   string `json:"retry_after"`    // of retry and dead: seconds, or a date
	DelayMS      int64  `json:"delay_ms"`       // of release
}

// results takes the answer to a batch apart. What it does not speak of has the
// whole's result; when that is OK and there are results, it failed: a target
// that lists some has to list all.
func (s *Sink) results(b *connect.Batch, whole connect.Result, resp *http.Response, body []byte) []connect.Result {
	var a answer
	err := json.Unmarshal(body, &a)
	switch kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); {
	case err == nil && a.Results != nil:
	case err != nil && whole.Outcome == job.OK && kind == jsonType && len(bytes.TrimSpace(body)) > 0:
		return spread(b, failed(connect.TypeAnswer, "the results cannot be read: "+s.mask.Replace(err.Error())))
	default:
		return spread(b, whole)
	}
	byID := make(map[string]*said, len(*a.Results))
	twice := map[string]bool{}
	for i := range *a.Results {
		r := &(*a.Results)[i]
		r.mask(s.mask)
		twice[r.ID] = byID[r.ID] != nil
		byID[r.ID] = r
	}
	list := make([]connect.Result, len(b.Messages))
	for i := range b.Messages {
		id := b.Messages[i].ID
		var r connect.Result
		switch one := byID[id]; {
		case one == nil && whole.Outcome == job.OK:
			r = failed(connect.TypeAnswer, "the results say nothing of this message")
		case one == nil:
			r = whole
		case twice[id]:
			r = failed(connect.TypeAnswer, "the results speak of this message twice")
		default:
			r = one.result(resp)
		}
		list[i] = r
	}
	return list
}

// spread gives each message the whole's result.
func spread(b *connect.Batch, whole connect.Result) []connect.Result {
	list := make([]connect.Result, len(b.Messages))
	for i := range list {
		list[i] = whole
	}
	return list
}

// result is what the target said of one message.
func (s *said) result(resp *http.Response) connect.Result {
	switch s.Outcome {
	case job.OK.String():
		return connect.Result{Outcome: job.OK}
	case job.Released.String():
		return connect.Result{Outcome: job.Released, Delay: min(max(job.Millis(s.DelayMS), 0), job.MaxMillis)}
	case job.Retried.String(), job.Died.String():
	default:
		return failed(connect.TypeAnswer, fmt.Sprintf("the outcome of this message is %q; it has to be ok, retry, dead or release", firstLine(s.Outcome)))
	}
	r := failed(clip(s.Error.ErrorType, typeBytesMax), clip(s.Error.Message, job.MatchBytesMax))
	if s.Outcome == job.Died.String() {
		r.Outcome = job.Died
	}
	if f := &r.Failure; f.Message == "" {
		f.Message = "the target said " + s.Outcome
	}
	r.Failure.Backtrace, r.Failure.Timeout = excerpt(s.Error.Backtrace), s.Error.Timeout
	if s.Error.Status >= 100 && s.Error.Status < 1000 {
		r.Failure.Status = s.Error.Status
	}
	switch {
	case s.RetryAfterMS > 0:
		r.RetryAfter = min(job.Millis(s.RetryAfterMS), job.Day)
	case s.RetryAfter != "":
		r.RetryAfter, r.NotBefore = retryAfter(s.RetryAfter)
	default:
		r.RetryAfter, r.NotBefore = retryAfter(resp.Header.Get("Retry-After"))
	}
	return r
}

// excerpt is the beginning of an answer, if it is text.
func excerpt(body string) string {
	if strings.IndexByte(body, 0) >= 0 {
		return ""
	}
	return clip(body, excerptBytesMax)
}

// masks replaces secrets, also as JSON and HTML write them, and what stands behind
// the scheme of one such as "Bearer x". It is used before a text is cut: the
// beginning of a secret would not be found.
func masks(secrets []string) *strings.Replacer {
	const least = 4 // bytes; a shorter one would be found everywhere
	for _, s := range secrets {
		if _, credentials, has := strings.Cut(s, " "); has {
			secrets = append(secrets[:len(secrets):len(secrets)], credentials)
		}
	}
	var all []string
	for _, s := range secrets {
		if len(s) < least {
			continue
		}
		var plain bytes.Buffer
		e := json.NewEncoder(&plain)
		e.SetEscapeHTML(false)
		escaped, err := json.Marshal(s)
		if err = errors.Join(err, e.Encode(s)); err != nil {
			continue // a text is never refused
		}
		inJSON := unquoted(bytes.TrimSpace(plain.Bytes()))
		all = append(all, s, inJSON, strings.ReplaceAll(inJSON, "/", `\/`), unquoted(escaped), html.EscapeString(s))
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one that holds another goes first
	pairs := make([]string, 0, 2*len(all))
	for _, s := range slices.Compact(all) {
		pairs = append(pairs, s, "********")
	}
	return strings.NewReplacer(pairs...)
}

func unquoted(text []byte) string { return string(text[1 : len(text)-1]) }

func (s *said) mask(m *strings.Replacer) {
	for _, text := range []*string{&s.Outcome, &s.Error.Message, &s.Error.ErrorType, &s.Error.Backtrace} {
		*text = m.Replace(*text)
	}
}

// clip keeps the beginning of a text.
func clip(text string, bytesMax int) string {
	return strings.TrimSpace(strings.ToValidUTF8(text[:min(len(text), bytesMax)], ""))
}

func firstLine(text string) string {
	const bytesMax = 200
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > bytesMax {
		return strings.ToValidUTF8(line[:bytesMax], "") + "…"
	}
	return strings.TrimSpace(line)
}
