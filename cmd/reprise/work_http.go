package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/client"
	policies "github.com/reprisehq/reprise/internal/policy"
	"github.com/reprisehq/reprise/internal/server"
)

// poster posts each job to one URL.
type poster struct {
	url     string
	timeout time.Duration
	result  bool // the body of a 2xx answer is what the job made
	http    *http.Client
}

// answerBytesMax is how much of an answer is read: an excerpt is kept of a
// refusal, and a body that is read to its end frees the connection.
const answerBytesMax = 64 << 10

func newPoster(target string, timeout time.Duration, concurrency int) *poster {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, concurrency
	return &poster{url: target, timeout: timeout, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// handle posts one job.
func (p *poster) handle(ctx context.Context, d *client.Delivery) error {
	own, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(own, http.MethodPost, p.url, bytes.NewReader(d.Job.Payload))
	if err != nil {
		return client.Dead(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "reprise/"+server.Version)
	req.Header.Set("Reprise-Id", d.Job.ID)
	req.Header.Set("Reprise-Queue", headerText(d.Job.Queue))
	req.Header.Set("Reprise-Type", headerText(d.Job.Type))
	req.Header.Set("Reprise-Attempt", strconv.Itoa(d.Attempt()))
	if t := d.Traceparent(); t != "" {
		req.Header.Set("Traceparent", t)
	}
	resp, err := p.http.Do(req)
	if err == nil {
		// The status is the answer, whatever becomes of the body.
		if p.result && resp.StatusCode/100 == 2 {
			err := keepBody(d, resp.Body)
			_ = resp.Body.Close()
			return err
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, answerBytesMax))
		_ = resp.Body.Close()
		return judge(resp, body, time.Now())
	}
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return errStopped
	case ctx.Err() != nil: // the job's own run timeout
		return &client.Failure{Type: "timeout", Message: context.Cause(ctx).Error(), Timeout: true, Err: err}
	case own.Err() != nil:
		return &client.Failure{Type: "timeout", Message: fmt.Sprintf("no answer within %s", p.timeout), Timeout: true, Err: err}
	}
	return &client.Failure{Type: "network", Message: cause(err), Err: err}
}

// judge turns an answer into the end of the attempt.
func judge(resp *http.Response, body []byte, now time.Time) error {
	code := resp.StatusCode
	if code >= 200 && code < 300 {
		return nil
	}
	failure := &client.Failure{
		Type: "http " + strconv.Itoa(code), Status: code,
		Message: strings.TrimSpace("answered " + resp.Status), Backtrace: excerpt(body),
	}
	if line := firstLine(failure.Backtrace); line != "" {
		failure.Message += ": " + line
	}
	switch {
	case code >= 300 && code < 400:
		failure.Message = fmt.Sprintf("answered %s; redirects are not followed, so give --http the address it points to: %s",
			resp.Status, resp.Header.Get("Location"))
		return client.Dead(failure)
	case policies.FinalStatus(code):
		return client.Dead(failure)
	}
	if wait := client.ParseRetryAfter(resp.Header.Get("Retry-After"), now); wait > 0 {
		return client.RetryAfter(failure, wait)
	}
	return failure
}

// excerpt is the beginning of an answer, if it is text.
func excerpt(body []byte) string {
	const bytesMax = 2 << 10
	if bytes.IndexByte(body, 0) >= 0 {
		return ""
	}
	if len(body) > bytesMax {
		body = body[:bytesMax]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(body), ""))
}

func firstLine(text string) string {
	const bytesMax = 200
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > bytesMax {
		return strings.ToValidUTF8(line[:bytesMax], "") + "…"
	}
	return strings.TrimSpace(line)
}

// headerText keeps a name within what a header may hold.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// cause is the error without the method and URL that the job's log need not
// repeat.
func cause(err error) string {
	if post, ok := errors.AsType[*url.Error](err); ok {
		err = post.Err
	}
	return err.Error()
}
