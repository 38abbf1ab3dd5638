package embedded

import "github.com/reprisehq/reprise/internal/job"

// references count the jobs that refer to each payload.
type references struct {
	of      map[job.ID]int // where they are not exactly one
	listing *sorted[listed]
}

// move counts references to payloads, large results among them, and appends those
// whose last one went (I8).
func (p *references) move(old, j *job.Job, gone []job.ID) []job.ID {
	if was, is := old.ResultRef(), j.ResultRef(); was != is {
		if !is.IsZero() {
			p.add(is)
		}
		if !was.IsZero() && p.drop(was) {
			gone = append(gone, was)
		}
	}
	if old != nil && j != nil && old.Payload == j.Payload {
		return gone
	}
	if j != nil && !j.Payload.IsZero() {
		if j.Payload != j.ID || p.of[j.Payload] > 0 {
			p.add(j.Payload)
		}
	}
	if old != nil && !old.Payload.IsZero() && p.drop(old.Payload) {
		gone = append(gone, old.Payload)
	}
	return gone
}

// add: a payload that is named after its only job is not in the map.
func (p *references) add(ref job.ID) {
	n := p.of[ref]
	if l := p.listing.at(listed{id: ref}); n == 0 && l != nil && l.own {
		n = 1 // the job it is named after
	}
	p.of[ref] = n + 1
}

// referred reports whether any job refers to the payload.
func (p *references) referred(ref job.ID) bool {
	if p.of[ref] > 0 {
		return true
	}
	l := p.listing.at(listed{id: ref})
	return l != nil && l.own
}

func (p *references) drop(ref job.ID) (last bool) {
	n, ok := p.of[ref]
	if !ok {
		return true
	}
	if n--; n == 0 {
		delete(p.of, ref)
		return true
	}
	p.of[ref] = n
	return false
}
