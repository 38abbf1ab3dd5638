package rule

import "github.com/reprisehq/reprise/internal/job"

// Grow is a job whose payload became larger by so many bytes. Payloads are otherwise
// immutable (core.md section 7): this one grows while nobody was given it yet.
func Grow(j *job.Job, by uint32) (*job.Job, error) {
	if j.State != job.Scheduled || j.Deliveries > 0 || j.Attempts > 0 {
		return nil, job.Errorf(job.WrongState, "job %s does not take in more: it is due, or was", j.ID)
	}
	c := j.Clone()
	c.PayloadSize += by
	return c, nil
}

// NewPayload refuses another payload for a job that is not edited by people.
func NewPayload(j *job.Job) error {
	if j.Door == job.DoorPipeline {
		return job.Errorf(job.WrongState, "job %s is a chunk of records, which are not edited; replay it as it is, or send records to an input", j.ID)
	}
	return nil
}

// Piece is a part of a job that runs, as a job of its own: with the history, the counters
// and the leases of the whole, and with a payload that is named after it. What becomes of
// it is decided by a settle, as of any job. Keys of the whole stay with the whole.
func Piece(whole *job.Job, id job.ID, size uint32) (*job.Job, error) {
	if whole.Group != "" {
		return nil, job.Errorf(job.WrongState, "job %s is a member of a group, which is not taken to pieces", whole.ID)
	}
	p := whole.Clone()
	p.ID, p.Payload, p.PayloadSize, p.HoldsKey = id, id, size, false
	if x := p.Extras; x != nil && (x.Unique != nil || x.Batch != nil) {
		kept := *x
		kept.Unique, kept.Batch = nil, nil
		p.Extras = &kept
	}
	return p, nil
}

// Left is a job that runs of whose payload only a part is left to be done: it is kept
// under ref from now on.
func Left(whole *job.Job, ref job.ID, size uint32) *job.Job {
	c := whole.Clone()
	c.Payload, c.PayloadSize = ref, size
	return c
}
