package plan

import "slices"

// Rota says which session is next for a free slot (the hook Pick of core.md
// section 3, in the manner of the grid): the one that is furthest below its
// share, for its weight. The grid keeps one for all sessions and tells it
// what happens:
//
//   - Join, Change and Leave when a session comes, is changed (weight, suspend,
//     max_engines, urgent) or goes; SetSlots when engines log in or are lost.
//   - Wait for tasks that came into line (n > 0) or left it (n < 0), other than
//     by a start; also a copy that was offered and waits for its holder.
//   - Start when a lease was granted, End when one ended, whatever the end.
//
// Each of these is O(log sessions) and allocates nothing. Shares are worked out
// again only when something changed that can change them, at the next Pick: a
// session that has more tasks than its share needs none of it. A Rota holds
// nothing that the sessions, leases and lines do not say: after a start it is
// built again from them.
type Rota struct {
	slots, least int
	shares       []*Share // oldest first
	heap         []*Share // those that can use a slot now
	stale        bool     // shares are to be worked out again
	claims       []Claim
	filler       filler
	aside        []*Share
}

// Share is a session in a Rota. Its fields are to be read only.
type Share struct {
	Name    string // of the session
	Waiting int    // tasks and copies that want a slot
	Running int    // copies that run
	Target  int    // its share; see Rota.Targets
	Weight  int
	Max     int
	Urgent  bool

	at    int // in shares
	place int // in heap, -1 = not in it
	bound int
}

// NewRota returns a rota without sessions and slots. least is the smallest
// share of a session that has work, if there are as many slots: 1, or 0 as
// GridServer does.
func NewRota(least int) *Rota { return &Rota{least: least, stale: true} }

// SetSlots says how many slots the engines have that may be given work.
func (r *Rota) SetSlots(n int) { r.stale, r.slots = r.stale || n != r.slots, n }

// Join adds a session, the youngest. Its claim says what running and waiting
// do not: Demand is not looked at.
func (r *Rota) Join(name string, c Claim) *Share {
	t := &Share{Name: name, Weight: c.Weight, Max: c.Max, Urgent: c.Urgent, at: len(r.shares), place: -1}
	r.shares = append(r.shares, t)
	r.stale = true
	return t
}

// Change gives a session another weight, limit or urgency. What runs goes on.
func (r *Rota) Change(t *Share, c Claim) {
	t.Weight, t.Max, t.Urgent, r.stale = c.Weight, c.Max, c.Urgent, true
	r.settle(t)
}

// Leave removes a session.
func (r *Rota) Leave(t *Share) {
	if t.place >= 0 {
		r.drop(t)
	}
	r.shares = slices.Delete(r.shares, t.at, t.at+1)
	for i := t.at; i < len(r.shares); i++ {
		r.shares[i].at = i
	}
	r.stale = true
}

// Wait adds n to the tasks of a session that wait.
func (r *Rota) Wait(t *Share, n int) { r.move(t, n, 0) }

// Start counts a task of a session that waited and runs now.
func (r *Rota) Start(t *Share) { r.move(t, -1, 1) }

// End counts a copy of a task that ran and does not any more.
func (r *Rota) End(t *Share) { r.move(t, 0, -1) }

func (r *Rota) move(t *Share, waiting, running int) {
	before := t.claim()
	t.Waiting += waiting
	t.Running += running
	after := t.claim()
	was, is := before.most(), after.most()
	r.stale = r.stale || was != is && min(was, is) <= t.bound
	r.settle(t)
}

func (t *Share) claim() Claim {
	return Claim{Weight: t.Weight, Max: t.Max, Urgent: t.Urgent, Demand: t.Waiting + t.Running}
}

// wants reports whether the session may be given a slot.
func (t *Share) wants() bool {
	return t.Waiting > 0 && t.Weight > 0 && (t.Max == 0 || t.Running < t.Max)
}

// Pick is the session that is served next; nil = none wants a slot, or none
// that fits does. fits says whether the free slot may run the foremost task of
// a session; nil = any. It may take tasks of that session out of line (Wait).
// What runs in a session is counted by Start, not by Pick.
//
// A session above its share is picked only when those below it have nothing
// that fits: no slot is left idle.
func (r *Rota) Pick(fits func(*Share) bool) *Share {
	r.refresh()
	var next *Share
	for len(r.heap) > 0 {
		t := r.heap[0]
		if fits == nil || fits(t) {
			next = t
			break
		}
		if t.place >= 0 {
			r.aside = append(r.aside, t)
			r.drop(t)
		}
	}
	for _, t := range r.aside {
		r.add(t)
	}
	clear(r.aside)
	r.aside = r.aside[:0]
	return next
}

// Targets brings Share.Target of all sessions up to date, and returns the
// sessions, oldest first. The list is valid until the next Join or Leave.
func (r *Rota) Targets() []*Share {
	r.refresh()
	return r.shares
}

// Short is how many more slots the urgent sessions below their share could use now.
func (r *Rota) Short() (n int) {
	r.refresh()
	for _, t := range r.heap {
		if t.Urgent {
			n += max(0, min(t.Target-t.Running, t.Waiting))
		}
	}
	return n
}

func (r *Rota) refresh() {
	if !r.stale {
		return
	}
	r.stale = false
	r.claims = r.claims[:0]
	for _, t := range r.shares {
		r.claims = append(r.claims, t.claim())
	}
	r.filler.fill(r.slots, r.least, r.claims)
	for i, t := range r.shares {
		t.Target, t.bound = r.filler.target[i], r.filler.bound[i]
	}
	for i := len(r.heap)/2 - 1; i >= 0; i-- {
		r.down(i)
	}
}

// before is the order of sessions: urgent ones, then the largest (target -
// running) / weight, the larger weight, the older.
func (t *Share) before(u *Share) bool {
	if t.Urgent != u.Urgent {
		return t.Urgent
	}
	a, b := (t.Target-t.Running)*u.Weight, (u.Target-u.Running)*t.Weight
	switch {
	case a != b:
		return a > b
	case t.Weight != u.Weight:
		return t.Weight > u.Weight
	}
	return t.at < u.at
}

// settle puts a session where it belongs in the heap, or takes it out.
func (r *Rota) settle(t *Share) {
	switch wants := t.wants(); {
	case wants && t.place < 0:
		r.add(t)
	case wants:
		r.down(t.place)
		r.up(t.place)
	case t.place >= 0:
		r.drop(t)
	}
}

func (r *Rota) add(t *Share) {
	t.place = len(r.heap)
	r.heap = append(r.heap, t)
	r.up(t.place)
}

func (r *Rota) drop(t *Share) {
	i, last := t.place, len(r.heap)-1
	r.swap(i, last)
	r.heap[last] = nil
	r.heap = r.heap[:last]
	if t.place = -1; i < last {
		r.down(i)
		r.up(i)
	}
}

func (r *Rota) swap(i, j int) {
	r.heap[i], r.heap[j] = r.heap[j], r.heap[i]
	r.heap[i].place, r.heap[j].place = i, j
}

func (r *Rota) up(i int) {
	for i > 0 && r.heap[i].before(r.heap[(i-1)/2]) {
		r.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (r *Rota) down(i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.heap); child++ {
			if r.heap[child].before(r.heap[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		r.swap(i, first)
		i = first
	}
}
