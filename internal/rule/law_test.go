package rule

import (
	"fmt"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// lawful holds one step against the invariants of DESIGN section 2.
func (w *world) lawful(v Verb, old *job.Job, e Effect) error {
	if old == nil {
		old = &job.Job{}
	}
	j := e.Job
	if j == nil {
		j = &job.Job{}
	}
	if !Leads(v, old.State, j.State) {
		return fmt.Errorf("%s led from %s to %s, which is not in the table", v, old.State, j.State)
	}
	if j.State == job.None && v != Purge && e.Gone != job.Done && e.Gone != job.Dead {
		return fmt.Errorf("I9: the job left as %s", e.Gone)
	}
	for _, law := range []func(Verb, *job.Job, *job.Job, Effect) error{
		w.reachable, w.tokensOnce, leasesBounded, w.countersLawful, w.notEarly, w.oneTurn, keyInScope, w.attemptsTold,
	} {
		if err := law(v, old, j, e); err != nil {
			return err
		}
	}
	return nil
}

// reachable is I1.
func (w *world) reachable(_ Verb, _, j *job.Job, e Effect) error {
	if (j.State == job.Leased) != (len(j.Leases) > 0) {
		return fmt.Errorf("I1: %s with %d leases", j.State, len(j.Leases))
	}
	if (j.State == job.Dead) != (j.Reason != job.Alive) {
		return fmt.Errorf("I1: %s for the reason %q", j.State, j.Reason)
	}
	if j.BlocksGroup && j.State != job.Dead {
		return fmt.Errorf("I1: it blocks its group and is %s", j.State)
	}
	en := EntriesOf(j)
	found := en.Wants || j.Park != "" || len(j.Leases) > 0
	for _, at := range en.Timer {
		found = found || at > 0
	}
	if j.State.Open() && !found {
		return fmt.Errorf("I1: nothing leads to it")
	}
	if j.State.Terminal() && e.Gone != job.None {
		return fmt.Errorf("I9: it stays and is said to be gone")
	}
	return nil
}

// tokensOnce is I2: a live token was granted by this very take or was live before.
func (w *world) tokensOnce(v Verb, old, j *job.Job, e Effect) error {
	for _, l := range j.Leases {
		switch {
		case old.LeaseOf(l.Token) >= 0:
		case v == Take && !w.tokens[l.Token]:
			w.tokens[l.Token] = true
		default:
			return fmt.Errorf("I2: token %x came to life by %s", l.Token, v)
		}
		if _, over := endedOf(j, l.Token); over {
			return fmt.Errorf("I2: token %x is live and over", l.Token)
		}
	}
	if len(j.Ended) > job.EndedMax {
		return fmt.Errorf("%d ended tokens are remembered", len(j.Ended))
	}
	granted := 0
	if v == Take {
		granted = 1
	}
	if gone := len(old.Leases) + granted - len(j.Leases); gone != len(e.Ended) || len(e.Voided) > len(e.Ended) {
		return fmt.Errorf("%d leases went, %d are told, %d of them voided", gone, len(e.Ended), len(e.Voided))
	}
	for _, l := range e.Ended {
		if how, known := endedOf(j, l.Token); j.State != job.None && !w.loose && (!known || how.Turn != l.Turn) {
			return fmt.Errorf("I2: the end of token %x was forgotten at once", l.Token)
		}
	}
	return nil
}

// leasesBounded is I3.
func leasesBounded(v Verb, _, j *job.Job, _ Effect) error {
	if len(j.Leases) > int(j.CopiesWanted) {
		return fmt.Errorf("I3: %d leases, %d wanted", len(j.Leases), j.CopiesWanted)
	}
	if v == SettleOK && len(j.Leases) > 0 {
		return fmt.Errorf("I3: %d leases after an OK", len(j.Leases))
	}
	holders := map[string]bool{}
	for _, l := range j.Leases {
		if holders[l.Holder] {
			return fmt.Errorf("I3: %s runs two copies", l.Holder)
		}
		holders[l.Holder] = true
	}
	return nil
}

// countersLawful is I4 and core.md section 5: each counter moves by its own
// verbs only.
func (w *world) countersLawful(v Verb, old, j *job.Job, e Effect) error {
	if j.State == job.None {
		return nil
	}
	records := uint32(len(e.Failures))
	lossCharged := w.queue.Grid != nil && w.queue.Grid.LossesCharged
	timeout := v == Lapse && slices.ContainsFunc(e.Failures, func(f job.Failure) bool { return f.Type == "Timeout" || lossCharged && f.Type == "Lost" })
	for _, c := range []struct {
		name     string
		old, new uint32
		up, down bool
	}{
		{"attempts", old.Attempts, j.Attempts, v == SettleRetry || v == SettleDead || timeout, v == Revive},
		{"losses", old.Losses, j.Losses, v == Lapse, isSettle(v) || v == Revive},
		{"evictions", old.Evictions, j.Evictions, v == SettleRelease || v == Lapse || j.Releases > old.Releases, false},
		{"releases", old.Releases, j.Releases, v == SettleRetry || timeout, v == Revive},
		{"reschedules", old.Reschedules, j.Reschedules, v == Offer, false},
		{"deliveries", old.Deliveries, j.Deliveries, v == Take, false},
		{"suppressed", old.Suppressed, j.Suppressed, v == SettleRetry || v == SettleDead || v == Lapse, v == Revive},
		{"overrides", old.Overrides, j.Overrides, v == SettleRetry, v == Revive},
		{"failures", old.Failures, j.Failures, isSettle(v) || v == Lapse || v == Cancel, false},
	} {
		if c.new > c.old && !c.up || c.new < c.old && !c.down {
			return fmt.Errorf("I4: %s moved %s from %d to %d", v, c.name, c.old, c.new)
		}
		if most := uint32(max(1, len(e.Ended))); c.new > c.old+most || c.new > c.old+1 && v != Lapse {
			return fmt.Errorf("I4: %s rose from %d to %d at once", c.name, c.old, c.new)
		}
	}
	if j.Attempts > old.Attempts && j.Releases > old.Releases {
		return fmt.Errorf("I4: released and charged")
	}
	if j.Attempts > old.Attempts && old.GraceUntil > w.now && v != SettleDead {
		return fmt.Errorf("I4: charged inside grace")
	}
	if j.Failures != old.Failures+records {
		return fmt.Errorf("a failure record is missing or not counted")
	}
	return nil
}

// notEarly is I6.
func (w *world) notEarly(v Verb, old, j *job.Job, e Effect) error {
	switch v {
	case Promote:
		if old.ReadyAt > w.now {
			return fmt.Errorf("I6: promoted %s early", old.ReadyAt-w.now)
		}
	case Expire:
		if old.ExpiresAt == 0 || old.ExpiresAt > w.now {
			return fmt.Errorf("I6: expired early")
		}
	case Lapse:
		for _, l := range e.Ended {
			over := func(at job.Millis) bool { return at > 0 && at <= w.steady }
			how, known := endedOf(j, l.Token)
			self := how.How == job.ByTimeout || how.How == job.ByRelease
			if known && self && !over(l.RunEnd) && !over(l.StartBy) {
				return fmt.Errorf("I6: a lease ended before its time: %+v", l)
			}
		}
	default:
	}
	return nil
}

// oneTurn is I7: a turn number is granted once, and only rises.
func (w *world) oneTurn(v Verb, old, j *job.Job, e Effect) error {
	if e.Gate == nil || v != Take {
		return nil
	}
	before := w.gate(old.Group)
	if e.Gate.Turn <= before.Turn || e.Gate.LastSeq < before.LastSeq || j.Leases[len(j.Leases)-1].Turn != e.Gate.Turn {
		return fmt.Errorf("I7: the turn went from %d to %d", before.Turn, e.Gate.Turn)
	}
	return nil
}
