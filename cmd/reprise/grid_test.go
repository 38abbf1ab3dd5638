package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestCommandsOfTheGridSayWhatTheyTake(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"drain", "takes one argument, the id of an engine"},
		{"drain a b", "takes one argument, the id of an engine"},
		{"status", "takes one argument, the id of a session"},
		{"submit a b", "takes one argument, a file, but was given 2 arguments"},
		{"set s --suspend --resume", "--suspend and --resume exclude each other"},
		{"set s", "say what is to change"},
		{"set s -O weight", "write it as NAME=VALUE"},
	} {
		out, stderr, code := cli(t, "", append([]string{"grid"}, strings.Fields(c.args)...)...)
		if code != 2 || out != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %q\n%s", c.args, code, out, stderr)
		}
	}
}

// Who collects waits for a server that does not answer, and says so.
func TestACollectorSaysThatItWaits(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"it starts","code":"unavailable"}`))
			return
		}
		_, _ = w.Write([]byte(`{"results":[],"next":0,"ended":true}`))
	}))
	defer s.Close()
	out, stderr, code := cli(t, "", "grid", "results", "s", "--url", s.URL)
	if code != 0 || out != "" || strings.Count(stderr, "trying again until the server answers") != 1 || !strings.Contains(stderr, "it starts") {
		t.Errorf("exit code %d, %q\n%s", code, out, stderr)
	}
}

// A command that asks or changes one thing gives up at the first call, as those of
// the other doors do: it would be silent while it tried on.
func TestGridCommandsGiveUpAtTheFirstCall(t *testing.T) {
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte(`{"error":"it starts","code":"unavailable"}`))
	}))
	defer s.Close()
	for _, args := range []string{
		"status s", "status s --watch", "set s --suspend", "set s -O weight=1", "cancel s", "cancel s --forget",
		"clear s", "sessions", "engines", "task s 1", "drain e", "submit --session s", "submit",
	} {
		before := calls.Load()
		out, stderr, code := cli(t, "1\n", append([]string{"grid", "--url", s.URL}, strings.Fields(args)...)...)
		if n := calls.Load() - before; n != 1 || code != 1 || out != "" || !strings.Contains(stderr, "it starts") {
			t.Errorf("%s: %d calls, exit code %d, %q\n%s", args, n, code, out, stderr)
		}
	}
}
