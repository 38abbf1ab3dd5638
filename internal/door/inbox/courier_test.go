package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// What doors.inbox.retry of the configuration says holds where the inbox says nothing.
func TestAnInboxFollowsThePolicyOfItsDoor(t *testing.T) {
	const settings = byJSON + toHTTP + `"batch":{"query":{"pollInitialDelay":"PT1S","pollInterval":"PT1S"}}`
	scenario(t, "", func(r *rig) {
		r.stop()
		r.rules.Doors[job.DoorInbox] = &job.Retry{Rules: &job.Rules{{When: job.When{ErrorTypes: []string{"Mismatch"}}, Do: job.DoDead}}}
		r.start()
		r.set("in", settings)
		r.replies(failing("m"))
		r.put("g/m")
		r.until(60)
		r.expect("a failure that the policy calls fatal", "1 m")
		r.message("m", "blocking attempts 1 suppressed 0")
	})
}

// TestTheTableOfTheSeed plays each case of the vectors through a whole door: one
// message that never gets through.
func TestTheTableOfTheSeed(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Name                  string
			TTL                   *int
			Poll                  int
			FirstPoll             int `json:"first_poll"`
			Base                  float64
			Cap                   int `json:"cap_minutes"`
			Max                   int
			CapApplies            string
			Suppressed, Noted     []int
			NotPickedAfterSeconds int `json:"not_picked_after"`
		}
	}
	text, err := os.ReadFile("../../part/turn/testdata/vectors/inbox.json")
	if err == nil {
		err = json.Unmarshal(text, &vectors)
	}
	if err != nil || len(vectors.Cases) == 0 {
		t.Fatal(err)
	}
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			ttl := ""
			if c.TTL != nil {
				ttl = fmt.Sprintf(`"timeToLive":"PT%dS"`, *c.TTL)
			}
			settings := byJSON + toHTTP + fmt.Sprintf(`
				"batch":{"query":{"pollInitialDelay":"PT%dS","pollInterval":"PT%dS"}}, "message":{%s},
				"persistence":{"messageMaxRetries":%d}, "retry":{"retryBackoffBase":%v,"retryMaxBackoffMinutes":%d,"capApplies":%q}`,
				c.FirstPoll, c.Poll, ttl, c.Max, c.Base, c.Cap, c.CapApplies)
			scenario(t, settings, func(r *rig) {
				r.replies(failing("m"))
				r.put("g/m")
				var want []string
				for _, at := range c.Suppressed {
					r.until(float64(at))
					want = append(want, fmt.Sprintf("%d m", at))
					r.message("m", fmt.Sprintf("in_progress attempts 0 suppressed %d", len(want)))
				}
				for i, at := range c.Noted {
					r.until(float64(at))
					want = append(want, fmt.Sprintf("%d m", at))
					status := "retrying"
					if i == len(c.Noted)-1 {
						status = "blocking"
					}
					r.message("m", fmt.Sprintf("%s attempts %d suppressed %d", status, i+1, len(c.Suppressed)))
				}
				r.until(float64(c.NotPickedAfterSeconds + 3*3600))
				r.expect("in all", strings.Join(want, ", "))
				r.preview(strings.Join(want, ", "))
			})
		})
	}
}

// message holds a message to its status and counts.
func (r *rig) message(id, want string) {
	r.Helper()
	x, err := r.Find("in")
	if err != nil {
		r.Fatal(err)
	}
	m, err := r.Message(r.Context(), x, id)
	if err != nil {
		r.Errorf("message %s: %v", id, err)
		return
	}
	if got := fmt.Sprintf("%s attempts %d suppressed %d", m.Status, m.Attempts, m.Suppressed); got != want {
		r.Errorf("message %s is %s, want %s", id, got, want)
	}
}

func (r *rig) act(act wire.InboxAct) *wire.InboxActed {
	r.Helper()
	x, err := r.Find("in")
	if err != nil {
		r.Fatal(err)
	}
	done, err := r.Act(r.Context(), x, &act, job.Actor{Name: "ann"})
	if err != nil {
		r.Fatalf("%+v: %v", act, err)
	}
	return done
}

// look is what an inbox holds: its messages by status and its groups by state,
// where there are any. Each adds up to its total.
// problem looks at why an inbox does not deliver; "" = it does.
func (r *rig) problem(name, want string) {
	r.Helper()
	x, err := r.Find(name)
	if err != nil {
		r.Fatal(err)
	}
	if shown, err := r.Show(r.Context(), x); err != nil || shown.Problem != want {
		r.Errorf("the problem of inbox %s is %q, want %q; %v", name, shown.Problem, want, err)
	}
}

func (r *rig) look(want string) {
	r.Helper()
	x, err := r.Find("in")
	var shown *wire.Inbox
	if err == nil {
		shown, err = r.Show(r.Context(), x)
	}
	if err != nil {
		r.Fatal(err)
	}
	m, g, got := shown.Messages, shown.Groups, ""
	sum := int64(0)
	for i, n := range []int64{m.InProgress, m.Delivering, m.Retrying, m.Paused, m.Blocking, m.Dead, m.Delivered} {
		if sum += n; n > 0 {
			got += fmt.Sprintf("%d %s, ", n, wire.InboxStatuses[i])
		}
	}
	groups := int64(0)
	for i, n := range []int64{g.Ready, g.Delivering, g.BackingOff, g.Paused, g.Blocked, g.Parked, g.Held} {
		if groups += n; n > 0 {
			got += fmt.Sprintf("%d groups %s, ", n, wire.InboxGroupStates[i])
		}
	}
	if got = strings.TrimSuffix(got, ", "); got != want || sum != m.Total || groups != g.Total {
		r.Errorf("it holds %q (%d of %d messages, %d of %d groups), want %q", got, sum, m.Total, groups, g.Total, want)
	}
}

// Table 2.6 of the reference, with our decisions.
func TestDeliveryStopsOrGoesOnBehindAFailure(t *testing.T) {
	for _, c := range []struct{ name, settings, fails, first, later string }{
		{"1: all goes on to the end", anyway, "m2", "0 m1, 0 m2, 0 m3", "60 m2"},
		{"2: fail_first stops, the rest is untouched", atOnce, "m2", "0 m1, 0 m2", "60 m2"},
		{"4: one message a run", `"batch":{"query":{"pollInitialDelay":"PT3S","pollInterval":"PT6S"},"mode":"all"},"persistence":{"messageBatchSize":1},`, "m2", "3 m1, 9 m2", "69 m2"},
		{"5: two of a group in a run, all", `"batch":{"query":{"pollInitialDelay":"PT3S","pollInterval":"PT6S"},"mode":"all"},"persistence":{"messageBatchSize":2},`, "m1", "3 m1, 3 m2", "63 m1, 63 m3"},
		{"8: two that fail", anyway, "m1 m2", "0 m1, 0 m2, 0 m3", "60 m1, 60 m2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			scenario(t, c.settings+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
				r.replies(failing(c.fails))
				r.act(wire.InboxAct{Action: "pause"}) // so that they are present together
				r.put("g/m1", "g/m2", "g/m3")
				r.act(wire.InboxAct{Action: "resume"})
				r.until(30)
				r.expect("at first", c.first)
				r.until(90)
				r.expect("later", c.later)
			})
		})
	}
}

// The vectors about groups: which members a visit tries.
func TestWhichMembersAVisitTries(t *testing.T) {
	for _, c := range []struct{ name, mode, before, fails, after, want string }{
		{"a failed member behind a head inside its grace does not block in mode all", "all", "g/m2@2", "m2", "g/m1@1 g/m3@3", "31 m1, 31 m3"},
		{"fail_first stops at it", "fail_first", "g/m2@2", "m2", "g/m1@1 g/m3@3", "31 m1"},
		{"a late arrival that sorts before a failed one is the head", "fail_first", "g/m1@1", "m1", "g/m0@0", "31 m0"},
		{"a failed head that is not due blocks fail_first", "fail_first", "g/m1@1", "m1", "g/m2@2", ""},
		{"and the visit of all", "all", "g/m1@1", "m1", "g/m2@2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			settings := `"batch":{"query":{"pollInitialDelay":"PT1S","pollInterval":"PT30S"},"mode":"` + c.mode + `"},"sort":"header:n",` + byJSON + toHTTP
			scenario(t, settings[:len(settings)-1], func(r *rig) {
				r.replies(failing(c.fails))
				r.put(strings.Fields(c.before)...)
				r.until(2)
				r.arrived()
				r.put(strings.Fields(c.after)...)
				r.until(32)
				r.expect("the next run", c.want)
			})
		})
	}
}

func TestAnExhaustedHeadBlocksSkipsOrParks(t *testing.T) {
	const twice = `"persistence":{"messageMaxRetries":2},`
	for _, c := range []struct{ on, goesOn, holds string }{
		{"block", "", "1 in_progress, 1 blocking, 1 groups blocked"},
		{"skip", "60 m2", "1 dead"},
		{"park", "", "1 in_progress, 1 blocking, 1 groups parked"},
	} {
		t.Run(c.on, func(t *testing.T) {
			scenario(t, atOnce+twice+byJSON+toHTTP+`"onExhausted":"`+c.on+`"`, func(r *rig) {
				r.replies(failing("m1"))
				r.put("g/m1", "g/m2", "h/x")
				r.until(0)
				r.expect("at first", "0 m1, 0 x")
				r.until(7200)
				want := "60 m1"
				if c.goesOn != "" {
					want += ", " + c.goesOn
				}
				r.expect("later", want)
				r.look(c.holds)
				r.replies(nil)
				if c.on != "skip" {
					r.act(wire.InboxAct{Action: "retry", Group: new("g")})
					r.expect("retried", "7200.001 m1, 7200.001 m2")
					r.look("")
				}
			})
		})
	}
}

func TestOperatorsStopSkipAndRepair(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP+`"persistence":{"messageMaxRetries":1}`, func(r *rig) {
		r.act(wire.InboxAct{Action: "pause", Group: new("g")})
		r.put("g/m1", "g/m2", "h/x1", "h/x2", "i/y")
		r.expect("while group g is paused", "0 x1, 0 x2, 0 y")
		r.look("2 in_progress, 1 groups paused")
		r.act(wire.InboxAct{Action: "pause", Message: "m1"})
		r.act(wire.InboxAct{Action: "resume", Group: new("g")})
		r.expect("while its head is paused", "")
		r.look("1 in_progress, 1 paused, 1 groups paused")
		r.act(wire.InboxAct{Action: "skip", Group: new("g")})
		r.expect("after the head was skipped", "0 m2")
		r.look("1 dead")

		r.replies(failing("a b"))
		r.put("g/a", "h/b", "h/c")
		r.expect("both fail for good", "0 a, 0 b")
		r.look("1 in_progress, 2 blocking, 1 dead, 2 groups blocked")
		x, _ := r.Find("in")
		if err := r.Edit(r.Context(), x, "a", &wire.InboxEdit{Payload: []byte(`{"g":"g","fixed":true}`)}, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.expect("edited, it is tried again", "0 a")
		r.replies(nil)
		if done := r.act(wire.InboxAct{Action: "retry", Statuses: []string{"blocking"}}); done.Changed != 2 {
			t.Errorf("%+v", done)
		}
		r.expect("retried by status", "0 b, 0 c, 0 a") // who was served last is last
		r.act(wire.InboxAct{Action: "pause"})
		r.put("g/d", "g/e", "g/f")
		if err := r.Edit(r.Context(), x, "d", &wire.InboxEdit{NextDue: new(int64(r.engine.Now().Add(job.Hour)))}, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.act(wire.InboxAct{Action: "delete", Message: "e"})
		r.act(wire.InboxAct{Action: "resume"})
		r.expect("the head is put off", "")
		r.until(3601)
		r.expect("in an hour", "3600 d, 3600 f")
		if done := r.act(wire.InboxAct{Action: "delete", All: true}); done.Changed != 1 { // who was skipped
			t.Errorf("%+v", done)
		}
		list, err := r.engine.Audit.List(r.Context(), job.ID{}, 99)
		if err != nil {
			t.Fatal(err)
		}
		var noted []string
		for _, a := range slices.Backward(list) {
			noted = append(noted, a.Action)
		}
		want := "set inbox, pause, pause, resume, skip, replay edited, retry messages, pause, patch, delete, resume, delete messages"
		if got := strings.Join(noted, ", "); !strings.HasSuffix(got, want) {
			t.Errorf("noted are %s, want %s", got, want)
		}
	})
}

func TestActionsThatMakeNoSenseAreRefused(t *testing.T) {
	scenario(t, atOnce+`"group":{"json":".g"}`, func(r *rig) {
		x, _ := r.Find("in")
		for want, act := range map[string]wire.InboxAct{
			"action must be one of":           {Action: "stop"},
			"leave group, statuses":           {Action: "pause", Message: "m", Group: new("g")},
			"all means the whole inbox":       {Action: "delete", All: true, Types: []string{"t"}},
			`or say "all": true`:              {Action: "delete"},
			"the head of each group":          {Action: "skip"},
			"payload is given to one message": {Action: "edit", InboxEdit: wire.InboxEdit{Payload: []byte(`1`)}},
			"payload is given to one":         {Action: "edit", Types: []string{"t"}, InboxEdit: wire.InboxEdit{Payload: []byte(`1`)}},
			"nothing is to be changed":        {Action: "edit"},
			"next_due must be a date":         {Action: "edit", InboxEdit: wire.InboxEdit{NextDue: new(int64(-1))}},
			"are for the action edit":         {Action: "retry", InboxEdit: wire.InboxEdit{NextDue: new(int64(1))}},
			`group "g" of inbox "in" has no`:  {Action: "edit", Group: new("g"), InboxEdit: wire.InboxEdit{NextDue: new(int64(1))}},
			"not \"gone\"":                    {Action: "edit", Statuses: []string{"gone"}, InboxEdit: wire.InboxEdit{NextDue: new(int64(1))}},
			"statuses must be of":             {Action: "retry", Statuses: []string{"lost"}},
			"is for the retry of one message": {Action: "retry", Group: new("g"), AllowOutOfOrder: true},
			`has no message "m"`:              {Action: "pause", Message: "m"},
			"has no members":                  {Action: "skip", Group: new("g")},
		} {
			if _, err := r.Act(r.Context(), x, &act, job.Actor{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", act, err, want)
			}
		}
		r.put("g/m")
		for want, edit := range map[string]wire.InboxEdit{
			"nothing is to be changed": {},
			"next_due must be a date":  {NextDue: new(int64(-1))},
			"expires_at must be":       {ExpiresAt: new(int64(-1))},
		} {
			if err := r.Edit(r.Context(), x, "m", &edit, job.Actor{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", edit, err, want)
			}
		}
	})
}

func TestExpiredMessagesAreNotDeliveredAndCleanedUp(t *testing.T) {
	scenario(t, byJSON+toHTTP+`"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT10S","pollInterval":"PT10S"},"cleanup":{"pollInitialDelay":"PT1M","pollInterval":"PT1M"}}`, func(r *rig) {
		soon := r.began.Add(5 * time.Second).UTC().Format(time.RFC3339Nano)
		m := Message{Payload: []byte(`{"g":"g"}`)}
		m.put("x-correlate-id", "old")
		m.put("x-correlate-expiration", soon)
		m.seal()
		r.accept("in", m)
		r.put("g/young")
		r.until(11)
		r.expect("the first run", "10 young")
		r.look("1 dead")
		r.message("old", "dead attempts 0 suppressed 0")
		r.until(61)
		r.look("")
	})
}

// What waits behind one that is being delivered is looked at again before it is
// delivered itself.
func TestAPauseHoldsInTheMiddleOfATurn(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
		r.act(wire.InboxAct{Action: "pause"})
		r.put("g/m1", "g/m2")
		r.replies(func(m *connect.Message) connect.Result {
			if m.ID == "m1" {
				if err := r.engine.Desk.PauseGroup(context.Background(), job.Actor{}, "in", "g", true); err != nil {
					t.Error(err)
				}
			}
			return connect.Result{}
		})
		r.act(wire.InboxAct{Action: "resume"})
		r.until(60)
		r.expect("until the pause", "0 m1")
		r.look("1 in_progress, 1 groups paused")
	})
}

func TestWhatTheTargetGivesBackComesLater(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
		r.replies(func(*connect.Message) connect.Result { return connect.Result{Outcome: job.Released} })
		r.put("g/m1", "g/m2")
		r.until(13)
		r.expect("given back without a time", "0 m1, 6 m1, 12 m1")
		r.message("m1", "in_progress attempts 0 suppressed 0")
	})
}

// A batch ends at its first error also where that is the last message of a page, and the
// group goes on without it: the rest is for the next run (inbox.md 3).
func TestAnErrorAtTheEndOfAPageEndsTheBatch(t *testing.T) {
	const settings = byJSON + toHTTP + `"onExhausted":"skip","persistence":{"messageFetchPageSize":2,"messageMaxRetries":1},` +
		`"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`
	scenario(t, settings, func(r *rig) {
		r.replies(failing("m2"))
		r.put("g/m1", "g/m2", "g/m3", "g/m4")
		r.until(6)
		r.expect("the first run", "5 m1, 5 m2")
		r.until(11)
		r.expect("the next one", "10 m3, 10 m4")
	})
}

// A message that is deleted while it is delivered takes nobody along: those behind it in its
// turn are delivered, whatever the target says of it.
func TestAMessageThatIsDeletedWhileItIsDeliveredHoldsNobodyBehindIt(t *testing.T) {
	for name, answer := range map[string]job.Outcome{"delivered": job.OK, "failed": job.Retried, "given back": job.Released} {
		t.Run(name, func(t *testing.T) {
			scenario(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
				r.replies(func(m *connect.Message) connect.Result {
					if m.ID != "m1" {
						return connect.Result{}
					}
					r.act(wire.InboxAct{Action: "delete", Message: "m1"})
					return connect.Result{Outcome: answer}
				})
				r.act(wire.InboxAct{Action: "pause"})
				r.put("g/m1", "g/m2", "g/m3")
				r.act(wire.InboxAct{Action: "resume"})
				r.expect("one turn", "0 m1, 0 m2, 0 m3")
				r.look("")
			})
		})
	}
}

func TestABatchGoesInOneRequestAndIsSettledMessageByMessage(t *testing.T) {
	settings := byJSON + `"deliver":{"http":{"url":"http://target/","send":"batch","concurrent":2}},"persistence":{"messageFetchPageSize":2},"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`
	scenario(t, settings, func(r *rig) {
		r.replies(failing("m4"))
		r.put("g/m1", "g/m2", "g/m3", "g/m4", "g/m5", "h/x")
		r.until(6)
		got := strings.Split(r.arrived(), ", ") // groups side by side
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != "5 m1, 5 m2, 5 m3, 5 m4, 5 x" {
			t.Errorf("%s arrived: a page at a time, to the end of the batch in one run", text)
		}
		r.look("1 in_progress, 1 retrying, 1 groups backing_off")
	})
}

func TestLeasesOfAPolledInboxFollowItsRuns(t *testing.T) {
	scenario(t, `"group":{"json":".g"},"persistence":{"messageBatchSize":1},"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT10S","pollInterval":"PT5S"}}`, func(r *rig) {
		r.put("g/m1", "g/m2", "h/x")
		x, _ := r.Find("in")
		lease := func(wait time.Duration) string {
			t.Helper()
			ctx, cancel := context.WithTimeout(r.Context(), wait)
			defer cancel()
			turn, err := r.Lease(ctx, x, "w", 30*job.Second)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, m := range turn.Messages {
				got += fmt.Sprintf("%v %s/%s ", time.Since(r.began).Truncate(time.Second).Seconds(), turn.Group, m.MessageID)
				id, _ := job.ParseID(m.ID)
				token, err := job.ParseToken(m.Lease)
				if err != nil {
					t.Fatal(err)
				}
				if v, err := r.engine.Settle(r.Context(), []engine.Settle{{ID: id, Token: token, Outcome: job.OK}}); err != nil || v[0].Err != nil {
					t.Fatal(v, err)
				}
			}
			return got
		}
		for _, want := range []string{"10 g/m1 ", "10 h/x ", "15 g/m2 ", ""} {
			if got := lease(time.Minute); got != want {
				t.Errorf("leased is %q, want %q", got, want)
			}
		}
	})
}

// The disk fails when m2 is acknowledged: m2 may come again, and nothing else does.
func TestAnAcknowledgementThatIsLostRepeatsItsMessageOnly(t *testing.T) { // reference 2.6 row 16
	for name, settings := range map[string]string{"fail_first": atOnce, "all": anyway} {
		t.Run(name, func(t *testing.T) {
			scenario(t, settings+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
				broken := false
				r.replies(func(m *connect.Message) connect.Result {
					if m.ID == "m2" && !broken {
						broken = true
						r.store.FailNextCommit(errors.New("the disk is broken"))
					}
					return connect.Result{}
				})
				r.act(wire.InboxAct{Action: "pause"})
				r.put("g/m1", "g/m2", "g/m3")
				r.act(wire.InboxAct{Action: "resume"})
				r.until(60)
				count := map[string]int{}
				for _, text := range strings.Split(r.arrived(), ", ") {
					_, id, _ := strings.Cut(text, " ")
					count[id]++
				}
				if count["m1"] != 1 || count["m2"] < 1 || count["m2"] > 2 || count["m3"] != 1 {
					t.Errorf("arrived are %v", count)
				}
				r.look("")
			})
		})
	}
}

// A stop gives back what no target has answered for, and another life goes on
// where this one was.
func TestAStopBlamesNobodyAndNothingIsLost(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
		begun, end := make(chan struct{}), make(chan struct{})
		r.replies(func(m *connect.Message) connect.Result {
			if m.ID == "m2" {
				close(begun)
				r.mu.Unlock()
				<-end // until the sink is told to stop
				r.mu.Lock()
				return connect.Result{Outcome: job.Released}
			}
			return connect.Result{}
		})
		r.put("g/m1", "g/m2", "g/m3")
		<-begun
		go func() { <-time.After(time.Second); close(end) }() // of the bubble
		r.stop()
		r.expect("before the stop", "0 m1, 0 m2")
		r.replies(nil)
		r.start()
		r.expect("after it", "1 m2, 1 m3")
		r.look("")
	})
}

// preview holds what the settings of the inbox foretell to what happened.
func (r *rig) preview(want string) {
	r.Helper()
	x, err := r.Find("in")
	if err != nil {
		r.Fatal(err)
	}
	tries, err := x.Preview()
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, t := range tries {
		if t.Outcome == wire.TrySuppressed || t.Outcome == wire.TryNoted || t.Outcome == wire.TryExhausted {
			got = append(got, fmt.Sprintf("%d m", job.Millis(t.At)/job.Second))
		}
	}
	if last := tries[len(tries)-1].Outcome; strings.Join(got, ", ") != want || last != wire.TryOver {
		r.Errorf("the preview tells %q, and at last %q; want %q", got, last, want)
	}
}

func TestAPreviewWithoutRunsFollowsTheDueTimes(t *testing.T) {
	s := settings(t, byJSON+`"batch":{"query":"none"},"message":{"timeToLive":"PT10S"},"persistence":{"messageMaxRetries":2}`)
	tries, err := s.Preview()
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, try := range tries {
		got += fmt.Sprintf("%d:%s:%d ", try.At/1000, try.Outcome, try.Next/1000)
	}
	if want := "0:suppressed:6 6:suppressed:12 12:noted:72 72:exhausted:0 72:over:0 "; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
