// Command replaycheck lets many jobs die on a running server, replays them at a
// rate, and says how well the rate was held: over all, and second by second.
//
//	reprise serve --root-dir /tmp/check &
//	go run ./scripts/replaycheck -jobs 100000 -rate 5000
//
// It exits with 1 if the whole was more than 5 % off the rate, or if not every
// job was replayed exactly once. It works in queues of its own name and leaves
// its jobs there, ready; use a server that may be thrown away.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// off is how far the rate may be from what was asked for.
const off = 0.05

func main() {
	url := flag.String("url", "http://127.0.0.1:7890", "address of the server")
	jobs := flag.Int("jobs", 100_000, "jobs to replay")
	rate := flag.Float64("rate", 5000, "jobs a second")
	flag.Parse()
	if err := run(context.Background(), *url, *jobs, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "replaycheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, jobs int, rate float64) error {
	cl, err := client.New(url, client.Options{})
	if err != nil {
		return err
	}
	c := &check{cl: cl, url: url, queue: "replaycheck-" + strconv.FormatInt(time.Now().UnixMilli(), 36)}
	began := time.Now()
	if err := c.kill(ctx, jobs); err != nil {
		return err
	}
	fmt.Printf("%d jobs enqueued and dead in %.1f s\n", jobs, time.Since(began).Seconds())
	began = time.Now()
	groups := 0
	for _, err := range cl.DeadGroups(ctx, client.GroupFilter{Queues: []string{c.queue}}) {
		if err != nil {
			return err
		}
		groups++
	}
	fmt.Printf("GET /dead/groups: %d groups in %.1f ms\n", groups, float64(time.Since(began).Microseconds())/1000)
	r, err := c.replay(ctx, rate)
	if err != nil {
		return err
	}
	took := float64(r.FinishedAt-c.began.UnixMilli()) / 1000
	real := float64(r.Done) / took
	fmt.Printf("%d jobs replayed in %.2f s: %.1f/s, asked for %.1f/s (%+.2f %%)\n", r.Done, took, real, rate, 100*(real/rate-1))
	if r.Done != int64(jobs) || r.Skipped+r.Refused+r.Guarded > 0 {
		return fmt.Errorf("not every job was replayed once: %+v", *r)
	}
	if math.Abs(real/rate-1) > off {
		return fmt.Errorf("the rate was not held within %.0f %%", 100*off)
	}
	return nil
}

type check struct {
	cl    *client.Client
	url   string
	queue string
	began time.Time // of the replay
}

// kill enqueues jobs and lets each of them die.
func (c *check) kill(ctx context.Context, jobs int) error {
	const batch = 250
	for done := 0; done < jobs; done += batch {
		n := min(batch, jobs-done)
		body := wire.Bulk{Jobs: slices.Repeat([]wire.Enqueue{{Type: "t", Queue: c.queue, Payload: []byte(`{"to":"ada"}`)}}, n)}
		if err := c.post(ctx, "/jobs/bulk", body, nil); err != nil {
			return err
		}
		var leased struct{ Jobs []wire.Job }
		if err := c.post(ctx, "/jobs/lease", map[string]any{"queues": []string{c.queue}, "max": n}, &leased); err != nil {
			return err
		}
		ends := make([]wire.Settle, len(leased.Jobs))
		for i, j := range leased.Jobs {
			why := &wire.Failure{ErrorType: "Timeout", Message: fmt.Sprintf("no answer from 10.0.0.%d in %d ms", i%256, i)}
			ends[i] = wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: wire.OutcomeDead, Error: why}
		}
		if _, err := c.cl.Settle(ctx, ends); err != nil {
			return err
		}
	}
	return nil
}

// replay runs to its end and prints how many came back in each second.
func (c *check) replay(ctx context.Context, rate float64) (*wire.Replay, error) {
	none := uint32(0)
	r, err := c.cl.ReplayDead(ctx, wire.DeadReplay{Filter: wire.DeadFilter{Queues: []string{c.queue}}, Rate: rate, MaxReplays: &none})
	if err != nil {
		return nil, err
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	c.began = time.Now() // the jobs are counted, and the first step is due
	for last, began := int64(0), c.began; r.Status == wire.RunRunning; {
		<-second.C
		if r, err = c.cl.Replay(ctx, r.ID); err != nil {
			return nil, err
		}
		now := time.Now()
		fmt.Printf("  %6d replayed, %.0f/s\n", r.Done, float64(r.Done-last)/now.Sub(began).Seconds())
		last, began = r.Done, now
	}
	return r, nil
}

func (c *check) post(ctx context.Context, path string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("POST %s: %s: %.300s", path, resp.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}
