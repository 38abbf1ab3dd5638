package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/jq"
	"github.com/reprisehq/reprise/internal/rule"
)

// What filters over payloads may cost: one job, and all jobs of one request.
var (
	sieveEach  = jq.Limits{Time: time.Second, Bytes: 4 << 20}
	sieveTotal = 10 * time.Second
)

var errSieveTotal = refuse("filter", fmt.Sprintf(
	"filter: the jobs to look at took longer than %v; narrow them down by queue, type, status or id, or take a simpler filter", sieveTotal))

// compileFilter reads a jq expression that chooses payloads.
func compileFilter(source string) (*jq.Program, error) {
	p, err := jq.Compile(source)
	if err != nil {
		return nil, refuse("filter", "invalid filter: "+shorten(err.Error(), 300))
	}
	return p, nil
}

func (q *Query) sift(source string) (err error) {
	q.sieve, err = compileFilter(source)
	return err
}

// judge is what a search does to payloads: nil without a filter.
func judge(p *jq.Program) engine.Judge {
	if p == nil {
		return nil
	}
	return func(ctx context.Context, list []engine.Listed) (chosen []engine.Listed, err error) {
		list = slices.DeleteFunc(list, func(l engine.Listed) bool {
			return len(l.Payload) == 0 || int(l.Job.PayloadSize) > sieveEach.Bytes // it is gone, or too large to be looked at
		})
		payloads := make([][]byte, len(list))
		for i := range list {
			payloads[i] = list[i].Payload
		}
		keeps, err := p.Keeps(ctx, sieveEach, payloads...)
		if errors.Is(err, jq.ErrBound) {
			return nil, refuse("filter", fmt.Sprintf("filter over job %s: %v", list[len(keeps)].Job.ID, err))
		}
		for i, yes := range keeps {
			if yes {
				chosen = append(chosen, list[i])
			}
		}
		return chosen, err
	}
}

// bounded runs a search within the time that filters may take.
func bounded(ctx context.Context, p *jq.Program, search func(context.Context) error) error {
	if p == nil {
		return search(ctx)
	}
	timed, cancel := context.WithTimeoutCause(ctx, sieveTotal, errSieveTotal)
	defer cancel()
	err := search(timed)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(timed), errSieveTotal) {
		return errSieveTotal
	}
	return err
}

func (q *Query) keeps(j *job.Job) bool {
	if q.whys != nil && !slices.Contains(q.whys, j.Reason) {
		return false
	}
	if q.waits != nil && j.State != job.Ready && j.Park == "" { // it waits for nothing
		return false
	}
	for _, s := range q.ranges {
		if n := s.of(j); n < s.lo || n > s.hi {
			return false
		}
	}
	return q.bound == nil || slices.ContainsFunc(j.Budgets(), func(u job.BudgetUse) bool { return slices.Contains(q.bound, u.Key) })
}

// search is the query as the engine takes it.
func (q *Query) search() engine.Search {
	s := engine.Search{Filter: q.filter, Judge: judge(q.sieve)}
	if len(q.ranges) > 0 || q.bound != nil || q.waits != nil || len(q.whys) > 0 && !slices.Equal(q.filter.Statuses, []rule.Status{rule.StatusCancelled}) {
		s.Where = q.keeps
	}
	if q.waits != nil {
		if s.Filter.States == nil { // those of which any can wait
			s.Filter.States = []job.State{job.Scheduled, job.Ready, job.Leased}
		}
		s.Waits = func(j *job.Job, is rule.Obstacle) bool { return slices.Contains(q.waits, waitOf(j, is)) }
	}
	return s
}

// Found is a page of rows.
type Found[T any] struct {
	Rows []T
	More bool // others follow
}

// Find returns the rows of a page, in the order of the search.
func (q *Query) Find(ctx context.Context, e *engine.Engine, room engine.Room) (f Found[engine.Listed], err error) {
	s, bytes := q.search(), 0
	if s.Where == nil && s.Judge == nil {
		if f.Rows, err = e.List(ctx, q.filter, q.limit+1, false); err != nil {
			return f, err
		}
		f.Rows, f.More, bytes = engine.Fits(f.Rows, q.limit, engine.Listed.Bytes)
		if err = room(bytes); err == nil {
			err = e.Payloads(f.Rows)
		}
		f.Rows = Waiting(ctx, e, f.Rows)
		return f, err
	}
	s.Payload, s.Room = true, room
	err = bounded(ctx, q.sieve, func(ctx context.Context) error {
		return e.Each(ctx, s, func(l engine.Listed) (bool, error) {
			if n := len(f.Rows); n == q.limit || n > 0 && bytes+l.Bytes() > engine.PageBytes {
				f.More = true
				return false, nil
			}
			f.Rows, bytes = append(f.Rows, l), bytes+l.Bytes()
			return true, nil
		})
	})
	if s.Waits == nil {
		f.Rows = Waiting(ctx, e, f.Rows)
	}
	return f, err
}

// Waiting notes of each job what keeps it from running; where that cannot be
// found out now, it stays unsaid.
func Waiting(ctx context.Context, e *engine.Engine, rows []engine.Listed) []engine.Listed {
	if err := e.Obstacles(ctx, rows); err != nil {
		for i := range rows {
			rows[i].Is = rule.NotDue
		}
	}
	return rows
}

// Count counts the jobs that match.
func (q *Query) Count(ctx context.Context, e *engine.Engine) (n int64, err error) {
	s := q.search()
	if s.Where == nil && s.Judge == nil {
		return e.Count(ctx, q.filter)
	}
	err = bounded(ctx, q.sieve, func(ctx context.Context) error {
		return e.Each(ctx, s, func(engine.Listed) (bool, error) { n++; return true, nil })
	})
	return n, err
}
