package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// numbered are jobs 1 to n of a group.
func numbered(n int, order job.Order) (list []*job.Job, ids []job.ID) {
	for i := range n {
		j := &job.Job{ID: job.ID{byte(i + 1)}, Group: "g", Order: order, State: job.Ready}
		list, ids = append(list, j), append(ids, j.ID)
	}
	return list, ids
}

func TestTurnOfIsTheHeadAndWhoMayFollowIt(t *testing.T) { // inbox.md 2 and 3
	for name, c := range map[string]struct {
		edit        func(list []*job.Job)
		waits       string // members that do not want a holder
		strict, all string
	}{
		"all of them":              {func([]*job.Job) {}, "", "1 2 3 4", "1 2 3 4"},
		"one behind waits":         {func([]*job.Job) {}, "3", "1 2", "1 2 4"},
		"one needs another holder": {func(l []*job.Job) { l[1].Requires = []job.Requirement{{Property: "os", Op: "=", Value: "x"}} }, "", "1", "1 3 4"},
		"one must be alone":        {func(l []*job.Job) { l[2].Isolated = true }, "", "1 2", "1 2 4"},
		"the head must be alone":   {func(l []*job.Job) { l[0].Isolated = true }, "", "1", "1"},
		"one waits for a budget":   {func(l []*job.Job) { l[3].Extras = &job.Extras{Budgets: []job.BudgetUse{{Key: "k"}}} }, "", "1 2 3", "1 2 3"},
	} {
		for order, want := range map[job.Order]string{job.OrderStrict: c.strict, job.OrderStart: c.all} {
			list, first := numbered(4, order)
			c.edit(list)
			var wanting []*job.Job
			for i, j := range list {
				if !strings.Contains(c.waits, fmt.Sprint(i+1)) {
					wanting = append(wanting, j)
				}
			}
			var got []string
			for _, j := range TurnOf(wanting, first) {
				got = append(got, fmt.Sprint(j.ID[0]))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, %s: %v, want %q", name, order, got, want)
			}
		}
	}
	if list := TurnOf(nil, nil); list != nil {
		t.Errorf("of nobody: %v", list)
	}
}

func TestMayDeliverLooksAtTheTokenTheTimeAndWhatIsPaused(t *testing.T) { // inbox.md 9 and 10
	token := job.Token{1}
	for name, c := range map[string]struct {
		edit func(q *job.Queue, g *job.Gate, j *job.Job)
		want error
	}{
		"nothing in the way": {func(*job.Queue, *job.Gate, *job.Job) {}, nil},
		"expires later":      {func(_ *job.Queue, _ *job.Gate, j *job.Job) { j.ExpiresAt = 101 }, nil},
		"expires now":        {func(_ *job.Queue, _ *job.Gate, j *job.Job) { j.ExpiresAt = 100 }, ErrExpired},
		"inbox paused":       {func(q *job.Queue, _ *job.Gate, _ *job.Job) { q.Paused = true }, ErrOutOfLine},
		"inbox held":         {func(q *job.Queue, _ *job.Gate, _ *job.Job) { q.HoldUntil = 500 }, ErrOutOfLine},
		"group paused":       {func(_ *job.Queue, g *job.Gate, _ *job.Job) { g.Paused = true }, ErrOutOfLine},
		"group held":         {func(_ *job.Queue, g *job.Gate, _ *job.Job) { g.Hold = 500 }, ErrOutOfLine},
		"group parked":       {func(_ *job.Queue, g *job.Gate, _ *job.Job) { g.Park = "dead/1" }, ErrOutOfLine},
		"message paused":     {func(_ *job.Queue, _ *job.Gate, j *job.Job) { Pause(j) }, ErrOutOfLine},
	} {
		q, g, j := job.NewQueue("in"), &job.Gate{}, &job.Job{State: job.Leased, Leases: []job.Lease{{Token: token}}}
		c.edit(q, g, j)
		if err := MayDeliver(q, g, j, token, 100, true); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if err := MayDeliver(q, nil, j, job.Token{2}, 100, true); job.KindOf(err) != job.Superseded {
			t.Errorf("%s, another token: %v", name, err)
		}
	}
	late := &job.Job{State: job.Leased, ExpiresAt: 50, Leases: []job.Lease{{Token: token}}}
	if err := MayDeliver(job.NewQueue("in"), nil, late, token, 100, false); err != nil { // the clock just stepped
		t.Errorf("expiry does not count now: %v", err)
	}
}

func TestAPausedJobComesBackUnderThePauseOfItsFingerprint(t *testing.T) { // core.md 3
	j := &job.Job{State: job.Ready, Print: 7}
	Pause(j)
	Resume(j, func(p job.Fingerprint) bool { return p == 7 })
	if j.Park != PrintPark(7) {
		t.Errorf("parked as %q", j.Park)
	}
	Resume(j, nil) // is not paused by itself
	if j.Park != PrintPark(7) {
		t.Errorf("parked as %q", j.Park)
	}
}

func TestEveryJobHasOneStatusAndEveryGroupOneCondition(t *testing.T) { // inbox.md, statuses
	for want, j := range map[Status]job.Job{
		StatusWaiting:  {State: job.Scheduled, Suppressed: 3},
		StatusRetrying: {State: job.Scheduled, Attempts: 1},
		StatusPaused:   {State: job.Ready, Attempts: 1, Park: PausePark},
		StatusRunning:  {State: job.Leased, Attempts: 1, Park: PausePark},
		StatusBlocking: {State: job.Dead, BlocksGroup: true},
		StatusDead:     {State: job.Dead},
		StatusDone:     {State: job.Done},
	} {
		if got := StatusOf(&j); got != want {
			t.Errorf("%+v is %s, want %s", j, got, want)
		}
	}
	at := Pos{Seq: 1}
	for want, c := range map[Condition]struct {
		gate job.Gate
		live int
		head job.State
		want bool
	}{
		GroupReady:      {head: job.Ready, want: true},
		GroupRunning:    {gate: job.Gate{Paused: true}, live: 1, head: job.Leased},
		GroupBackingOff: {head: job.Scheduled},
		GroupPaused:     {head: job.Ready},
		GroupBlocked:    {gate: job.Gate{Paused: true}, head: job.Dead},
		GroupAside:      {gate: job.Gate{Park: "dead/1"}, head: job.Dead},
		GroupHeld:       {gate: job.Gate{Hold: 9}, head: job.Ready, want: true},
	} {
		g := Group{Gate: &c.gate, Turns: true, Order: job.OrderStart, Limit: 1, Live: c.live, First: &at}
		if c.want {
			g.Wanting = &at
		}
		if got := ConditionOf(g, c.head); got != want {
			t.Errorf("%+v with a head that is %s: %s, want %s", c.gate, c.head, got, want)
		}
	}
}

func TestGroupsAreGivenOutInTurnsOnlyOneAtATimeAndFairly(t *testing.T) {
	fair := job.Protection{Fair: &job.FairShare{}}
	for name, c := range map[string]struct {
		queue job.Queue
		bad   bool
	}{
		"strict":        {job.Queue{Order: job.OrderStrict, Protection: fair}, false},
		"start, one":    {job.Queue{Order: job.OrderStart, Concurrency: 1, Protection: fair}, false},
		"start, two":    {job.Queue{Order: job.OrderStart, Concurrency: 2, Protection: fair}, true},
		"start, any":    {job.Queue{Order: job.OrderStart, Protection: fair}, true},
		"no order":      {job.Queue{Concurrency: 1, Protection: fair}, true},
		"no fair share": {job.Queue{Order: job.OrderStrict}, true},
	} {
		c.queue.Turns = true
		if err := ChangeQueue(&job.Queue{}, &c.queue, 0); (err != nil) != c.bad {
			t.Errorf("%s: %v", name, err)
		}
	}
}
