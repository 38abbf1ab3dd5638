// Package demo shows what Reprise does, on a server of its own and with
// nothing faked: a real server process, a real worker process, a receiver that
// answers like one having a bad day, and a server killed in the middle. It
// counts what the server's API says and what the receiver saw, and compares
// the two.
package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/child"
	"github.com/reprisehq/reprise/wire"
)

// Options of Run.
type Options struct {
	Program string    // the reprise binary
	Events  io.Reader // NDJSON; each line is an object with a string field id
	Dir     string    // for the server's data and the processes' logs; must exist
	Seed    uint64    // of what the receiver does
	Out     io.Writer // progress, and the account at the end
	Live    bool      // Out is a terminal: one line that changes in place

	// Concurrency is how many deliveries run at the same time. 0 = 8.
	Concurrency int
	// Limit ends a run that does not end by itself. 0 = 2 minutes.
	Limit time.Duration
	// Weather is what the receiver does, from the start of the delivery on.
	// nil = usualWeather.
	Weather []spell
}

// queue is where the demo's jobs go.
const queue = "webhooks"

// Report is the account of a run.
type Report struct {
	Enqueued   int64   `json:"enqueued"`   // acknowledged by the server
	Delivered  int64   `json:"delivered"`  // different events the receiver answered 2xx for
	Attempts   int64   `json:"attempts"`   // by the server's count: failures and completions
	Retries    int64   `json:"retries"`    // failures that were followed by another attempt
	Dead       int64   `json:"dead"`       // given up
	Duplicates int64   `json:"duplicates"` // second and later 2xx for one event
	Lost       int64   `json:"lost"`       // acknowledged, and neither delivered nor dead
	KilledAt   int64   `json:"killed_at"`  // events delivered when the server was killed
	AwayMS     int64   `json:"away_ms"`    // from the kill until the server listened again
	TookMS     int64   `json:"took_ms"`
	Answers    answers `json:"answers"` // of the receiver
}

// Err is why the run failed, nil if it kept every promise.
func (r *Report) Err() error {
	if r.Lost != 0 {
		return fmt.Errorf("%d of %d acknowledged events were lost", r.Lost, r.Enqueued)
	}
	return nil
}

// Run plays the whole demo.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	o.Limit = cmp.Or(o.Limit, 2*time.Minute)
	if o.Weather == nil {
		o.Weather = usualWeather
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Limit, fmt.Errorf("the demo did not end within %s", o.Limit))
	defer cancel()
	d := &demo{Options: o, start: time.Now(), ids: map[string]bool{}}
	defer func() { err = errors.Join(err, d.close(ctx)) }()
	return d.run(ctx)
}

// demo is one run.
type demo struct {
	Options
	start    time.Time
	receiver *receiver
	server   *child.Process
	worker   *child.Process
	client   *client.Client
	addr     string // of the server
	ids      map[string]bool
	report   Report
}

func (d *demo) run(ctx context.Context) (*Report, error) {
	jobs, err := d.read()
	if err != nil {
		return nil, err
	}
	if d.receiver, err = newReceiver(d.Seed, d.Weather); err != nil {
		return nil, err
	}
	if err := d.startServer(ctx, "0"); err != nil {
		return nil, err
	}
	if err := d.enqueue(ctx, jobs); err != nil {
		return nil, err
	}
	d.say("%d events enqueued on a fresh server at %s, all acknowledged", d.report.Enqueued, d.addr)
	if err := d.startWorker(ctx); err != nil {
		return nil, err
	}
	d.receiver.begin(ctx)
	d.say("delivering to a receiver at %s that has a bad day", d.receiver.url())
	if err := d.watch(ctx); err != nil {
		return nil, d.explain(err)
	}
	if err := d.count(ctx); err != nil {
		return nil, d.explain(err)
	}
	if err := d.worker.Stop(); err != nil {
		return nil, d.explain(err)
	}
	return &d.report, nil
}

// read turns the events into jobs.
func (d *demo) read() ([]client.Job, error) {
	var jobs []client.Job
	lines := bufio.NewScanner(d.Events)
	lines.Buffer(nil, 16<<20)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		var event struct{ ID, Type, Account string }
		if err := json.Unmarshal(line, &event); err != nil || event.ID == "" {
			return nil, fmt.Errorf("line %d of the events is no JSON object with a field id", number)
		}
		if d.ids[event.ID] {
			return nil, fmt.Errorf("line %d of the events has the id %q of an earlier one", number, event.ID)
		}
		d.ids[event.ID] = true
		event.Type = cmp.Or(event.Type, "event")
		jobs = append(jobs, client.Job{
			Queue: queue, Type: event.Type, Group: event.Account,
			Payload:        json.RawMessage(bytes.Clone(line)),
			IdempotencyKey: event.ID,
			Retry: &wire.Retry{Limit: 50, Curve: &wire.Curve{
				Kind: wire.Exponential, Unit: "200ms", Factor: new(2.0), Cap: "2s", Jitter: "full",
			}},
			// Finished jobs stay, so that the server can be asked about them.
			Retention: &wire.Retention{CompletedMS: new(time.Hour.Milliseconds())},
		})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the events: %w", err)
	}
	if len(jobs) == 0 {
		return nil, errors.New("there are no events to deliver")
	}
	return jobs, nil
}

// launch runs the program, and adds all it writes to a log.
func (d *demo) launch(ctx context.Context, log string, args ...string) (*child.Process, error) {
	file, err := os.OpenFile(filepath.Join(d.Dir, log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return child.Start(ctx, d.Program, file, nil, args...)
}

// startPatience is how long the server may take to listen.
const startPatience = 20 * time.Second

func (d *demo) startServer(ctx context.Context, port string) (err error) {
	d.server, err = d.launch(ctx, "server.log",
		"serve", "--port", port, "--no-admin", "--root-dir", filepath.Join(d.Dir, "data"),
		"--log-format", "json", "--log-level", "info")
	if err != nil {
		return err
	}
	if d.addr, _, err = d.server.Listening(ctx, startPatience); err != nil {
		return err
	}
	if d.client == nil {
		d.client, err = client.New("http://"+d.addr, client.Options{})
	}
	return err
}

// enqueue sends the events in bulk. A part that got no answer is sent again,
// which their idempotency keys make harmless.
func (d *demo) enqueue(ctx context.Context, jobs []client.Job) error {
	const atOnce = 200
	for len(jobs) > 0 {
		n := min(atOnce, len(jobs))
		added, err := d.client.EnqueueBulk(ctx, jobs[:n])
		if err != nil {
			return err
		}
		d.report.Enqueued += int64(len(added))
		jobs = jobs[n:]
	}
	return nil
}

func (d *demo) startWorker(ctx context.Context) (err error) {
	d.worker, err = d.launch(ctx, "worker.log",
		"work", "--url", d.client.URL(), "--queue", queue, "--http", d.receiver.url(),
		"--concurrency", fmt.Sprint(d.Concurrency), "--timeout", "5s", "--drain-timeout", "10s",
		"--worker-id", "demo", "--verbose")
	return err
}

// count asks the server what became of the jobs, and compares.
func (d *demo) count(ctx context.Context) error {
	r := &d.report
	var completed int64
	for j, err := range d.client.List(ctx, client.Filter{Queues: []string{queue}, PageSize: wire.PageLimitMax}) {
		if err != nil {
			return err
		}
		r.Attempts += int64(j.Attempts)
		switch j.Status {
		case wire.Completed:
			completed++
		case wire.Dead:
			r.Dead++
			var event struct{ ID string }
			if json.Unmarshal(j.Payload, &event) == nil {
				delete(d.ids, event.ID) // accounted for
			}
		}
	}
	r.Retries = r.Attempts - r.Dead
	r.Attempts += completed
	ledger := d.receiver.ledger()
	for id, n := range ledger.delivered {
		if n > 1 {
			r.Duplicates += int64(n - 1)
		}
		delete(d.ids, id)
	}
	r.Delivered, r.Lost = int64(len(ledger.delivered)), int64(len(d.ids))
	r.Answers, r.TookMS = ledger.answers, time.Since(d.start).Milliseconds()
	if completed+r.Dead != r.Enqueued && r.Lost == 0 {
		return fmt.Errorf("the server counts %d completed and %d dead of %d enqueued, although the receiver has all",
			completed, r.Dead, r.Enqueued)
	}
	return nil
}

// explain adds the end of the logs to an error, unless somebody stopped us.
func (d *demo) explain(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("stopped before the end")
	}
	for _, p := range []*child.Process{d.server, d.worker} {
		if p != nil {
			err = fmt.Errorf("%w\n%s", err, p.LastWords())
		}
	}
	return err
}

// close stops what was started, in reverse.
func (d *demo) close(ctx context.Context) error {
	var errs []error
	if d.worker != nil {
		errs = append(errs, d.worker.Stop())
	}
	if d.server != nil {
		errs = append(errs, d.server.Stop())
	}
	if d.receiver != nil {
		d.receiver.close(ctx)
	}
	if d.client != nil {
		d.client.Close()
	}
	return errors.Join(errs...)
}

// NewDir makes a directory for a run, and returns what removes it.
func NewDir(parent string) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp(parent, "reprise-demo-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
