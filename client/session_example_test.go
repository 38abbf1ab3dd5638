package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/internal/server/servertest"
)

// connectGrid makes a client of a real server: the stand-in knows no sessions.
func connectGrid() (*client.Client, func()) {
	url, stop, err := servertest.Start(context.Background())
	if err != nil {
		panic(err)
	}
	c, err := client.New(url, client.Options{})
	if err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		if err := stop(); err != nil {
			panic(err)
		}
	}
}

// A driver opens a session under a name, so that it can go on with it after a
// crash: opening it again, and submitting the same tasks again, is harmless.
func ExampleClient_OpenSession() {
	c, stop := connectGrid()
	defer stop()
	ctx := context.Background()

	for range 2 { // the second time as after a crash
		session, err := c.OpenSession(ctx, client.SessionOptions{
			ID:      "risk-42",
			Options: map[string]any{"max_retries": 5, "task_max_time": "50s"},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		added, err := session.Submit(ctx,
			client.Task{Seq: 1, Payload: "EUR"},
			client.Task{Seq: 2, Payload: "USD", Requires: []string{"cpuMHz > 350"}},
			client.Task{Seq: 3, Payload: "sum", Needs: []int64{1, 2}},
		)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(added), "tasks, there before:", added[0].Duplicate)
	}
	state, err := c.Session("risk-42").Close(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(state.State, state.Tasks.Submitted, state.Tasks.Waiting)
	for _, name := range []string{"max_retries", "max_reschedules"} {
		fmt.Println(name, string(state.Options[name].Value), "by", state.Options[name].From)
	}
	// Output:
	// 3 tasks, there before: false
	// 3 tasks, there before: true
	// closed_submit 3 3
	// max_retries 5 by session
	// max_reschedules 3 by profile
}

// An engine runs the tasks of sessions; who opened one collects the results.
func ExampleNewEngine() {
	c, stop := connectGrid()
	defer stop()
	ctx, finish := context.WithCancel(context.Background())
	defer finish()

	session, err := c.OpenSession(ctx, client.SessionOptions{ID: "squares"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for n := range int64(3) {
		if _, err := session.Submit(ctx, client.Task{Seq: n + 1, Payload: n + 1}); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, _ = session.Close(ctx) // it is over when these are

	square := client.Typed(func(_ context.Context, n int, d *client.Delivery) error {
		if n == 2 && d.Attempt() == 1 {
			return errors.New("division by zero") // a retry: at the front of the session, at once
		}
		return d.SetResult(n * n)
	})
	engine, err := client.NewEngine(c, square, client.EngineOptions{ID: "node-7", Properties: map[string]string{"cpuMHz": "2400"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx) }()

	for r, err := range session.Results(ctx, 0) {
		fmt.Println(r.Seq, r.State, string(r.Result), "retries:", r.Retries, err)
	}
	finish() // a real engine stops on SIGTERM
	fmt.Println(<-ended)
	// Output:
	// 1 completed 1 retries: 0 <nil>
	// 2 completed 4 retries: 1 <nil>
	// 3 completed 9 retries: 0 <nil>
	// <nil>
}
