package storetest

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// toggleTurns lets the groups of a queue be given out in turns, or not any more.
func (h *history) toggleTurns(q *job.Queue) {
	if q.Turns = !q.Turns; !q.Turns {
		return
	}
	q.Protection.Fair = &job.FairShare{}
	if q.Order != job.OrderStrict {
		q.Concurrency = 1
	}
}

// takeTurn takes members of one group as the engine does: the head by Ready, those
// behind it by Wanting. That a rule refuses what was offered is an error of the store.
func (h *history) takeTurn(tx store.Tx) error {
	s, n := h.seeker(), 1+h.rng.IntN(5)
	s.Turns, s.Members = true, n
	if h.sometimes(3) {
		s.Before = int64(h.rng.IntN(400))
	}
	queues := queueNames[h.rng.IntN(len(queueNames)):]
	heads, err := tx.Ready(queues, s, 1)
	if err != nil || len(heads) == 0 || !rule.Fits(rule.EntriesOf(heads[0]).Class, heads[0].Requires, s) {
		return err
	}
	members, head := heads, heads[0]
	if head.Group != "" {
		wanting, err := tx.Wanting(head.Queue, head.Group, nil, n)
		if err != nil {
			return err
		}
		first, err := tx.IDs(store.Members(head.Queue, head.Group), n)
		if err != nil {
			return err
		}
		if members = rule.TurnOf(wanting, first); len(members) == 0 || members[0].ID != head.ID {
			return broken("Ready offers job %s, and Wanting begins with %s", head.ID, idsOf(wanting))
		}
	}
	turn := int64(0)
	for _, m := range members {
		l := &job.Lease{Token: h.token(), Holder: s.Holder, Kind: job.Anonymous}
		h.say("take %s in turn %d", m.ID, turn)
		eff, err := h.world.step(tx, m.ID, rule.Command{Verb: rule.Take, Lease: l, Turn: turn})
		if err != nil {
			return broken("job %s is offered in a turn and cannot be taken: %v", m.ID, err)
		}
		h.tokens = append(h.tokens, granted{m.ID, l.Token})
		turn = eff.Job.Leases[len(eff.Job.Leases)-1].Turn
	}
	return nil
}

// standing is what Standing must answer, of all there is in the queue.
func (m *model) standing(queue string) (list []store.Standing) {
	if q := m.queues[queue]; q == nil || !q.Turns {
		return nil
	}
	for _, key := range sortedKeys(m.groups) {
		members := m.groups[key]
		if members[0].Queue != queue {
			continue
		}
		_, g := m.standsFor(key, members)
		list = append(list, store.Standing{
			Group: members[0].Group, Is: rule.ConditionOf(g, members[0].State), Members: int64(len(members)), Head: members[0].ID,
		})
	}
	return list
}

// turns asks what is told of groups and of who is in them.
func (c *checker) turns() {
	for _, members := range c.m.groups {
		queue, group := members[0].Queue, members[0].Group
		var wanting, running []job.ID
		for _, j := range members {
			if e := c.m.entries[j.ID]; e.Wants {
				wanting = append(wanting, j.ID)
			}
			if j.Order != job.OrderNone && len(j.Leases) > 0 && j.Leases[0].Turn != 0 {
				running = append(running, j.ID)
			}
		}
		for _, n := range []int{len(members) + 1, 1} {
			list, err := c.Wanting(queue, group, nil, n)
			same(c, idsOf(list), err, wanting[:min(n, len(wanting))], "Wanting(%q, %q, %d)", queue, group, n)
			at := c.m.entries[members[len(members)/2].ID].Inner
			behind := slices.DeleteFunc(slices.Clone(wanting), func(id job.ID) bool { return !at.Before(c.m.entries[id].Inner) })
			list, err = c.Wanting(queue, group, &at, n)
			same(c, idsOf(list), err, behind[:min(n, len(behind))], "Wanting(%q, %q, %v, %d)", queue, group, at, n)
			ids, err := c.IDs(store.Running(queue, group), n)
			same(c, ids, err, running[:min(n, len(running))], "Running(%q, %q, %d)", queue, group, n)
		}
	}
	for name := range c.m.queues {
		want := c.m.standing(name)
		for _, n := range []int{len(want) + 1, 1} {
			got, err := c.Standing(name, nil, "", n)
			same(c, got, err, want[:min(n, len(want))], "Standing(%q, %d)", name, n)
		}
		blocked := slices.DeleteFunc(slices.Clone(want), func(g store.Standing) bool {
			return g.Is != rule.GroupBlocked && g.Is != rule.GroupPaused || g.Group <= "a"
		})
		got, err := c.Standing(name, []rule.Condition{rule.GroupBlocked, rule.GroupPaused}, "a", 100)
		same(c, got, err, blocked, "Standing(%q) of some", name)
	}
}

// turns asks what is told of groups that are given out in turns.
func (a *answers) turns(queue string) {
	for _, n := range a.sizes {
		list, err := a.Standing(queue, nil, "", n)
		a.note(err, list, "Standing", queue, n)
	}
	for _, g := range a.groups {
		for _, n := range a.sizes {
			list, err := a.Wanting(queue, g, nil, n)
			a.note(err, list, "Wanting", queue, g, n)
			ids, err := a.IDs(store.Running(queue, g), n)
			a.note(err, ids, "Running", queue, g, n)
		}
	}
}
