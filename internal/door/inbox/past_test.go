package inbox

import (
	"encoding/json"
	"testing"
)

// An inbox tells how old its oldest messages are, and what became of those before
// (inbox.md, metrics).
func TestAnInboxTellsAgesLatencyAndAttempts(t *testing.T) {
	scenario(t, byJSON+toHTTP+`"batch":{"query":"none","mode":"all"},"persistence":{"messageMaxRetries":2},"retry":{"retryMaxBackoffMinutes":1}`, func(r *rig) {
		tells := func(want string) {
			t.Helper()
			x, _ := r.Find("in")
			in, err := r.Show(r.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal([]any{in.Oldest, in.SinceStart})
			if err != nil || string(got) != want {
				t.Errorf("it tells %s, %v; want %s", got, err, want)
			}
		}
		const none = `{"count":0,"mean":0}`
		tells(`[{},{"latency_ms":` + none + `,"attempts_delivered":` + none + `,"attempts_exhausted":` + none + `}]`)
		r.replies(failing("m1 m2"))
		r.put("g/m1", "h/m2", "i/m3")
		r.until(10)
		tells(`[{"retrying":10001},{"latency_ms":{"count":1,"mean":0,"up_to":{"5":1}},"attempts_delivered":{"count":1,"mean":1,"up_to":{"1":1}},"attempts_exhausted":` + none + `}]`)
		r.replies(failing("m1"))
		r.until(62)
		tells(`[{"blocking":62001},{"latency_ms":{"count":2,"mean":30000,"up_to":{"5":1,"60000":1}},"attempts_delivered":{"count":2,"mean":1.5,"up_to":{"1":1,"2":1}},"attempts_exhausted":{"count":1,"mean":2,"up_to":{"2":1}}}]`)
	})
}
