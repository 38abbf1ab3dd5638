package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const aTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestTheTraceContextReachesWhatRuns(t *testing.T) {
	t.Setenv("TRACEPARENT", "of the worker itself")
	var seen http.Header
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header }))
	defer target.Close()
	for _, want := range []string{aTrace, ""} {
		d := delivery()
		d.Job.Traceparent = want
		if err := newPoster(target.URL, time.Minute, 1).handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if got := seen.Get("traceparent"); got != want {
			t.Errorf("the target is sent the trace context %q, want %q", got, want)
		}
	}
	var out bytes.Buffer
	c := shell(`printf %s "$TRACEPARENT"`)
	c.stdout = &out
	d := delivery()
	d.Job.Traceparent = aTrace
	if err := c.handle(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if out.String() != aTrace {
		t.Errorf("the command finds %q", out.String())
	}
}
