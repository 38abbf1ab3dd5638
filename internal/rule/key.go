package rule

import "github.com/reprisehq/reprise/internal/job"

// Key is a name that at most one job at a time stands under: it has this
// unique key, or it takes in newcomers of this batch. The zero value is none.
type Key struct {
	Kind KeyKind
	Name string
}

// KeyKind tells the two spaces of keys apart.
type KeyKind uint8

// The kinds.
const (
	NoKey KeyKind = iota
	UniqueKey
	BatchKey
)

// KeyOf is the key that a job stands under: an index entry, see EntriesOf.
func KeyOf(j *job.Job) Key {
	if !j.HoldsKey {
		return Key{}
	}
	return KeyAsked(j)
}

// KeyAsked is the key that a job was given, whether it stands under it or not.
func KeyAsked(j *job.Job) Key {
	switch x := j.Extras; {
	case x == nil:
	case x.Unique != nil:
		return Key{UniqueKey, x.Unique.Key}
	case x.Batch != nil:
		return Key{BatchKey, x.Batch.Key}
	}
	return Key{}
}

// Reaches reports whether a key that an owner has is in the way of newcomers in a
// queue. One that was given by somebody who may not reach all queues (Narrow) holds
// in the owner's own queue, and for those who may not reach all either: else
// whoever may put jobs into one queue could turn away, or take in, those of all.
func Reaches(owner *job.Job, newcomer string, narrow bool) bool {
	return narrow || owner.Queue == newcomer || !owner.Extras.Narrow
}

// Conflicts reports whether the job that has a unique key is in the way of a
// newcomer with the same one: the newcomer's scope decides. Where it is not,
// the newcomer takes the key over.
func Conflicts(newcomer job.UniqueScope, owner job.State) bool { return newcomer.Holds(owner) }

// holdKey decides whether the job of an effect stands under its key from now on.
// A unique key is had as long as the job's own scope says; one that was let go
// comes back when the job comes back into line, unless another has it by then
// (core.md section 7). What takes in newcomers does so until it is taken, and
// never again.
func holdKey(v View, j *job.Job) {
	before := job.None
	if v.Job != nil {
		before = v.Job.State
	}
	switch x := j.Extras; {
	case x.Unique != nil:
		queued := job.WhileQueued
		returns := queued.Holds(j.State) && !queued.Holds(before)
		free := before == job.None || v.Owner.IsZero() // a newcomer takes it over
		j.HoldsKey = x.Unique.While.Holds(j.State) && (j.HoldsKey || returns && free)
	case x.Batch != nil:
		j.HoldsKey = j.State == job.Ready && (j.HoldsKey || before == job.None)
	}
}

// Yield is a job that leaves its key to a newcomer.
func Yield(j *job.Job) *job.Job {
	c := j.Clone()
	c.HoldsKey = false
	return c
}

// Fold is a job that took a newcomer of its batch in: its payload is now kept
// under ref. A job that does not take in newcomers any more is refused.
func Fold(j *job.Job, ref job.ID, size uint32) (*job.Job, error) {
	if KeyOf(j).Kind != BatchKey {
		return nil, job.Errorf(job.WrongState, "job %s does not take in newcomers", j.ID)
	}
	c := j.Clone()
	c.Payload, c.PayloadSize = ref, size
	return c, nil
}
