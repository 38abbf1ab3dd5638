package client

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/reprisehq/reprise/wire"
)

func cronPath(group string) string { return "/crons/" + url.PathEscape(group) }

func cronEntryPath(group, entry string) string {
	return cronPath(group) + "/entries/" + url.PathEscape(entry)
}

// Crons lists the names of the cron groups.
func (c *Client) Crons(ctx context.Context) ([]string, error) {
	var out wire.Crons
	if err := c.call(ctx, "GET", "/crons", nil, &out); err != nil {
		return nil, fmt.Errorf("listing cron groups: %w", err)
	}
	return out.Crons, nil
}

// Cron reads a group with its entries.
func (c *Client) Cron(ctx context.Context, group string) (*wire.CronGroup, error) {
	g := new(wire.CronGroup)
	if err := c.call(ctx, "GET", cronPath(group), nil, g); err != nil {
		return nil, fmt.Errorf("reading the cron group %s: %w", group, err)
	}
	return g, nil
}

// SetCron makes a group exactly what is given: entries that are not in it
// leave, and those whose expression and zone are as before keep their time.
func (c *Client) SetCron(ctx context.Context, group string, g wire.CronGroup) (*wire.CronGroup, error) {
	if g.Entries == nil {
		g.Entries = []wire.CronEntry{}
	}
	out := new(wire.CronGroup)
	if err := c.call(ctx, "PUT", cronPath(group), g, out); err != nil {
		return nil, fmt.Errorf("setting the cron group %s: %w", group, err)
	}
	return out, nil
}

// PauseCron pauses a group, or ends that.
func (c *Client) PauseCron(ctx context.Context, group string, paused bool) (*wire.CronGroup, error) {
	return c.PatchCron(ctx, group, wire.CronPatch{Paused: &paused})
}

// PatchCron changes what is given of a group. In another time zone, entries
// without one of their own count anew from now.
func (c *Client) PatchCron(ctx context.Context, group string, p wire.CronPatch) (*wire.CronGroup, error) {
	out := new(wire.CronGroup)
	if err := c.call(ctx, "PATCH", cronPath(group), p, out); err != nil {
		return nil, fmt.Errorf("changing the cron group %s: %w", group, err)
	}
	return out, nil
}

// DeleteCron deletes a group with its entries.
func (c *Client) DeleteCron(ctx context.Context, group string) error {
	if err := c.call(ctx, "DELETE", cronPath(group), nil, nil); err != nil {
		return fmt.Errorf("deleting the cron group %s: %w", group, err)
	}
	return nil
}

// DeleteCrons deletes all groups and returns how many there were.
func (c *Client) DeleteCrons(ctx context.Context) (int, error) {
	var out wire.CronsDeleted
	if err := c.call(ctx, "DELETE", "/crons?all=true", nil, &out); err != nil {
		return 0, fmt.Errorf("deleting all cron groups: %w", err)
	}
	return out.Deleted, nil
}

// AddCronEntry makes an entry; one that is there is refused.
func (c *Client) AddCronEntry(ctx context.Context, group string, e wire.CronEntry) (*wire.CronEntry, error) {
	out := new(wire.CronEntry)
	if err := c.call(ctx, "POST", cronPath(group)+"/entries", e, out); err != nil {
		return nil, fmt.Errorf("adding the cron entry %s to %s: %w", e.Name, group, err)
	}
	return out, nil
}

// CronEntry reads an entry.
func (c *Client) CronEntry(ctx context.Context, group, entry string) (*wire.CronEntry, error) {
	out := new(wire.CronEntry)
	if err := c.call(ctx, "GET", cronEntryPath(group, entry), nil, out); err != nil {
		return nil, fmt.Errorf("reading the cron entry %s of %s: %w", entry, group, err)
	}
	return out, nil
}

// SetCronEntry makes or changes the entry of that name.
func (c *Client) SetCronEntry(ctx context.Context, group string, e wire.CronEntry) (*wire.CronEntry, error) {
	out := new(wire.CronEntry)
	if err := c.call(ctx, "PUT", cronEntryPath(group, e.Name), e, out); err != nil {
		return nil, fmt.Errorf("setting the cron entry %s of %s: %w", e.Name, group, err)
	}
	return out, nil
}

// PauseCronEntry pauses an entry, or ends that.
func (c *Client) PauseCronEntry(ctx context.Context, group, entry string, paused bool) (*wire.CronEntry, error) {
	out := new(wire.CronEntry)
	if err := c.call(ctx, "PATCH", cronEntryPath(group, entry), wire.CronPause{Paused: paused}, out); err != nil {
		return nil, fmt.Errorf("changing the cron entry %s of %s: %w", entry, group, err)
	}
	return out, nil
}

// DeleteCronEntry deletes an entry; its group stays.
func (c *Client) DeleteCronEntry(ctx context.Context, group, entry string) error {
	if err := c.call(ctx, "DELETE", cronEntryPath(group, entry), nil, nil); err != nil {
		return fmt.Errorf("deleting the cron entry %s of %s: %w", entry, group, err)
	}
	return nil
}

// RunCronEntry enqueues the job of an entry now.
func (c *Client) RunCronEntry(ctx context.Context, group, entry string) (*wire.Enqueued, error) {
	out := new(wire.Enqueued)
	if err := c.call(ctx, "POST", cronEntryPath(group, entry)+"/run", nil, out); err != nil {
		return nil, fmt.Errorf("running the cron entry %s of %s: %w", entry, group, err)
	}
	return out, nil
}

// PreviewCron asks for the next n ticks of an expression; zone "" = the server's.
func (c *Client) PreviewCron(ctx context.Context, expression, zone string, n int) (*wire.CronPreview, error) {
	q := url.Values{"expression": {expression}, "n": {strconv.Itoa(n)}}
	if zone != "" {
		q.Set("timezone", zone)
	}
	out := new(wire.CronPreview)
	if err := c.call(ctx, "GET", "/crons/preview?"+q.Encode(), nil, out); err != nil {
		return nil, fmt.Errorf("previewing %q: %w", expression, err)
	}
	return out, nil
}
