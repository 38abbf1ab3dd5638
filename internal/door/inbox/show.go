package inbox

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Status is what a message is, in the words of the seed and a few of ours.
// Each message is in exactly one.
type Status uint8

// The statuses.
const (
	InProgress        Status = iota // waits, and no error of it was noted
	Delivering                      // is with a receiver
	Retrying                        // failed, and waits for its next try
	Paused                          // an operator stopped it
	MaxRetriesReached               // exhausted
	Expired
	Rejected // given up for another reason, or skipped
	Delivered
	statuses
)

var statusNames = [statuses]string{"in_progress", "delivering", "retrying", "paused", "max_retries_reached", "expired", "rejected", "delivered"}

func (s Status) String() string { return statusNames[s] }

// StatusOf tells the status of a message.
func StatusOf(j *job.Job) Status {
	switch {
	case j.State == job.Done:
		return Delivered
	case j.State == job.Leased:
		return Delivering
	case j.State == job.Dead && j.Reason == job.Exhausted:
		return MaxRetriesReached
	case j.State == job.Dead && j.Reason == job.Expired:
		return Expired
	case j.State == job.Dead:
		return Rejected
	case j.Park == ParkPaused:
		return Paused
	case j.Attempts > 0:
		return Retrying
	}
	return InProgress
}

// statesOf are the states that a message of a status can be in.
var statesOf = [statuses][]job.State{
	InProgress: {job.Scheduled, job.Ready}, Retrying: {job.Scheduled, job.Ready}, Paused: {job.Scheduled, job.Ready},
	Delivering: {job.Leased}, MaxRetriesReached: {job.Dead}, Expired: {job.Dead}, Rejected: {job.Dead}, Delivered: {job.Done},
}

// MessageIDOf is the id that the sender gave a message, "" if it gave none.
func MessageIDOf(j *job.Job) string { return headerOf(j, wire.CorrelateID) }

func headerOf(j *job.Job, name string) string {
	if j.Extras != nil {
		for _, l := range j.Extras.Labels {
			if l.Key == name {
				return l.Value
			}
		}
	}
	return ""
}

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
		ID: j.ID.String(), MessageID: MessageIDOf(j), Group: j.Group, Status: StatusOf(j).String(), Type: j.Type,
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
