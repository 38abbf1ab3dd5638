package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/reprisehq/reprise/wire"
)

// Filter chooses jobs. Inside a field any of the values will do, all fields
// together must fit; an empty field chooses everything.
type Filter struct {
	Queues   []string
	Types    []string
	Statuses []string // wire.Scheduled, wire.Ready, ...
	Reasons  []string // of dead ones: wire.ReasonExhausted, wire.ReasonCancelled, ...
	IDs      []string
	Budgets  []string // bound to any of these
	Groups   []string
	Labels   map[string]string // all of these
	// Ranges over a number of a job, both ends included: 3, 1..5, 2.. or ..4.
	Priority, ReadyAt, Attempts string
	// Filter is a jq expression over the payload: jobs with any truthy output.
	Filter string

	// Waits are why jobs do not run (wire.Waits). For List and Count only.
	Waits []string

	// All chooses every job, for PatchMany, CancelMany and DeleteMany, together with nothing else.
	All bool

	// For List only.
	Newest   bool   // newest first
	After    string // the id to go on behind
	PageSize int    // jobs in one request; 0 = 500
}

// lists are what several values may choose, by their names on the wire.
func (f Filter) lists() map[string][]string {
	return map[string][]string{
		"queue": f.Queues, "type": f.Types, "status": f.Statuses, "id": f.IDs, "budgets.key": f.Budgets, "wait": f.Waits,
		"reason": f.Reasons, "group": f.Groups, "label": f.labels(),
	}
}

// query writes what chooses; empty means everything.
func (f Filter) query() url.Values {
	return queryOf(f.lists(), map[string]string{"priority": f.Priority, "ready_at": f.ReadyAt, "attempts": f.Attempts, "filter": f.Filter})
}

// queryOf writes parameters, but for those that are empty.
func queryOf(lists map[string][]string, texts map[string]string) url.Values {
	q := url.Values{}
	for name, values := range lists {
		if len(values) > 0 {
			q.Set(name, strings.Join(values, ","))
		}
	}
	for name, value := range texts {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// checkLists refuses values that would mean something else on the wire.
func checkLists(lists map[string][]string) error {
	for name, values := range lists {
		for _, v := range values {
			if v == "" || strings.Contains(v, ",") {
				return fmt.Errorf("the filter value %q of %s can choose no job: it is empty or has a comma, which stands between values", v, name)
			}
		}
	}
	return nil
}

func (f Filter) labels() (list []string) {
	for name, value := range f.Labels {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// check refuses what can choose no job.
func (f Filter) check() error {
	for name := range f.Labels {
		if name == "" || strings.Contains(name, "=") {
			return fmt.Errorf("the label %q can choose no job: its name is empty or has a =, which ends it", name)
		}
	}
	return checkLists(f.lists())
}

// Explain asks why a job does not run, and which retry policy holds for it, part
// by part, with who decided each.
func (c *Client) Explain(ctx context.Context, id string) (*wire.Explanation, error) {
	return answer[wire.Explanation](ctx, c, "GET", "/jobs/"+url.PathEscape(id)+"/explain", nil, "explaining job %s", id)
}

// Get reads one job with its payload.
func (c *Client) Get(ctx context.Context, id string) (*wire.Job, error) {
	return answer[wire.Job](ctx, c, "GET", "/jobs/"+url.PathEscape(id), nil, "reading job %s", id)
}

// List reads jobs, oldest first, page by page as the loop asks for them. It
// stops at the first error, which is its last pair.
func (c *Client) List(ctx context.Context, f Filter) iter.Seq2[wire.Job, error] {
	q := f.query()
	q.Set("limit", strconv.Itoa(pageSize(f.PageSize)))
	if f.Newest {
		q.Set("order", "desc")
	}
	if f.After != "" {
		q.Set("from", f.After)
	}
	if err := f.check(); err != nil {
		return unread[wire.Job](fmt.Errorf("listing jobs: %w", err))
	}
	return pages(ctx, c, "/jobs?"+q.Encode(), func(p *wire.Page) ([]wire.Job, string) { return p.Jobs, following(p.Pages) }, "listing jobs")
}

// pages reads a list page by page as the loop asks for it. It stops at the first error,
// which is its last pair and begins with what was done, doing and its args. of takes a page
// apart: its rows, and the path of the next one, "" after the last.
func pages[P, T any](ctx context.Context, c *Client, first string, of func(*P) (rows []T, next string), doing string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for path := first; path != ""; {
			page, err := answer[P](ctx, c, "GET", path, nil, doing, args...)
			if err != nil {
				yield(*new(T), err)
				return
			}
			var rows []T
			rows, path = of(page)
			for i := range rows {
				if !yield(rows[i], nil) {
					return
				}
			}
		}
	}
}

// unread is a list that cannot be asked for.
func unread[T any](err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) { yield(*new(T), err) }
}

// whole reads all of a list.
func whole[T any](rows iter.Seq2[T, error]) (list []T, err error) {
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, nil
}

// behind is the path of the page of a list that begins behind a cursor, by the parameter of
// that name; "" = there is none.
func behind(list string, q url.Values, name, cursor string) string {
	if cursor == "" {
		return ""
	}
	q.Set(name, cursor)
	return list + q.Encode()
}

func pageSize(n int) int {
	const usual = 500
	if n <= 0 {
		return usual
	}
	return min(n, wire.PageLimitMax)
}

// following is the path of the next page. Only a path is followed: a link to
// elsewhere would take the headers of this client with it.
func following(p wire.Pages) string {
	if p.Next == nil || !strings.HasPrefix(*p.Next, "/") {
		return ""
	}
	return *p.Next
}

// Count counts jobs.
func (c *Client) Count(ctx context.Context, f Filter) (int64, error) {
	var n wire.Count
	err := f.check()
	if err == nil {
		err = c.call(ctx, "GET", "/jobs/count?"+f.query().Encode(), nil, &n)
	}
	if err != nil {
		return 0, fmt.Errorf("counting jobs: %w", err)
	}
	return n.Count, nil
}

// Delete removes one job in any state. A worker that has it will find its
// settle refused.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.ask(ctx, "DELETE", "/jobs/"+url.PathEscape(id), nil, nil, "deleting job %s", id)
}

// Errors reads the failures of a job, the first attempt first.
func (c *Client) Errors(ctx context.Context, id string) iter.Seq2[wire.JobError, error] {
	of := func(p *wire.ErrorPage) ([]wire.JobError, string) { return p.Errors, following(p.Pages) }
	return pages(ctx, c, "/jobs/"+url.PathEscape(id)+"/errors?limit=200", of, "reading the errors of job %s", id)
}

// Queues lists the names of the queues that hold jobs.
func (c *Client) Queues(ctx context.Context) ([]string, error) {
	var q wire.Queues
	err := c.ask(ctx, "GET", "/queues", nil, &q, "listing queues")
	return q.Queues, err
}

// Rates reads what happens in each queue that holds jobs, by its name. Of those
// that are too many to be watched nothing is told.
func (c *Client) Rates(ctx context.Context) (map[string]wire.QueueRates, error) {
	var q wire.Queues
	err := c.ask(ctx, "GET", "/queues?rates=true", nil, &q, "reading the rates of queues")
	return q.Rates, err
}

// Version asks the server who it is.
func (c *Client) Version(ctx context.Context) (wire.Version, error) {
	var v wire.Version
	err := c.ask(ctx, "GET", "/version", nil, &v, "asking for the version")
	return v, err
}

// Ready returns nil once the server takes and gives work.
func (c *Client) Ready(ctx context.Context) error {
	return c.ask(ctx, "GET", "/ready", nil, nil, "asking whether the server is ready")
}

// Settle reports how attempts ended, and answers with one verdict each, in
// order. A Worker does this by itself.
func (c *Client) Settle(ctx context.Context, list []wire.Settle) ([]wire.Verdict, error) {
	verdicts, err := c.verdicts(ctx, "/jobs/settle", list, len(list))
	if err != nil {
		return nil, fmt.Errorf("settling %d attempts: %w", len(list), err)
	}
	return verdicts, nil
}

// Cancel gives a job up that is not finished: it is dead, with who cancelled it
// and the reason as its failure, and whoever runs it is told. It answers with the job as it is
// then; one that is finished is an *Error with code wrong_state.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*wire.Job, error) {
	return answer[wire.Job](ctx, c, "POST", "/jobs/"+url.PathEscape(id)+"/cancel", wire.Cancel{Reason: reason}, "cancelling job %s", id)
}

// Report tells how far the run of a job has come, under the lease of its
// delivery; see Delivery.Report, which a handler of a Worker uses.
func (c *Client) Report(ctx context.Context, id, lease string, p wire.Progress) error {
	body := wire.ReportProgress{Lease: lease, Progress: p}
	return c.ask(ctx, "POST", "/jobs/"+url.PathEscape(id)+"/progress", body, nil, "reporting the progress of job %s", id)
}

func (c *Client) verdicts(ctx context.Context, path string, body any, want int) ([]wire.Verdict, error) {
	var v wire.Verdicts
	if err := c.call(ctx, "POST", path, body, &v); err != nil {
		return nil, err
	}
	if len(v.Verdicts) != want {
		return nil, fmt.Errorf("the server answered for %d", len(v.Verdicts))
	}
	return v.Verdicts, nil
}
