package grid

import (
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
)

// feed is the room that says which task an engine gets.
type feed struct {
	*Grid
	offers  map[offerKey]*offer
	granted map[job.ID]int // tasks given out: the how-manieth grant it was
	grants  int

	round    int              // of serving, in which roomyNow was found
	roomyNow []*engine.Holder // those served who had room
}

func newFeed(g *Grid) *feed {
	return &feed{Grid: g, offers: map[offerKey]*offer{}, granted: map[job.ID]int{}}
}

func (g *feed) begin() {
	clear(g.offers)
	clear(g.granted)
	g.grants, g.round, g.roomyNow = 0, 0, nil
}

// give gives an engine up to n tasks: for each of its slots one of the
// session that is furthest below its share.
func (g *feed) give(tx *engine.Tx, h *engine.Holder, n int) (took int, dry bool, err error) {
	t, err := g.shares.roster(tx)
	if err != nil {
		return 0, false, err
	}
	s := rule.Seeker{Holder: h.Name, Properties: h.Opts.Properties, Engine: true, Host: feederOf(h).host} // each slot is alone
	var found *job.Job
	fits := func(share *plan.Share) bool {
		var takes bool
		if err == nil {
			takes, err = g.sight.takes(tx, h, share.Name)
		}
		if !takes || err != nil {
			return false
		}
		found, err = g.feed.next(tx, share.Name, h, s)
		return found != nil
	}
	for took < n && !tx.Full(h) {
		found = nil
		if t.rota.Pick(fits) == nil || err != nil {
			return took, err == nil && t.rota.Pick(nil) == nil, err
		}
		to := h
		if found.Attempts > 0 || found.Deliveries > 0 && plan.Undelivered(found) {
			if to, err = g.feed.elsewhere(tx, h, found); err != nil {
				return took, false, err
			}
			if to != h { // it was not filled with what it handed on: once more around
				tx.Moved()
			}
		}
		if _, err := tx.Grant(to, found, 0); err != nil {
			return took, false, err
		}
		g.feed.grants++
		g.feed.granted[found.ID] = g.feed.grants
		took++
	}
	return took, false, nil
}

// offer is what a session has in line for engines that ask alike. It is read
// ahead, a few tasks and then more: one read of many costs less than many reads.
// It is valid while engines are served, when lines change by grants only.
type offer struct {
	list []*job.Job
	n    int // as many were asked for
	at   int // after so many grants
}

// offerKey says whom an offer is for.
type offerKey struct {
	session, asks string
	holder        string // "" = all that ask alike, on whichever host
}

// offerMax is the most tasks that are read ahead.
const offerMax = 64

// next is the foremost task of a session that an engine may run; nil = none.
// Engines with the same properties look at the same offer, until what is foremost
// there runs on this one or on its host: then it asks for itself, as it does where
// some tasks are for some engines only.
func (g *feed) next(tx *engine.Tx, session string, h *engine.Holder, s rule.Seeker) (*job.Job, error) {
	key := offerKey{session: session, asks: feederOf(h).asks}
	if !g.shares.known.tagged[session] {
		anyone := rule.Seeker{Properties: s.Properties, Engine: true}
		j, err := g.feed.foremost(tx, key, anyone)
		if err != nil || j == nil || !j.HeldBy(h.Name) && !j.RunsOn(feederOf(h).host) {
			return j, err
		}
	}
	key.holder = h.Name
	return g.feed.foremost(tx, key, s)
}

// foremost is the first task of an offer, which is read anew when it is empty.
func (g *feed) foremost(tx *engine.Tx, key offerKey, s rule.Seeker) (*job.Job, error) {
	o := g.feed.offers[key]
	if o == nil {
		o = &offer{n: 1}
		g.feed.offers[key] = o
	}
	for {
		for len(o.list) > 0 && g.feed.granted[o.list[0].ID] > o.at {
			o.list = o.list[1:]
		}
		if len(o.list) == 0 {
			list, err := tx.Store().Ready([]string{key.session}, s, o.n)
			if err != nil || len(list) == 0 {
				return nil, err
			}
			o.list, o.n, o.at = list, min(2*o.n, offerMax), g.feed.grants
		}
		j := o.list[0]
		switch aside, err := tx.PutAside(j); {
		case err != nil:
			return nil, err
		case !aside:
			return j, nil
		}
		g.feed.grants++ // what was read ahead of its line knows it as given out
		g.feed.granted[j.ID] = g.feed.grants
		if tx.AsideEnough() { // the rest in the next run
			return nil, nil
		}
	}
}
