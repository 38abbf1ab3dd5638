package compat

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What concerns a server as a whole has servers of its own.

var ways = []struct {
	h2     bool
	format string
}{{false, mediaJSON}, {true, mediaMsgpack}, {true, mediaJSON}, {false, mediaMsgpack}}

func TestQueuesCountsAndReset(t *testing.T) { // item 14
	t.Parallel()
	s := start(t)
	for _, way := range ways {
		c := newClient(t, s, way.h2, way.format, nil)
		for _, queue := range []string{"b", "a", "é", "a"} {
			c.call("POST", "/jobs", fmt.Sprintf(`{"type":"t","queue":%q,"payload":null}`, queue)).want(201)
		}
		same(t, "queues", c.call("GET", "/queues", nil).want(200).value, `{"queues":["a","b","é"]}`)
		for query, want := range map[string]int64{"": 4, "queue=a": 2, "queue=a,b": 3, "queue=nobody": 0, "status=ready": 4, "status=dead": 0, "type=t": 4} {
			if n := number(t, c.call("GET", "/jobs/count?"+query, nil).want(200).at("count")); n != want {
				t.Errorf("%s: %d, want %d", query, n, want)
			}
		}
		c.call("PUT", "/crons/g", `{"entries":[{"name":"e","expression":"0 0 1 1 *","job":{"type":"t","queue":"q","payload":null}}]}`).want(200)
		c.call("PUT", "/budgets/k", `{"allocation":1,"strategy":{"type":"while_in_flight"}}`).want(200)
		held := c.takeOver(c.takes, "/jobs/take")
		id := held.next().id()
		if a := c.call("POST", "/reset", nil).want(204); a.body != "" {
			t.Errorf("a 204 has a body: %q", a.body)
		}
		same(t, "queues", c.call("GET", "/queues", nil).want(200).value, `{"queues":[]}`)
		same(t, "crons", c.call("GET", "/crons", nil).want(200).value, `{"crons":[]}`)
		same(t, "budgets", c.call("GET", "/budgets", nil).want(200).value, `{"budgets":[]}`)
		same(t, "all", c.call("GET", "/jobs/count", nil).want(200).value, `{"count":0}`)
		c.call("POST", "/jobs/"+id+"/success", nil).want(404) // it vanished under its worker
		held.close()
	}
}

func TestABackupIsTheServerAgain(t *testing.T) { // item 16; under load: TestABackupUnderLoadHoldsWhatWasAccepted
	t.Parallel()
	s := start(t)
	for i, way := range ways[:2] {
		c := newClient(t, s, way.h2, way.format, nil)
		c.enqueueMany(50)
		c.queue += fmt.Sprint(i)
		unique := c.enqueue(`,"unique_key":"` + c.queue + `"`).id()
		c.enqueue(`,"ready_at":4102444800000,"retry_limit":3`)
		c.call("PUT", "/crons/g", `{"entries":[{"name":"e","expression":"0 0 1 1 *","job":{"type":"t","queue":"q","payload":null}}]}`).want(200)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		resp, err := c.calls.Do(c.request(ctx, "POST", "/backup", nil, "Accept", absent))
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/gzip" {
			t.Fatalf("%d %s, %v", resp.StatusCode, resp.Header, err)
		}
		file, root := filepath.Join(t.TempDir(), "backup.tar.gz"), filepath.Join(t.TempDir(), fmt.Sprint("root", i))
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "restore", file, "--root-dir", root).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		again := newClient(t, start(t, "--root-dir", root), way.h2, way.format, nil)
		again.queue = c.queue
		for _, path := range []string{"/jobs?limit=200", "/queues", "/crons/g", "/jobs/count?status=scheduled"} {
			if got, want := again.call("GET", path, nil).want(200).value, c.call("GET", path, nil).want(200).value; text(got) != text(want) {
				t.Errorf("%s is\n     %s\nwant %s", path, text(got), text(want))
			}
		}
		if a := again.call("POST", "/jobs", `{"type":"t","queue":"q","payload":null,"unique_key":"`+c.queue+`"}`).want(200); a.id() != unique {
			t.Errorf("the unique key leads to %s, want %s", a.id(), unique)
		}
	}
}
