package client

import (
	"context"
	"fmt"
	"io"
)

// Backup asks for a copy of everything the server keeps, as a gzipped tar
// archive. The caller closes it. Only a reader that finds the archive's end mark
// knows that it is whole: `reprise backup` does.
func (c *Client) Backup(ctx context.Context) (io.ReadCloser, error) {
	return c.long(ctx, "POST", "/backup", "*/*", "making a backup")
}

// Compact makes the server rewrite its database, so that the space of what was
// deleted comes back now, and returns when that is done. It may take minutes.
func (c *Client) Compact(ctx context.Context) error {
	body, err := c.long(ctx, "POST", "/compact", "*/*", "compacting")
	if err != nil {
		return err
	}
	return body.Close()
}

// long is a call without a body whose answer takes as long as it takes.
func (c *Client) long(ctx context.Context, method, path, accept, doing string) (io.ReadCloser, error) {
	req, err := c.request(ctx, method, path, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	req.Header.Set("Accept", accept)
	resp, err := c.calls.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, c.because(ctx, err))
	}
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		return nil, fmt.Errorf("%s: %w", doing, errorOf(resp))
	}
	return resp.Body, nil
}

// Health reports whether the server answers at all; see Ready.
func (c *Client) Health(ctx context.Context) error {
	return c.ask(ctx, "GET", "/health", nil, nil, "asking for health")
}
