package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// works runs a worker of the Go client on a queue until the test ends.
func works(t *testing.T, url, queue string, events client.Events, handle client.Handler) {
	t.Helper()
	cl, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.NewWorker(cl, handle, client.WorkerOptions{Queues: []string{queue}, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		cl.Close()
	})
}

func TestCancelStopsTheWorkerThatRunsTheJob(t *testing.T) {
	url := serverURL(t)
	started, lost, cause := make(chan struct{}, 1), make(chan string, 1), make(chan error, 1)
	works(t, url, "cancel", client.Events{
		Voided:  func(d *client.Delivery, _ error) { lost <- d.Job.ID },
		Refused: func(s wire.Settle, v wire.Verdict) { t.Errorf("settled %+v: %+v", s, v) },
	}, func(ctx context.Context, _ *client.Delivery) error {
		started <- struct{}{}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	})
	id := field(t, well(t, "enqueue", "--url", url, "--queue", "cancel", "--type", "t", "--json"), "id")
	<-started
	if out := well(t, "jobs", "cancel", "--url", url, id, "--reason", "withdrawn"); out != "1 job cancelled\n" {
		t.Error(out)
	}
	if err := <-cause; !errors.Is(err, client.ErrVoided) || !strings.Contains(err.Error(), "cancel") {
		t.Errorf("the handler's ctx ended with %v", err)
	}
	if got := <-lost; got != id {
		t.Errorf("lost %s", got)
	}
	if out := well(t, "jobs", "show", "--url", url, id); !strings.Contains(out, "dead (cancelled)") || strings.Count(out, ": withdrawn") != 2 || !strings.Contains(out, "cancelled by ") {
		t.Error(out)
	}
	if _, stderr, code := cli(t, "", "jobs", "cancel", "--url", url, id); code != 1 || !strings.Contains(stderr, "cannot cancel a job that is dead") || strings.Contains(stderr, "before") {
		t.Errorf("%d: %s", code, stderr)
	}
	if _, stderr, code := cli(t, "", "jobs", "cancel", "--url", url); code != 2 || !strings.Contains(stderr, "name the jobs to cancel") {
		t.Errorf("%d: %s", code, stderr)
	}
}

func TestACheckpointIsThereForTheNextAttempt(t *testing.T) {
	url := serverURL(t)
	second := make(chan *wire.Progress, 1)
	works(t, url, "pages", client.Events{}, func(ctx context.Context, d *client.Delivery) error {
		if d.Attempt() == 2 {
			second <- d.Job.Progress
			return nil
		}
		half := 0.5
		if err := d.Report(ctx, wire.Progress{Fraction: &half, Text: "page 10", Checkpoint: json.RawMessage(`{"page":10}`)}); err != nil {
			return err
		}
		//nolint:contextcheck // a command line has a context of its own
		if out := well(t, "jobs", "show", "--url", url, d.Job.ID); !strings.Contains(out, `50 %, page 10, checkpoint {"page":10}, told `) {
			t.Error(out)
		}
		t.Setenv("REPRISE_ID", d.Job.ID)
		t.Setenv("REPRISE_LEASE", d.Job.Lease)
		well(t, "jobs", "progress", "--url", url, "--checkpoint", `{"page":11}`) //nolint:contextcheck // as above
		return client.RetryIn(errors.New("later"), 0)
	})
	well(t, "enqueue", "--url", url, "--queue", "pages", "--type", "t")
	p := <-second
	if p == nil || string(p.Checkpoint) != `{"page":11}` || p.Fraction != nil || p.Text != "" {
		t.Errorf("the second attempt got %+v", p)
	}
}

func TestProgressNeedsAJobAndALease(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "needs a job and its lease"},
		{[]string{"03gq0x7k2m4v9c1d8f5h6j0a1"}, "needs a job and its lease"},
		{[]string{"03gq0x7k2m4v9c1d8f5h6j0a1", "--lease", "x", "--checkpoint", "page 10"}, "--checkpoint is not JSON"},
	} {
		if _, stderr, code := cli(t, "", append([]string{"jobs", "progress"}, tt.args...)...); code != 2 || !strings.Contains(stderr, tt.want) {
			t.Errorf("%v: %d %s", tt.args, code, stderr)
		}
	}
}

func TestManyAreCancelledOnlyWithYes(t *testing.T) {
	url := serverURL(t)
	for range 2 {
		well(t, "enqueue", "--url", url, "--queue", "off", "--type", "t")
	}
	for _, dry := range [][]string{nil, {"--dry-run"}} {
		out := well(t, append([]string{"jobs", "cancel", "--url", url, "--queue", "off"}, dry...)...)
		if strings.Count(out, "ready") != 2 || !strings.HasSuffix(out, "2 jobs would be cancelled; add --yes to do it\n") {
			t.Error(out)
		}
	}
	if _, stderr, code := cli(t, "", "jobs", "cancel", "--url", url, "--queue", "off", "--dry-run", "--yes"); code != 2 {
		t.Errorf("%d: %s", code, stderr)
	}
	if out := well(t, "jobs", "cancel", "--url", url, "--queue", "off", "--yes"); out != "2 jobs cancelled\n" {
		t.Error(out)
	}
	if out := well(t, "jobs", "list", "--url", url, "--reason", "cancelled", "--queue", "off"); strings.Count(out, "dead (cancelled)") != 2 {
		t.Error(out)
	}
	if out := well(t, "dead", "list", "--url", url, "--queue", "off"); strings.Contains(out, "cancelled") {
		t.Error(out)
	}
}
