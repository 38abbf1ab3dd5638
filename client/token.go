package client

import (
	"context"
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
	err := c.ask(ctx, "GET", "/tokens", nil, &out, "listing tokens")
	return out.Tokens, err
}

// RevokeToken shuts a token out for good, by its id, and ends its streams.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.ask(ctx, "DELETE", "/tokens/"+url.PathEscape(id), nil, nil, "revoking token %s", id)
}
