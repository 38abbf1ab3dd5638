package embedded

import (
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// match is a filter with its names turned into numbers.
type match struct {
	states [job.States]bool
	queues []uint32
	types  []uint32
	none   bool // names something that does not exist
}

func (x *index) match(f *store.Filter) match {
	var m match
	for _, st := range f.States {
		m.states[st] = true
	}
	if len(f.States) == 0 {
		m.states = [job.States]bool{true, true, true, true, true, true}
	}
	numbers := func(texts []string) (out []uint32) {
		for _, t := range texts {
			if n, ok := x.names.known(t); ok {
				out = append(out, n)
			}
		}
		m.none = m.none || len(texts) > 0 && len(out) == 0
		return out
	}
	m.queues, m.types = numbers(f.Queues), numbers(f.Types)
	return m
}

func (m *match) takes(l *listed) bool {
	return m.states[l.state] &&
		(m.queues == nil || slices.Contains(m.queues, l.queue)) &&
		(m.types == nil || slices.Contains(m.types, l.typ))
}

// list returns ids that match, by id, until keep says stop.
func (x *index) list(f *store.Filter, each func(job.ID) (more bool)) {
	m := x.match(f)
	if m.none {
		return
	}
	if len(f.IDs) > 0 {
		x.listNamed(f, &m, each)
		return
	}
	cur := x.listing.start()
	switch {
	case !f.From.IsZero():
		cur = x.listing.from(listed{id: f.From})
	case f.Desc:
		cur = cursor[listed]{list: &x.listing, c: len(x.listing.chunks)}
	}
	if f.Desc {
		for cur.prev() {
			if l, ok := cur.item(); ok && m.takes(&l) && !each(l.id) {
				return
			}
		}
		return
	}
	for l, ok := cur.item(); ok; l, ok = cur.item() {
		if l.id != f.From && m.takes(&l) && !each(l.id) {
			return
		}
		cur.next()
	}
}

func (x *index) listNamed(f *store.Filter, m *match, each func(job.ID) bool) {
	ids := slices.Clone(f.IDs)
	slices.SortFunc(ids, func(a, b job.ID) int {
		if f.Desc {
			return b.Compare(a)
		}
		return a.Compare(b)
	})
	for _, id := range slices.Compact(ids) {
		l := x.listing.at(listed{id: id})
		if l == nil || !m.takes(l) {
			continue
		}
		past := f.From.IsZero() || f.Desc && id.Before(f.From) || !f.Desc && f.From.Before(id)
		if past && !each(id) {
			return
		}
	}
}

// counted answers a count from the counters; ok = false means that queue and
// type are both given, so the listing must be walked.
func (x *index) counted(f *store.Filter) (n int64, ok bool) {
	m := x.match(f)
	if m.none {
		return 0, true
	}
	if len(f.IDs) > 0 || m.queues != nil && m.types != nil {
		return 0, false
	}
	add := func(states *[job.States]int64) {
		for st := range states {
			if m.states[st] {
				n += states[st]
			}
		}
	}
	switch {
	case m.types != nil:
		for t := range slices.Values(unique(m.types)) {
			if states := x.types[t]; states != nil {
				add(states)
			}
		}
	case m.queues != nil:
		for q := range slices.Values(unique(m.queues)) {
			if int(q) < len(x.order) && x.order[q] != nil {
				add(&x.order[q].depth.States)
			}
		}
	default:
		for _, q := range x.queues {
			add(&q.depth.States)
		}
	}
	return n, true
}

// hidden counts the jobs that match and whose time to be purged has come: few,
// unless the clock was told to wait.
func (x *index) hidden(f *store.Filter) (n int64) {
	if f.Alive == 0 {
		return 0
	}
	m := x.match(f)
	if m.none {
		return 0
	}
	for cur := x.timers[rule.HandPurge].start(); ; cur.next() {
		t, ok := cur.item()
		if !ok || t.at > f.Alive {
			return n
		}
		named := len(f.IDs) == 0 || slices.Contains(f.IDs, t.id)
		if l := x.listing.at(listed{id: t.id}); named && l != nil && m.takes(l) {
			n++
		}
	}
}

func unique(list []uint32) []uint32 {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
