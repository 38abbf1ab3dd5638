package client_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// The examples talk to a stand-in of the server. With a real one,
// client.New("http://127.0.0.1:7890", client.Options{}) is all that changes.
func connect() (*client.Client, func()) {
	server := client.NewExampleServer()
	c, err := client.New(server.URL, client.Options{})
	if err != nil {
		panic(err)
	}
	return c, func() { c.Close(); server.CloseClientConnections(); server.Close() }
}

type welcome struct {
	Name string `json:"name"`
	Mail string `json:"mail"`
}

func ExampleClient_Enqueue() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()

	job := client.Job{
		Queue: "mail", Type: "welcome", Payload: welcome{"Ada", "ada@example.com"},
		IdempotencyKey: "welcome/ada",
	}
	first, err := c.Enqueue(ctx, job)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := c.Enqueue(ctx, job) // after a lost answer, for example
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first.Status, first.Duplicate)
	fmt.Println(second.ID == first.ID, second.Duplicate)
	// Output:
	// ready false
	// true true
}

func ExampleQueue() {
	c, stop := connect()
	defer stop()

	welcomes := client.Queue[welcome]{Client: c, Job: client.Job{
		Queue: "mail", Type: "welcome",
		Retry: &wire.Retry{Limit: 5, Curve: &wire.Curve{Kind: wire.Exponential, Unit: "1s", Cap: "1m"}},
	}}
	_, err := welcomes.EnqueueBulk(context.Background(), []welcome{
		{"Ada", "ada@example.com"}, {"Alan", "alan@example.com"},
	})
	n, _ := c.Count(context.Background(), client.Filter{Queues: []string{"mail"}})
	fmt.Println(n, err)
	// Output: 2 <nil>
}

func ExampleWorker() {
	c, stop := connect()
	defer stop()
	ctx, finish := context.WithCancel(context.Background())
	_, _ = client.EnqueueJSON(ctx, c, "mail", "welcome", welcome{"Ada", "ada@example.com"})

	handler := client.Typed(func(_ context.Context, w welcome, d *client.Delivery) error {
		fmt.Printf("attempt %d: mail to %s\n", d.Attempt(), w.Mail)
		if d.Attempt() == 1 {
			return errors.New("the mail server is busy") // the policy says when to try again
		}
		finish() // a real worker stops on SIGTERM
		return nil
	})
	worker, err := client.NewWorker(c, handler, client.WorkerOptions{Queues: []string{"mail"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(worker.Run(ctx))
	// Output:
	// attempt 1: mail to ada@example.com
	// attempt 2: mail to ada@example.com
	// <nil>
}

func ExampleDead() {
	c, stop := connect()
	defer stop()
	ctx, finish := context.WithCancel(context.Background())
	job, _ := c.Enqueue(ctx, client.Job{Queue: "mail", Type: "welcome", Payload: 42})

	handler := func(context.Context, *client.Delivery) error {
		return client.Dead(&client.Failure{Type: "BadAddress", Message: "there is no such mailbox"})
	}
	worker, _ := client.NewWorker(c, handler, client.WorkerOptions{
		Events: client.Events{Settled: func(wire.Settle, wire.Verdict) { finish() }},
	})
	_ = worker.Run(ctx)

	dead, _ := c.Get(context.Background(), job.ID)
	fmt.Println(dead.Status)
	for failure, err := range c.Errors(context.Background(), job.ID) {
		fmt.Println(failure.ErrorType, "-", failure.Message, err)
	}
	// Output:
	// dead
	// BadAddress - there is no such mailbox <nil>
}

func ExampleRetryIn() {
	handler := func(context.Context, *client.Delivery) error {
		// The target said when it is back, so the policy's curve is not asked.
		return client.RetryIn(errors.New("closed for maintenance"), 10*time.Minute)
	}
	fmt.Println(handler(context.Background(), nil))
	// Output: closed for maintenance
}

func ExampleClient_List() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()
	for _, name := range []string{"Ada", "Alan", "Grace"} {
		_, _ = client.EnqueueJSON(ctx, c, "mail", "welcome", welcome{Name: name})
	}
	for job, err := range c.List(ctx, client.Filter{Statuses: []string{wire.Ready}, PageSize: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(job.Payload))
	}
	// Output:
	// {"name":"Ada","mail":""}
	// {"name":"Alan","mail":""}
	// {"name":"Grace","mail":""}
}

func ExampleDelivery_SetResult() {
	c, stop := connect()
	defer stop()
	ctx, finish := context.WithCancel(context.Background())
	hour := time.Hour.Milliseconds()
	job, _ := c.Enqueue(ctx, client.Job{
		Queue: "sums", Type: "add", Payload: []int{1, 2, 3},
		Retention: &wire.Retention{CompletedMS: &hour}, // as long the result stays
	})

	add := client.Typed(func(_ context.Context, numbers []int, d *client.Delivery) error {
		sum := 0
		for _, n := range numbers {
			sum += n
		}
		return d.SetResult(map[string]int{"sum": sum})
	})
	worker, _ := client.NewWorker(c, add, client.WorkerOptions{
		Events: client.Events{Settled: func(wire.Settle, wire.Verdict) { finish() }},
	})
	_ = worker.Run(ctx)

	done, err := c.Get(context.Background(), job.ID)
	fmt.Println(done.Status, string(done.Result), err)
	// Output: completed {"sum":6} <nil>
}

func ExampleClient_Lock() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()

	report := func(_ context.Context, fencing int64) error {
		// Write with the fencing number: UPDATE ... SET fencing = $1 WHERE fencing <= $1.
		fmt.Println("running, fencing number", fencing)

		err := c.Lock(ctx, "nightly", client.LockOptions{}, func(context.Context, int64) error { return nil })
		var refused *client.Error
		if errors.As(err, &refused) && refused.Code == wire.CodeLocked {
			fmt.Println("who comes second is told:", refused.Lock.LockedBy, "has it")
		}
		return nil
	}
	err := c.Lock(ctx, "nightly", client.LockOptions{Owner: "node-1", AtMost: time.Minute}, report)
	fmt.Println(err)
	// Output:
	// running, fencing number 1
	// who comes second is told: node-1 has it
	// <nil>
}

func ExampleClient_SetBudget() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()

	// At most 100 calls of the API a minute, whatever the queues.
	if _, err := c.SetBudget(ctx, "api", client.Per(100, time.Minute)); err != nil {
		fmt.Println(err)
		return
	}
	_, _ = c.Enqueue(ctx, client.Job{Queue: "sync", Type: "contacts", Budgets: []wire.Binding{{Key: "api"}}})
	_, _ = c.Enqueue(ctx, client.Job{Queue: "export", Type: "all", Budgets: []wire.Binding{{Key: "api", Cost: 20}}})

	bound, err := c.Count(ctx, client.Filter{Budgets: []string{"api"}})
	fmt.Println(bound, err)
	err = c.DeleteBudget(ctx, "api")
	fmt.Println(client.CodeOf(err) == wire.CodeExists)
	// Output:
	// 2 <nil>
	// true
}
