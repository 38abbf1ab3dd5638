// Command pi estimates pi on a grid: it throws darts at a square, in many tasks
// on any number of engines, and counts those inside the circle.
//
//	reprise serve &
//	go run ./examples/pi engine &          # on as many machines as there are
//	go run ./examples/pi engine &
//	go run ./examples/pi -tasks 1000 -darts 1000000
//
// Each task has a seed of its own, so that the estimate is the same whatever
// happens to engines and server on the way. A driver that was killed is started
// again with the same -session, and goes on.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// throw is the payload of a task.
type throw struct {
	Seed  uint64 `json:"seed"`
	Darts int64  `json:"darts"`
}

// hits is its result.
type hits struct {
	Inside int64 `json:"inside"`
	Darts  int64 `json:"darts"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	engine := len(args) > 0 && args[0] == "engine"
	if engine {
		args = args[1:]
	}
	flags := flag.NewFlagSet("pi", flag.ContinueOnError)
	url := flags.String("url", "http://127.0.0.1:7890", "address of the server")
	slots := flags.Int("slots", runtime.NumCPU(), "engine: tasks at the same time")
	session := flags.String("session", "pi", "driver: id of the session")
	tasks := flags.Int64("tasks", 1000, "driver: tasks")
	darts := flags.Int64("darts", 1_000_000, "driver: darts of each task")
	if err := flags.Parse(args); err != nil {
		return err
	}
	c, err := client.New(*url, client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	if engine {
		e, err := client.NewEngine(c, client.Typed(compute), client.EngineOptions{Slots: *slots})
		if err != nil {
			return err
		}
		return e.Run(ctx)
	}
	return drive(ctx, c, *session, *tasks, *darts)
}

// compute runs one task. It looks now and then whether its attempt still counts.
func compute(ctx context.Context, t throw, d *client.Delivery) error {
	dice, out := rand.New(rand.NewPCG(t.Seed, 1)), hits{Darts: t.Darts}
	for i := range t.Darts {
		if i%100_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if x, y := dice.Float64(), dice.Float64(); x*x+y*y <= 1 {
			out.Inside++
		}
	}
	return d.SetResult(out)
}

// drive submits the tasks and adds up their results as they come.
func drive(ctx context.Context, c *client.Client, id string, tasks, darts int64) error {
	s, err := c.OpenSession(ctx, client.SessionOptions{
		ID: id, Options: map[string]any{"max_retries": 10, "collection": "later"}, // so that a driver that died counts all results again
	})
	if err != nil {
		return err
	}
	state, err := s.State(ctx)
	if err != nil {
		return err
	}
	if state.State == wire.SessionOpen {
		list := make([]client.Task, tasks)
		for i := range list {
			seq := int64(i) + 1
			list[i] = client.Task{Seq: seq, Payload: throw{Seed: uint64(seq), Darts: darts}}
		}
		if _, err := s.Submit(ctx, list...); err != nil {
			return err
		}
		if _, err := s.Close(ctx); err != nil {
			return err
		}
	}
	var sum hits
	var n, failed int64
	for r, err := range s.Results(ctx, 0) {
		if err != nil {
			return err
		}
		if n++; r.State != wire.TaskDone {
			failed++
			continue
		}
		var h hits
		if err := json.Unmarshal(r.Result, &h); err != nil {
			return fmt.Errorf("the result of task %d: %w", r.Seq, err)
		}
		sum.Inside, sum.Darts = sum.Inside+h.Inside, sum.Darts+h.Darts
		fmt.Fprintf(os.Stderr, "\r%d of %d tasks, pi is about %.6f ", n, tasks, estimate(sum))
	}
	fmt.Fprintln(os.Stderr)
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks failed", failed, n)
	}
	fmt.Printf("tasks %d, darts %d, pi is about %.6f\n", n, sum.Darts, estimate(sum))
	return nil
}

func estimate(h hits) float64 { return 4 * float64(h.Inside) / float64(max(h.Darts, 1)) }
