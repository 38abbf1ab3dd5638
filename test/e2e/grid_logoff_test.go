package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// An operator who takes an engine out at once ends its process, too: what it runs
// is stopped and given back without blame, and it does not log in again.
func TestAnEngineThatIsLoggedOffEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	run := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command(binary, append(args, "--url", s.url)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	task := func() (t wire.TaskState, err error) {
		err = json.Unmarshal([]byte(run("", "grid", "task", "s", "1", "--json")), &t)
		return t, err
	}
	var told bytes.Buffer
	engine := exec.Command(binary, "engine", "--id", "e", "--exec", "sleep 60", "--url", s.url)
	engine.Stderr = &told
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Process.Kill(); _ = engine.Wait() })
	run("1\n", "grid", "submit", "--session", "s")
	until(t, "the task runs", func() (bool, string) {
		is, err := task()
		return err == nil && len(is.Attempts) == 1 && is.Attempts[0].StartedAt > 0, fmt.Sprint(is, err)
	})
	run("", "grid", "drain", "e", "--at-once")
	if err := engine.Wait(); err == nil || !strings.Contains(told.String(), "it was logged off") {
		t.Errorf("it ends with %v\n%s", err, &told)
	}
	if is, err := task(); err != nil || is.State != wire.TaskWaiting || is.Retries != 0 || is.Evictions != 1 {
		t.Errorf("%+v, %v", is, err)
	}
	if out := run("", "grid", "engines", "--json"); out != "" {
		t.Errorf("it is there: %s", out)
	}
}
