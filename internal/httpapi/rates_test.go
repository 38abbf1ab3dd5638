package httpapi_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
	"github.com/reprisehq/reprise/wire"
)

func TestAQueueTellsWhatHappensInIt(t *testing.T) { // jobs.md, rates
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		t.Helper()
		for range 7 {
			a.put("")
		}
		var leased struct{ Jobs []wire.Job }
		if err := json.Unmarshal([]byte(a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"],"max":5}`)), &leased); err != nil || len(leased.Jobs) != 5 {
			t.Fatalf("%v %v", leased, err)
		}
		for i, outcome := range []string{"ok", "ok", "retry", "release"} {
			a.want(200, "*", "POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":%q,"error":{"message":"m"}}]`,
				leased.Jobs[i].ID, leased.Jobs[i].Lease, outcome))
		}
		told := func(r *wire.QueueRates) {
			t.Helper()
			if r == nil || r.WindowMS < 1000 || r.WindowMS > 60_000 {
				t.Fatalf("%+v", r)
			}
			for name, x := range map[string][2]float64{
				"enqueued": {r.Enqueued, 7}, "taken": {r.Taken, 5}, "completed": {r.Completed, 2}, "failed": {r.Failed, 1},
			} {
				if n := x[0] * float64(r.WindowMS) / 1000; math.Abs(n-x[1]) > .05 { // rates are rounded
					t.Errorf("%v %s, want %v: %+v", n, name, x[1], r)
				}
			}
		}
		var q wire.Queue
		if err := json.Unmarshal([]byte(a.want(200, "*", "GET", "/queues/q", "")), &q); err != nil {
			t.Fatal(err)
		}
		told(q.Rates)
		var all wire.Queues
		if err := json.Unmarshal([]byte(a.want(200, "*", "GET", "/queues?rates=true", "")), &all); err != nil || len(all.Queues) != 1 || len(all.Rates) != 1 {
			t.Fatalf("%+v %v", all, err)
		}
		r := all.Rates["q"]
		told(&r)
		a.want(200, `{"queues":["q"]}`, "GET", "/queues?rates=false", "")
		for _, bad := range []string{"rates=", "rates=1", "rates=true&rates=true"} {
			a.want(400, `{"error":"rates must be true or false, once","code":"invalid"}`, "GET", "/queues?"+bad, "")
		}
	})
}

func TestATokenIsToldOfTheRatesOfItsQueuesOnly(t *testing.T) {
	a := start(t, httpapi.Options{})
	a.put("")
	root := a.token("", adminToken)
	own := a.token(root, `{"name":"ci","scopes":["read"],"queues":["mail-*"]}`)
	a.want(200, `{"queues":[],"rates":{}}`, "GET", "/queues?rates=true", "", bearer(own)...)
}
