// Command sweep runs a command with every combination of some parameters, on a
// grid, and prints a table of what it wrote, the best first.
//
//	reprise serve &
//	reprise engine --slots 4 --exec "$(go run ./examples/sweep -command)" &
//	go run ./examples/sweep -v0 20:40:5 -angle 30:60:5
//
// The example's command is awk, which computes how far a ball flies that is
// thrown with a speed (v0, m/s) at an angle (degrees) against the drag of the
// air. Any command will do that reads a JSON object from its standard input and
// writes a number.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// flight is the command of the engines: it takes the two numbers out of the
// JSON, and steps through the flight.
const flight = `awk -F'[:,}]' '{ v = $2; a = $4 * atan2(0, -1) / 180; x = 0; y = 0; vx = v * cos(a); vy = v * sin(a); dt = 0.001
while (y >= 0) { s = sqrt(vx * vx + vy * vy); vx -= 0.005 * s * vx * dt; vy -= (9.81 + 0.005 * s * vy) * dt; x += vx * dt; y += vy * dt }
printf "%.2f\n", x }'`

// point is the payload of a task.
type point struct {
	V0    float64 `json:"v0"`
	Angle float64 `json:"angle"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sweep:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sweep", flag.ContinueOnError)
	url := flags.String("url", "http://127.0.0.1:7890", "address of the server")
	session := flags.String("session", "sweep", "id of the session")
	v0 := flags.String("v0", "20:40:5", "speeds, FROM:TO:STEP")
	angle := flags.String("angle", "30:60:5", "angles, FROM:TO:STEP")
	command := flags.Bool("command", false, "print the command of the engines, and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *command {
		_, err := os.Stdout.WriteString(flight + "\n")
		return err
	}
	speeds, err := values(*v0)
	if err != nil {
		return err
	}
	angles, err := values(*angle)
	if err != nil {
		return err
	}
	var points []point
	for _, v := range speeds {
		for _, a := range angles {
			points = append(points, point{v, a})
		}
	}
	c, err := client.New(*url, client.Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	return sweep(ctx, c, *session, points)
}

// values reads FROM:TO:STEP.
func values(text string) (list []float64, err error) {
	parts := strings.Split(text, ":")
	var n [3]float64
	for i := range n {
		if len(parts) != len(n) {
			return nil, fmt.Errorf("%q: write it as FROM:TO:STEP", text)
		}
		if n[i], err = strconv.ParseFloat(parts[i], 64); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
	}
	if n[2] <= 0 || (n[1]-n[0])/n[2] > 10_000 {
		return nil, fmt.Errorf("%q: the step must be above 0, and leave at most 10000 values", text)
	}
	for v := n[0]; v <= n[1]; v += n[2] {
		list = append(list, v)
	}
	return list, nil
}

func sweep(ctx context.Context, c *client.Client, id string, points []point) error {
	s, err := c.OpenSession(ctx, client.SessionOptions{
		ID: id, Options: map[string]any{"max_retries": 10, "task_max_time": "1m", "collection": "later"},
	})
	if err != nil {
		return err
	}
	tasks := make([]client.Task, len(points))
	for i, p := range points {
		tasks[i] = client.Task{Seq: int64(i) + 1, Payload: p}
	}
	if _, err := s.Submit(ctx, tasks...); err != nil { // all of it again is right, too
		return err
	}
	if _, err := s.Close(ctx); err != nil {
		return err
	}
	type row struct {
		point
		distance float64
	}
	var table []row
	for r, err := range s.Results(ctx, 0) {
		if err != nil {
			return err
		}
		if r.State != wire.TaskDone {
			return fmt.Errorf("task %d %s: %s", r.Seq, r.State, r.Error.Message)
		}
		out := row{point: points[r.Seq-1]}
		if err := json.Unmarshal(r.Result, &out.distance); err != nil {
			return fmt.Errorf("the result of task %d is no number: %s", r.Seq, r.Result)
		}
		table = append(table, out)
		fmt.Fprintf(os.Stderr, "\r%d of %d ", len(table), len(points))
	}
	fmt.Fprintln(os.Stderr)
	slices.SortFunc(table, func(a, b row) int {
		return cmp.Or(-cmp.Compare(a.distance, b.distance), cmp.Compare(a.V0, b.V0), cmp.Compare(a.Angle, b.Angle))
	})
	fmt.Println("    v0  angle  distance")
	for _, r := range table {
		fmt.Printf("%6.1f %6.1f %9.2f\n", r.V0, r.Angle, r.distance)
	}
	return nil
}
