package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestQueueChangesAreToldInTheWordsOfTheAPI(t *testing.T) {
	from, to := job.NewQueue("q"), job.NewQueue("q")
	from.Protection.Rate.PerSecond = 5
	to.Protection.Rate.PerSecond = 7.5
	to.Protection.Fair = &job.FairShare{Weights: map[string]int{"b": 2, "a": 3}}
	to.Order, to.RetainDead, to.Paused = job.OrderStart, job.Day, true
	from.Retry.Limit = job.LimitOf(3)
	got := fmt.Sprint(QueueChanges(from, to))
	want := `[{fair_share null {"weights":{"a":3,"b":2}}} {order "none" "start"} {rate {"per_second":5} {"per_second":7.5}} ` +
		`{retention {} {"dead_ms":86400000}} {retry {"limit":3} null}]`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	again := *to
	again.Paused, again.Protection.Fair = false, &job.FairShare{Weights: map[string]int{"a": 3, "b": 2}}
	if list := QueueChanges(to, &again); list != nil {
		t.Errorf("nothing changed but the pause: %v", list)
	}
}

func TestALongValueIsCutInTheAuditLog(t *testing.T) {
	to := job.NewQueue("q")
	weights := map[string]int{}
	for i := range 500 {
		weights[fmt.Sprintf("grüppe-%d", i)] = i + 1
	}
	to.Protection.Fair = &job.FairShare{Weights: weights}
	list := QueueChanges(job.NewQueue("q"), to)
	var text string
	if len(list) != 1 || json.Unmarshal([]byte(list[0].To), &text) != nil || len(list[0].To) > 2*changeMax ||
		!strings.HasPrefix(text, `{"weights":{"gr`) || !strings.HasSuffix(text, "…") {
		t.Errorf("%.200v", list)
	}
}
