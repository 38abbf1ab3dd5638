package inbox

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// ShowPreview is a preview on the wire.
func ShowPreview(s *Settings) (*wire.InboxPreview, error) {
	tries, err := s.Preview()
	return &wire.InboxPreview{Runs: tries}, err
}

// triesMax bounds the rows of a preview.
const triesMax = 1000

// Preview tells what happens to a message that is received at the start and that
// no receiver ever takes, run by run, by the rules of the engine. Of the runs
// that pass it by, the first after each try is told.
func (s *Settings) Preview() (rows []wire.InboxTry, err error) {
	q := job.NewQueue("preview")
	if err := s.Apply(q); err != nil {
		return nil, err
	}
	server, seq := rule.DefaultServer(), int64(0)
	v := rule.View{Queue: q, Gate: &job.Gate{Queue: q.Name, Group: "g"}, Head: true, Server: &server, Seq: func() int64 { seq++; return seq }, Rand: func() float64 { return 0 }}
	j := &job.Job{ID: job.ID{15: 1}, Queue: q.Name, Group: "g", RetainDone: job.Unset, RetainDead: job.Unset}
	if s.TTL > 0 {
		j.GraceUntil = s.TTL
	}
	step := func(c rule.Command) error {
		eff, err := rule.Step(v, c)
		if err == nil {
			v.Job = eff.Job
		}
		return err
	}
	if err := step(rule.Command{Verb: rule.Put, New: j}); err != nil {
		return nil, err
	}
	polls, passed := s.Query, true
	if polls.Interval == 0 { // as soon as it is due
		polls = Schedule{0, 1}
	}
	for at := polls.Next(0, 0); len(rows) < triesMax; at = polls.Next(0, max(at+1, skips(s, v.Job, passed))) {
		v.Now, v.Steady = at, at
		switch {
		case v.Job == nil || v.Job.State == job.Dead:
			return append(rows, wire.InboxTry{At: int64(at), Outcome: wire.TryOver, Attempts: rows[len(rows)-1].Attempts}), nil
		case v.Job.ReadyAt > at:
			if !passed && s.Query.Interval > 0 {
				rows = append(rows, wire.InboxTry{At: int64(at), Outcome: wire.TryNotDue, Attempts: int(v.Job.Attempts), Next: int64(v.Job.ReadyAt)})
			}
			passed = true
			continue
		case v.Job.State == job.Scheduled:
			if err := step(rule.Command{Verb: rule.Promote}); err != nil {
				return nil, err
			}
		}
		token := job.NewToken(1, func() uint64 { seq++; return uint64(seq) })
		err := step(rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: token, Holder: "h"}})
		if err == nil {
			err = step(rule.Command{Verb: rule.SettleRetry, Token: token, Failure: job.Failure{Message: "no receiver"}})
		}
		if err != nil {
			return nil, err
		}
		row := wire.InboxTry{At: int64(at), Outcome: wire.TryNoted, Attempts: int(v.Job.Attempts), Next: int64(v.Job.ReadyAt)}
		switch {
		case v.Job.State == job.Dead:
			row.Outcome, row.Next = wire.TryExhausted, 0
		case v.Job.Suppressed > 0 && v.Job.Attempts == 0:
			row.Outcome = wire.TrySuppressed
			if s.Query.Interval > 0 {
				row.Next = 0
			}
		}
		rows, passed = append(rows, row), row.Outcome == wire.TrySuppressed
	}
	return rows, nil
}

// skips is the first moment at which anything can change again.
func skips(s *Settings, j *job.Job, passed bool) job.Millis {
	if j == nil || !passed && s.Query.Interval > 0 || j.State == job.Dead {
		return 0
	}
	return j.ReadyAt
}
