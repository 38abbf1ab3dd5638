package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// meet finds the jobs that have the unique key of a newcomer and are in its
// way (core.md section 7). Newcomers of one call see each other: twins maps the
// place of a job to that of an earlier one, as recall does. heirs means that
// some newcomer will take its key over from a job that is not in its way.
func (r *intake) meet(list []NewJob, twins map[int]int, out []Added) (_ map[int]int, heirs bool, err error) {
	var seen map[string]int
	for i := range list {
		x := list[i].Job.Extras
		if x == nil || x.Unique == nil || out[i].Duplicate {
			continue
		}
		if first, is := seen[x.Unique.Key]; is { // it will wait, which is in the way of every scope
			if twins == nil {
				twins = map[int]int{}
			}
			twins[i], out[i].Duplicate = first, true
			continue
		}
		owner, err := r.owner(rule.KeyAsked(&list[i].Job))
		if err != nil {
			return nil, false, err
		}
		there := Visible(r.tx, owner)
		if there && !list[i].Sees(owner) {
			return nil, false, ErrElsewhere("unique_key")
		}
		if there && rule.Reaches(owner, list[i].Job.Queue, list[i].Reach != nil) && rule.Conflicts(x.Unique.While, owner.State) {
			out[i] = Added{Job: owner, ID: owner.ID, Duplicate: true}
			continue
		}
		heirs = heirs || owner != nil
		if seen == nil && len(list) > 1 {
			seen = make(map[string]int, len(list))
		}
		if seen != nil {
			seen[x.Unique.Key] = i
		}
	}
	return twins, heirs, nil
}

// owner returns the job that stands under a key, nil if none does.
func (r *intake) owner(key rule.Key) (*job.Job, error) {
	id, ok := r.tx.Owner(key)
	if !ok {
		return nil, nil
	}
	return r.tx.Get(id)
}

// ErrElsewhere refuses a key that a job has which the sender may not know of.
func ErrElsewhere(field string) *job.Error {
	return &job.Error{
		Kind: job.Forbidden, Field: field,
		Text: field + " is in use in a queue that the token is not for; use another key: one that begins with the name of your queue is nobody else's",
	}
}

// narrow marks the keys of those who may not reach all queues.
func narrow(list []NewJob) {
	for i := range list {
		if j := &list[i].Job; list[i].Reach != nil && rule.KeyAsked(j).Kind != 0 {
			x := *j.Extras
			x.Narrow, j.Extras = true, &x
		}
	}
}

// succeed makes room for a job under a key that another one may stand under.
func (r *intake) succeed(n *NewJob, key rule.Key) error {
	old, err := r.owner(key)
	if err != nil || old == nil {
		return err
	}
	if Visible(r.tx, old) && !n.Sees(old) {
		return ErrElsewhere("batch.key")
	}
	return r.write(old, rule.Effect{Job: rule.Yield(old)})
}

// otherOwner is the job, but this one, that has its unique key; zero = none.
func (r *intake) otherOwner(j *job.Job) (other job.ID) {
	if j.Extras.Unique != nil {
		if id, ok := r.tx.Owner(rule.KeyAsked(j)); ok && id != j.ID {
			return id
		}
	}
	return other
}
