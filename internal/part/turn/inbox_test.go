package turn_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// polled is an inbox whose runs are so far apart, in seconds; what failed inside its
// time to live is due at the next one.
func polled(mode func(*job.Queue)) func(*job.Queue) {
	return func(q *job.Queue) {
		mode(q)
		q.GraceDelay = 1
	}
}

// run is one run of a polled inbox, in which the messages that fails names fail and
// the others are done. It returns what was tried, in order.
func (r *rig) run(members int, fails string) (tried []string) {
	r.Helper()
	round, err := r.Part.Turns.Round(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	o := turn.Options{Members: members, Local: true, Before: round}
	for turns := r.TurnsNow(o); len(turns) > 0; turns = r.TurnsNow(o) {
		for _, d := range turns[0].Deliveries {
			err := r.Part.Turns.MayDeliver(r.Context(), d.Job.ID, d.Lease.Token)
			switch {
			case job.KindOf(err) == job.WrongState:
				r.Settled(d, job.Released)
				continue
			case err != nil: // the turn was cut
				continue
			}
			name := r.Names[d.Job.ID]
			tried = append(tried, name)
			o := job.OK
			if slices.Contains(strings.Fields(fails), name) {
				o = job.Retried
			}
			r.Settled(d, o)
		}
	}
	return tried
}

func (r *rig) runs(fails, want string) {
	r.Helper()
	if got := strings.Join(r.run(-1, fails), " "); got != want {
		r.Fatalf("a run tried %q, want %q", got, want)
	}
}

type vectors struct {
	Cases []struct {
		Name           string
		TTL            *job.Millis
		Poll           job.Millis
		FirstPoll      job.Millis `json:"first_poll"`
		Base           float64
		CapMinutes     job.Millis `json:"cap_minutes"`
		Max            uint32
		CapApplies     string
		Suppressed     []job.Millis
		Noted          []job.Millis
		NotPickedAfter job.Millis `json:"not_picked_after"`
	}
	Groups []struct {
		Name, Mode string
		Members    [][2]string
		Tried      []string
	}
}

func inboxVectors(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors/inbox.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || len(v.Cases) != 5 || len(v.Groups) != 5 {
		t.Fatalf("%d cases, %d groups, %v", len(v.Cases), len(v.Groups), err)
	}
	return v
}

func TestTheVectorsOfTheInbox(t *testing.T) { // vectors/inbox.json, inbox.md 7 and 8
	for _, c := range inboxVectors(t).Cases {
		for name, mode := range bothModes {
			t.Run(c.Name+", "+name, func(t *testing.T) {
				scenario(t, func(r *rig) {
					r.SetQueue("in", polled(func(q *job.Queue) {
						mode(q)
						limit := c.CapMinutes * job.Minute
						q.Retry.Limit = job.LimitOf(c.Max - 1)
						q.Retry.Curve = &job.Curve{Kind: job.CurveExponential, Unit: job.Minute, Factor: c.Base, Cap: limit}
						if c.CapApplies == "age" {
							q.Retry.Curve.Cap, q.AgeCap = 0, limit
						}
					}))
					born := r.Clock.Wall()
					r.Member("a1", func(n *engine.NewJob) {
						if c.TTL != nil {
							n.Job.GraceUntil = born + *c.TTL*job.Second
						}
					})
					var suppressed, noted []job.Millis
					for at := c.FirstPoll; at <= c.NotPickedAfter+10_000; at += c.Poll {
						r.Pass(born + at*job.Second - r.Clock.Wall())
						before := r.Job("a1").Attempts
						switch tried := r.run(-1, "a1"); {
						case len(tried) == 0:
						case r.Job("a1").Attempts > before:
							noted = append(noted, at)
						default:
							suppressed = append(suppressed, at)
						}
					}
					if !slices.Equal(suppressed, c.Suppressed) || !slices.Equal(noted, c.Noted) {
						r.Errorf("suppressed %v, noted %v; want %v and %v", suppressed, noted, c.Suppressed, c.Noted)
					}
					if j := r.Expect("a1", job.Dead); !j.BlocksGroup || j.Reason != job.Exhausted {
						r.Errorf("it ended as %+v", j)
					}
				})
			})
		}
	}
}

// member is a message and what happened to it already.
type member struct {
	name     string
	attempts uint32     // noted errors
	due      job.Millis // after them, seconds from now
	grace    bool       // inside its time to live
	paused   bool
	dead     bool // exhausted
}

// brings puts members into one group with what happened to them already.
func (r *rig) brings(list []member) {
	r.Helper()
	for _, m := range list {
		r.Add("in", m.name, grouped("g"))
	}
	for _, turn := range r.TurnsNow(whole) {
		for i, d := range turn.Deliveries {
			r.Settled(d, map[bool]job.Outcome{true: job.Died, false: job.Released}[list[i].dead])
		}
	}
	for _, m := range list {
		if m.dead {
			continue
		}
		r.Operate(m.name, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) {
			j.Attempts = m.attempts
			if m.attempts > 0 {
				j.ReadyAt = r.Clock.Wall() + m.due*job.Second
			}
			if m.grace {
				j.GraceUntil = r.Clock.Wall() + job.Hour
			}
			if m.paused {
				rule.Pause(j)
			}
		}})
	}
}

func TestTheGroupVectorsOfTheInbox(t *testing.T) { // vectors/inbox.json, inbox.md 2
	for _, c := range inboxVectors(t).Groups {
		t.Run(c.Name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				r.SetQueue("in", polled(bothModes[c.Mode]))
				var list []member
				for _, m := range c.Members {
					list = append(list, member{
						name: m[0], grace: strings.Contains(m[1], "inside ttl"),
						attempts: map[bool]uint32{true: 1}[strings.HasPrefix(m[1], "failed")], due: 100,
					})
				}
				r.brings(list)
				if got := r.run(-1, "m1"); !slices.Equal(got, c.Tried) {
					r.Errorf("tried %v, want %v", got, c.Tried)
				}
			})
		})
	}
}

// Reference 2.2 with our decisions: the head alone decides, whatever the others are.
func TestWhichGroupsAreVisited(t *testing.T) { // inbox.md 2, reference 2.2
	for name, c := range map[string]struct {
		members []member
		tried   [2]string // in mode fail_first, in mode all
	}{
		"A fresh":                    {[]member{{name: "m1"}, {name: "m2"}}, [2]string{"m1 m2", "m1 m2"}},
		"B head not due":             {[]member{{name: "m1", attempts: 1, due: 100}, {name: "m2"}}, [2]string{}},
		"C head due":                 {[]member{{name: "m1", attempts: 1}, {name: "m2"}}, [2]string{"m1 m2", "m1 m2"}},
		"D head not due, tail due":   {[]member{{name: "m1", attempts: 1, due: 100}, {name: "m2", attempts: 2, due: -10}}, [2]string{}},
		"E head before its last try": {[]member{{name: "m1", attempts: 4, due: -10}, {name: "m2"}}, [2]string{"m1 m2", "m1 m2"}},
		"F exhausted head":           {[]member{{name: "m1", dead: true}, {name: "m2"}}, [2]string{}},
		"G exhausted tail":           {[]member{{name: "m1"}, {name: "m2", dead: true}, {name: "m3"}}, [2]string{"-", "m1 m3"}},
		"H fresh head paused":        {[]member{{name: "m1", paused: true}}, [2]string{}},
		"I fresh head paused":        {[]member{{name: "m1", paused: true}, {name: "m2"}}, [2]string{}},
		"J failed head paused":       {[]member{{name: "m1", attempts: 2, paused: true}, {name: "m2"}}, [2]string{}},
		"K paused head, tail due":    {[]member{{name: "m1", attempts: 2, paused: true}, {name: "m2", attempts: 1, due: -10}}, [2]string{}},
		"M retried at once":          {[]member{{name: "m1", attempts: 0, due: 500}, {name: "m2"}}, [2]string{"m1 m2", "m1 m2"}},
		"N fresh head, tail not due": {[]member{{name: "m1"}, {name: "m2", attempts: 1, due: 500}, {name: "m3"}}, [2]string{"m1", "m1 m3"}},
		"paused behind a fresh head": {[]member{{name: "m1"}, {name: "m2", paused: true}, {name: "m3"}}, [2]string{"m1", "m1 m3"}},
	} {
		for at, mode := range []func(*job.Queue){failFirst, toTheEnd} {
			if c.tried[at] == "-" { // in a strict group only the head dies
				continue
			}
			t.Run(name, func(t *testing.T) {
				scenario(t, func(r *rig) {
					r.SetQueue("in", polled(func(q *job.Queue) { mode(q); q.Retry.Limit = job.LimitOf(4) }))
					r.brings(c.members)
					r.Pass(0)
					r.runs("", c.tried[at])
				})
			})
		}
	}
}

func TestAnExhaustedHeadBlocksIsSkippedOrParksItsGroup(t *testing.T) { // inbox.md 7
	for onDead, after := range map[job.OnDead]string{job.DeadBlock: "", job.DeadSkip: "a2 a3", job.DeadPark: ""} {
		inbox(t, bothModes, func(r *rig) {
			r.SetQueue("in", func(q *job.Queue) { q.OnDead, q.Retry.Limit, q.GraceDelay = onDead, job.LimitOf(0), 1 })
			r.Members("a1", "a2", "b1")
			if got := r.run(1, "a1"); !slices.Equal(got, []string{"a1", "b1"}) {
				r.Fatalf("tried %v", got)
			}
			r.Members("a3")
			r.runs("", after)
			if after != "" {
				return
			}
			is := map[job.OnDead]rule.Condition{job.DeadBlock: rule.GroupBlocked, job.DeadPark: rule.GroupAside}[onDead]
			list, err := r.Part.Turns.Groups(r.Context(), "in", []rule.Condition{is}, "", 9)
			if err != nil || len(list) != 1 || list[0].Group != "a" || list[0].Members != 3 || list[0].Head.ID != r.IDs["a1"] {
				r.Errorf("%s: %+v, %v", is, list, err)
			}
			r.Operate("a1", revive) // replayed together, in order
			r.runs("", "a1 a2 a3")
			if s := r.Stats(); s.OutOfOrder != 0 {
				r.Errorf("%d out of order", s.OutOfOrder)
			}
		})
	}
}

func TestAnExhaustedMemberBehindTheHeadIsSkippedUntilItIsTheHead(t *testing.T) { // inbox.md 2 and 7
	for _, onDead := range []job.OnDead{job.DeadBlock, job.DeadPark} {
		scenario(t, func(r *rig) {
			r.SetQueue("in", polled(toTheEnd))
			r.SetQueue("in", func(q *job.Queue) { q.OnDead, q.Retry.Limit = onDead, job.LimitOf(1) })
			r.Members("a1", "a2", "a3")
			held := r.Took(whole, "a: a1 a2 a3")
			r.Settled(held["a1"], job.Retried)
			r.Settled(held["a2"], job.Died)
			r.Settled(held["a3"], job.OK)
			r.Members("a4")
			r.Pass(10 * job.Second)
			r.runs("", "a1 a4")
			r.Members("a5")
			r.runs("", "")
		})
	}
}

func TestExpiryIsLookedAtBeforeEachDeliveryAndNeverBlocks(t *testing.T) { // inbox.md 9
	inbox(t, bothModes, func(r *rig) {
		soon := func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + 10*job.Second }
		r.Member("a1", soon)
		r.Members("a2")
		r.Pass(10 * job.Second) // swept while it waited
		r.Expect("a1", job.Dead)
		r.runs("", "a2")
		r.Members("b1")
		r.Member("b2", soon)
		r.Members("b3")
		held := r.Took(whole, "b: b1 b2 b3")
		r.Settled(held["b1"], job.OK)
		if err := r.Part.Turns.MayDeliver(r.Context(), r.IDs["b2"], held["b2"].Lease.Token); err != nil {
			r.Errorf("in time: %v", err)
		}
		r.Pass(10 * job.Second)
		if err := r.Part.Turns.MayDeliver(r.Context(), r.IDs["b2"], held["b2"].Lease.Token); !errors.Is(err, turn.ErrExpired) {
			r.Errorf("expired: %v", err)
		}
		r.Settled(held["b2"], job.Released)
		if j := r.Expect("b2", job.Dead); j.Reason != job.Expired || j.BlocksGroup {
			r.Errorf("b2 ended as %+v", j)
		}
		r.Settled(held["b3"], job.OK) // the turn goes on
		if s := r.Stats(); s.Expired != 2 {
			r.Errorf("%d expired", s.Expired)
		}
	})
	inbox(t, bothModes, func(r *rig) { // an exhausted head holds its group until it expires
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(0) })
		r.Member("a1", func(n *engine.NewJob) { n.Job.ExpiresAt = r.Clock.Wall() + job.Minute })
		r.Members("a2")
		r.Settled(r.Took(whole, "a: a1 a2")["a1"], job.Retried)
		r.Expect("a1", job.Dead)
		r.Pass(job.Minute - 1)
		r.Expect("a1", job.Dead)
		r.Pass(1)
		r.Expect("a1", job.None)
	})
}

func TestPauseIsAlwaysEffectiveAndKeepsTheDueTime(t *testing.T) { // inbox.md 10
	by := job.Actor{Name: "ann"}
	inbox(t, bothModes, func(r *rig) {
		must := func(v engine.Verdict, err error) {
			r.Helper()
			if err != nil || v.Err != nil {
				r.Fatal(err, v.Err)
			}
		}
		r.Members("a1", "a2", "b1")
		must(r.Part.Desk.Do(r.Context(), by, desk.Pause, r.IDs["a1"]))
		r.Settled(r.Took(whole, "b: b1")["b1"], job.OK)
		must(r.Part.Desk.Do(r.Context(), by, desk.Resume, r.IDs["a1"]))
		held := r.Took(whole, "a: a1 a2")
		must(r.Part.Desk.Do(r.Context(), by, desk.Pause, r.IDs["a2"])) // in a turn, not yet delivered
		if err := r.Part.Turns.MayDeliver(r.Context(), r.IDs["a2"], held["a2"].Lease.Token); !errors.Is(err, turn.ErrOutOfLine) {
			r.Errorf("a paused member may be delivered: %v", err)
		}
		r.Settled(held["a1"], job.Retried)
		due := r.Job("a1").ReadyAt
		must(r.Part.Desk.Do(r.Context(), by, desk.Pause, r.IDs["a1"]))
		r.Pass(job.Minute)
		r.runs("", "")
		must(r.Part.Desk.Do(r.Context(), by, desk.Resume, r.IDs["a1"]))
		if j := r.Job("a1"); j.ReadyAt != due || j.Attempts != 1 {
			r.Errorf("due at %d, was %d", j.ReadyAt, due)
		}
	})
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "b1")
		if err := r.Part.Desk.PauseGroup(r.Context(), by, "in", "a", true); err != nil {
			r.Fatal(err)
		}
		r.Members("a2", "b2")
		b := r.Took(whole, "b: b1 b2")
		r.Settled(b["b1"], job.OK)
		r.Settled(b["b2"], job.OK)
		list, err := r.Part.Turns.Groups(r.Context(), "in", nil, "", 9)
		if err != nil || len(list) != 1 || list[0].Is != rule.GroupPaused || !list[0].Gate.Paused {
			r.Errorf("%+v, %v", list, err)
		}
		if err := r.Part.Desk.PauseGroup(r.Context(), by, "in", "a", false); err != nil {
			r.Fatal(err)
		}
		r.runs("", "a1 a2")
		audits, err := r.Part.Audit.List(r.Context(), job.ID{}, 9)
		if err != nil || len(audits) != 2 || audits[0].Action != "resume" || audits[1].Action != "pause" || audits[1].By.Name != "ann" {
			r.Errorf("audited %+v, %v", audits, err)
		}
	})
}

func TestRetryNowAndSkipTheHead(t *testing.T) { // inbox.md 10
	by := job.Actor{Name: "ann"}
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(1) })
		r.Members("a1", "a2")
		r.Settled(r.Took(turn.Options{}, "a: a1")["a1"], job.Retried)
		if v, err := r.Part.Desk.DoHead(r.Context(), by, desk.RetryNow, "in", "a"); err != nil || v.State != job.Ready || v.Job.Attempts != 1 {
			r.Fatalf("%+v, %v", v, err)
		}
		r.Settled(r.Took(turn.Options{}, "a: a1")["a1"], job.Retried)
		r.Took(whole, "")
		if v, err := r.Part.Desk.DoHead(r.Context(), by, desk.Skip, "in", "a"); err != nil || v.State != job.Dead || v.Job.Reason != job.Exhausted || v.Job.BlocksGroup || v.Job.Attempts != 2 {
			r.Fatalf("%+v, %v", v, err)
		}
		if v, err := r.Part.Desk.DoHead(r.Context(), by, desk.Skip, "in", "a"); err != nil || v.State != job.Dead || v.Job.ID != r.IDs["a2"] {
			r.Fatalf("%+v, %v", v, err)
		}
		if _, err := r.Part.Desk.DoHead(r.Context(), by, desk.Skip, "in", "a"); job.KindOf(err) != job.NotFound {
			r.Errorf("an empty group: %v", err)
		}
		if audits, err := r.Part.Audit.List(r.Context(), job.ID{}, 9); err != nil || len(audits) != 3 {
			r.Errorf("audited %d, %v", len(audits), err)
		}
	})
}

func TestMembersStandByTheirRank(t *testing.T) { // inbox.md, sort; core.md 2, I7
	ranked := func(n int64) func(*engine.NewJob) {
		return func(j *engine.NewJob) { j.Job.Ranked, j.Job.Rank = true, n }
	}
	inbox(t, bothModes, func(r *rig) {
		r.Member("a3", ranked(30))
		r.Member("a1", ranked(-10))
		r.Member("a2", ranked(20))
		held := r.Took(turn.Options{Members: 2}, "a: a1 a2")
		r.Member("a0", ranked(-20))
		r.Settled(held["a1"], job.OK)
		r.Settled(held["a2"], job.OK)
		r.runs("", "a0 a3") // late, and in its place among those waiting
		want := uint64(0)
		if r.Job("a3").Order == job.OrderStrict {
			want = 1
		}
		if s := r.Stats(); s.OutOfOrder != want {
			r.Errorf("%d out of order, want %d", s.OutOfOrder, want)
		}
	})
}

func TestCountsPartitionTheTotal(t *testing.T) { // inbox.md, statuses and counts
	inbox(t, bothModes, func(r *rig) {
		r.SetQueue("in", func(q *job.Queue) { q.Retry.Limit = job.LimitOf(1) })
		r.Members("a1", "b1", "c1", "d1", "e1", "e2", "f1")
		held := r.Took(whole, "a: a1; b: b1; c: c1; d: d1; e: e1 e2; f: f1")
		r.Settled(held["a1"], job.Retried)
		r.Settled(held["b1"], job.Died)
		r.Settled(held["c1"], job.Released)
		r.Settled(held["d1"], job.OK)
		r.Settled(held["f1"], job.Released)
		if _, err := r.Part.Desk.Do(r.Context(), job.Actor{}, desk.Pause, r.IDs["f1"]); err != nil {
			r.Fatal(err)
		}
		_, d, err := r.Queue(r.Context(), "in")
		if err != nil {
			r.Fatal(err)
		}
		statuses := [rule.Statuses]int64{
			rule.StatusWaiting: 1, rule.StatusRetrying: 1, rule.StatusPaused: 1, rule.StatusRunning: 2, rule.StatusBlocking: 1, rule.StatusDone: 1,
		}
		groups := [rule.Conditions]int64{
			rule.GroupReady: 1, rule.GroupRunning: 1, rule.GroupBackingOff: 1, rule.GroupPaused: 1, rule.GroupBlocked: 1,
		}
		if d.Status != statuses || d.Groups != groups {
			r.Errorf("%v and %v, want %v and %v", d.Status, d.Groups, statuses, groups)
		}
		total := int64(0)
		for _, n := range d.States {
			total += n
		}
		if list, err := r.List(r.Context(), store.Filter{Queues: []string{"in"}}, 99); err != nil || int64(len(list)) != total {
			r.Errorf("%d listed, %d counted, %v", len(list), total, err)
		}
	})
}

func TestAWaitingMessageIsExplained(t *testing.T) { // retry.md 5
	why := func(r *rig, name string) (out []string) {
		r.Helper()
		x, err := r.Explain(r.Context(), r.IDs[name])
		if err != nil {
			r.Fatal(err)
		}
		for _, reason := range x.Reasons {
			out = append(out, reason.Is.String())
		}
		return out
	}
	inbox(t, bothModes, func(r *rig) {
		r.Members("a1", "a2", "b1")
		r.Settled(r.Took(turn.Options{}, "a: a1")["a1"], job.Retried)
		if got := why(r, "a2"); !slices.Equal(got, []string{"behind_head"}) {
			r.Errorf("a2 behind a head that is not due: %v", got)
		}
		if err := r.Part.Desk.PauseGroup(r.Context(), job.Actor{}, "in", "b", true); err != nil {
			r.Fatal(err)
		}
		if got := why(r, "b1"); !slices.Equal(got, []string{"paused"}) {
			r.Errorf("b1 in a paused group: %v", got)
		}
	})
}
