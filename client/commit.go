package client

import (
	"context"
	"net/url"

	"github.com/reprisehq/reprise/wire"
)

// TryCommit asks, before a task does something outside that must not be done
// twice, whether this attempt may: of the attempts that run one is answered true,
// however often it asks, and the others are stopped. Should its engine be lost
// then, the next attempt may ask, and it is for the task to look what was done.
// Without a worker around it, in a test of a handler, the answer is true.
func (d *Delivery) TryCommit(ctx context.Context) (bool, error) {
	if d.run == nil {
		return true, nil
	}
	return d.run.client.TryCommit(ctx, d.Job.Queue, d.Job.ID, d.run.leaseOf(d.held))
}

// TryCommit is Delivery.TryCommit for who has session, task and lease by other
// ways. A call that got no answer is repeated.
func (c *Client) TryCommit(ctx context.Context, session, task, lease string) (bool, error) {
	path := "/sessions/" + url.PathEscape(session) + "/tasks/" + url.PathEscape(task) + "/try_commit"
	out, err := repeated[wire.Committed](ctx, c, true, "POST", path, wire.TryCommit{Lease: lease}, "asking whether task %s may commit", task)
	return err == nil && out.Committed, err
}
