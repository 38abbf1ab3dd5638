package rule

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// TestEveryObstacleIsTold has one case for each, and some for several at once.
func TestEveryObstacleIsTold(t *testing.T) { // retry.md section 5
	const now, steady = job.Millis(1_000_000), job.Millis(5_000_000)
	head := &job.Job{ID: job.ID{1}, State: job.Scheduled}
	dead := &job.Job{ID: job.ID{2}, State: job.Dead, BlocksGroup: true}
	throttle := func(state job.BreakerState, forced bool) *job.Throttle {
		return &job.Throttle{State: state, Forced: forced, Until: steady + 30}
	}
	grouped := func(s *Situation) {
		s.Job.Group, s.Gate, s.Head, s.GroupThrottle = "g", &job.Gate{Group: "g"}, s.Job, &job.Throttle{}
	}
	seen := [Obstacles]bool{}
	for name, tt := range map[string]struct {
		edit func(s *Situation)
		want string // obstacle, whose, until from now, limit
	}{
		"it runs":                {func(s *Situation) { s.Job.State = job.Leased }, ""},
		"nothing":                {func(*Situation) {}, "in_line"},
		"not due":                {func(s *Situation) { s.Job.State, s.Job.ReadyAt = job.Scheduled, now+7 }, "not_due +7"},
		"parked":                 {func(s *Situation) { s.Job.Park = "needs/x" }, "parked needs/x"},
		"paused":                 {func(s *Situation) { s.Queue.Paused = true }, "paused"},
		"queue held":             {func(s *Situation) { s.Queue.HoldUntil = now + 9 }, "held +9"},
		"group held":             {func(s *Situation) { grouped(s); s.Gate.Hold = now + 8 }, "held of the group +8"},
		"breaker of the queue":   {func(s *Situation) { s.QueueThrottle = throttle(job.BreakerOpen, false) }, "breaker open +30"},
		"breaker of the group":   {func(s *Situation) { grouped(s); s.GroupThrottle = throttle(job.BreakerHalfOpen, false) }, "breaker of the group half_open"},
		"ramping":                {func(s *Situation) { s.QueueThrottle = throttle(job.BreakerRamping, false) }, "breaker ramping"},
		"forced":                 {func(s *Situation) { s.QueueThrottle = &job.Throttle{State: job.BreakerOpen, Forced: true} }, "breaker open forced"},
		"forced closed":          {func(s *Situation) { s.QueueThrottle = throttle(job.BreakerClosed, true) }, "in_line"},
		"parked with its head":   {func(s *Situation) { grouped(s); s.Gate.Park, s.Blocker = "dead/2", dead }, "group_parked behind 02"},
		"behind a dead head":     {func(s *Situation) { grouped(s); s.Blocker = dead }, "behind_head behind 02"},
		"behind the head":        {func(s *Situation) { grouped(s); s.Queue.Order, s.Head = job.OrderStrict, head }, "behind_head behind 01"},
		"it is the head":         {func(s *Situation) { grouped(s); s.Queue.Order = job.OrderStrict }, "in_line"},
		"no order, another head": {func(s *Situation) { grouped(s); s.Head = head }, "in_line"},
		"limit of the group":     {func(s *Situation) { grouped(s); s.Queue.Concurrency, s.GroupLive = 2, 2 }, "group_limit 2"},
		"below it":               {func(s *Situation) { grouped(s); s.Queue.Concurrency, s.GroupLive = 2, 1 }, "in_line"},
		"limit of the queue":     {func(s *Situation) { s.Queue.Protection.MaxRunning, s.Running = 3, 3 }, "max_running 3"},
		"rate":                   {func(s *Situation) { s.Room.All, s.RoomAgain = 0, steady+5 }, "rate +5"},
		"rate of the group":      {func(s *Situation) { grouped(s); s.GroupThrottle.Slow = steady + 6 }, "rate of the group +6"},
		"budget":                 {func(s *Situation) { s.Job.Attempts, s.Room.Retried, s.RoomAgain = 1, 0, steady+4 }, "retry_budget +4"},
		"budget, a fresh job":    {func(s *Situation) { s.Room.Retried = 0 }, "in_line"},
		"budget, strict":         {func(s *Situation) { s.Job.Attempts, s.Room.Retried, s.Job.Order = 1, 0, job.OrderStrict }, "in_line"},
		"a budget of its own":    {func(s *Situation) { s.Short, s.ShortAgain = &job.Budget{Name: "k", Allocation: 5}, steady+3 }, "budget k 5 +3"},
		"it waits for a budget":  {func(s *Situation) { s.Job.Park, s.Short = "budget/k", &job.Budget{Name: "k", Allocation: 5} }, "budget k 5"},
		"no worker":              {func(s *Situation) { s.Workers, s.Fitting, s.Free = 0, 0, 0 }, "no_worker"},
		"none fits":              {func(s *Situation) { s.Fitting, s.Free = 0, 0 }, "no_fitting_worker"},
		"all are excluded":       {func(s *Situation) { s.Fitting, s.Free, s.Excluded = 0, 0, 2 }, "excluded 2"},
		"some are excluded":      {func(s *Situation) { s.Free, s.Excluded = 0, 2 }, "no_free_worker"},
		"none free":              {func(s *Situation) { s.Free = 0 }, "no_free_worker"},
		"limit of the server":    {func(s *Situation) { s.InFlight, s.InFlightMax, s.Free = 9, 9, 0 }, "max_inflight 9"},
		"behind its tag": {func(s *Situation) {
			s.Job.Park, s.Tag, s.TagHead = AffinityPark("q", "t"), &job.AffinityTag{Session: "q", Tag: "t"}, head
		}, "behind_affinity t behind 01"},
		"kept for its tag": {func(s *Situation) {
			s.Job.Extras = s.Job.WithAffinity(&job.Affinity{Tag: "t", For: []string{"e/1"}})
			s.Tag, s.Free = &job.AffinityTag{Session: "q", Tag: "t", Until: steady + 6}, 0
		}, "affinity t +6"},
		"its tag, and it ran before": {func(s *Situation) {
			s.Job.Extras, s.Job.Deliveries = s.Job.WithAffinity(&job.Affinity{Tag: "t", For: []string{"e/1"}}), 1
			s.Tag = &job.AffinityTag{Session: "q", Tag: "t", Until: steady + 6}
		}, "in_line"},
		"no host for a copy": {func(s *Situation) { s.Job.State, s.NoHost = job.Leased, true }, "no_eligible_host"},
		"no copy":            {func(s *Situation) { s.Job.State, s.CopyBar = job.Leased, "busy" }, "no_copy busy"},
		"several": {func(s *Situation) {
			s.Job.State, s.Job.ReadyAt, s.Queue.Paused, s.Workers = job.Scheduled, now+1, true, 0
			grouped(s)
			s.Gate.Hold = now + 2
		}, "not_due +1, paused, held of the group +2"},
	} {
		s := Situation{
			Moment: Moment{now, steady}, Job: &job.Job{ID: job.ID{9}, State: job.Ready}, Queue: job.NewQueue("q"),
			Room: Room{All: NoLimit, Retried: NoLimit}, Workers: 1, Fitting: 1, Free: 1,
		}
		tt.edit(&s)
		var told []string
		for _, r := range Explain(s) {
			seen[r.Is] = true
			told = append(told, write(r, now))
		}
		if got := strings.Join(told, ", "); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	for o, yes := range seen {
		if !yes {
			t.Errorf("%s was never told", Obstacle(o))
		}
	}
}

func write(r Reason, now job.Millis) string {
	text := r.Is.String()
	if r.Group {
		text += " of the group"
	}
	if r.Is == BreakerShut {
		text += " " + r.State.String()
	}
	if r.Forced {
		text += " forced"
	}
	if r.Label != "" {
		text += " " + r.Label
	}
	if r.Head != nil {
		text += fmt.Sprintf(" behind %02x", r.Head.ID[0])
	}
	if r.Limit != 0 {
		text += fmt.Sprint(" ", r.Limit)
	}
	if r.Until != 0 {
		text += fmt.Sprintf(" +%d", r.Until-now)
	}
	return text
}

func TestAWaitIsExplainedByWhoChoseItAndWhereThatIsFrom(t *testing.T) { // retry.md section 5
	server := DefaultServer()
	curve := func(d job.Millis) *job.Curve { return &job.Curve{Kind: job.CurveConstant, Delay: d} }
	failed := func(by job.WaitBy, rule uint8) *job.Job {
		return &job.Job{
			State: job.Scheduled, Attempts: 1, FailedAt: 1000, ReadyAt: 1000 + 15_000, LastDelay: 15_000, Wait: job.Wait{By: by, Rule: rule},
		}
	}
	queue, rules := job.NewQueue("q"), job.NewQueue("q")
	queue.Retry.Curve = curve(8)
	// Both rules with a curve would draw the same: only the job knows which did.
	rules.Retry.Rules = &job.Rules{{Do: job.DoDead}, {Do: job.DoRetry, Curve: curve(15_000)}, {Do: job.DoRetry, Curve: curve(15_000)}, {Do: job.DoHold}}
	own := failed(job.WaitCurve, 0)
	own.Retry = &job.Retry{Curve: curve(7)}
	uncharged := failed(job.WaitRule, 4)
	uncharged.Attempts = 0
	for name, tt := range map[string]struct {
		j    *job.Job
		q    *job.Queue
		want string
	}{
		"server":             {failed(job.WaitCurve, 0), job.NewQueue("q"), "curve 1: polynomial of server, 15000 of 15000..15000, waits 15000"},
		"queue, changed":     {failed(job.WaitCurve, 0), queue, "curve 1: constant of queue, 15000 of 8..8, waits 15000 changed"},
		"job, changed":       {own, queue, "curve 1: constant of job, 15000 of 7..7, waits 15000 changed"},
		"second rule":        {failed(job.WaitCurve, 2), rules, "curve 1: constant of queue, 15000 of 15000..15000, waits 15000 rule 2 own"},
		"third rule":         {failed(job.WaitCurve, 3), rules, "curve 1: constant of queue, 15000 of 15000..15000, waits 15000 rule 3 own"},
		"no rule":            {failed(job.WaitCurve, 0), rules, "curve 1: polynomial of server, 15000 of 15000..15000, waits 15000"},
		"a rule holds":       {failed(job.WaitHold, 4), rules, "hold 1: polynomial of server, 0 of 15000..15000, waits 15000 rule 4"},
		"a rule that left":   {failed(job.WaitCurve, 9), rules, "curve 1: polynomial of server, 15000 of 15000..15000, waits 15000 rule 9"},
		"given back":         {uncharged, rules, "rule 0: polynomial of server, 0 of 15000..15000, waits 15000 rule 4"},
		"the worker's time":  {failed(job.WaitWorker, 0), queue, "worker 1: constant of queue, 0 of 8..8, waits 15000"},
		"the target's time":  {failed(job.WaitTarget, 0), queue, "target 1: constant of queue, 0 of 8..8, waits 15000"},
		"inside a grace":     {failed(job.WaitGrace, 0), queue, "grace 1: constant of queue, 0 of 8..8, waits 15000"},
		"its own first date": {&job.Job{State: job.Scheduled, ReadyAt: 5}, queue, ""},
		"a date of a patch":  {failed(job.WaitNobody, 0), queue, ""},
		"ready":              {&job.Job{State: job.Ready, Attempts: 1, FailedAt: 1, ReadyAt: 1, Wait: job.Wait{By: job.WaitCurve}}, queue, ""},
	} {
		p := EffectivePolicy(tt.j, tt.q, &server)
		w, ok := ExplainRetry(tt.j, &p)
		got := fmt.Sprintf("%s %d: %s of %s, %d of %d..%d, waits %d", w.By, w.Number, w.Curve.Kind, w.From, w.Drew, w.Min, w.Max, w.Waits)
		if w.Changed() {
			got += " changed"
		}
		if w.Rule > 0 {
			got += fmt.Sprint(" rule ", w.Rule)
		}
		if w.Ruled {
			got += " own"
		}
		if !ok {
			got = ""
		}
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}
