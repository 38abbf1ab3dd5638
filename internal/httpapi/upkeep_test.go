package httpapi_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/internal/job"
)

// keeper is a store whose backup breaks off after some bytes.
type keeper struct {
	refuse error
	done   atomic.Int32
}

func (k *keeper) Backup(context.Context) (func(io.Writer) error, func(), error) {
	if k.refuse != nil {
		return nil, nil, k.refuse
	}
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Repeat("x", 100_000))
		return errors.Join(err, errors.New("the disk failed"))
	}
	return write, func() { k.done.Add(1) }, nil
}

func (k *keeper) Compact(context.Context) error { return k.refuse }

// A backup that breaks off must not look like a whole answer, on either
// protocol, and lets go of what it holds.
func TestABackupThatBreaksOffBreaksTheAnswer(t *testing.T) {
	k := &keeper{}
	bothProtocols(t, httpapi.Options{Upkeep: k}, func(t *testing.T, a *api) {
		before := k.done.Load()
		resp, err := a.client.Do(a.request("POST", "/backup", ""))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if n, err := io.Copy(io.Discard, resp.Body); err == nil {
			t.Errorf("%d bytes, and a clean end", n)
		}
		if k.done.Load() != before+1 {
			t.Error("it was not let go of")
		}
		a.audited("backup broken off", "100000 bytes", "")
	})
}

// audited wants the latest entry of the audit log.
func (a *api) audited(action, subject, by string) {
	a.t.Helper()
	var e map[string]any
	a.eventually("the audit log tells of "+action, func() bool { // of one that broke off, the answer ends before
		list := object(a.t, a.want(200, "*", "GET", "/audit?limit=1", ""))["entries"].([]any)
		if len(list) > 0 {
			e = list[0].(map[string]any)
		}
		return e != nil && e["action"] == action
	})
	if name, _ := e["by"].(string); e["subject"] != subject || name != by || e["from"] != "127.0.0.1" || e["at"] == nil {
		a.t.Errorf("audited as %v", e)
	}
}

// sound is a store whose backup is whole.
type sound struct{ keeper }

func (*sound) Backup(context.Context) (func(io.Writer) error, func(), error) {
	write := func(w io.Writer) error { _, err := io.WriteString(w, strings.Repeat("x", 70_000)); return err }
	return write, func() {}, nil
}

func TestABackupIsAudited(t *testing.T) { // who, when, from where, how much
	a := start(t, httpapi.Options{Upkeep: &sound{}})
	resp, err := a.client.Do(a.request("POST", "/backup", "", "Reprise-Actor", "ann"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if _ = resp.Body.Close(); err != nil || resp.StatusCode != 200 || n != 70_000 {
		t.Fatalf("%d with %d bytes, %v", resp.StatusCode, n, err)
	}
	a.audited("backup", "70000 bytes", "ann")
	if got := a.call("POST", "/backup", "", "Reprise-Actor", strings.Repeat("x", 1000)); got.status != 400 {
		t.Errorf("a name that cannot be: %d %.100s", got.status, got.body)
	}
}

func TestWhatUpkeepRefusesIsAnswered(t *testing.T) {
	k := &keeper{refuse: job.Errorf(job.OverLimit, "a backup is being made already")}
	a := start(t, httpapi.Options{Upkeep: k})
	for _, path := range []string{"/backup", "/compact"} {
		a.want(503, `{"error":"a backup is being made already","code":"over_limit"}`, "POST", path, "")
		a.want(405, "", "GET", path, "")
	}
	k.refuse = nil
	a.want(204, "", "POST", "/compact", "")
	b := start(t, httpapi.Options{})
	for _, path := range []string{"/backup", "/compact"} {
		b.want(404, `{"error":"this server's store is looked after elsewhere","code":"not_found"}`, "POST", path, "")
	}
}
