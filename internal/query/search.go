package query

import (
	"context"
	"runtime"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Judge chooses jobs by their payload. It may take long, so it runs outside of
// every transaction and every view, and only so many run at a time. Its error
// ends the search. What it returns may take the place of the list.
type Judge func(ctx context.Context, list []Listed) (chosen []Listed, err error)

// Search chooses jobs: by the filter, which a store's index answers, and among
// those by what is in the job and by its payload.
type Search struct {
	Filter  store.Filter
	Where   func(*job.Job) bool // quick; nil = all
	Judge   Judge               // nil = all
	Payload bool                // payloads of the chosen jobs are asked for
	Room    engine.Room         // for those; nil = as much as they need

	// Waits chooses jobs by what keeps them from running, as Obstacles tells it;
	// nil = all. The calls that change many jobs do not have it.
	Waits func(*job.Job, rule.Obstacle) bool

	// Refused is told of each job that a call over many leaves as it is, and why;
	// nil = nobody is.
	Refused func(job.ID, error)

	// Pause is told how many candidates were looked at, and the last of them, and
	// whether that is enough; nil = look at all.
	Pause func(looked int, last job.ID) bool
}

// Bounds of one look of a search.
const (
	searchPage  = 500     // candidates under one view of the store
	searchBytes = 8 << 20 // of payloads in memory at a time, or those of one job
)

// judging has a place for each Judge that may run in this process at a time. They leave
// half of the processors to everybody else.
var judging = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Each calls f for every chosen job in the order of the filter, until it has
// enough. Terminal jobs past their retention are hidden. A page is looked at
// at a time, so what changes meanwhile may be seen or not.
func (r Reads) Each(ctx context.Context, s Search, f func(Listed) (more bool, err error)) error {
	for more := true; more; {
		var page []Listed
		var err error
		err = r.engine.View(ctx, func(v store.Reader) error {
			s.Filter.Alive = v.Now()
			page, more, err = s.look(v)
			return err
		})
		if err != nil {
			return err
		}
		if s.Waits != nil {
			if err := r.Obstacles(ctx, page); err != nil {
				return err
			}
			page = slices.DeleteFunc(page, func(l Listed) bool { return !s.Waits(l.Job, l.Is) })
		}
		if on, err := r.Judged(ctx, &s, page, f); err != nil || !on {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if more && s.Pause != nil && s.Pause(searchPage, s.Filter.From) {
			return nil
		}
	}
	return nil
}

// look loads the next candidates and moves the search on behind them.
func (s *Search) look(v store.Reader) (page []Listed, more bool, err error) {
	list, err := v.List(s.Filter, searchPage)
	for _, j := range list {
		if s.Filter.From = j.ID; s.Where == nil || s.Where(j) {
			page = append(page, Listed{Job: j})
		}
	}
	return page, len(list) == searchPage, err
}

// Judged gives those of a page on that are chosen, payloads in bounded parts.
func (r Reads) Judged(ctx context.Context, s *Search, page []Listed, f func(Listed) (bool, error)) (on bool, err error) {
	for len(page) > 0 {
		n, bytes := 0, 0
		for n < len(page) && (n == 0 || bytes+int(page[n].Job.PayloadSize) <= searchBytes) {
			bytes += int(page[n].Job.PayloadSize)
			n++
		}
		part := page[:n]
		page = page[n:]
		switch {
		case s.Judge != nil:
			part, err = r.judge(ctx, s, part)
		case s.Payload:
			if err = s.room(bytes); err == nil {
				err = r.Payloads(ctx, part)
			}
		}
		if err != nil {
			return false, err
		}
		for _, l := range part {
			if !s.Payload {
				l.Payload = nil
			}
			if on, err := f(l); err != nil || !on {
				return on, err
			}
		}
	}
	return true, nil
}

// Payloads brings the payloads of rows into memory. Who waits with one that cannot be
// read is given up.
func (r Reads) Payloads(ctx context.Context, list []Listed) error {
	refs := make([]job.ID, len(list))
	for i := range list {
		refs[i] = list[i].Job.Payload
	}
	bodies, err := r.engine.Bodies(refs...)
	for i := range bodies {
		if bodies[i] != nil {
			list[i].Payload = r.engine.Shown(list[i].Job, bodies[i])
		} else if list[i].Payload = nil; err == nil {
			if list[i].Job, err = r.engine.Unread(ctx, list[i].Job); job.KindOf(err) == job.Corrupt {
				err = nil // it is shown without
			}
		}
	}
	return err
}

func (s *Search) room(bytes int) error {
	if s.Room == nil {
		return nil
	}
	return s.Room(bytes)
}

func (r Reads) judge(ctx context.Context, s *Search, list []Listed) ([]Listed, error) {
	select {
	case judging <- struct{}{}:
		defer func() { <-judging }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := r.Payloads(ctx, list); err != nil {
		return nil, err
	}
	list, err := s.Judge(ctx, list)
	bytes := 0
	for _, l := range list {
		bytes += l.Bytes()
	}
	if s.Payload && err == nil {
		err = s.room(bytes)
	}
	return list, err
}
