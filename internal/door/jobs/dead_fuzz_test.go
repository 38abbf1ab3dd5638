package jobs_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// FuzzDeadQueries: whatever stands in a query of the dead set, it is read or
// refused with a sentence, and never with anything else.
func FuzzDeadQueries(f *testing.F) {
	for _, q := range []string{
		"", "queue=a,b&type=t&group=g&reason=lost,killed", "fingerprint=00000000000000ff", "fingerprint=FF", "attempts=1..5", "attempts=..4294967295",
		"died_from=1&died_before=2", "died_before=-1", "text=%zz", "limit=0&offset=-1", "sort=last_seen&muted=any", "from=x&filter=.a", "order=desc&limit=7",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		_, dead := jobs.ReadDeadQuery(raw)
		_, export := jobs.ReadExportQuery(raw)
		_, groups := jobs.GroupsQuery(raw)
		_, _, log := jobs.LogQuery(raw)
		for _, err := range []error{dead, export, groups, log} {
			if err != nil {
				refused(t, raw, err)
			}
		}
	})
}

// FuzzDeadFilter: a filter that is read comes back as it was asked for.
func FuzzDeadFilter(f *testing.F) {
	f.Add([]byte(`{"filter":{"queue":["q"],"reason":["lost"],"fingerprint":["00000000000000ff"],"attempts":"2..","died_from":5},"rate":2.5,"ramp_ms":9}`))
	f.Add([]byte(`{"filter":{"attempts":"..3","text":"x","id":["0000000000000000000000001"]},"budget":"remaining","place":"back","max_replays":0}`))
	f.Add([]byte(`{"all":true,"rate":1e300}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var w wire.DeadReplay
		if json.Unmarshal(body, &w) != nil {
			return
		}
		ask, err := jobs.ReplayAsked(&w)
		if err != nil {
			refused(t, string(body), err)
			return
		}
		told := jobs.ReplayOf(&ask.Replay).Filter
		again, err := jobs.Selection(&told)
		if err != nil || !reflect.DeepEqual(again, ask.Select) {
			t.Fatalf("%+v\ncame back as\n%+v, %v", ask.Select, again, err)
		}
		_, _ = jobs.DeleteAsked(&wire.DeadDelete{Filter: w.Filter, All: w.All, Rate: w.Rate, RampMS: w.RampMS})
		if p := ask.Place.String(); ask.Rate < 0 || ask.Ramp < 0 || ask.Ramp > job.Day || p == "" && w.Place != "" {
			t.Fatalf("accepted: %+v", ask)
		}
	})
}
