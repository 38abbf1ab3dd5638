package client

import (
	"context"
	"net/url"
	"time"

	"github.com/reprisehq/reprise/wire"
)

// AtOnce is a budget of units that are out at the same time: a run takes them
// when it is given out, and they come back when its lease ends, however it ends.
func AtOnce(units int64) wire.Budget {
	return wire.Budget{Allocation: units, Strategy: wire.BudgetStrategy{Type: wire.BudgetWhileInFlight}}
}

// Per is a budget of units that come with time, continuously: so many in a span.
// As many gather after a pause, unless Strategy.Burst says otherwise. What was
// used does not come back.
func Per(units int64, span time.Duration) wire.Budget {
	return wire.Budget{Allocation: units, Strategy: wire.BudgetStrategy{Type: wire.BudgetTimeBased, DurationMS: milliseconds(span)}}
}

func budgetPath(key string) string { return "/budgets/" + url.PathEscape(key) }

// Budgets lists all budgets and how they are used, by key.
func (c *Client) Budgets(ctx context.Context) ([]wire.BudgetState, error) {
	var out wire.Budgets
	err := c.ask(ctx, "GET", "/budgets", nil, &out, "listing budgets")
	return out.Budgets, err
}

// Budget reads one budget and how it is used.
func (c *Client) Budget(ctx context.Context, key string) (*wire.BudgetState, error) {
	return answer[wire.BudgetState](ctx, c, "GET", budgetPath(key), nil, "reading the budget %s", key)
}

// SetBudget makes a budget, or replaces what bounds it: that holds at once, and
// what runs goes on.
func (c *Client) SetBudget(ctx context.Context, key string, b wire.Budget) (*wire.BudgetState, error) {
	return answer[wire.BudgetState](ctx, c, "PUT", budgetPath(key), b, "setting the budget %s", key)
}

// DeleteBudget deletes a budget. While jobs are bound to it, it is an *Error
// with code exists.
func (c *Client) DeleteBudget(ctx context.Context, key string) error {
	return c.ask(ctx, "DELETE", budgetPath(key), nil, nil, "deleting the budget %s", key)
}

// Bind ties a job that does not run to a budget, or sets what a run of it costs.
func (c *Client) Bind(ctx context.Context, id string, b wire.Binding) (*wire.Job, error) {
	path := "/jobs/" + url.PathEscape(id) + budgetPath(b.Key)
	b.Key = ""
	return answer[wire.Job](ctx, c, "PUT", path, b, "binding job %s to a budget", id)
}

// Unbind takes a job that does not run from a budget.
func (c *Client) Unbind(ctx context.Context, id, key string) (*wire.Job, error) {
	return answer[wire.Job](ctx, c, "DELETE", "/jobs/"+url.PathEscape(id)+budgetPath(key), nil, "taking job %s from the budget %s", id, key)
}
