package client

import (
	"context"
	"io"
	"iter"
	"net/url"
	"strconv"

	"github.com/reprisehq/reprise/wire"
)

// GroupFilter chooses groups of the dead set.
type GroupFilter struct {
	Queues   []string
	Muted    string // "" = not muted ones, "true" = muted ones, "any"
	ByLast   bool   // latest death first; otherwise most jobs first
	PageSize int    // groups in one request; 0 = 500
}

// DeadGroups reads the groups of the dead set, page by page as the loop asks
// for them. It stops at the first error, which is its last pair.
func (c *Client) DeadGroups(ctx context.Context, f GroupFilter) iter.Seq2[wire.DeadGroup, error] {
	texts := map[string]string{"limit": strconv.Itoa(pageSize(f.PageSize)), "muted": f.Muted}
	if f.ByLast {
		texts["sort"] = "last_seen"
	}
	q := queryOf(map[string][]string{"queue": f.Queues}, texts)
	of := func(p *wire.DeadGroups) ([]wire.DeadGroup, string) {
		return p.Groups, following(wire.Pages{Next: p.Next})
	}
	return pages(ctx, c, "/dead/groups?"+q.Encode(), of, "reading the groups of the dead set")
}

// DeadGroup reads one group.
func (c *Client) DeadGroup(ctx context.Context, fingerprint string) (*wire.DeadGroup, error) {
	return answer[wire.DeadGroup](ctx, c, "GET", "/dead/groups/"+url.PathEscape(fingerprint), nil, "reading the group %s", fingerprint)
}

// Mark mutes, pauses or annotates a fingerprint: what is not nil changes.
func (c *Client) Mark(ctx context.Context, fingerprint string, m wire.Mark) (*wire.Mark, error) {
	return answer[wire.Mark](ctx, c, "PATCH", "/dead/groups/"+url.PathEscape(fingerprint), m, "marking %s", fingerprint)
}

// deadQuery writes a filter as parameters. Values with a comma cannot be asked
// for so.
func deadQuery(f wire.DeadFilter) (url.Values, error) {
	lists := map[string][]string{
		"id": f.IDs, "queue": f.Queues, "type": f.Types, "group": f.Groups, "reason": f.Reasons,
		"fingerprint": f.Fingerprints, "error_type": f.ErrorTypes,
	}
	texts := map[string]string{"text": f.Text, "attempts": f.Attempts, "filter": f.Filter}
	for name, at := range map[string]int64{"died_from": f.DiedFrom, "died_before": f.DiedBefore} {
		if at != 0 {
			texts[name] = strconv.FormatInt(at, 10)
		}
	}
	return queryOf(lists, texts), checkLists(lists)
}

// Dead reads dead jobs by id, page by page as the loop asks for them. It stops
// at the first error, which is its last pair.
func (c *Client) Dead(ctx context.Context, f wire.DeadFilter, newest bool, perPage int) iter.Seq2[wire.DeadJob, error] {
	q, err := deadQuery(f)
	if err != nil {
		return unread[wire.DeadJob](err)
	}
	q.Set("limit", strconv.Itoa(pageSize(perPage)))
	if newest {
		q.Set("order", "desc")
	}
	return pages(ctx, c, "/dead?"+q.Encode(), func(p *wire.DeadPage) ([]wire.DeadJob, string) { return p.Jobs, following(p.Pages) }, "listing dead jobs")
}

// DeadJob reads one dead job.
func (c *Client) DeadJob(ctx context.Context, id string) (*wire.DeadJob, error) {
	return answer[wire.DeadJob](ctx, c, "GET", "/dead/"+url.PathEscape(id), nil, "reading dead job %s", id)
}

// ReplayOne brings one dead job back.
func (c *Client) ReplayOne(ctx context.Context, id string, how wire.DeadOne) (*wire.Job, error) {
	return answer[wire.Job](ctx, c, "POST", "/dead/"+url.PathEscape(id)+"/replay", how, "replaying job %s", id)
}

// DeleteDead deletes one dead job.
func (c *Client) DeleteDead(ctx context.Context, id string) error {
	return c.ask(ctx, "DELETE", "/dead/"+url.PathEscape(id), nil, nil, "deleting dead job %s", id)
}

// ReplayDead begins to replay dead jobs; the server goes on by itself.
func (c *Client) ReplayDead(ctx context.Context, ask wire.DeadReplay) (*wire.Replay, error) {
	ask.DryRun = false
	return answer[wire.Replay](ctx, c, "POST", "/dead/replay", ask, "replaying dead jobs")
}

// DeleteAllDead begins to delete dead jobs; the server goes on by itself.
func (c *Client) DeleteAllDead(ctx context.Context, ask wire.DeadDelete) (*wire.Replay, error) {
	ask.DryRun = false
	return answer[wire.Replay](ctx, c, "POST", "/dead/delete", ask, "deleting dead jobs")
}

// DryRun counts what a replay or a delete of all the filter chooses would do,
// and shows some of it.
func (c *Client) DryRun(ctx context.Context, f wire.DeadFilter) (*wire.DryRun, error) {
	return answer[wire.DryRun](ctx, c, "POST", "/dead/replay", wire.DeadReplay{Filter: f, All: true, DryRun: true}, "counting dead jobs")
}

// Replay reads how far a run through the dead set has come.
func (c *Client) Replay(ctx context.Context, id string) (*wire.Replay, error) {
	return answer[wire.Replay](ctx, c, "GET", "/replays/"+url.PathEscape(id), nil, "reading replay %s", id)
}

// CancelReplay ends a run; what it has done stays done.
func (c *Client) CancelReplay(ctx context.Context, id string) (*wire.Replay, error) {
	return answer[wire.Replay](ctx, c, "DELETE", "/replays/"+url.PathEscape(id), nil, "cancelling replay %s", id)
}

// Replays reads the latest runs, newest first.
func (c *Client) Replays(ctx context.Context, limit int) ([]wire.Replay, error) {
	var page wire.Replays
	err := c.ask(ctx, "GET", "/replays?limit="+strconv.Itoa(pageSize(limit)), nil, &page, "listing replays")
	return page.Replays, err
}

// Audit reads the latest entries of the audit log, newest first.
func (c *Client) Audit(ctx context.Context, limit int) ([]wire.AuditEntry, error) {
	var page wire.Audit
	err := c.ask(ctx, "GET", "/audit?limit="+strconv.Itoa(pageSize(limit)), nil, &page, "reading the audit log")
	return page.Entries, err
}

// ExportDead opens the stream of all dead jobs that a filter chooses, one a
// line (wire.DeadJob). Only ctx bounds it; a reader that ends without io.EOF
// has not seen all. The caller closes it.
func (c *Client) ExportDead(ctx context.Context, f wire.DeadFilter) (io.ReadCloser, error) {
	q, err := deadQuery(f)
	if err != nil {
		return nil, err
	}
	return c.long(ctx, "GET", "/dead/export?"+q.Encode(), "application/x-ndjson", "exporting dead jobs")
}
