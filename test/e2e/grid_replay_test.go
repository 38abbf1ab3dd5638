package e2e

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	grid "github.com/reprisehq/reprise/client"
	"github.com/reprisehq/reprise/wire"
)

// replay is what a task comes to by its history, reckoned from the attempts that
// the server tells of and from nothing else. The session has the profile seed:
// losses are retries.
type replay struct {
	retries, evictions, copies, results uint32
	long                                uint32         // runs that took longer than they may, about
	ends                                map[string]int // by reason
}

// dateBlur is how far the dates of a run may be from how long it took: they are
// of the wall clock, the time limit is not.
const dateBlur = 50 * time.Millisecond

// follow reckons the history of one task, and says what in it cannot have
// happened.
func follow(t *wire.TaskState) (r replay, wrong []string) {
	r.ends = map[string]int{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if t.LeftOut > 0 {
		say("%d attempts are not told", t.LeftOut)
	}
	last := int64(0) // the latest end, of attempts one after the other
	numbers := map[uint32]bool{}
	for _, a := range t.Attempts {
		if r.ends[a.Reason]++; r.results > 0 && a.Reason != wire.EndedSuperseded {
			say("attempt %d ended after the result came", a.Number)
		}
		if a.Number > 0 && numbers[a.Number] {
			say("two attempts have the number %d", a.Number)
		}
		numbers[a.Number] = true
		// One that was given ahead has its limit from when its engine has a slot for it.
		if a.EndedAt-cmp.Or(a.StartedAt, a.SinceAt) >= (taskMaxTime - dateBlur).Milliseconds() {
			r.long++
		}
		if a.Copy {
			r.copies++
		} else if a.Number > 0 && r.copies == 0 && a.SinceAt < last {
			say("attempt %d began before the one before it had ended", a.Number)
		}
		switch a.Reason {
		case wire.EndedOK:
			r.results++
		case wire.EndedLate: // it was given up for lost; by a start of the server that cost nothing
			r.results++
			if a.Charged != "" {
				r.retries++
			}
		case wire.EndedError, wire.EndedLost, wire.EndedTimeout:
			r.retries++
		case wire.EndedReleased, wire.EndedEvicted, wire.EndedPreempted, wire.EndedWithdrawn:
			r.evictions++
		case wire.EndedUndelivered: // for its engine did not know of it, or did not begin it
			if a.Charged != "" {
				r.evictions++
			}
		case wire.EndedSuperseded, wire.EndedRestarted:
		case "":
			say("attempt %d runs, and the task is %s", a.Number, t.State)
		default:
			say("attempt %d ended by %s", a.Number, a.Reason)
		}
		if a.Reason != wire.EndedLate {
			last = max(last, a.EndedAt)
		}
	}
	if r.results != 1 {
		say("%d results were accepted", r.results)
	}
	return r, wrong
}

// compare holds every task of a session against the replay of its history, and
// the history against what was done to the engines. It returns the figures.
func compare(t *testing.T, s *grid.Session, tasks []slowTask, f *fleet) string {
	t.Helper()
	sum := replay{ends: map[string]int{}}
	attempts, lost := 0, 0
	for _, task := range tasks {
		state, err := s.Task(t.Context(), strconv.FormatInt(task.Number, 10))
		if err != nil {
			t.Fatal(err)
		}
		r, wrong := follow(state)
		say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
		if state.Retries != r.retries || state.Evictions != r.evictions || state.Losses != 0 {
			say("its history makes it %d retries, %d evictions", r.retries, r.evictions)
		}
		if state.Reschedules < r.copies || state.Reschedules > r.long { // a copy whose turn did not come is in no history
			say("its history makes it %d to %d reschedules", r.copies, r.long)
		}
		if n := r.ends[wire.EndedError]; r.copies == 0 && (n > int(task.Fails) || state.Retries < task.Fails) {
			say("it told of %d errors, and fails until %d were charged", n, task.Fails)
		}
		for _, a := range state.Attempts {
			vanished := a.Reason == wire.EndedLost || a.Reason == wire.EndedLate && a.Charged != ""
			given := a.Reason == wire.EndedReleased || a.Reason == wire.EndedEvicted
			switch {
			case vanished && !f.gone[a.Engine]:
				say("%s was lost and had neither been killed nor stopped", a.Engine)
			case given && !f.drained[a.Engine]:
				say("%s gave it back and was not asked to drain", a.Engine)
			case vanished:
				lost++
			}
		}
		if len(wrong) > 0 {
			t.Errorf("task %d: %s\n%+v", task.Number, strings.Join(wrong, "; "), *state)
		}
		attempts += len(state.Attempts)
		sum.retries += state.Retries
		sum.evictions += state.Evictions
		sum.copies += state.Reschedules
		for reason, n := range r.ends {
			sum.ends[reason] += n
		}
	}
	if sum.copies == 0 {
		t.Error("no task was rescheduled, though some take longer than they may")
	}
	return fmt.Sprintf("replayed %d attempts of %d tasks: %d retries (%d of them engines that were lost), %d reschedules, %d evictions, as the server counts; ends %v",
		attempts, len(tasks), sum.retries, lost, sum.copies, sum.evictions, sum.ends)
}
