// Command replaycheck lets many jobs die on a running server, replays them at a
// rate, and says how well the rate was held: over all, and second by second.
//
//	reprise serve --root-dir /tmp/check &
//	go run ./scripts/replaycheck -jobs 100000 -rate 5000
//
// With -kill N it starts a server of its own, built from this checkout on a new
// directory, and kills it with SIGKILL N times in the middle of the replay:
//
//	go run ./scripts/replaycheck -jobs 100000 -rate 5000 -kill 1
//
// The rate is that over the time for which the server was up. It exits with 1
// if the whole was more than 5 % off the rate, or if not every job was replayed
// exactly once. To know that, it lets every job die again: then GET /dead says of
// each how often it was replayed. It works in a queue of its own name and leaves
// its jobs there, dead; use a server that may be thrown away.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	kills := flag.Int("kill", 0, "start a server, and kill it so often in the middle")
	flag.Parse()
	if err := run(context.Background(), *url, *jobs, *rate, *kills); err != nil {
		fmt.Fprintln(os.Stderr, "replaycheck:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, jobs int, rate float64, kills int) (err error) {
	c := &check{url: url, queue: "replaycheck-" + strconv.FormatInt(time.Now().UnixMilli(), 36), kills: kills}
	if kills > 0 {
		if c.server, err = newServer(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.server.stop()) }()
		c.url, c.up = c.server.url, c.server.up
	}
	return c.run(ctx, jobs, rate)
}

func (c *check) run(ctx context.Context, jobs int, rate float64) error {
	cl, err := client.New(c.url, client.Options{})
	if err != nil {
		return err
	}
	c.cl = cl
	began := time.Now()
	for done := 0; done < jobs; done += batch {
		if err := c.enqueue(ctx, min(batch, jobs-done)); err != nil {
			return err
		}
		if _, err := c.kill(ctx, min(batch, jobs-done)); err != nil {
			return err
		}
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
	if c.server != nil {
		took = c.server.ranUntil(c.up, c.began, time.UnixMilli(r.FinishedAt)).Seconds()
	}
	real := float64(r.Done) / took
	fmt.Printf("%d jobs replayed in %.2f s: %.1f/s, asked for %.1f/s (%+.2f %%)\n", r.Done, took, real, rate, 100*(real/rate-1))
	if err := c.once(ctx, jobs); err != nil {
		return err
	}
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
	ids   map[string]bool

	kills  int
	server *server   // that is killed; nil = it is somebody else's
	up     time.Time // its first life
}

// batch is how many jobs one call is about.
const batch = 250

// enqueue puts jobs and remembers their ids.
func (c *check) enqueue(ctx context.Context, n int) error {
	body := wire.Bulk{Jobs: slices.Repeat([]wire.Enqueue{{Type: "t", Queue: c.queue, Payload: []byte(`{"to":"ada"}`)}}, n)}
	var added struct{ Jobs []wire.Job }
	if err := c.post(ctx, "/jobs/bulk", body, &added); err != nil {
		return err
	}
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	for _, j := range added.Jobs {
		c.ids[j.ID] = true
	}
	return nil
}

// kill lets up to n ready jobs die, and returns how many did.
func (c *check) kill(ctx context.Context, n int) (died int, err error) {
	var leased struct{ Jobs []wire.Job }
	if err := c.post(ctx, "/jobs/lease", map[string]any{"queues": []string{c.queue}, "max": n}, &leased); err != nil {
		return 0, err
	}
	ends := make([]wire.Settle, len(leased.Jobs))
	for i, j := range leased.Jobs {
		why := &wire.Failure{ErrorType: "Timeout", Message: fmt.Sprintf("no answer from 10.0.0.%d in %d ms", i%256, i)}
		ends[i] = wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: wire.OutcomeDead, Error: why}
	}
	if len(ends) == 0 {
		return 0, nil
	}
	verdicts, err := c.cl.Settle(ctx, ends)
	for _, v := range verdicts {
		if v.Status == wire.Dead {
			died++
		}
	}
	return died, err
}

// once checks that every job came back, exactly once: all are ready; then all
// die again, and are asked how often they were replayed.
func (c *check) once(ctx context.Context, jobs int) error {
	ready, err := c.cl.Count(ctx, client.Filter{Queues: []string{c.queue}, Statuses: []string{wire.Ready}})
	if err != nil {
		return err
	}
	died, began := 0, time.Now()
	for {
		n, err := c.kill(ctx, batch)
		if err != nil {
			return err
		}
		if died += n; n == 0 {
			break
		}
	}
	times := map[uint32]int{}
	strange := 0
	for j, err := range c.cl.Dead(ctx, wire.DeadFilter{Queues: []string{c.queue}}, false, 2000) {
		if err != nil {
			return err
		}
		if !c.ids[j.ID] {
			strange++ // or seen twice
		}
		delete(c.ids, j.ID)
		times[j.Replays]++
	}
	fmt.Printf("%d are ready; %d died again in %.1f s; of %d dead jobs %d were replayed once\n",
		ready, died, time.Since(began).Seconds(), sum(times), times[1])
	if int(ready) != jobs || died != jobs || times[1] != jobs || len(times) != 1 || strange > 0 || len(c.ids) > 0 {
		return fmt.Errorf("not every job was replayed once: times replayed %v, %d jobs missing, %d strange", times, len(c.ids), strange)
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
	killed := 0
	for last, began := int64(0), c.began; r.Status == wire.RunRunning; {
		<-second.C
		if r, err = c.cl.Replay(ctx, r.ID); err != nil {
			return nil, err
		}
		now := time.Now()
		fmt.Printf("  %6d replayed, %.0f/s\n", r.Done, float64(r.Done-last)/now.Sub(began).Seconds())
		last, began = r.Done, now
		if killed < c.kills && r.Status == wire.RunRunning && r.Done >= r.Total*int64(killed+1)/int64(c.kills+1) {
			away, err := c.server.kill()
			if err != nil {
				return nil, err
			}
			killed++
			if r, err = c.cl.Replay(ctx, r.ID); err != nil {
				return nil, err
			}
			last, began = r.Done, time.Now()
			second.Reset(time.Second)
			fmt.Printf("  killed with SIGKILL; %.2f s later it listens again, %d replayed\n", away.Seconds(), r.Done)
		}
	}
	if killed < c.kills {
		return nil, fmt.Errorf("it was over after %d kills; give it more jobs", killed)
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

func sum(times map[uint32]int) (n int) {
	for _, k := range times {
		n += k
	}
	return n
}
