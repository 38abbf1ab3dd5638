// Package client puts work into a Reprise server and works it off. It needs
// nothing but the standard library and package wire.
//
// A producer makes a Client and enqueues; with an idempotency key a call that
// got no answer is repeated, and the job is there once:
//
//	c, err := client.New("http://127.0.0.1:7890", client.Options{})
//	...
//	_, err = c.Enqueue(ctx, client.Job{
//		Queue: "mail", Type: "welcome", Payload: user, IdempotencyKey: user.ID,
//	})
//
// A worker makes a Worker from a Client and a handler, and runs it until its
// context ends. What the handler returns decides what becomes of the job: nil
// is done, an error is tried again by the job's retry policy, and Dead,
// Release, RetryIn, RetryAt and RetryAfter say something more particular.
// Delivery.Hold spares a target that has had enough, whatever became of the job.
//
// The package logs nothing. What a worker does can be followed by the
// functions in Events.
package client
