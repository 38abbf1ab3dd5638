package rule

import (
	"math"
	"slices"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// Selects reports whether the selection chooses a dead job; a cancelled one only
// if it names that reason, or the job. f is its latest failure, nil if it never
// failed; it is looked at only where Selection.Reads.
func Selects(s *job.Selection, j *job.Job, f *job.Failure) bool {
	if j.State != job.Dead || j.DiedAt < s.DiedFrom || s.DiedBefore > 0 && j.DiedAt >= s.DiedBefore ||
		j.Attempts < s.AttemptsFrom || s.AttemptsBelow > 0 && j.Attempts >= s.AttemptsBelow {
		return false
	}
	if !oneOf(s.IDs, j.ID) || !oneOf(s.Queues, j.Queue) || !oneOf(s.Types, j.Type) || !oneOf(s.Groups, j.Group) ||
		!oneOf(s.Reasons, j.Reason) || j.Reason == job.ReasonCancelled && !Cancelled(s) || !oneOf(s.Prints, j.Print) {
		return false
	}
	if !s.Reads() {
		return true
	}
	return f != nil && oneOf(s.ErrorTypes, f.Type) &&
		strings.Contains(strings.ToLower(f.Message), strings.ToLower(s.Text))
}

// Cancelled reports whether a selection may choose cancelled jobs.
func Cancelled(s *job.Selection) bool {
	return len(s.IDs) > 0 || slices.Contains(s.Reasons, job.ReasonCancelled)
}

func oneOf[T comparable](values []T, v T) bool { return len(values) == 0 || slices.Contains(values, v) }

// replayStep is the least time between two steps of a replay, replayBehind how
// much it may catch up on: after a stop it goes on at its rate and does not
// make up for what it missed.
const (
	replayStep   = 10 * job.Millis(1)
	replayBehind = job.Second
)

// Pace moves the time that counts for the rate on to now (steady), and says
// how many jobs may be touched in this step, at most most.
func Pace(r *job.Replay, now job.Millis, most int64) (int64, job.Millis) {
	paced := r.Paced + max(0, min(now-r.At, r.Next-r.At+replayBehind))
	if r.Rate == 0 {
		return most, paced
	}
	return max(0, min(most, int64(owed(r, paced))-r.Done)), paced
}

// owed is how many jobs are to be touched within a span: while the rate grows
// the area of a triangle.
func owed(r *job.Replay, span job.Millis) float64 {
	rate, t, ramp := r.Rate/1000, float64(span), float64(r.Ramp)
	if t < ramp {
		return rate * t * t / (2 * ramp)
	}
	return rate * (t - ramp/2)
}

// NextStep is when a replay that stands at now goes on: when the next job is
// owed, but not at once again unless it is behind.
func NextStep(r *job.Replay, now job.Millis) job.Millis {
	if r.Rate == 0 || owed(r, r.Paced) >= float64(r.Done+1) {
		return now
	}
	rate, n, ramp := r.Rate/1000, float64(r.Done+1), float64(r.Ramp)
	at := n/rate + ramp/2
	if n < rate*ramp/2 {
		at = math.Sqrt(2 * ramp * n / rate)
	}
	wait := job.MaxMillis
	if at < float64(job.MaxMillis) {
		wait = job.Millis(math.Ceil(at)) - r.Paced
	}
	return now.Add(max(wait, replayStep))
}

// ReplayPlace is where a replayed job stands: in an ordered queue where its
// group's order wants it, whatever was asked for.
func ReplayPlace(r *job.Replay, j *job.Job) job.Place {
	if j.Group != "" && j.Order != job.OrderNone {
		return job.PlaceKeep
	}
	return r.Place
}

// PrintPark is the label under which jobs of a paused fingerprint are held.
func PrintPark(p job.Fingerprint) string { return "fingerprint/" + p.String() }

// holdPrint holds a job that would be tried again although its fingerprint is
// paused (core.md section 3, Park).
func holdPrint(v View, j *job.Job) {
	if j.Print != 0 && j.Park == "" && v.Paused != nil && v.Paused(j.Print) {
		j.Park = PrintPark(j.Print)
	}
}
