package embedded

import (
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// deadGroup is the dead jobs of one fingerprint: 24 bytes a job, and as much
// again for the listing entry that every job has.
type deadGroup struct {
	num    uint32 // in listing entries, above 0
	died   sorted[timer]
	queues map[uint32]int64 // jobs by the number of their queue
}

// moveDead keeps the groups of the dead set.
func (x *index) moveDead(old, j *job.Job, a, b *rule.Entries) {
	if a.Dead == b.Dead && (!a.Dead.Is || old.Queue == j.Queue) {
		return
	}
	if a.Dead.Is {
		g, q := x.dead[a.Dead.Print], x.of(old.Queue).num
		g.died.remove(timer{a.Dead.At, old.ID})
		if g.queues[q]--; g.queues[q] == 0 {
			delete(g.queues, q)
		}
		if g.died.len() == 0 {
			delete(x.dead, a.Dead.Print)
		}
	}
	if b.Dead.Is {
		g := x.dead[b.Dead.Print]
		if g == nil {
			x.groups++
			g = &deadGroup{num: x.groups, queues: map[uint32]int64{}}
			x.dead[b.Dead.Print] = g
		}
		g.died.insert(timer{b.Dead.At, j.ID})
		g.queues[x.of(j.Queue).num]++
	}
}

// groupOf is what a listing entry knows of the dead set.
func (x *index) groupOf(e *rule.Entries) uint32 {
	if !e.Dead.Is {
		return 0
	}
	return x.dead[e.Dead.Print].num
}

func (x *index) movePark(a, b *rule.Entries) {
	if a.Park == b.Park && (a.Park == "" || a.Pos == b.Pos) {
		return
	}
	if a.Park != "" {
		list := x.parked[a.Park]
		if list.remove(a.Pos); list.len() == 0 {
			delete(x.parked, a.Park)
		}
	}
	if b.Park != "" {
		if x.parked[b.Park] == nil {
			x.parked[b.Park] = &sorted[rule.Pos]{}
		}
		x.parked[b.Park].insert(b.Pos)
	}
}

func (a *access) Parked(label string, n int) ([]job.ID, error) {
	list := a.s.index.parked[label]
	if list == nil {
		return nil, nil
	}
	var out []job.ID
	for cur := list.start(); len(out) < n; cur.next() {
		pos, ok := cur.item()
		if !ok {
			break
		}
		out = append(out, pos.ID)
	}
	return out, nil
}

func (a *access) Groups(edges []job.Millis) ([]store.Group, error) {
	x := a.s.index
	var out []store.Group
	for _, print := range slices.Sorted(maps.Keys(x.dead)) {
		d := x.dead[print]
		g := store.Group{Print: print, Queues: make(map[string]int64, len(d.queues)), Trend: make([]int64, len(edges))}
		for q, n := range d.queues {
			g.Queues[x.order[q].name] = n
		}
		first, _ := d.died.first()
		last, _ := d.died.last()
		g.First, g.Last, g.Sample = first.at, last.at, last.id
		later := 0 // deaths from the edge on
		for i, edge := range slices.Backward(edges) {
			n := d.died.len() - d.died.rank(timer{at: edge})
			g.Trend[i], later = int64(n-later), n
		}
		out = append(out, g)
	}
	return out, nil
}
