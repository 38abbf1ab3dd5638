package plan

import "github.com/reprisehq/reprise/internal/job"

// EndOf is the state of a session whose last task is finished.
func EndOf(s *job.Session) job.SessionState {
	switch {
	case s.State == job.SessionCancelling:
		return job.SessionCancelled
	case s.Failed+s.Cancelled > 0:
		return job.SessionErrors
	}
	return job.SessionDone
}

// SessionOutlived reports whether a session is to be forgotten.
func SessionOutlived(s *job.Session, g *job.Grid, now job.Millis) bool {
	return s.State.Ended() && (s.Dropped || now >= sessionEnd(s, g))
}

// SessionDue is when the clock must look at a session; 0 = not.
func SessionDue(s *job.Session, g *job.Grid, now job.Millis) job.Millis {
	switch {
	case s.State == job.SessionCancelling, SessionOutlived(s, g, now), ForgetsCollected(s, g):
		return max(now, 1)
	case s.State.Ended():
		return sessionEnd(s, g)
	}
	return NextPardon(s.Strikes)
}

// ForgetsCollected reports whether a session has results to forget because they
// were acknowledged. Those that are collected later stay.
func ForgetsCollected(s *job.Session, g *job.Grid) bool {
	forgets := g.Collection == job.CollectImmediately || g.Collection == job.CollectAfterSubmit
	return forgets && s.Forgotten < s.Collected
}

// NeedsClient reports whether a session is cancelled when its client dies: not if
// it may be collected later, or never, and all of it is submitted (reference
// section 1).
func NeedsClient(s *job.Session, g *job.Grid) bool {
	alone := s.State == job.SessionClosed && (g.Collection == job.CollectLater || g.Collection == job.CollectNever)
	return g.ClientTimeout > 0 && s.State <= job.SessionClosed && !alone
}

func sessionEnd(s *job.Session, g *job.Grid) job.Millis {
	if g.Retain > 0 {
		return s.Ended.Add(g.Retain)
	}
	return s.Ended.Add(job.GridRetain)
}
