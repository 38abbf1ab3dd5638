package sim_test

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// stepsAside is a dead head that an operator skips: it lives for a moment, and what
// was used up stays so.
func (s *scene) stepsAside(o *outcome, j *job.Job, r *request) []*outcome {
	if !j.BlocksGroup {
		return nil
	}
	if s.otherOwner(j) != nil {
		r.kindOf = job.Exists
		return nil
	}
	o.verb, o.gate, o.req, o.want, o.state = rule.Revive, s.unparked(), nil, j, job.Ready // its second death follows
	j.CopiesWanted, j.Reason, j.BlocksGroup, j.PurgeAt, j.DiedAt = j.Copies, job.Alive, false, 0, 0
	j.Replays++
	if j.ExpiresAt <= s.now {
		j.ExpiresAt = 0
	}
	s.order(j)
	j.State, j.ReadyAt, j.Wait = job.Ready, s.now, job.Wait{}
	o.note("a dead head skipped")
	return []*outcome{o}
}

// skipped is a cancel, with what an operator says of it.
func (s *scene) skipped(o *outcome, j *job.Job, r *request) []*outcome {
	if f := r.command.Failure; f.Message != "" {
		s.recorded(j, 1, &f)
	}
	o = s.cancelled(o, j)
	if why := r.command.Reason; why != job.Alive && o.want != nil {
		o.want.Reason = why
	}
	return []*outcome{o}
}

// pausedOrNot finds who asked for the pause of a group, or its end.
func (x *judge) pausedOrNot(c *commit, key string, old, row *job.Gate) {
	was, is := old != nil && old.Paused, row != nil && row.Paused
	if was == is {
		return
	}
	for _, r := range x.asked {
		if r.kind == askPauseGroup && r.name == key && r.paused == is && r.commit == 0 && !r.lost {
			r.commit = c.number
			return
		}
	}
	broken("inbox.md 10", "the pause of group %q went to %t and nobody asked for it", key, is)
}

// standing is a group of a queue that is given out in turns.
type standing struct {
	is      rule.Condition
	members int64
	head    *job.Job
}

// groups are those of all such queues, with the one condition that each is in.
func (x *judge) groups() map[string]map[string]standing {
	all, live := map[string]map[string]standing{}, map[string]int{}
	for _, j := range x.book.jobs {
		if !member(j, j) || !x.book.queue(j.Queue).Turns {
			continue
		}
		if all[j.Queue] == nil {
			all[j.Queue] = map[string]standing{}
		}
		g := all[j.Queue][j.Group]
		if g.members++; g.head == nil || x.ahead(j, g.head) {
			g.head = j
		}
		all[j.Queue][j.Group] = g
		live[job.GateKey(j.Queue, j.Group)] += len(j.Leases)
	}
	for queue, groups := range all {
		for group, g := range groups {
			gate, t := x.book.gate(queue, group), x.book.throttle(queue, group)
			switch {
			case live[gate.Key()] > 0:
				g.is = rule.GroupRunning
			case gate.Park != "":
				g.is = rule.GroupAside
			case g.head.State == job.Dead:
				g.is = rule.GroupBlocked
			case gate.Paused:
				g.is = rule.GroupPaused
			case g.head.State == job.Scheduled:
				g.is = rule.GroupBackingOff
			case gate.Hold > 0, t.Slow > 0, !lets(t):
				g.is = rule.GroupHeld
			case !wants(g.head):
				g.is = rule.GroupPaused
			default:
				g.is = rule.GroupReady
			}
			groups[group] = g
		}
	}
	return all
}
