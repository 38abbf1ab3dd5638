package rule_test

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// Who stands where the round is with its gate is told apart by its own place, not
// by which id is the older: one that went to the back of the line stays there.
func TestThoseWhoStandTogetherAreToldApartByTheirOwnPlaces(t *testing.T) {
	q := job.NewQueue("q")
	g := &job.Gate{Queue: "q", Place: 39}
	back, front := rule.Pos{Seq: 38, ID: job.ID{1}}, rule.Pos{Seq: 32, ID: job.ID{2}}
	if rule.Stand(q, g, back) != back {
		t.Error("in a queue that is not fair a job does not stand where it is")
	}
	q.Protection.Fair = &job.FairShare{}
	if a, b := rule.Stand(q, g, back), rule.Stand(q, g, front); a != b || a.Seq != g.Place {
		t.Errorf("%+v and %+v do not stand at %d together", a, b, g.Place)
	}
	if after := (rule.Pos{Seq: 40, ID: job.ID{3}}); rule.Stand(q, g, after) != after {
		t.Error("who came after the latest turn does not stand where it is")
	}
}
