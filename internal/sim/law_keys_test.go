package sim_test

import (
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// keyOf is the key that a job was given; "" = none.
func keyOf(j *job.Job) string {
	switch x := j.Extras; {
	case x == nil:
	case x.Unique != nil:
		return "unique " + x.Unique.Key
	case x.Batch != nil:
		return "batch " + x.Batch.Key
	}
	return ""
}

// ownerOf is the job in the books that stands under a key.
func (x *judge) ownerOf(key string) *job.Job {
	for _, j := range x.book.jobs {
		if j.HoldsKey && keyOf(j) == key {
			return j
		}
	}
	return nil
}

// otherOwner is the job, but this one, that has its unique key.
func (x *judge) otherOwner(j *job.Job) *job.Job {
	if key := keyOf(j); strings.HasPrefix(key, "unique ") {
		if o := x.ownerOf(key); o != nil && o.ID != j.ID {
			x.coverage.feature("a dead job whose key another has")
			return o
		}
	}
	return nil
}

func waiting(s job.State) bool { return s == job.Scheduled || s == job.Ready }

// keyed says of each outcome whether the job stands under its key then
// (core.md 7, zizq.md 1.15 and 1.16).
func (s *scene) keyed(list []*outcome, ch *change) []*outcome {
	for _, o := range list {
		j := o.want
		if j == nil || j.Extras == nil || o.keys {
			continue
		}
		before := job.None
		if s.old != nil {
			before = s.old.State
		}
		if u := j.Extras.Unique; u != nil {
			switch {
			case !covers(u.While, j.State):
				j.HoldsKey = false
			case before == job.None:
				j.HoldsKey = true
			case waiting(j.State) && !waiting(before) && !j.HoldsKey:
				owner := s.ownerOf(keyOf(j))
				if j.HoldsKey = owner == nil; j.HoldsKey {
					o.note("a key that came back")
				}
			}
			continue
		}
		if j.Extras.Batch != nil {
			j.HoldsKey = j.State == job.Ready && (j.HoldsKey || before == job.None)
		}
	}
	return list
}

// keyMoves is what newcomers do to a job that stands under their key: it
// yields, or it takes them in.
func (s *scene) keyMoves(ch *change) (list []*outcome) {
	if s.new == nil || !s.old.HoldsKey {
		return nil
	}
	if s.new.Payload != s.old.Payload {
		return []*outcome{s.tookIn(string(ch.body))}
	}
	for _, later := range s.later {
		j := later.new
		if later.old != nil || j == nil || !j.HoldsKey || keyOf(j) != keyOf(s.old) {
			continue
		}
		o := &outcome{why: "a newcomer under its key", verb: rule.Verbs, want: s.old.Clone(), state: s.old.State, keys: true}
		if o.want.HoldsKey = false; apart(plain(o.want), plain(s.new)) != "" { // it changed otherwise
			return nil
		}
		hidden := s.old.State.Terminal() && s.old.PurgeAt > 0 && s.old.PurgeAt <= s.now
		if u := j.Extras.Unique; u != nil {
			if covers(u.While, s.old.State) && !hidden {
				broken("zizq.md 1.15", "%s took the key of %s, which is %s", j.ID, s.name(s.old.ID), s.old.State)
			}
			o.note("a key taken over")
		} else {
			o.note("a batch sealed")
		}
		return []*outcome{o}
	}
	return nil
}

// tookIn is a job whose payload became one with those of newcomers: each in
// its order, and none twice.
func (s *scene) tookIn(body string) *outcome {
	name := s.name(s.old.ID)
	before := s.w.bodyOf(s.old, name)
	rest, ok := strings.CutPrefix(body, before+"+")
	if !ok {
		broken("zizq.md 1.16", "the payload of %s became %q and was %q", name, body, before)
	}
	o := &outcome{why: "newcomers of its batch", verb: rule.Verbs, want: s.old.Clone(), state: s.old.State, keys: true}
	o.want.Payload, o.want.PayloadSize = s.new.Payload, uint32(len(body))
	s.join(o, s.old, before, partsOf(rest))
	s.w.folded[s.new.Payload] = body
	jobs, bytes := 0, int64(len(body))-int64(s.old.PayloadSize)
	for _, j := range s.book.jobs {
		if j.Queue == s.old.Queue && j.State.Open() {
			jobs++
			bytes += int64(j.PayloadSize)
		}
	}
	if s.q.MaxBytes > 0 && bytes > s.q.MaxBytes && len(body) > int(s.old.PayloadSize) {
		broken("core.md 10", "queue %s holds %d bytes after a fold; it has room for %d", s.q.Name, bytes, s.q.MaxBytes)
	}
	o.note("a batch that took some in")
	return o
}

// join lets newcomers into a job that waits, and judges each.
func (s *scene) join(o *outcome, into *job.Job, body string, parts []string) {
	b := into.Extras.Batch
	for _, part := range parts {
		r, j := s.newcomer(part, into.ID)
		if r == nil {
			broken("zizq.md 1.16", "%q went into %s and nobody asked for it", part, s.name(into.ID))
		}
		switch {
		case keyOf(j) != keyOf(into) || b == nil:
			broken("zizq.md 1.16", "%s went into %s, which is under another key", r, s.name(into.ID))
		case j.ReadyAt > s.now || into.State != job.Ready:
			broken("zizq.md 1.16", "%s, due at %d, went into %s at %d, which is %s", r, j.ReadyAt, s.name(into.ID), s.now, into.State)
		case !takesIn(b, body) || strings.Contains(part, "!"):
			broken("zizq.md 1.16", "%s went into %s, whose condition does not hold: %s, %q", r, s.name(into.ID), b.When, body)
		}
		body += "+" + part
		r.commit, r.state, r.into = s.number, job.Ready, into.ID
		o.stats.Folded++
	}
}

// outstanding is the request that put a payload and was not done yet.
func (s *scene) outstanding(payload string) *request {
	for _, r := range s.asked {
		if r.kind == askPut && r.commit == 0 && !r.lost && string(r.put.Payload) == payload {
			return r
		}
	}
	return nil
}

// newOwner is a job that comes in, with what later ones of its call added.
func (s *scene) newOwner(o *outcome, parts []string, body string) {
	j := o.want
	if key := keyOf(j); key != "" && s.new.HoldsKey {
		if other := s.ownerOf(key); other != nil {
			broken("core.md 7", "%s and %s both stand under the key %s", o.req, s.name(other.ID), key)
		}
	}
	if len(parts) > 1 {
		s.labels[j.ID] = o.req.label
		s.join(o, j, parts[0], parts[1:])
		s.w.folded[j.ID] = body
		o.note("a batch inside one call")
	}
}

// keys looks at all keys: one job under each, and every payload in one job.
func (w *world) keys() {
	owners, parts := map[string]*job.Job{}, map[string]*job.Job{}
	for _, j := range w.judge.book.sorted() {
		name := w.judge.name(j.ID)
		for _, part := range partsOf(w.bodyOf(j, name)) {
			if keyOf(j) == "" || part[0] == 'c' { // these may come in again: after the window of their idempotency key, or by each tick
				continue
			}
			if other := parts[part]; other != nil {
				broken("zizq.md 1.16", "%q is in %s and in %s", part, w.judge.name(other.ID), name)
			}
			parts[part] = j
		}
		if !j.HoldsKey {
			continue
		}
		key := keyOf(j)
		if other := owners[key]; other != nil || key == "" {
			broken("core.md 7", "%s stands under the key %q, and so does %v", name, key, other)
		}
		owners[key] = j
	}
}

// setProgress changes the progress of a job, which keeps its other extras.
func setProgress(j *job.Job, p *job.RunProgress) {
	x := job.Extras{}
	if j.Extras != nil {
		x = *j.Extras
	}
	if x.Progress = p; len(x.Labels) == 0 && x.Traceparent == "" && x.Unique == nil && x.Batch == nil && len(x.Budgets) == 0 && x.Result == nil && p == nil {
		j.Extras = nil
		return
	}
	j.Extras = &x
}
