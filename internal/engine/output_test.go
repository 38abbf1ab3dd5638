package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
)

// TestAStreamGetsLargePayloadsInPieces: what a reader that stalls costs is
// bounded by bytes. Nothing is left out, and the order stays.
func TestAStreamGetsLargePayloadsInPieces(t *testing.T) {
	scenario(t, func(r *rig) {
		const jobs, size = 40, 100 << 10
		body := func(i int) []byte { return append(bytes.Repeat([]byte("x"), size), fmt.Sprint(i)...) }
		var want []string
		w := r.Anonymous(0, "q")
		for i := range jobs {
			n := newNamed("q", "")
			n.Payload = body(i)
			added, err := r.Put(r.Context(), []engine.NewJob{n})
			if err != nil {
				r.Fatal(err)
			}
			want = append(want, added[0].ID.String())
		}
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		var got []string
		for {
			synctest.Wait()
			list, err := w.Next(ctx)
			if errors.Is(err, context.Canceled) {
				break
			} else if err != nil {
				r.Fatal(err)
			}
			if len(list) > 11 { // 1 MiB and one more
				r.Errorf("%d jobs of %d KiB in one piece", len(list), size>>10)
			}
			for _, d := range list {
				if !bytes.Equal(d.Payload, body(len(got))) {
					r.Errorf("job %d came with a payload of %d bytes", len(got), len(d.Payload))
				}
				got = append(got, d.Job.ID.String())
			}
		}
		if !slices.Equal(got, want) {
			r.Errorf("%d of %d jobs came", len(got), jobs)
		}
	})
}
