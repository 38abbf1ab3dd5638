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
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/query"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/strict"
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
		return nil, refuse("filter", "invalid filter: "+strict.Shorten(err.Error(), 300))
	}
	return p, nil
}

func (q *Query) sift(source string) (err error) {
	q.sieve, err = compileFilter(source)
	return err
}

// judge is what a search does to payloads: nil without a filter.
func judge(p *jq.Program) query.Judge {
	if p == nil {
		return nil
	}
	return func(ctx context.Context, list []query.Listed) (chosen []query.Listed, err error) {
		list = slices.DeleteFunc(list, func(l query.Listed) bool {
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
	if q.groups != nil && !slices.Contains(q.groups, j.Group) || q.labels != nil && !q.labelled(j) {
		return false
	}
	return q.bound == nil || slices.ContainsFunc(j.Budgets(), func(u job.BudgetUse) bool { return slices.Contains(q.bound, u.Key) })
}

// labelled reports whether a job has, of each key that is asked for, one of the values.
func (q *Query) labelled(j *job.Job) bool {
	if j.Extras == nil {
		return false
	}
	for i := 0; i < len(q.labels); { // sorted, so those of a key stand together
		key, has := q.labels[i].Key, false
		for ; i < len(q.labels) && q.labels[i].Key == key; i++ {
			has = has || slices.Contains(j.Extras.Labels, q.labels[i])
		}
		if !has {
			return false
		}
	}
	return true
}

// search is the query as the engine takes it.
func (q *Query) search() query.Search {
	s := query.Search{Filter: q.filter, Judge: judge(q.sieve)}
	if len(q.ranges) > 0 || q.bound != nil || q.rare() || q.waits != nil || len(q.whys) > 0 && !slices.Equal(q.filter.Statuses, []rule.Status{rule.StatusCancelled}) {
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

// scanMax is how many candidates a page looks at that chooses by what no index knows
// and few jobs have; then it ends, full or not, and names the next one.
const scanMax = 20_000

// rare reports whether the query chooses by such a thing. Zizq has no such filters, so
// none of its clients takes a page that is not full for the last one.
func (q *Query) rare() bool { return q.groups != nil || q.labels != nil }

// Found is a page of rows.
type Found[T any] struct {
	Rows   []T
	More   bool   // others may follow
	behind string // the key of the last candidate; "" = that of the last row
}

// Find returns the rows of a page, in the order of the search.
func (q *Query) Find(ctx context.Context, e *part.Engine, room engine.Room) (f Found[query.Listed], err error) {
	s, bytes := q.search(), 0
	if s.Where == nil && s.Judge == nil {
		if f.Rows, err = e.List(ctx, q.filter, q.limit+1); err != nil {
			return f, err
		}
		f.Rows, f.More, bytes = query.Fits(f.Rows, q.limit, query.Listed.Bytes)
		if err = room(bytes); err == nil {
			err = e.Payloads(ctx, f.Rows)
		}
		f.Rows = Waiting(ctx, e, f.Rows)
		return f, err
	}
	s.Payload, s.Room = true, room
	if looked := 0; q.rare() {
		s.Pause = func(n int, last job.ID) bool {
			if looked += n; looked >= scanMax {
				f.More, f.behind = true, last.String()
			}
			return f.More
		}
	}
	err = bounded(ctx, q.sieve, func(ctx context.Context) error {
		return e.Each(ctx, s, func(l query.Listed) (bool, error) {
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
func Waiting(ctx context.Context, e *part.Engine, rows []query.Listed) []query.Listed {
	if err := e.Obstacles(ctx, rows); err != nil {
		for i := range rows {
			rows[i].Is = rule.NotDue
		}
	}
	return rows
}

// Count counts the jobs that match.
func (q *Query) Count(ctx context.Context, e *part.Engine) (n int64, err error) {
	s := q.search()
	if s.Where == nil && s.Judge == nil {
		return e.Count(ctx, q.filter)
	}
	err = bounded(ctx, q.sieve, func(ctx context.Context) error {
		return e.Each(ctx, s, func(query.Listed) (bool, error) { n++; return true, nil })
	})
	return n, err
}
