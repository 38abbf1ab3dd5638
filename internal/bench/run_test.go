package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// small are options for a run that proves the mechanics and measures nothing.
func small(t *testing.T, phases ...string) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Default()
	if len(phases) > 0 {
		o.Phases = phases
	}
	o.Window = 100 * time.Millisecond
	o.Jobs = 2000
	o.Connections = 4
	o.Streams = 20
	o.Pairs = 2
	o.Executable = self
	o.RootDir = t.TempDir()
	return o
}

func TestEveryPhaseRunsAgainstServersOfItsOwn(t *testing.T) {
	t.Parallel()
	o := small(t)
	report, err := Run(t.Context(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !report.Complete || len(report.Skipped) > 0 {
		t.Errorf("complete %v, skipped %v", report.Complete, report.Skipped)
	}
	if report.Version != "0.0.0-fake" {
		t.Errorf("version %q", report.Version)
	}
	for _, phase := range PhaseNames() {
		if !strings.Contains(printed(t, report), "\n"+phase+" ") {
			t.Errorf("the report has no figure of phase %s", phase)
		}
	}
	if left, err := os.ReadDir(o.RootDir); err != nil || len(left) > 0 {
		t.Errorf("left behind in the root directory: %v (%v)", left, err)
	}
	var out bytes.Buffer
	if err := report.WriteJSON(&out); err != nil || !json.Valid(out.Bytes()) {
		t.Errorf("the report is not valid JSON: %v", err)
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPhasesRunAgainstAServerThatIsRunning(t *testing.T) {
	t.Parallel()
	f := newFake()
	s := httptest.NewServer(f)
	defer s.Close()
	o := small(t)
	o.URL = s.URL
	o.Rate = 500
	report, err := Run(t.Context(), o, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Skipped) != 3 {
		t.Errorf("skipped %v, expected memory, idle and restart", report.Skipped)
	}
	if n := len(f.jobs); n != 0 {
		t.Errorf("%d jobs were left in a server that is not ours", n)
	}
}

func TestARunFailsWhenTheServerIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		phase    string
		fault    func(*fake)
		expected string
	}{
		"an accepted single is lost":      {"singles", func(f *fake) { f.forget = 50 }, "the number of unfinished jobs in queue"},
		"an accepted batch lacks a job":   {"bulk", func(f *fake) { f.forget = 1100 }, "the number of unfinished jobs in queue"},
		"a backlog lacks a job":           {"drain", func(f *fake) { f.forget = 1999 }, "after filling: verification"},
		"a job is delivered twice":        {"drain", func(f *fake) { f.repeat = 5 }, "was delivered twice"},
		"an enqueue is refused":           {"steady", func(f *fake) { f.refuse = 120 }, "enqueue answered 503: {\"error\":\"the disk is full\"}"},
		"a refusal in an open loop":       {"latency", func(f *fake) { f.refuse = 10 }, "enqueue answered 503"},
		"a failed attempt is not counted": {"storm", func(f *fake) { f.uncounted = true }, "the number of failed attempts is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			test.fault(f)
			s := httptest.NewServer(f)
			defer s.Close()
			o := small(t, test.phase)
			o.URL = s.URL
			report, err := Run(t.Context(), o, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.expected) {
				t.Fatalf("error %v, expected one with %q", err, test.expected)
			}
			if report.Complete || !strings.Contains(printed(t, report), "INCOMPLETE") {
				t.Error("the report does not say that the run ended early")
			}
		})
	}
}

func TestAnInterruptedRunLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	o := small(t, "steady")
	o.Window = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	started := &notice{on: "steady", then: cancel}
	report, err := Run(ctx, o, started)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Fatalf("error %v, expected one that says interrupted", err)
	}
	if report.Complete {
		t.Error("an interrupted report says that it is complete")
	}
	if left, err := os.ReadDir(o.RootDir); err != nil || len(left) > 0 {
		t.Errorf("left behind in the root directory: %v (%v)", left, err)
	}
}

// notice calls then when a progress line contains on.
type notice struct {
	on   string
	then func()
}

func (n *notice) Write(p []byte) (int, error) {
	if strings.Contains(string(p), n.on) {
		n.then()
	}
	return len(p), nil
}

func TestAServerThatCannotStartIsQuoted(t *testing.T) {
	t.Parallel()
	o := small(t, "bulk")
	o.ServerArgs = []string{"--no-such-flag"}
	_, err := Run(t.Context(), o, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "no-such-flag") {
		t.Fatalf("error %v, expected one with the server's own words", err)
	}
}

func TestOptionsReportAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	o := Default()
	o.Phases = []string{"singles", "sprint"}
	o.Jobs = 1
	o.Payload = 3
	o.Sync = "never"
	o.URL = "ftp://example.com"
	err := o.Validate()
	for _, expected := range []string{`no phase "sprint"`, "jobs: 1", "payload: 3", `sync: "never"`, "url:"} {
		if err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("error %v lacks %q", err, expected)
		}
	}
}

func TestPhasesRunOverTLS(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(newFake())
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails
	s.StartTLS()
	defer s.Close()
	o := small(t, "singles", "steady")
	o.URL = s.URL
	if _, err := Run(t.Context(), o, io.Discard); err == nil {
		t.Error("a server that nobody vouches for was measured")
	}
	o.TLS = s.Client().Transport.(*http.Transport).TLSClientConfig
	if report, err := Run(t.Context(), o, io.Discard); err != nil || !report.Complete {
		t.Errorf("%+v, %v", report, err)
	}
}
