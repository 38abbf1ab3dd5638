package client

import (
	"context"
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
	err := c.ask(ctx, "GET", "/crons", nil, &out, "listing cron groups")
	return out.Crons, err
}

// Cron reads a group with its entries.
func (c *Client) Cron(ctx context.Context, group string) (*wire.CronGroup, error) {
	return answer[wire.CronGroup](ctx, c, "GET", cronPath(group), nil, "reading the cron group %s", group)
}

// SetCron makes a group exactly what is given: entries that are not in it
// leave, and those whose expression and zone are as before keep their time.
func (c *Client) SetCron(ctx context.Context, group string, g wire.CronGroup) (*wire.CronGroup, error) {
	if g.Entries == nil {
		g.Entries = []wire.CronEntry{}
	}
	return answer[wire.CronGroup](ctx, c, "PUT", cronPath(group), g, "setting the cron group %s", group)
}

// PauseCron pauses a group, or ends that.
func (c *Client) PauseCron(ctx context.Context, group string, paused bool) (*wire.CronGroup, error) {
	return c.PatchCron(ctx, group, wire.CronPatch{Paused: &paused})
}

// PatchCron changes what is given of a group. In another time zone, entries
// without one of their own count anew from now.
func (c *Client) PatchCron(ctx context.Context, group string, p wire.CronPatch) (*wire.CronGroup, error) {
	return answer[wire.CronGroup](ctx, c, "PATCH", cronPath(group), p, "changing the cron group %s", group)
}

// DeleteCron deletes a group with its entries.
func (c *Client) DeleteCron(ctx context.Context, group string) error {
	return c.ask(ctx, "DELETE", cronPath(group), nil, nil, "deleting the cron group %s", group)
}

// DeleteCrons deletes all groups and returns how many there were.
func (c *Client) DeleteCrons(ctx context.Context) (int, error) {
	var out wire.CronsDeleted
	err := c.ask(ctx, "DELETE", "/crons?all=true", nil, &out, "deleting all cron groups")
	return out.Deleted, err
}

// AddCronEntry makes an entry; one that is there is refused.
func (c *Client) AddCronEntry(ctx context.Context, group string, e wire.CronEntry) (*wire.CronEntry, error) {
	return answer[wire.CronEntry](ctx, c, "POST", cronPath(group)+"/entries", e, "adding the cron entry %s to %s", e.Name, group)
}

// CronEntry reads an entry.
func (c *Client) CronEntry(ctx context.Context, group, entry string) (*wire.CronEntry, error) {
	return answer[wire.CronEntry](ctx, c, "GET", cronEntryPath(group, entry), nil, "reading the cron entry %s of %s", entry, group)
}

// SetCronEntry makes or changes the entry of that name.
func (c *Client) SetCronEntry(ctx context.Context, group string, e wire.CronEntry) (*wire.CronEntry, error) {
	return answer[wire.CronEntry](ctx, c, "PUT", cronEntryPath(group, e.Name), e, "setting the cron entry %s of %s", e.Name, group)
}

// PauseCronEntry pauses an entry, or ends that.
func (c *Client) PauseCronEntry(ctx context.Context, group, entry string, paused bool) (*wire.CronEntry, error) {
	return answer[wire.CronEntry](ctx, c, "PATCH", cronEntryPath(group, entry), wire.CronPause{Paused: paused}, "changing the cron entry %s of %s", entry, group)
}

// DeleteCronEntry deletes an entry; its group stays.
func (c *Client) DeleteCronEntry(ctx context.Context, group, entry string) error {
	return c.ask(ctx, "DELETE", cronEntryPath(group, entry), nil, nil, "deleting the cron entry %s of %s", entry, group)
}

// RunCronEntry enqueues the job of an entry now.
func (c *Client) RunCronEntry(ctx context.Context, group, entry string) (*wire.Enqueued, error) {
	return answer[wire.Enqueued](ctx, c, "POST", cronEntryPath(group, entry)+"/run", nil, "running the cron entry %s of %s", entry, group)
}

// PreviewCron asks for the next n ticks of an expression; zone "" = the server's.
func (c *Client) PreviewCron(ctx context.Context, expression, zone string, n int) (*wire.CronPreview, error) {
	q := url.Values{"expression": {expression}, "n": {strconv.Itoa(n)}}
	if zone != "" {
		q.Set("timezone", zone)
	}
	return answer[wire.CronPreview](ctx, c, "GET", "/crons/preview?"+q.Encode(), nil, "previewing %q", expression)
}
