package e2e

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// The connection over which an engine asked for a task breaks when the task is its
// own, and it never hears of it. It lives and says what it has, so another engine
// gets the task, and nobody is to blame.
func TestATaskWhoseAnswerWasLostRunsElsewhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, filepath.Join(dir, "root"), "-c", write(t, filepath.Join(dir, "grid.yaml"), gridConfig))
	c := dial(s.url)
	t.Cleanup(c.close)
	c.must(t, 201, nil, "POST", "/sessions", wire.OpenSession{ID: "s"})
	c.must(t, 201, nil, "POST", "/sessions/s/tasks", wire.Tasks{Tasks: []wire.Task{{Seq: 1, Payload: []byte("1")}}})
	login := func(id string) (in wire.LoggedIn) {
		t.Helper()
		c.must(t, 201, &in, "POST", "/engines", wire.Login{ID: id, Slots: 1})
		return in
	}
	task := func() (is wire.TaskState) {
		t.Helper()
		c.must(t, 200, &is, "GET", "/sessions/s/tasks/1", nil)
		return is
	}

	deaf := login("deaf")
	conn, err := net.DialTimeout("tcp", s.addr, patience)
	if err != nil {
		t.Fatal(err)
	}
	ask := fmt.Sprintf(`{"engine":"deaf","epoch":%d,"max":1}`, deaf.Epoch)
	if _, err := fmt.Fprintf(conn, "POST /jobs/lease HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", s.addr, len(ask), ask); err != nil {
		t.Fatal(err)
	}
	until(t, "the task is that of the engine", func() (bool, string) {
		is := task()
		return is.State == wire.TaskActive, fmt.Sprint(is)
	})
	if err := conn.Close(); err != nil { // the answer was not read
		t.Fatal(err)
	}

	other := login("other")
	var got wire.Leases
	until(t, "another engine has the task", func() (bool, string) {
		c.must(t, 200, nil, "POST", "/engines/deaf/heartbeat", wire.Heartbeat{Epoch: deaf.Epoch, Running: []wire.Running{}})
		c.must(t, 200, nil, "POST", "/engines/other/heartbeat", wire.Heartbeat{Epoch: other.Epoch})
		c.must(t, 200, &got, "POST", "/jobs/lease", map[string]any{"engine": "other", "epoch": other.Epoch, "max": 1})
		return len(got.Jobs) == 1, fmt.Sprint(task())
	})
	settle := []wire.Settle{{ID: got.Jobs[0].ID, Lease: got.Jobs[0].Lease, Outcome: wire.OutcomeOK}}
	c.must(t, 200, nil, "POST", "/jobs/settle", settle)
	is := task()
	if is.State != wire.TaskDone || is.Retries+is.Losses+is.Evictions+is.Reschedules != 0 || len(is.Attempts) != 2 ||
		is.Attempts[0].Reason != wire.EndedUndelivered || is.Attempts[0].Charged != "" || is.Attempts[1].Engine != "other" {
		t.Errorf("%+v", is)
	}
}
