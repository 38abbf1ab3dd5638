package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestEnqueueWithAUniqueKeyOrABatchSaysWhatBecameOfTheJob(t *testing.T) {
	url := serverURL(t)
	add := func(queue string, args ...string) string {
		return well(t, append([]string{"enqueue", "--url", url, "--queue", queue, "--type", "t"}, args...)...)
	}
	first := field(t, add("keys", "--unique-key", "k", "--unique-while", "active", "--json"), "id")
	if out := add("other", "--unique-key", "k"); out != first+" is already in queue keys (ready); nothing was added\n" {
		t.Error(out)
	}
	if out := well(t, "jobs", "show", "--url", url, first); !strings.Contains(out, "k, while active") {
		t.Error(out)
	}
	batch := []string{"--batch-key", "b", "--batch-fold", "$existing + $new"}
	into := field(t, add("keys", append(batch, "--payload", "[1]", "--json")...), "id")
	if out := add("other", append(batch, "--payload", "[2]")...); out != into+" in queue keys took it in\n" {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "lines.ndjson")
	if err := os.WriteFile(file, []byte("[3]\n[4]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := add("other", append(batch, "--ndjson", file)...); !strings.HasPrefix(out, "0 new jobs in queue other, 2 were taken in by a waiting job") {
		t.Error(out)
	}
	out := well(t, "jobs", "show", "--url", url, into)
	if !strings.Contains(out, "b; when true; fold $existing + $new") || !strings.Contains(strings.Join(strings.Fields(out), ""), "[1,2,3,4]") {
		t.Error(out)
	}
	if out := add("keys", append(batch, "--batch-when", "false", "--payload", "[5]")...); !strings.HasSuffix(out, "took it in\n") {
		t.Errorf("the first one's condition holds: %s", out)
	}
}

func TestEnqueueRefusesHalfAKey(t *testing.T) {
	url := serverURL(t)
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"--unique-while", "active"}, "--unique-while needs --unique-key", 2},
		{[]string{"--batch-key", "k"}, "a batch needs --batch-key and --batch-fold", 2},
		{[]string{"--batch-fold", "$new"}, "a batch needs --batch-key and --batch-fold", 2},
		{[]string{"--batch-key", "k", "--batch-fold", "$new", "--unique-key", "k"}, "exclude each other", 2},
		{[]string{"--unique-key", "k", "--unique-while", "never"}, "unique_while must be one of queued active exists", 1},
		{[]string{"--batch-key", "k", "--batch-fold", "$new |"}, "batch expression: fold: ", 1},
	} {
		_, stderr, code := cli(t, "", append([]string{"enqueue", "--url", url, "--queue", "half", "--type", "t"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// Who waits is told why, and once.
func TestEnqueueWithAKeySaysThatItTriesOn(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"it starts","code":"unavailable"}`))
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"id":"01JD0000000000000000000000"}`))
	}))
	defer s.Close()
	args := []string{"enqueue", "--url", s.URL, "--queue", "q", "--type", "t"}
	out, stderr, code := cli(t, "", append(args, "--idempotency-key", "k")...)
	if code != 0 || calls.Load() != 3 || !strings.Contains(out, "01JD0000000000000000000000") {
		t.Errorf("exit code %d after %d calls, %q\n%s", code, calls.Load(), out, stderr)
	}
	if strings.Count(stderr, "Trying on for up to 5s") != 1 || !strings.Contains(stderr, "it starts") {
		t.Errorf("it said %q", stderr)
	}
	calls.Store(0)
	if _, stderr, code := cli(t, "", args...); code != 1 || calls.Load() != 1 || strings.Contains(stderr, "Trying") {
		t.Errorf("without a key: exit code %d after %d calls\n%s", code, calls.Load(), stderr)
	}
}
