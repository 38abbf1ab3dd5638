package jobs

import (
	"context"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Explain writes the answer to GET /jobs/{id}/explain: the whole retry policy
// that holds for the job now, and who says each part of it.
func Explain(ctx context.Context, e *engine.Engine, id job.ID) ([]byte, error) {
	j, p, err := e.Policy(ctx, id)
	if err != nil {
		return nil, err
	}
	whole, err := p.Retry.MarshalJSON()
	if err != nil {
		return nil, err
	}
	b := j.ID.AppendTo([]byte(`{"id":"`))
	b = word(b, `","status":"`, states[j.State])
	b = append(append(b, `,"policy":`...), whole...)
	b = append(b, `,"policy_from":{`...)
	for _, part := range []struct {
		key  string
		from rule.Source
	}{
		{`"limit":"`, p.From.Limit},
		{`"max_age":"`, p.From.MaxAge},
		{`"place":"`, p.From.Place},
		{`"curve":"`, p.From.Curve},
		{`"rules":"`, p.From.Rules},
		{`"loss_limit":"`, p.From.LossLimit},
	} {
		b = word(comma(b), part.key, part.from.String())
	}
	return append(b, `}}`...), nil
}
