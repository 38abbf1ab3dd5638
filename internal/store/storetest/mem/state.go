package mem

import (
	"bytes"
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
)

// state is everything a store knows. Values are never changed, only replaced,
// so two states may share them.
type state struct {
	jobs     map[job.ID]*job.Job
	payloads map[job.ID][]byte
	failures map[failureKey]job.Failure
	rows     map[rowKey]job.Row
}

type failureKey struct {
	id     job.ID
	number uint32
}

type rowKey struct {
	table job.Table
	key   string
}

func newState() *state {
	return &state{
		jobs: map[job.ID]*job.Job{}, payloads: map[job.ID][]byte{},
		failures: map[failureKey]job.Failure{}, rows: map[rowKey]job.Row{},
	}
}

func (s *state) clone() *state {
	return &state{
		jobs: maps.Clone(s.jobs), payloads: maps.Clone(s.payloads),
		failures: maps.Clone(s.failures), rows: maps.Clone(s.rows),
	}
}

// The four maps, as set and unset want them.
func jobsOf(s *state) map[job.ID]*job.Job            { return s.jobs }
func payloadsOf(s *state) map[job.ID][]byte          { return s.payloads }
func failuresOf(s *state) map[failureKey]job.Failure { return s.failures }
func rowsOf(s *state) map[rowKey]job.Row             { return s.rows }

// numbersOf returns the numbers of the failure records of a job, ascending.
func (s *state) numbersOf(id job.ID) []uint32 {
	var numbers []uint32
	for k := range s.failures {
		if k.id == id {
			numbers = append(numbers, k.number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// referred returns the payloads that some job refers to.
func (s *state) referred() map[job.ID]bool {
	refs := map[job.ID]bool{}
	for _, j := range s.jobs {
		if !j.Payload.IsZero() {
			refs[j.Payload] = true
		}
		if ref := j.ResultRef(); !ref.IsZero() {
			refs[ref] = true
		}
	}
	return refs
}

// check reports the first thing in the state that must not be, of those that
// nobody can see through the contract. storetest.Check sees the others.
func (s *state) check() error {
	refs := s.referred()
	for ref := range s.payloads {
		if !refs[ref] {
			return job.Errorf(job.Internal, "I8: no job refers to payload %s", ref)
		}
	}
	for ref := range refs {
		if _, kept := s.payloads[ref]; !kept {
			return job.Errorf(job.Internal, "I8: payload %s is gone, and a job refers to it", ref)
		}
	}
	for k := range s.failures {
		j := s.jobs[k.id]
		if j == nil || k.number == 0 || k.number > j.Failures {
			return job.Errorf(job.Internal, "failure record %d of job %s belongs to nobody", k.number, k.id)
		}
	}
	for id, j := range s.jobs {
		if j.ID != id || j.State == job.None || j.State >= job.States {
			return job.Errorf(job.Internal, "I1: job %s is kept as %s in state %d", j.ID, id, j.State)
		}
	}
	for k, r := range s.rows {
		if r.Table() != k.table || r.Key() != k.key {
			return job.Errorf(job.Internal, "row %q of table %d was changed after it was set", k.key, k.table)
		}
	}
	return nil
}

// covers reports the first thing that the two states do not agree about.
func (s *state) covers(other *state) error {
	switch {
	case !maps.EqualFunc(s.jobs, other.jobs, sameJob):
		return job.Errorf(job.Internal, "replaying the log gives other jobs than were applied")
	case !maps.EqualFunc(s.payloads, other.payloads, bytes.Equal):
		return job.Errorf(job.Internal, "replaying the log gives other payloads than were applied")
	case !maps.Equal(s.failures, other.failures):
		return job.Errorf(job.Internal, "replaying the log gives other failures than were applied")
	case !maps.Equal(s.rows, other.rows):
		return job.Errorf(job.Internal, "replaying the log gives other rows than were applied")
	}
	return nil
}
