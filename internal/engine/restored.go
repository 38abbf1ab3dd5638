package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// Numbers that are skipped after a restore: more than any server hands out
// between a backup and the loss it is for.
const (
	startsSkipped = 1 << 12
	seqSkipped    = 1 << 44
)

// Restored prepares a store that was restored from a backup, before its first
// start: fencing numbers, positions and starts go on above those that were
// handed out after the backup was made (core.md section 4).
func Restored(ctx context.Context, s store.Store) error {
	commit, err := s.Update(ctx, func(tx store.Tx) error {
		tx.Durable()
		for name, skip := range map[string]int64{"start": startsSkipped, "seq": seqSkipped} {
			n, err := store.Row[*job.Reserve](tx, name)
			if err != nil {
				return err
			}
			if n == nil { // it never started
				continue
			}
			if err := tx.Set(&job.Reserve{Name: name, Next: n.Next + skip}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return commit.Wait()
}
