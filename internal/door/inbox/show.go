package inbox

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/wire"
)

// statusNames are what a message is: the statuses of the core in the words of
// the seed and a few of ours.
var statusNames = [rule.Statuses]string{
	rule.StatusWaiting: "in_progress", rule.StatusRetrying: "retrying", rule.StatusPaused: "paused", rule.StatusRunning: "delivering",
	rule.StatusBlocking: "blocking", rule.StatusDead: "dead", rule.StatusDone: "delivered",
	rule.StatusCancelled: "dead", // as a job, by its id: an inbox has no word for it
}

// MessageIDOf is the id that the sender gave a message, "" if it gave none.
func MessageIDOf(j *job.Job) string { return j.Label(wire.CorrelateID) }

func headersOf(j *job.Job) map[string]string {
	if j.Extras == nil || len(j.Extras.Labels) == 0 {
		return nil
	}
	list := make(map[string]string, len(j.Extras.Labels))
	for _, l := range j.Extras.Labels {
		list[l.Key] = l.Value
	}
	return list
}

// Show is a message as it is listed; payload nil = without it.
func Show(j *job.Job, payload []byte) wire.InboxMessage {
	m := wire.InboxMessage{
		ID: j.ID.String(), MessageID: MessageIDOf(j), Group: j.Group, Status: statusNames[rule.StatusOf(j)], Type: j.Type,
		Received: int64(j.Created), Attempts: int(j.Attempts), Suppressed: int(j.Suppressed), TTLUntil: int64(j.GraceUntil),
		ExpiresAt: int64(j.ExpiresAt), FailedAt: int64(j.FailedAt), Reason: j.Reason.String(), Headers: headersOf(j), Payload: payload,
	}
	if j.State == job.Scheduled || j.State == job.Ready {
		m.NextDue = int64(j.ReadyAt)
	}
	return m
}

// ShowError is the latest error that was noted.
func ShowError(f *job.Failure) *wire.InboxError {
	return &wire.InboxError{Attempt: int(f.Attempt), Type: f.Type, Text: f.Message, Trace: f.Backtrace, At: int64(f.Failed)}
}

// ShowAccepted is what became of a message on intake.
func ShowAccepted(in *Intake, i int) wire.InboxAccepted {
	a := &in.Out[i]
	return wire.InboxAccepted{ID: idText(a.ID), MessageID: in.ids[i], Group: a.Group, Duplicate: a.Duplicate}
}

func idText(id job.ID) string {
	if id.IsZero() {
		return ""
	}
	return id.String()
}
