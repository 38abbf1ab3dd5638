package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/reprisehq/reprise/wire"
)

// Change is what a patch changes: the members of PATCH /jobs/{id} with their
// values. nil is back to the default; what is not there stays.
type Change map[string]any

// errAll keeps a filter that was meant to hold something from meaning all.
var errAll = errors.New("the filter is empty, which is every job; say so with Filter.All")

// bulk is the address of a call over many jobs.
func (f Filter) bulk() (string, error) {
	if err := f.check(); err != nil {
		return "", err
	}
	q := f.query()
	if len(q) > 0 == f.All {
		if f.All {
			return "", errors.New("a filter that chooses cannot be for all jobs too")
		}
		return "", errAll
	}
	return "/jobs?" + q.Encode(), nil
}

// Patch changes one open job, and returns it without its payload.
func (c *Client) Patch(ctx context.Context, id string, change Change) (*wire.Job, error) {
	return answer[wire.Job](ctx, c, "PATCH", "/jobs/"+url.PathEscape(id), change, "patching job %s", id)
}

// PatchMany changes every open job that the filter chooses; finished ones are
// passed over. An empty filter needs All. When it fails, part may have been
// done.
func (c *Client) PatchMany(ctx context.Context, f Filter, change Change) (wire.Patched, error) {
	var n wire.Patched
	path, err := f.bulk()
	if err == nil {
		err = c.call(ctx, "PATCH", path, change, &n)
	}
	if err != nil {
		return wire.Patched{}, fmt.Errorf("patching jobs: %w", err)
	}
	return n, nil
}

// CancelMany gives up every job that the filter chooses and that is not finished,
// as Cancel does. An empty filter needs All. When it fails, part may have been done.
func (c *Client) CancelMany(ctx context.Context, f Filter, reason string) (int64, error) {
	var n wire.Cancelled
	if err := c.cancelMany(ctx, f, wire.CancelMany{Reason: reason}, &n); err != nil {
		return 0, err
	}
	return n.Cancelled, nil
}

// PreviewCancel counts what CancelMany would cancel now, and shows some of it.
func (c *Client) PreviewCancel(ctx context.Context, f Filter) (*wire.CancelPreview, error) {
	p := new(wire.CancelPreview)
	return p, c.cancelMany(ctx, f, wire.CancelMany{DryRun: true}, p)
}

func (c *Client) cancelMany(ctx context.Context, f Filter, body wire.CancelMany, into any) error {
	path, err := f.bulk()
	if path = strings.Replace(path, "/jobs?", "/jobs/cancel?", 1); err == nil && f.All {
		path = "/jobs/cancel?all=true"
	}
	if err == nil {
		err = c.call(ctx, "POST", path, body, into)
	}
	if err != nil {
		return fmt.Errorf("cancelling jobs: %w", err)
	}
	return nil
}

// DeleteMany removes every job that the filter chooses, in any state. An empty
// filter needs All. When it fails, part may have been done.
func (c *Client) DeleteMany(ctx context.Context, f Filter) (int64, error) {
	var n wire.Deleted
	path, err := f.bulk()
	if err == nil && f.All {
		path = "/jobs?all=true"
	}
	if err == nil {
		err = c.call(ctx, "DELETE", path, nil, &n)
	}
	if err != nil {
		return 0, fmt.Errorf("deleting jobs: %w", err)
	}
	return n.Deleted, nil
}

// Reset deletes every job, and what the server keeps beside jobs.
func (c *Client) Reset(ctx context.Context) error {
	return c.ask(ctx, "POST", "/reset?all=true", nil, nil, "resetting")
}
