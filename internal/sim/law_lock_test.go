package sim_test

import "github.com/reprisehq/reprise/internal/job"

// The laws of named locks (spec/inbox.md section 11, core.md section 4), written
// without package rule.
const lockLaw = "core.md 4, locks"

// lockRow holds a write of a lock against them.
func (x *judge) lockRow(c *commit, old, row *job.Lock) {
	switch {
	case row == nil:
		if c.steady < old.Until+job.Day {
			broken(lockLaw, "at %d the lock %+v was forgotten", c.steady, *old)
		}
	case old == nil || row.Fence != old.Fence:
		x.lockGranted(c, old, row)
	default:
		x.lockChanged(c, old, row)
	}
}

// lockGranted: nobody else has it, its number is above all others, and
// somebody asked for exactly that.
func (x *judge) lockGranted(c *commit, old, row *job.Lock) {
	if old != nil && c.steady < old.Until {
		broken(lockLaw, "at %d two have a lock: %+v after %+v", c.steady, *row, *old)
	}
	if row.Fence <= x.fence {
		broken(lockLaw, "the fencing number %d came after %d", row.Fence, x.fence)
	}
	x.fence = row.Fence
	if old != nil && old.Request == row.Request && row.Request != (job.LockRequest{}) {
		broken(lockLaw, "at %d a request was granted twice: %+v after %+v", c.steady, *row, *old)
	}
	for _, r := range x.asked {
		if r.kind != askLock || r.commit != 0 || r.lost || r.lock.take == nil {
			continue
		}
		a := r.lock.take
		want := job.Lock{
			Name: a.Name, Fence: row.Fence, Token: row.Token, By: a.By, At: c.now, Span: a.Most,
			Until: c.steady + a.Most, Least: c.steady + a.Least, Forget: c.steady + a.Most + job.Day,
			Request: a.Asked(),
		}
		if want == *row && !row.Token.IsZero() {
			r.commit = c.number
			x.coverage.feature("a lock was got")
			return
		}
	}
	broken(lockLaw, "at %d nobody asked for the lock %+v", c.steady, *row)
}

// anotherGot reports whether the grant that was taken for the answer to one ask
// can be that to another one of the same request: on a slow disk several are on
// their way, and those that came too early are refused.
func (x *judge) anotherGot(r *request) bool {
	for _, other := range x.asked {
		if other != r && other.kind == askLock && other.commit == 0 && other.lock.take == r.lock.take {
			other.commit, r.commit = r.commit, 0
			return true
		}
	}
	return false
}

// lockChanged: only who has it extends it or gives it back, an operator breaks
// it, and a start moves its times to the clock that begins then.
func (x *judge) lockChanged(c *commit, old, row *job.Lock) {
	for _, r := range x.asked {
		if r.kind != askLock || r.commit != 0 || r.lost || r.lock.take != nil || r.name != row.Name {
			continue
		}
		want, a := *old, r.lock
		switch own := a.token == old.Token && !old.Given && c.steady < old.Until; {
		case a.broken && c.steady < old.Until:
			want.Given, want.Until = true, c.steady
		case a.broken || !own:
			continue
		case a.most > 0:
			want.Until = max(c.steady+a.most, old.Least)
			want.Span = want.Until - c.steady
		default:
			want.Given, want.Until = true, max(c.steady, old.Least)
		}
		want.Forget = want.Until + job.Day
		if want == *row {
			r.commit = c.number
			x.coverage.feature("a lock was extended, given back or broken")
			return
		}
	}
	want, shift := *old, x.w.clock.shift
	want.Until, want.Least, want.Forget = row.Until, row.Least, row.Forget
	moved := row.Until - old.Until
	// A step that nobody saw before a power cut is not made good.
	least, most := min(shift, 0)-2*stepBack, max(shift, 0)+2*stepBack
	if x.carried[row.Name] == c.life || want != *row || row.Until != c.steady+row.Span && (moved < least || moved > most) || row.Until > c.steady+row.Span {
		broken(lockLaw, "at %d, after the clock was set by %d, nobody asked for the lock %+v to be %+v", c.steady, shift, *old, *row)
	}
	x.carried[row.Name] = c.life
	x.coverage.feature("a lock was carried over a start")
}
