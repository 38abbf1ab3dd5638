package client

import (
	"context"
	"net/url"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func queuePath(name string, rest string) string { return "/queues/" + url.PathEscape(name) + rest }

// Queue reads the settings of a queue and how much there is of it.
func (c *Client) Queue(ctx context.Context, name string) (*wire.Queue, error) {
	return answer[wire.Queue](ctx, c, "GET", queuePath(name, ""), nil, "reading queue %s", name)
}

// SetQueue changes the settings that are named; nil is the default of one. It
// answers with all of them.
func (c *Client) SetQueue(ctx context.Context, name string, settings map[string]any) (*wire.Queue, error) {
	return answer[wire.Queue](ctx, c, "PATCH", queuePath(name, ""), settings, "setting queue %s", name)
}

// Asides reads the groups of a queue that are held or slowed down.
func (c *Client) Asides(ctx context.Context, queue string) ([]wire.Aside, error) {
	var a wire.Asides
	err := c.ask(ctx, "GET", queuePath(queue, "/groups"), nil, &a, "listing groups of queue %s", queue)
	return a.Groups, err
}

// Hold keeps a group, or with group "" the whole queue, out of line. It returns
// the end of the hold, which is up to a tenth later, and at most in an hour.
func (c *Client) Hold(ctx context.Context, queue, group string, span time.Duration) (time.Time, error) {
	var held wire.Held
	body := wire.Hold{Group: group, ForMS: max(span.Milliseconds(), 1)}
	if err := c.ask(ctx, "POST", queuePath(queue, "/hold"), body, &held, "holding queue %s", queue); err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(held.HoldUntil), nil
}

// Release ends the hold of a group, or with group "" of the whole queue.
func (c *Client) Release(ctx context.Context, queue, group string) error {
	return c.ask(ctx, "POST", queuePath(queue, "/release"), wire.OfGroup{Group: group}, nil, "releasing queue %s", queue)
}

// ForceBreaker opens or closes the breaker of a group, or with group "" of the
// whole queue: wire.BreakerOpen, wire.BreakerClosed, or wire.BreakerAuto to let
// it decide by itself again.
func (c *Client) ForceBreaker(ctx context.Context, queue, group, state string) error {
	body := wire.ForceBreaker{Group: group, State: state}
	return c.ask(ctx, "POST", queuePath(queue, "/breaker"), body, nil, "setting the breaker of queue %s", queue)
}
