package parttest

import (
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// Large is a result that is a payload of its own.
var Large = strings.Repeat("1", job.ResultInline+1)

// InADirectory lets the engine keep its work in a directory, which every start opens
// anew, and in which nothing is left in the end.
func (r *Rig) InADirectory() {
	fs, shut := vfs.NewMem(), func() error { return nil }
	r.Around = func(store.Store) store.Store {
		if err := shut(); err != nil {
			r.Fatal(err)
		}
		st, err := embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: r.Clock.Wall})
		if err != nil {
			r.Fatal(err)
		}
		shut = st.Close
		return st
	}
	r.Cleanup(func() {
		if err := shut(); err != nil {
			r.Error(err)
		}
		if in, err := embedded.Inspect(fs, "data"); err != nil || in.Jobs != [job.States]int64{} || in.Payloads != 0 || in.Damaged != 0 {
			r.Errorf("left is %+v (%v)", in, err)
		}
	})
}
