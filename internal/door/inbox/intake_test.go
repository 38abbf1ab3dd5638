package inbox

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// A message that is refused leaves nothing behind with the one after it.
func TestARefusedMessageLeavesNothingToTheNextOne(t *testing.T) {
	scenario(t, atOnce+`"group":{"json":".g"}`, func(r *rig) {
		x, _ := r.Find("in")
		bad := Message{Payload: []byte(`{}`), Headers: []job.Label{{Key: "X-CORRELATE-ID", Value: "m1"}, {Key: "X-CORRELATE-TTL", Value: "PT10S"}}}
		good := Message{Payload: []byte(`{"g":1}`)}
		in := x.NewIntake(r.Context(), []Message{bad, good, bad}, r.engine.Now())
		if len(in.Jobs) != 1 || in.Out[0].Err == nil || in.Out[1].Err != nil || in.Out[2].Err == nil {
			t.Fatalf("%d are taken in of %+v", len(in.Jobs), in.Out)
		}
		if n := in.Jobs[0]; n.Key != "" || n.Job.Extras != nil || n.Job.GraceUntil != 0 || n.Job.Group != "1" || in.ids[0] != "m1" || in.ids[1] != "" {
			t.Errorf("%+v, ids %q", n, in.ids)
		}
	})
}
