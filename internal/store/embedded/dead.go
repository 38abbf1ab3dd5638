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

// deadSet is the dead jobs by fingerprint.
type deadSet struct {
	groups map[job.Fingerprint]*deadGroup
	made   uint32 // how many there ever were
}

// moveDead keeps the groups of the dead set.
func (x *index) moveDead(old, j *job.Job, a, b *rule.Entries) {
	if a.Dead == b.Dead && (!a.Dead.Is || old.Queue == j.Queue) {
		return
	}
	if a.Dead.Is {
		x.dead.remove(a, old.ID, x.of(old.Queue).num)
	}
	if b.Dead.Is {
		x.dead.insert(b, j.ID, x.of(j.Queue).num)
	}
}

func (d *deadSet) remove(e *rule.Entries, id job.ID, queue uint32) {
	g := d.groups[e.Dead.Print]
	g.died.remove(timer{e.Dead.At, id})
	if g.queues[queue]--; g.queues[queue] == 0 {
		delete(g.queues, queue)
	}
	if g.died.len() == 0 {
		delete(d.groups, e.Dead.Print)
	}
}

func (d *deadSet) insert(e *rule.Entries, id job.ID, queue uint32) {
	g := d.groups[e.Dead.Print]
	if g == nil {
		d.made++
		g = &deadGroup{num: d.made, queues: map[uint32]int64{}}
		d.groups[e.Dead.Print] = g
	}
	g.died.insert(timer{e.Dead.At, id})
	g.queues[queue]++
}

// number is what a listing entry knows of the dead set.
func (d *deadSet) number(e *rule.Entries) uint32 {
	if !e.Dead.Is {
		return 0
	}
	return d.groups[e.Dead.Print].num
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

func (a *access) Groups(edges []job.Millis) ([]store.Group, error) {
	x := a.s.index
	var out []store.Group
	for _, print := range slices.Sorted(maps.Keys(x.dead.groups)) {
		d := x.dead.groups[print]
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
