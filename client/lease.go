package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// Lease takes jobs in one call, for programs that come by now and then: none if
// nothing is ready within WaitMS, by which the timeout of the client is longer.
// Each job is the caller's until its LeaseUntil. What takes longer is kept by
// Extend or ExtendWorker; Settle says under Job.Lease how it ended. Whoever lets a
// lease lapse has lost the job: others get it, and a late OK is all that still
// counts. A Worker does all that by itself, over a stream.
//
// Whether an answer that was lost had taken jobs is not known, so Lease is never
// repeated by itself; such leases lapse.
func (c *Client) Lease(ctx context.Context, ask wire.Lease) (*wire.Leases, error) {
	raw, err := encode(ask)
	out := new(wire.Leases)
	if err == nil {
		wait := time.Duration(max(ask.WaitMS, 0)) * time.Millisecond
		err = c.sendWithin(ctx, c.opts.Timeout+wait, "POST", "/jobs/lease", raw, out)
	}
	if err != nil {
		return nil, fmt.Errorf("leasing jobs: %w", err)
	}
	return out, nil
}

// Extend prolongs leases or says that runs have begun, and answers with one
// verdict each, in order. A verdict with a code means: stop, the job is not yours
// any more (wire.CodeSuperseded, wire.CodeNotFound). A Worker does this by itself.
func (c *Client) Extend(ctx context.Context, list []wire.Extension) ([]wire.Verdict, error) {
	verdicts, err := c.verdicts(ctx, "/jobs/extend", wire.Extensions{Leases: list}, len(list))
	if err != nil {
		return nil, fmt.Errorf("extending %d leases: %w", len(list), err)
	}
	return verdicts, nil
}

// ExtendWorker is one heartbeat for all that a worker leased with its secret: each
// lease lives for life from now, 0 = for as long as before. It answers with a verdict for each lease
// that there is; a job that is not among them is not the worker's any more. A
// secret that is not the worker's is refused with wire.CodeForbidden.
func (c *Client) ExtendWorker(ctx context.Context, worker, secret string, life time.Duration) ([]wire.Verdict, error) {
	var v wire.Verdicts
	var err error
	switch {
	case worker == "" || secret == "":
		err = errors.New("worker and secret are needed; Lease with Register answers with a secret")
	case life < 0 || life > 0 && life < time.Millisecond:
		err = fmt.Errorf("a lease cannot live for %s", life)
	default:
		err = c.call(ctx, "POST", "/jobs/extend", wire.Extensions{Worker: worker, Secret: secret, MS: life.Milliseconds()}, &v)
	}
	if err != nil {
		return nil, fmt.Errorf("extending the leases of worker %s: %w", worker, err)
	}
	return v.Verdicts, nil
}
