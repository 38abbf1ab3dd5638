package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	grid "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// commitCommand runs a task whose attempts wait for each other, so that two of them
// ask, and does what must not be done twice if the server says that it may.
const commitCommand = `cd "$DIR" && echo "$REPRISE_WORKER" >> begun
while [ $(wc -l < begun) -lt 2 ]; do sleep 0.02; done
if "$BIN" grid try-commit 2>> refused; then echo "$REPRISE_WORKER" >> effects; echo '"done"'; else sleep 60; fi`

// Two attempts run and both ask: one may do what must not be done twice, its result
// is that of the task, and the other is stopped. Once with the binary, once with
// engines in Go. (A19 of the reference, from outside.)
func TestA19OneOfTwoAttemptsCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	c, err := grid.New(s.url, grid.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	copied := map[string]any{"task_max_time": "100ms", "on_timeout": "reschedule", "collection": "later"}

	t.Run("reprise engine", func(t *testing.T) {
		for _, id := range []string{"a", "b"} {
			runCommandEngine(t, s, id, "commands", commitCommand, "DIR="+dir, "BIN="+binary, "REPRISE_URL="+s.url)
		}
		state := oneTask(t, c, "commands", copied)
		effects, err := os.ReadFile(filepath.Join(dir, "effects"))
		if err != nil || strings.Count(string(effects), "\n") != 1 {
			t.Errorf("the effect was done by %q (%v)", effects, err)
		}
		committedOnce(t, state, strings.TrimSpace(string(effects)), `"done"`)
	})
	t.Run("client.Engine", func(t *testing.T) {
		begun, effects := make(chan struct{}, 2), make(chan string, 2)
		both := make(chan struct{})
		go func() {
			<-begun
			<-begun
			close(both)
		}()
		for _, id := range []string{"c", "d"} {
			runGoEngine(t, c, id, "go", func(ctx context.Context, d *grid.Delivery) error {
				begun <- struct{}{}
				<-both
				if yes, err := d.TryCommit(ctx); err != nil || !yes {
					<-ctx.Done()
					if why := context.Cause(ctx); !errors.Is(why, grid.ErrVoided) {
						t.Errorf("the attempt that may not commit was ended by %v", why)
					}
					return ctx.Err()
				}
				effects <- id
				return d.SetResult("done")
			})
		}
		state := oneTask(t, c, "go", copied)
		if len(effects) != 1 {
			t.Fatalf("the effect was done %d times", len(effects))
		}
		committedOnce(t, state, <-effects, `"done"`)
	})
	t.Run("an engine ends a run by itself (A10)", func(t *testing.T) { // the server would, an hour later
		runCommandEngine(t, s, "e", "mute", "sleep 60", "REPRISE_URL="+s.url)
		state := oneTask(t, c, "mute", map[string]any{"task_max_time": "100ms", "timeout_slack": "1h", "max_retries": 0, "collection": "later"})
		if a := state.Attempts; state.State != "failed" || len(a) != 1 || a[0].Reason != "timeout" || a[0].Charged != "retry" {
			t.Errorf("%+v", state)
		}
	})
}

// runCommandEngine runs "reprise engine" for a session until the test ends.
func runCommandEngine(t *testing.T, s *server, id, session, command string, env ...string) {
	t.Helper()
	engine := exec.Command(binary, "engine", "--id", id, "--host", "host-"+id, "--session", session, "--exec", command, "--url", s.url)
	engine.Env = append(os.Environ(), env...)
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Process.Signal(os.Interrupt); _ = engine.Wait() })
}

func runGoEngine(t *testing.T, c *grid.Client, id, session string, handle grid.Handler) {
	t.Helper()
	e, err := grid.NewEngine(c, handle, grid.EngineOptions{ID: id, Host: "host-" + id, Sessions: []string{session}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// oneTask submits a task to a session of its own and waits until it is over.
func oneTask(t *testing.T, c *grid.Client, session string, options map[string]any) *wire.TaskState {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.OpenSession(ctx, grid.SessionOptions{ID: session, Options: options})
	if err == nil {
		_, err = s.Submit(ctx, grid.Task{Seq: 1, Payload: 1})
	}
	if err == nil {
		_, err = s.Close(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	results := 0
	for _, err := range s.Results(ctx, 0) {
		if results++; err != nil {
			t.Fatal(err)
		}
	}
	state, err := s.Task(ctx, "1")
	if err != nil || results != 1 {
		t.Fatalf("%d results (%v)", results, err)
	}
	return state
}

// committedOnce wants a task of two attempts to be done by that of one engine.
func committedOnce(t *testing.T, state *wire.TaskState, engine, result string) {
	t.Helper()
	got := map[string]string{}
	for _, a := range state.Attempts {
		got[a.Engine] = fmt.Sprint(a.Reason, " ", a.Committed)
	}
	if state.State != "completed" || string(state.Result) != result || state.Retries != 0 || len(state.Attempts) != 2 || got[engine] != "ok true" {
		text, _ := json.Marshal(state)
		t.Errorf("committed by %s: %s", engine, text)
	}
	delete(got, engine)
	for other, how := range got {
		if how != "superseded false" {
			t.Errorf("the other attempt, on %s, ended as %s", other, how)
		}
	}
}
