package child

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestAddressReadsTheListeningLine(t *testing.T) {
	for line, want := range map[string]string{
		`{"level":"INFO","fields":{"message":"listening","api":"primary","addr":"127.0.0.1:7890","scheme":"http"}}`: "127.0.0.1:7890",
		`{"fields":{"api":"admin","addr":"127.0.0.1:1"}}`:                                                           "",
		`{"api":"primary"}`:  "",
		`"api":"primary" no`: "",
		``:                   "",
	} {
		if got := address([]byte(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

func TestALogIsReadLineByLineHoweverItArrives(t *testing.T) {
	var file strings.Builder
	l := &log{to: &file, heard: make(chan listening, 1)}
	text := strings.Repeat("noise\n", 20) + `{"fields":{"api":"primary","addr":"h:1"},"api":"primary"}` + "\nrest"
	for _, b := range []byte(text) {
		if _, err := l.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if heard := <-l.heard; heard.addr != "h:1" || file.String() != text {
		t.Errorf("%+v from %q", heard, file.String())
	}
	if tail := l.tail(); !strings.HasSuffix(tail, "\n  rest") || strings.Count(tail, "\n") != 8 {
		t.Errorf("%q", tail)
	}
}

func TestTheProcessesAreNotConfiguredByOurEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "REPRISE_PORT=1", "ZIZQ_PORT=2", "XREPRISE_=3"})
	if !slices.Equal(got, []string{"PATH=/bin", "XREPRISE_=3"}) {
		t.Errorf("%q", got)
	}
}

func TestAProcessIsStoppedOnceAndKilledWhenAsked(t *testing.T) {
	run := func(line string) *Process {
		p, err := Start(t.Context(), "/bin/sh", nil, nil, "-c", line)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := run("exit 3")
	<-p.Exited
	if err := p.Ended(); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("it ended so: %v", err)
	}
	if err := p.Stop(); err == nil {
		t.Error("a bad end was not told")
	}
	p = run("exec sleep 600")
	if err := p.Ended(); err != nil {
		t.Errorf("it runs: %v", err)
	}
	p.Kill()
	if err := p.Stop(); err != nil {
		t.Errorf("what we killed is no error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, "/bin/sh", nil, nil, "-c", "true"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
