package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// A program that comes by now and then takes what there is, and says how it went.
func ExampleClient_Lease() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()
	_, _ = client.EnqueueJSON(ctx, c, "mail", "welcome", welcome{"Ada", "ada@example.com"})
	_, _ = client.EnqueueJSON(ctx, c, "mail", "welcome", welcome{"Alan", "alan@example.com"})

	leased, err := c.Lease(ctx, wire.Lease{Queues: []string{"mail"}, Max: 10, LeaseMS: 60_000, WaitMS: 5_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ended []wire.Settle
	for _, j := range leased.Jobs {
		fmt.Println(string(j.Payload))
		ended = append(ended, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: wire.OutcomeOK})
	}
	verdicts, err := c.Settle(ctx, ended)
	for _, v := range verdicts {
		fmt.Println(v.Status, v.Code, err)
	}
	// Output:
	// {"name":"Ada","mail":"ada@example.com"}
	// {"name":"Alan","mail":"alan@example.com"}
	// completed  <nil>
	// completed  <nil>
}

// What takes longer than its lease is extended in time; a verdict with a code
// means that the job is somebody else's by now.
func ExampleClient_Extend() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()
	_, _ = client.EnqueueJSON(ctx, c, "video", "cut", "film.mkv")

	leased, _ := c.Lease(ctx, wire.Lease{Queues: []string{"video"}, LeaseMS: 30_000})
	j := leased.Jobs[0]
	verdicts, err := c.Extend(ctx, []wire.Extension{
		{ID: j.ID, Lease: j.Lease, Started: true, MS: 300_000},
		{ID: j.ID, Lease: "0123456789abcdef0123456789abcdef01234567"},
	})
	for _, v := range verdicts {
		fmt.Println(v.Status, v.Code, err)
	}
	// Output:
	// in_flight  <nil>
	//  superseded <nil>
}

// A worker with many leases proves with a secret that they are its own, and
// extends them all by one heartbeat.
func ExampleClient_ExtendWorker() {
	c, stop := connect()
	defer stop()
	ctx := context.Background()
	for i := range 3 {
		_, _ = client.EnqueueJSON(ctx, c, "video", "cut", i)
	}

	first, _ := c.Lease(ctx, wire.Lease{Worker: "box-7", Register: true, Max: 2})
	secret := first.Secret
	_, _ = c.Lease(ctx, wire.Lease{Worker: "box-7", Secret: secret})

	verdicts, err := c.ExtendWorker(ctx, "box-7", secret, time.Minute)
	fmt.Println(len(verdicts), err)
	_, err = c.ExtendWorker(ctx, "box-7", "a guess", time.Minute)
	fmt.Println(client.CodeOf(err))
	// Output:
	// 3 <nil>
	// forbidden
}
