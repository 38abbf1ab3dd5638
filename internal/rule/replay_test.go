package rule

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestASelectionIsOrInsideAFieldAndAndBetweenThem(t *testing.T) {
	j := &job.Job{
		ID: job.ID{1}, Queue: "mail", Type: "welcome", Group: "acme", State: job.Dead, Reason: job.Exhausted,
		Print: 7, DiedAt: 100, Attempts: 3,
	}
	f := &job.Failure{Type: "Timeout", Message: "No answer from Host"}
	for _, tt := range []struct {
		s    job.Selection
		want bool
	}{
		{job.Selection{}, true},
		{job.Selection{IDs: []job.ID{{2}, {1}}}, true},
		{job.Selection{IDs: []job.ID{{2}}}, false},
		{job.Selection{Queues: []string{"x", "mail"}, Types: []string{"welcome"}, Groups: []string{"acme"}}, true},
		{job.Selection{Queues: []string{"mail"}, Types: []string{"x"}}, false},
		{job.Selection{Groups: []string{""}}, false},
		{job.Selection{Reasons: []job.Reason{job.Lost, job.Exhausted}, Prints: []job.Fingerprint{7}}, true},
		{job.Selection{Reasons: []job.Reason{job.Lost}}, false},
		{job.Selection{Prints: []job.Fingerprint{8}}, false},
		{job.Selection{ErrorTypes: []string{"Timeout"}, Text: "ANSWER from"}, true},
		{job.Selection{ErrorTypes: []string{"timeout"}}, false},
		{job.Selection{Text: "nobody"}, false},
		{job.Selection{DiedFrom: 100, DiedBefore: 101}, true},
		{job.Selection{DiedFrom: 101}, false},
		{job.Selection{DiedBefore: 100}, false},
		{job.Selection{AttemptsFrom: 3, AttemptsBelow: 4}, true},
		{job.Selection{AttemptsFrom: 4}, false},
		{job.Selection{AttemptsBelow: 3}, false},
	} {
		if got := Selects(&tt.s, j, f); got != tt.want {
			t.Errorf("%+v: %t", tt.s, got)
		}
	}
	alive := *j
	alive.State = job.Ready
	if Selects(&job.Selection{}, &alive, f) {
		t.Error("a job that is not dead is selected")
	}
	if Selects(&job.Selection{Text: "x"}, j, nil) {
		t.Error("a job that never failed is selected by its message")
	}
}

// drive runs a replay on paper: from one step to the next it wants, each so
// much too late.
func drive(r *job.Replay, now, until job.Millis, late func() job.Millis) job.Millis {
	for ; now <= until; now = r.Next + late() {
		n, paced := Pace(r, now, 500)
		r.Done, r.Paced, r.At = r.Done+n, paced, now
		r.Next = NextStep(r, now)
	}
	return now
}

func TestAReplayKeepsItsRateHoweverLateItsStepsCome(t *testing.T) { // retry.md section 3
	for _, rate := range []float64{0.05, 0.5, 3, 90, 5000, 20_000} {
		for _, ramp := range []job.Millis{0, 7 * job.Second} {
			dice := rand.New(rand.NewPCG(1, 2))
			r := &job.Replay{Rate: rate, Ramp: ramp, At: dawn, Next: dawn}
			const span = 400 * job.Second
			last := int64(0)
			for at := dawn; at < dawn+span; {
				at = drive(r, at, at+job.Second, func() job.Millis { return job.Millis(dice.IntN(20)) })
				if most := rate*2 + 2; float64(r.Done-last) > most {
					t.Fatalf("rate %g, ramp %s: %d in a step of a second", rate, ramp, r.Done-last)
				}
				last = r.Done
			}
			want := rate * (float64(r.At-dawn)/1000 - float64(ramp)/2000)
			if got := float64(r.Done); got > want || got < want*0.999-1 {
				t.Errorf("rate %g, ramp %s: %g, want %g", rate, ramp, got, want)
			}
		}
	}
}

func TestAReplayDoesNotMakeUpForAStop(t *testing.T) {
	r := &job.Replay{Rate: 100, At: dawn, Next: dawn}
	soon := func() job.Millis { return 0 }
	now := drive(r, dawn, dawn+10*job.Second, soon)
	before := r.Done
	if n, _ := Pace(r, now+job.Hour, 1<<40); n > 110 { // what a second owes, and a step
		t.Errorf("after an hour's stop it may touch %d at once", n)
	}
	drive(r, now+job.Hour, now+job.Hour+10*job.Second, soon)
	if got := r.Done - before; got < 1000 || got > 1110 {
		t.Errorf("in the 10 s after the stop it touched %d", got)
	}
	if n, paced := Pace(r, r.At-job.Hour, 500); n != 0 || paced != r.Paced {
		t.Errorf("a clock that goes back gives %d, and moves the pace by %d", n, paced-r.Paced)
	}
}

func TestWithoutARateAReplayGoesAsFastAsItsStepsAllow(t *testing.T) {
	r := &job.Replay{At: dawn, Next: dawn}
	if n, _ := Pace(r, dawn, 500); n != 500 {
		t.Errorf("it may touch %d of 500", n)
	}
	if NextStep(r, dawn) != dawn {
		t.Error("its next step is not at once")
	}
}

func TestAReplayedJobKeepsItsPlaceInAnOrderedGroup(t *testing.T) { // retry.md section 3
	r := &job.Replay{Place: job.PlaceFront}
	for _, tt := range []struct {
		group string
		order job.Order
		want  job.Place
	}{
		{"", job.OrderNone, job.PlaceFront},
		{"g", job.OrderNone, job.PlaceFront},
		{"g", job.OrderStart, job.PlaceKeep},
		{"g", job.OrderStrict, job.PlaceKeep},
	} {
		if got := ReplayPlace(r, &job.Job{Group: tt.group, Order: tt.order}); got != tt.want {
			t.Errorf("group %q, order %s: %s", tt.group, tt.order, got)
		}
	}
}

func TestAJobOfAPausedFingerprintIsHeldInsteadOfRetried(t *testing.T) { // retry.md section 3
	f := job.Failure{Type: "E", Message: "boom"}
	paused := Fingerprint(&f)
	w := newWorld(t)
	w.server.Retry.Curve = &job.Curve{Kind: job.CurveConstant, Delay: 50}
	fail := func(name string, f job.Failure) *job.Job {
		w.do(name, Command{Verb: Take, Lease: &job.Lease{Token: job.NewToken(1, w.random), Holder: "h"}})
		return w.do(name, Command{Verb: SettleRetry, Failure: f})
	}
	w.put("before")
	fail("before", f)
	w.paused = func(p job.Fingerprint) bool { return p == paused }
	w.put("now")
	if j := fail("now", f); j.Park != PrintPark(paused) || j.State != job.Scheduled {
		t.Errorf("it failed of it: park %q, %s", j.Park, j.State)
	}
	w.tick(50)
	if j := w.do("before", Command{Verb: Promote}); j.Park != PrintPark(paused) || EntriesOf(j).Wants {
		t.Errorf("it was waiting for its retry: park %q", j.Park)
	}
	w.put("other")
	if j := fail("other", job.Failure{Type: "F"}); j.Park != "" {
		t.Errorf("it failed of something else: park %q", j.Park)
	}
	if want := fmt.Sprintf("fingerprint/%s", paused); PrintPark(paused) != want {
		t.Error(PrintPark(paused))
	}
}
