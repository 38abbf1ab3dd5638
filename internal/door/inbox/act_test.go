package inbox

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// acted is what an action says of itself.
func (r *rig) acted(want string, act wire.InboxAct) {
	r.Helper()
	if done := r.act(act); fmt.Sprint(done.Changed, done.Refused) != want {
		r.Errorf("%s: %+v, want %s", act.Action, *done, want)
	}
}

// Skip and edit are for a message, a group and the inbox, too (inbox.md 10).
func TestTheHeadsOfAllGroupsAreSkipped(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP+`"persistence":{"messageMaxRetries":1}`, func(r *rig) {
		r.acted("0 0", wire.InboxAct{Action: "skip", All: true})
		r.replies(failing("g1 h1"))
		r.put("g/g1", "g/g2", "h/h1", "h/h2", "i/i1")
		r.expect("two heads are exhausted", "0 g1, 0 h1, 0 i1")
		r.acted("1 0", wire.InboxAct{Action: "pause", Group: new("h")})
		r.acted("2 0", wire.InboxAct{Action: "skip", All: true})
		r.expect("each group goes on behind its head, once", "0 g2")
		r.look("1 in_progress, 2 dead, 1 groups paused")
		r.acted("1 0", wire.InboxAct{Action: "resume", Group: new("h")})
		r.expect("the one that was paused, too", "0 h2")
		list, err := r.engine.Audit.List(r.Context(), job.ID{}, 2)
		if err != nil || len(list) < 2 || list[1].Action != "skip heads" || list[1].Subject != "inbox in" || list[1].Count != 2 {
			t.Errorf("noted is %+v, %v", list, err)
		}
	})
}

// What holds its group is given up like any other message: by its id, by its status,
// or as a head, and its history stays.
func TestAMessageThatHoldsItsGroupIsSkipped(t *testing.T) {
	for _, exhausted := range []string{"block", "park"} {
		scenario(t, atOnce+byJSON+toHTTP+`"persistence":{"messageMaxRetries":1},"onExhausted":"`+exhausted+`"`, func(r *rig) {
			r.replies(failing("g1 h1 i1"))
			r.put("g/g1", "g/g2", "h/h1", "h/h2", "i/i1", "i/i2")
			r.expect("three heads are exhausted", "0 g1, 0 h1, 0 i1")
			r.acted("1 0", wire.InboxAct{Action: "skip", Message: "g1"})
			r.expect("by its id", "0 g2")
			r.acted("1 0", wire.InboxAct{Action: "skip", Statuses: []string{"blocking"}, Group: new("h")})
			r.expect("by its status", "0 h2")
			r.acted("1 0", wire.InboxAct{Action: "skip", Group: new("i")})
			r.expect("as the head", "0 i2")
			r.look("3 dead")
			x, _ := r.Find("in")
			for _, id := range []string{"g1", "h1", "i1"} {
				if m, err := r.Message(r.Context(), x, id); err != nil || m.Reason != "exhausted" || m.Error == nil || m.Error.Text != "no subscription" {
					t.Errorf("%s: %+v, %v", id, m, err)
				}
				if _, err := r.Act(r.Context(), x, &wire.InboxAct{Action: "skip", Message: id}, job.Actor{}); job.KindOf(err) != job.WrongState {
					t.Errorf("again: %v", err)
				}
			}
		})
	}
}

func TestDatesOfManyMessagesAreEdited(t *testing.T) {
	scenario(t, `"batch":{"query":"none","mode":"fail_first","cleanup":"none"},`+byJSON+toHTTP+`"persistence":{"messageMaxRetries":9}`, func(r *rig) {
		r.replies(failing("g1 h1 i1"))
		r.put("g/g1", "g/g2", "h/h1", "h/h2", "i/i1")
		r.expect("three heads fail", "0 g1, 0 h1, 0 i1")
		now, hour := r.engine.Now(), new(int64(r.engine.Now().Add(job.Hour)))
		r.acted("3 0", wire.InboxAct{Action: "edit", Statuses: []string{"retrying"}, InboxEdit: wire.InboxEdit{NextDue: hour}})
		r.acted("1 0", wire.InboxAct{Action: "edit", Group: new("g"), InboxEdit: wire.InboxEdit{NextDue: new(int64(now.Add(10 * job.Second)))}}) // its head
		r.acted("1 0", wire.InboxAct{Action: "edit", Group: new("i"), InboxEdit: wire.InboxEdit{Payload: []byte(`{"g":"i","seats":2}`)}})
		r.replies(nil)
		r.until(600)
		r.expect("only the head of g is due", "10 g1, 10 g2")
		r.acted("3 0", wire.InboxAct{Action: "edit", InboxEdit: wire.InboxEdit{ExpiresAt: new(int64(now.Add(3000 * job.Second)))}})
		r.until(3700)
		r.expect("what the inbox had expired", "")
		r.look("3 dead")
		x, _ := r.Find("in")
		if m, err := r.Message(r.Context(), x, "i1"); err != nil || m.Reason != "expired" || string(m.Payload) != `{"g":"i","seats":2}` {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
