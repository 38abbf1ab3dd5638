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
	})
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
