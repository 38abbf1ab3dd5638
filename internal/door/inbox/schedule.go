package inbox

import "github.com/reprisehq/reprise/internal/job"

// Next is the first run at or after now, of a schedule that began at a time:
// runs keep their rate however long they take, and one that was missed is left
// out.
func (s Schedule) Next(began, now job.Millis) job.Millis {
	at := began.Add(s.InitialDelay)
	if now <= at {
		return at
	}
	late := now - at
	return at.Add((late + s.Interval - 1) / s.Interval * s.Interval)
}
