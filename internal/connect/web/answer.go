package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/reply"
)

const typeBytesMax = 256 // of an error that the target names

// judge is what an answer says as a whole: 2xx is OK, everything else a
// failure with its status, for the policy to decide about.
func (s *Sink) judge(resp *http.Response, body []byte) connect.Result {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return connect.Result{Outcome: job.OK}
	}
	r := connect.Result{Outcome: job.Retried, Failure: reply.Refusal(resp, body, s.mask)}
	r.RetryAfter, r.NotBefore = reply.After(resp.Header.Get("Retry-After"))
	return r
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
		return failed(connect.TypeAnswer, fmt.Sprintf("the outcome of this message is %q; it has to be ok, retry, dead or release", reply.FirstLine(s.Outcome)))
	}
	r := failed(reply.Clip(s.Error.ErrorType, typeBytesMax), reply.Clip(s.Error.Message, job.MatchBytesMax))
	if s.Outcome == job.Died.String() {
		r.Outcome = job.Died
	}
	if f := &r.Failure; f.Message == "" {
		f.Message = "the target said " + s.Outcome
	}
	r.Failure.Backtrace, r.Failure.Timeout = reply.Excerpt(s.Error.Backtrace), s.Error.Timeout
	if s.Error.Status >= 100 && s.Error.Status < 1000 {
		r.Failure.Status = s.Error.Status
	}
	switch {
	case s.RetryAfterMS > 0:
		r.RetryAfter = min(job.Millis(s.RetryAfterMS), job.Day)
	case s.RetryAfter != "":
		r.RetryAfter, r.NotBefore = reply.After(s.RetryAfter)
	default:
		r.RetryAfter, r.NotBefore = reply.After(resp.Header.Get("Retry-After"))
	}
	return r
}

func (s *said) mask(m *strings.Replacer) {
	for _, text := range []*string{&s.Outcome, &s.Error.Message, &s.Error.ErrorType, &s.Error.Backtrace} {
		*text = m.Replace(*text)
	}
}
