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
	body, err := c.long(ctx, "/backup")
	if err != nil {
		return nil, fmt.Errorf("making a backup: %w", err)
	}
	return body, nil
}

// Compact makes the server rewrite its database, so that the space of what was
// deleted comes back now, and returns when that is done. It may take minutes.
func (c *Client) Compact(ctx context.Context) error {
	body, err := c.long(ctx, "/compact")
	if err != nil {
		return fmt.Errorf("compacting: %w", err)
	}
	return body.Close()
}

// long is a POST without a body whose answer takes as long as it takes.
func (c *Client) long(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := c.request(ctx, "POST", path, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "*/*")
	resp, err := c.calls.Do(req)
	if err != nil {
		return nil, c.because(ctx, err)
	}
	if resp.StatusCode >= 300 {
		defer func() { _ = resp.Body.Close() }()
		return nil, errorOf(resp)
	}
	return resp.Body, nil
}

// Health reports whether the server answers at all; see Ready.
func (c *Client) Health(ctx context.Context) error {
	if err := c.call(ctx, "GET", "/health", nil, nil); err != nil {
		return fmt.Errorf("asking for health: %w", err)
	}
	return nil
}
