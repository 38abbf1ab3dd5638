package embedded

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

func (x *index) moveKey(old, j *job.Job, a, b *rule.Entries) {
	if a.Key == b.Key {
		return
	}
	if a.Key.Kind != rule.NoKey && x.keys[a.Key] == old.ID {
		delete(x.keys, a.Key)
	}
	if b.Key.Kind != rule.NoKey {
		x.keys[b.Key] = j.ID
	}
}

func (a *access) Owner(key rule.Key) (id job.ID, ok bool) {
	id, ok = a.s.index.keys[key]
	return id, ok
}

// checkKey refuses a job under a key that another job stands under.
func (t *tx) checkKey(j *job.Job) error {
	if j == nil || !j.Owns {
		return nil
	}
	if owner, taken := t.Owner(rule.KeyOf(j)); taken && owner != j.ID {
		return job.Errorf(job.Internal, "job %s would stand under the key of job %s", j.ID, owner)
	}
	return nil
}
