package turn

import (
	"context"
	"errors"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// What MayDeliver answers beside Superseded: the holder releases the member.
var (
	ErrExpired   = rule.ErrExpired
	ErrOutOfLine = rule.ErrOutOfLine
)

// MayDeliver looks at a member of a turn right before it is delivered. nil: go on.
// ErrExpired or ErrOutOfLine (it, its group or its queue was paused or held): the
// holder releases it; one that expired leaves, and the turn goes on without it.
// Superseded: the lease is over, and the holder stops. It reads only.
func (t *Turns) MayDeliver(ctx context.Context, id job.ID, token job.Token) error {
	return t.engine.View(ctx, func(v store.Reader) error {
		j, err := v.Get(id)
		if err != nil {
			return err
		}
		if j == nil {
			return engine.NoJob(id)
		}
		q, err := engine.QueueOf(v, j.Queue)
		if err != nil {
			return err
		}
		g, err := engine.GateOf(v, j.Queue, j.Group)
		if err != nil {
			return err
		}
		return rule.MayDeliver(q, g, j, token, v.Now(), !t.engine.Guarded())
	})
}

// GroupState is a group that is given out in turns.
type GroupState struct {
	Group   string
	Is      rule.Condition
	Members int64     // open ones, and dead ones that hold the group
	Head    *job.Job  // the first of them
	Gate    *job.Gate // nil = nothing is known of it
}

// Groups returns up to n groups of a queue that are given out in turns, by name:
// those above after, in one of the conditions (none = any).
func (t *Turns) Groups(ctx context.Context, queue string, is []rule.Condition, after string, n int) (list []GroupState, err error) {
	err = t.engine.View(ctx, func(v store.Reader) error {
		page, err := v.Standing(queue, is, after, n)
		list = make([]GroupState, 0, len(page))
		for _, s := range page {
			head, herr := v.Get(s.Head)
			gate, gerr := engine.GateOf(v, queue, s.Group)
			if herr != nil || gerr != nil {
				return errors.Join(herr, gerr)
			}
			list = append(list, GroupState{Group: s.Group, Is: s.Is, Members: s.Members, Head: head, Gate: gate})
		}
		return err
	})
	return list, err
}

// Members returns up to n members of a group, in its order.
func (t *Turns) Members(ctx context.Context, queue, group string, n int) (list []*job.Job, err error) {
	err = t.engine.View(ctx, func(v store.Reader) error {
		ids, err := v.IDs(store.Members(queue, group), n)
		if err != nil {
			return err
		}
		list = make([]*job.Job, len(ids))
		for i, id := range ids {
			if list[i], err = v.Get(id); err != nil {
				return err
			}
		}
		return nil
	})
	return list, err
}
