package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// TestReceiptsOfEarlierVersionsAreUnderstood: what was taken in before an update is
// known by its hashes, which say what they said (core.md section 7).
func TestReceiptsOfEarlierVersionsAreUnderstood(t *testing.T) {
	full := NewJob{
		Key: "k", Payload: []byte(`{"n":1}`), Place: job.PlaceFront, Needs: []string{"a", "b"}, OnDepFail: 1,
		Job: job.Job{
			Door: job.DoorGrid, Queue: "q", Type: "t", Group: "g", Priority: 65535, Copies: 3, RunTimeout: 90_061_234, StartTimeout: -5,
			RetainDone: job.Unset, RetainDead: job.Day, Retry: &job.Retry{Limit: job.LimitOf(3)},
			Requires: []job.Requirement{{Property: "os", Op: "=", Value: "linux"}, {Property: "cpu", Op: ">", Value: "4"}},
			Extras: &job.Extras{
				Labels:  []job.Label{{Key: "X-CORRELATE-ID", Value: "m 1"}, {Key: "", Value: "\x00\t\"\\ü\u2028\xff\U0001f600"}, {Key: "a", Value: `\n`}, {Key: "b", Value: `say "x"`}},
				Unique:  &job.Unique{While: job.WhileExists, Key: "u"},
				Batch:   &job.Batch{Key: "b", When: "w", Fold: "f"},
				Budgets: []job.BudgetUse{{Key: "x", Cost: -7}, {Key: "y", Cost: 1 << 40}},
			},
		},
	}
	plain := NewJob{Key: "ü", Job: job.Job{Queue: "q", Copies: 1, RetainDone: 0, RetainDead: 12_500, RunTimeout: 250}}
	labelled := plain
	labelled.Job.Extras, labelled.Job.Door = &job.Extras{Labels: []job.Label{{Key: "a", Value: "b"}}}, job.DoorInbox
	list := []NewJob{full, plain, labelled, {}}
	list[3].Key = "bare"
	for i, r := range receiptsOf(list) {
		n := &list[i]
		if want := formerHash(n.Job.Door.String(), n.Job.Queue, n.Key); r.Hash != want || KeyOf(n.Job.Door, n.Job.Queue, n.Key) != want {
			t.Errorf("the key of job %d has the hash %x", i, r.Hash)
		}
		if want := formerContent(n); r.Content != want {
			t.Errorf("the content of job %d has the hash %x, once %x", i, r.Content, want)
		}
	}
}

// formerContent is how the first version wrote it.
func formerContent(n *NewJob) [16]byte {
	j := &n.Job
	retry := ""
	if j.Retry != nil {
		retry = string(j.Retry.AppendBinary(nil))
	}
	var x job.Extras
	if j.Extras != nil {
		x = *j.Extras
	}
	parts := []string{
		j.Queue, j.Type, j.Group, string(n.Payload), retry, rule.Canonical(j.Requires),
		fmt.Sprintf("%q", x.Labels), fmt.Sprint(j.Priority, j.RunTimeout, j.StartTimeout, j.Copies, j.RetainDone, j.RetainDead, n.Place),
	}
	if u := x.Unique; u != nil {
		parts = append(parts, u.While.String(), u.Key)
	}
	if t := x.Batch; t != nil {
		parts = append(parts, t.Key, t.When, t.Fold)
	}
	for _, u := range x.Budgets {
		parts = append(parts, "budget", u.Key, strconv.FormatInt(u.Cost, 10))
	}
	if len(n.Needs) > 0 {
		parts = append(append(parts, "needs", n.OnDepFail.String()), n.Needs...)
	}
	return formerHash(parts...)
}

func formerHash(parts ...string) (sum [16]byte) {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	full := sha256.Sum256(b)
	copy(sum[:], full[:])
	return sum
}
