package bench

import (
	"context"
	"fmt"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// memoryWarmPart of the backlog passes through the server first, so that its
// caches and write buffers are as full as they get.
const memoryWarmPart = 0.3

// memory measures by how much the resident memory of the server grows for each
// job that waits.
func (r *run) memory(ctx context.Context) error {
	s, err := r.server(ctx)
	if err != nil {
		return err
	}
	fresh, err := r.rss(ctx, s)
	if err != nil {
		return err
	}
	q := r.newQueue()
	if err := r.fill(ctx, s, q, int64(memoryWarmPart*float64(r.opts.Jobs)), ""); err != nil {
		return err
	}
	if _, err := r.drainAll(ctx, s, q); err != nil {
		return err
	}
	warm, err := r.rss(ctx, s)
	if err != nil {
		return err
	}
	if err := r.fill(ctx, s, r.newQueue(), r.opts.Jobs, ""); err != nil {
		return err
	}
	full, err := r.rss(ctx, s)
	if err != nil {
		return err
	}
	grown := float64(full-warm) / float64(r.opts.Jobs)
	r.figure("growth beyond caches", "bytes/job", grown, atMost(250))
	r.figure("growth from a fresh start", "bytes/job", float64(full-fresh)/float64(r.opts.Jobs), nil)
	r.figure("resident when fresh", "MiB", mebibytes(fresh), nil)
	r.figure("resident after warm-up", "MiB", mebibytes(warm), nil)
	r.figure("resident with the backlog", "MiB", mebibytes(full), nil)
	r.log.printf("memory: %.0f bytes a job", grown)
	return nil
}

// rss is the resident memory of a server that has come to rest.
func (r *run) rss(ctx context.Context, s *server) (int64, error) {
	if err := quiet(ctx, s); err != nil {
		return 0, err
	}
	bytes, err := gauge.ProcessRSS(s.pid)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of the server: %w", err)
	}
	return bytes, nil
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
