package client

import (
	"context"
	"fmt"
	"net/url"

	"github.com/reprisehq/reprise/wire"
)

// CreateToken makes a token. Its text is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, ask wire.NewToken) (*wire.MadeToken, error) {
	return answer[wire.MadeToken](ctx, c, "POST", "/tokens", ask, "making the token %s", ask.Name)
}

// Tokens lists the tokens, by name.
func (c *Client) Tokens(ctx context.Context) ([]wire.Token, error) {
	var out wire.Tokens
	if err := c.call(ctx, "GET", "/tokens", nil, &out); err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	return out.Tokens, nil
}

// RevokeToken shuts a token out for good, by its id, and ends its streams.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	if err := c.call(ctx, "DELETE", "/tokens/"+url.PathEscape(id), nil, nil); err != nil {
		return fmt.Errorf("revoking token %s: %w", id, err)
	}
	return nil
}
