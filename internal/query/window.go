package query

import (
	"context"
	"errors"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Watched are the lists that a person looks at, in the order of what is told of them.
var Watched = [...]job.State{job.Ready, job.Leased, job.Scheduled}

// Anchor is what a window of a list begins at.
type Anchor struct {
	Kind   AnchorKind
	Offset int64      // AtOffset
	ID     job.ID     // Around: the window has this job in its middle
	Else   AnchorKind // Around, and the job is not in the list: AtHead, AtTail or Nowhere
}

// AnchorKind is one of the places of an Anchor.
type AnchorKind uint8

// The kinds of anchors.
const (
	Nowhere AnchorKind = iota // an empty window
	AtHead
	AtTail
	AtOffset
	Around
)

// Window is a part of one of the lists.
type Window struct {
	List job.State
	At   Anchor
	N    int // rows, at most
}

// Seen is what is in a window.
type Seen struct {
	Rows  []Listed
	First int64 // position of the first row
	Total int64 // in the list
	Found bool  // the anchor named a place
}

// Windows looks at windows at one time, and counts the jobs of each list of Watched.
func (r Reads) Windows(ctx context.Context, windows []Window) (seen []Seen, counts [len(Watched)]int64, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		for i, list := range Watched {
			if counts[i], err = v.Count(store.Filter{States: []job.State{list}}); err != nil {
				return err
			}
		}
		for _, w := range windows {
			s, err := w.look(v)
			if err != nil {
				return err
			}
			seen = append(seen, s)
		}
		return nil
	})
	return seen, counts, err
}

func (w *Window) look(v store.Reader) (s Seen, err error) {
	if _, s.Total, err = v.Slice(w.List, 0, 0); err != nil {
		return s, err
	}
	at := w.At
	if at.Kind == Around {
		var place int64
		if place, s.Found, err = v.Place(w.List, at.ID); err != nil {
			return s, err
		}
		if at = (Anchor{Kind: at.Else}); s.Found {
			at = Anchor{Kind: AtOffset, Offset: place - int64(w.N/2)}
		}
	}
	last := max(0, s.Total-int64(w.N)) // a window at the end is full, too
	switch at.Kind {
	case Nowhere, Around:
		return s, nil
	case AtHead:
	case AtTail:
		s.First = last
	case AtOffset:
		s.First = min(max(0, at.Offset), last)
	}
	s.Found = s.Found || w.At.Kind != Around
	list, _, err := v.Slice(w.List, s.First, w.N)
	for _, j := range list {
		s.Rows = append(s.Rows, Listed{Job: j})
	}
	return s, err
}

// Find looks at so many jobs under one view of the store, and at most at so many.
const (
	findPage = 500
	findMost = 100_000
)

// Find returns the position of the first job of a list that matches, from a position
// on, up or down. A page is looked at a time, so the list may move meanwhile.
func (r Reads) Find(ctx context.Context, list job.State, from int64, down bool, match func(*job.Job) bool) (at int64, found bool, err error) {
	for looked := 0; looked < findMost && from >= 0; looked += findPage {
		first, n := from, findPage
		if down {
			first = max(0, from-findPage+1)
			n = int(from - first + 1)
		}
		var page []*job.Job
		err := r.engine.View(ctx, func(v store.Reader) (err error) {
			page, _, err = v.Slice(list, first, n)
			return err
		})
		if err != nil || ctx.Err() != nil || len(page) == 0 {
			return 0, false, errors.Join(err, ctx.Err())
		}
		if down {
			slices.Reverse(page)
		}
		i := slices.IndexFunc(page, match)
		switch {
		case i >= 0 && down:
			return first + int64(len(page)-1-i), true, nil
		case i >= 0:
			return first + int64(i), true, nil
		case down:
			from = first - 1
		default:
			from = first + int64(len(page))
		}
	}
	return 0, false, nil
}

// Place is the position of a job in a list, if it is there, and how many there are.
func (r Reads) Place(ctx context.Context, list job.State, id job.ID) (at, total int64, ok bool, err error) {
	err = r.engine.View(ctx, func(v store.Reader) error {
		if at, ok, err = v.Place(list, id); err != nil {
			return err
		}
		_, total, err = v.Slice(list, 0, 0)
		return err
	})
	return at, total, ok, err
}
