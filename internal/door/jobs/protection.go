package jobs

import (
	"cmp"
	"maps"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// Protection is what protects the target of a queue, in the words that the API
// and the configuration file share. It is read over what it holds: what is not
// named stays, null (which the file refuses) takes a setting away, and what is
// left out inside of a new one is its default.
type Protection struct {
	MaxRunning   int64             `json:"max_running,omitzero"` // 0 = no limit
	Rate         *wire.Rate        `json:"rate,omitzero"`
	GroupRate    *wire.Rate        `json:"group_rate,omitzero"`
	Breaker      *wire.Breaker     `json:"breaker,omitzero"`
	GroupBreaker *wire.Breaker     `json:"group_breaker,omitzero"`
	RetryBudget  *wire.RetryBudget `json:"retry_budget,omitzero"`
	FairShare    *wire.FairShare   `json:"fair_share,omitzero"`
}

// ProtectionOf tells the settings of a queue.
func ProtectionOf(p *job.Protection) Protection {
	out := Protection{
		MaxRunning: int64(p.MaxRunning), Rate: rateOf(p.Rate), GroupRate: rateOf(p.GroupRate),
		Breaker: breakerOf(p.Breaker), GroupBreaker: breakerOf(p.GroupBreaker),
	}
	if b := p.Budget; b != nil {
		out.RetryBudget = &wire.RetryBudget{RetryShare: new(b.Share), FloorPerSecond: new(b.Floor)}
	}
	if p.Fair != nil {
		out.FairShare = &wire.FairShare{Weights: maps.Clone(p.Fair.Weights)} // a PATCH is read over it
	}
	return out
}

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

// Apply checks the settings and writes them to into. Its error joins one
// *job.Error for each field that is wrong.
func (p *Protection) Apply(into *job.Protection) error {
	set := job.Protection{
		MaxRunning: int(p.MaxRunning), Rate: rate(p.Rate), GroupRate: rate(p.GroupRate),
		Breaker: breaker(p.Breaker), GroupBreaker: breaker(p.GroupBreaker),
	}
	if b := p.RetryBudget; b != nil {
		own := job.DefaultBudget()
		if b.RetryShare != nil {
			own.Share = *b.RetryShare
		}
		if b.FloorPerSecond != nil {
			own.Floor = *b.FloorPerSecond
		}
		set.Budget = &own
	}
	if p.FairShare != nil {
		set.Fair = &job.FairShare{Weights: weights(p.FairShare.Weights)}
	}
	*into = set
	return set.Check()
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
	if r == nil {
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
