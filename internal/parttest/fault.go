package parttest

import (
	"errors"
	"strings"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// ErrDisk is why a store is down.
var ErrDisk = errors.New("the disk is broken")

// InStore changes what is stored behind the engine's back, as another version
// would have left it.
func (r *Rig) InStore(f func(tx store.Tx) error) {
	r.Helper()
	commit, err := r.Mem.Update(r.Context(), func(tx store.Tx) error { tx.Durable(); return f(tx) })
	if err == nil {
		err = commit.Wait()
	}
	if err != nil {
		r.Fatal(err)
	}
}

// Rewrites changes a stored job.
func (r *Rig) Rewrites(name string, edit func(*job.Job)) {
	r.Helper()
	r.InStore(func(tx store.Tx) error {
		old, err := tx.Get(r.IDs[name])
		if err != nil {
			return err
		}
		j := old.Clone()
		edit(j)
		return tx.Write(old, j)
	})
}

// SetAside wants a job to be dead, with a reason that says so.
func (r *Rig) SetAside(name, why string) {
	r.Helper()
	j := r.Expect(name, job.Dead)
	list, err := r.Failures(r.Context(), j.ID, 0, true, 1)
	if err != nil || j.Reason != job.Rejected || j.PurgeAt != 0 || len(list) != 1 || !strings.Contains(list[0].Message, why) {
		r.Errorf("%s: %s, %+v, %v; want it rejected: %s", name, j.Reason, list, err, why)
	}
}

// Faults wants so many faults of the server to be counted.
func (r *Rig) Faults(want uint64) {
	r.Helper()
	synctest.Wait()
	if n := r.Part.Meter.Measure(r.Context()).Stats.Faults; n != want {
		r.Errorf("%d faults, want %d", n, want)
	}
}
