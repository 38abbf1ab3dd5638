package grid_test

import (
	"reflect"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

func TestResultsOfAllSizesAreCollectedAlike(t *testing.T) {
	results := map[string][]byte{
		"A": nil, "B": {}, "C": []byte("1"), "D": []byte(large)[1:], "E": []byte(large),
	}
	for name, on := range map[string]func(*rig){"mem": func(*rig) {}, "embedded": func(r *rig) { r.InADirectory() }} {
		t.Run(name, func(t *testing.T) {
			grid(t, func(g *gridRig) {
				g.session("s")
				m := g.engine("e", len(results))
				g.tasks("s", "A", "B", "C", "D", "E")
				m.Gets("A", "B", "C", "D", "E")
				for name, made := range results {
					g.Settled(m.Held[name], job.OK, func(s *engine.Settle) { s.Result = made })
				}
				var last int64
				for range 2 {
					list, _, _, err := g.Part.Grid.Collect(g.Context(), "s", 0, 9, func(int) error { return nil })
					if err != nil || len(list) != len(results) {
						g.Fatalf("%d results, %v", len(list), err)
					}
					for _, got := range list {
						last = max(last, got.Number)
						name := g.Names[got.Job.ID]
						want := results[name]
						alone, err := g.Result(got.Job)
						if !reflect.DeepEqual(got.Payload, want) || !reflect.DeepEqual(alone, want) || err != nil {
							g.Errorf("%s made %q: collected is %q, and read %q (%v)", name, want, got.Payload, alone, err)
						}
						kept := got.Job.Result()
						if (kept == nil) != (want == nil) || kept != nil && (int(kept.Size) != len(want) || kept.Ref.IsZero() != (len(want) <= 256)) {
							g.Errorf("%s made %d bytes, kept as %+v", name, len(want), kept)
						}
					}
					g.Restart(job.Second)
				}
				g.ack("s", last)
				for name := range results {
					g.Expect(name, job.None)
				}
			}, on)
		})
	}
}
