package jobs

import (
	"cmp"
	"maps"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// The parts of what protects the target of a queue, as the API and the core have them. What is
// left out inside of a new one is its default.

func rateOf(r job.Rate) *wire.Rate {
	if !r.Limited() {
		return nil
	}
	return &wire.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

func breakerOf(b *job.Breaker) *wire.Breaker {
	if b == nil {
		return nil
	}
	return &wire.Breaker{
		Window: b.Window, FailureRatio: b.Ratio, Consecutive: b.Consecutive, OpenForMS: int64(b.OpenFor),
		OpenForMaxMS: int64(b.OpenForMax), Probes: b.Probes, RampMS: int64(b.Ramp),
	}
}

func retryBudgetOf(b *job.RetryBudget) *wire.RetryBudget {
	if b == nil {
		return nil
	}
	return &wire.RetryBudget{RetryShare: new(b.Share), FloorPerSecond: new(b.Floor)}
}

func retryBudget(b *wire.RetryBudget) *job.RetryBudget {
	if b == nil {
		return nil
	}
	own := job.DefaultBudget()
	if b.RetryShare != nil {
		own.Share = *b.RetryShare
	}
	if b.FloorPerSecond != nil {
		own.Floor = *b.FloorPerSecond
	}
	return &own
}

func fairOf(f *job.FairShare) *wire.FairShare {
	if f == nil {
		return nil
	}
	return &wire.FairShare{Weights: maps.Clone(f.Weights)} // a PATCH is read over it
}

func fair(f *wire.FairShare) *job.FairShare {
	if f == nil {
		return nil
	}
	return &job.FairShare{Weights: weights(f.Weights)}
}

// weights leaves out those that are null, which are the default.
func weights(given map[string]int) (out map[string]int) {
	for group, w := range given {
		if w == 0 {
			continue
		}
		if out == nil {
			out = map[string]int{}
		}
		out[group] = w
	}
	return out
}

func rate(r *wire.Rate) job.Rate {
	if r == nil || r.PerSecond == 0 && r.Burst > 0 { // no limit has no burst
		return job.Rate{}
	}
	return job.Rate{PerSecond: r.PerSecond, Burst: r.Burst}
}

func breaker(b *wire.Breaker) *job.Breaker {
	if b == nil {
		return nil
	}
	usual := job.DefaultBreaker()
	own := job.Breaker{
		Window: cmp.Or(b.Window, usual.Window), Ratio: b.FailureRatio, Consecutive: b.Consecutive,
		OpenFor: cmp.Or(job.Millis(b.OpenForMS), usual.OpenFor), OpenForMax: job.Millis(b.OpenForMaxMS),
		Probes: cmp.Or(b.Probes, usual.Probes), Ramp: cmp.Or(job.Millis(b.RampMS), usual.Ramp),
	}
	if own.Ratio == 0 && own.Consecutive == 0 {
		own.Ratio = usual.Ratio
	}
	if own.OpenForMax == 0 {
		own.OpenForMax = max(own.OpenFor, usual.OpenForMax)
	}
	return &own
}
