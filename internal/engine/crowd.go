package engine

import (
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// crowd is who holds what: what a transaction changes of it.
type crowd struct {
	*Tx
	held   map[*Holder]int // change of leases
	alone  map[*Holder]int // change of jobs delivered alone
	bytes  map[*Holder]int // of payloads given to unary calls
	reads  map[*Holder]int // deliveries that streams took off our hands
	leases int             // change of all
	joined map[string]*Holder
	asking []*Holder // unary calls that came in
	left   map[*Holder]bool
	ended  []*Holder // are told that their stream is over
	gifts  []gift
	lease  job.Lease // that is being granted
}

// renewedCrowd is a crowd without changes.
func (r *crowd) renewedCrowd(tx *Tx, e *Engine) crowd {
	if r.gifts == nil { // those of the run before are on their way
		r.gifts = *e.gifts.Get().(*[]gift)
	}
	return crowd{
		Tx: tx, held: renewed(r.held), alone: renewed(r.alone), bytes: renewed(r.bytes), reads: renewed(r.reads),
		joined: renewed(r.joined), left: renewed(r.left), gifts: r.gifts[:0],
	}
}

// publish makes true what was staged.
func (r *crowd) publish() {
	c := r.c
	c.leases += r.leases
	for h, n := range r.held {
		h.held += n
	}
	for h, n := range r.alone {
		h.alone += n
	}
	for h, n := range r.reads {
		h.unread -= n
	}
	for h := range r.left {
		if c.holders[h.Name] == h {
			delete(c.holders, h.Name)
			c.streams[h.Kind]--
		}
		h.gone = true
	}
	for name, h := range r.joined {
		if !h.gone {
			c.holders[name] = h
			c.streams[h.Kind]++
		}
	}
}

// Holder returns the live stream of a name.
func (r *crowd) Holder(name string) *Holder {
	h := r.joined[name]
	if h == nil {
		h = r.c.holders[name]
	}
	if h == nil || r.left[h] {
		return nil
	}
	return h
}

// freed gives a holder its room back.
func (r *crowd) freed(l *job.Lease) {
	r.leases--
	if h := r.Holder(l.Holder); h != nil {
		r.held[h]--
		if l.Exclusive {
			r.alone[h]--
		}
	}
	if l.Kind == job.Unary {
		r.emptiedBy(l.Holder)
	}
}

// join registers a stream.
func (r *crowd) join(h *Holder) error {
	if h.Kind == job.Named {
		r.EndStream(h.Name)
		row := &job.Holder{Name: h.Name, Kind: job.Named, Properties: h.Opts.Properties}
		if err := r.tx.Set(row); err != nil {
			return err
		}
		if err := r.HandBack(h); err != nil {
			return err
		}
	}
	r.Join(h)
	return nil
}

// Join registers a holder, which is served from now on.
func (r *crowd) Join(h *Holder) { r.joined[h.Name] = h }

// EndStream ends the stream of a name, if there is one.
func (r *crowd) EndStream(name string) {
	if h := r.Holder(name); h != nil {
		r.left[h] = true
		r.ended = append(r.ended, h)
	}
}

// HandBack offers a returning named holder what it still holds.
func (r *crowd) HandBack(h *Holder) error {
	ids, err := r.tx.IDs(store.Held(h.Name), store.All)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		q, err := r.Queue(j.Queue)
		if err != nil {
			return err
		}
		for _, l := range j.Leases {
			if l.Holder == h.Name {
				r.held[h]++
				r.alone[h] += oneIf(l.Exclusive)
				r.gifts = append(r.gifts, gift{h, Delivery{Job: j, Lease: l, Payload: r.tx.Peek(j.Payload), Held: true, StopAfter: rule.StopAfter(q, j)}})
			}
		}
	}
	return nil
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// leave ends a stream: an anonymous one gives everything back, a named one
// keeps its leases for the re-attach window.
func (r *crowd) leave(h *Holder, how job.Ending) error {
	if r.Holder(h.Name) != h {
		return nil // ended already, or a newer stream of the same name took over
	}
	r.left[h] = true
	if h.Feeder != nil {
		return h.Feeder.Left(r.Tx, h, how)
	}
	ids, err := r.tx.IDs(store.Held(h.Name), store.All)
	if err != nil {
		return err
	}
	if h.Kind == job.Named {
		if len(ids) == 0 {
			return r.tx.Unset(job.Holders, h.Name)
		}
		return r.tx.Set(&job.Holder{
			Name: h.Name, Kind: job.Named, Until: r.steady.Add(r.e.opts.Reattach), Properties: h.Opts.Properties,
		})
	}
	return r.EndLeases(h.Name, ids, how)
}

// EndLeases ends every lease of a holder.
func (r *crowd) EndLeases(name string, ids []job.ID, how job.Ending) error {
	for _, id := range ids {
		j, err := r.tx.Get(id)
		if err != nil {
			return err
		}
		if !j.HeldBy(name) { // its turn was cut by one before it
			continue
		}
		eff, err := r.Step(j, rule.Command{Verb: rule.Lapse, Holder: name, Ending: how})
		if err != nil {
			return err
		}
		r.countLapse(j, &eff)
	}
	return nil
}

func (r *crowd) countLapse(old *job.Job, eff *rule.Effect) {
	r.stats.Lapsed += uint64(len(eff.Ended))
	r.countSuppressed(old, eff)
	if eff.Gone == job.Dead || eff.Job != nil && eff.Job.State == job.Dead && old.State != job.Dead {
		r.stats.Died++
	}
}

// inOrder lists holders by name: the same history is served in the same order.
func inOrder(holders map[string]*Holder) []*Holder {
	if len(holders) == 0 {
		return nil
	}
	list := make([]*Holder, 0, len(holders))
	for _, name := range slices.Sorted(maps.Keys(holders)) {
		list = append(list, holders[name])
	}
	return list
}

// endStreams ends all streams, at a stop.
func (r *crowd) endStreams() error {
	for _, list := range []map[string]*Holder{r.c.holders, r.joined} {
		for _, h := range inOrder(list) {
			r.ended = append(r.ended, h)
			if err := r.leave(h, job.ByRestart); err != nil {
				return err
			}
		}
	}
	for _, h := range slices.Concat(slices.Collect(r.c.hungry.all()), r.asking) {
		r.ended = append(r.ended, h)
		r.left[h] = true // nothing is given to who was sent away
	}
	r.tx.Durable()
	return nil
}
