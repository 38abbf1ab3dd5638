package rule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// lineVector is one of V1 to V3 and V12 of the vectors: how a task that runs ends,
// and how the line then stands, front to back.
type lineVector struct {
	V               string                    `json:"v"`
	FrontOrder      string                    `json:"front_order"`
	RescheduleFirst bool                      `json:"reschedule_first"`
	Queue           []string                  `json:"queue"`
	Running         []string                  `json:"running"`
	Event           string                    `json:"event"`
	Expect          []string                  `json:"expect"`
	Counters        map[string]map[string]int `json:"counters"`
}

func TestLinesOfTheVectors(t *testing.T) { // V1, V2, V3, V12
	var seen []string
	for _, v := range loadGrid(t).Queue {
		seen = append(seen, v.V)
		t.Run(v.V, func(t *testing.T) {
			w := newWorld(t, seedGrid)
			if v.RescheduleFirst {
				w.queue.Grid.EvictedPlace, w.queue.Grid.CopyPlace = job.PlaceFront, job.PlaceFront
			}
			switch v.FrontOrder {
			case "", "by_seq":
			case "lifo":
				w.queue.FrontOrder = job.FrontLIFO
			default:
				t.Fatalf("what is %q?", v.FrontOrder)
			}
			tokens := map[string]job.Token{}
			for _, name := range v.Running {
				w.put(name)
				tokens[name] = w.take(name, "engine of "+name)
			}
			for _, name := range v.Queue {
				w.put(name)
			}
			for event := range strings.SplitSeq(v.Event, ", then ") {
				if name, is := strings.CutSuffix(event, " errors"); is {
					w.fail(name, tokens[name])
				} else if name, is := strings.CutPrefix(event, "engine of "); is && strings.HasSuffix(name, " drains") {
					name = strings.TrimSuffix(name, " drains")
					w.lose(name, "engine of "+name, job.ByEvict)
				} else {
					t.Fatalf("what is %q?", event)
				}
			}
			w.expectLine(v.Expect...)
			for name, want := range v.Counters {
				j := w.jobs[name]
				for what, n := range want {
					if got, known := map[string]uint32{"retries": j.Attempts, "reschedules": j.Reschedules}[what]; !known || int(got) != n {
						t.Errorf("%s of %s: %d, want %d", what, name, got, n)
					}
				}
			}
		})
	}
	if got := strings.Join(seen, " "); got != "V1 V2 V3 V12-lifo V12-seq" {
		t.Errorf("the vectors are %s", got)
	}
}

// A4: 1,000 tasks, engines are drained at random 10,000 times; each drain takes what
// the engine runs. In the end all are done, and nothing was charged.
func TestA4TenThousandDrainsOfAThousandTasksChargeNothing(t *testing.T) {
	const tasks, drains, engines = 1000, 10_000, 100
	q, server, dice := job.NewQueue("s"), DefaultServer(), rand.New(rand.NewPCG(4, 4))
	seedGrid(q)
	seq := int64(0)
	step := func(j *job.Job, c Command) *job.Job {
		v := View{Now: dawn, Steady: dawn, Job: j, Queue: q, Server: &server, Seq: func() int64 { seq++; return seq }}
		e, err := Step(v, c)
		if err != nil {
			t.Fatal(err)
		}
		return e.Job
	}
	var waiting []*job.Job
	for i := range tasks {
		waiting = append(waiting, step(nil, Command{Verb: Put, New: &job.Job{ID: job.ID{byte(i), byte(i >> 8)}, RetainDone: job.Unset, RetainDead: job.Unset}}))
	}
	runs, given := [engines]*job.Job{}, uint64(0)
	fill := func() (any bool) {
		for i := range runs {
			if runs[i] == nil && len(waiting) > 0 {
				given++
				l := &job.Lease{Token: job.NewToken(1, func() uint64 { return given << 20 }), Holder: fmt.Sprint("e", i)}
				runs[i], waiting = step(waiting[0], Command{Verb: Take, Lease: l}), waiting[1:]
			}
			any = any || runs[i] != nil
		}
		return any
	}
	for range drains {
		fill()
		i := dice.IntN(engines)
		waiting = append(waiting, step(runs[i], Command{Verb: Lapse, Holder: fmt.Sprint("e", i), Ending: job.ByEvict}))
		runs[i] = nil
	}
	done, evictions := 0, 0
	for fill() {
		for i, j := range runs {
			if runs[i] = nil; j == nil {
				continue
			}
			j = step(j, Command{Verb: SettleOK, Token: j.Leases[0].Token})
			evictions += int(j.Evictions)
			if done++; j.State != job.Done || j.Attempts != 0 || j.Reschedules != 0 || j.Losses != 0 {
				t.Fatalf("%+v", j)
			}
		}
	}
	if done != tasks || evictions != drains {
		t.Errorf("%d are done, after %d evictions", done, evictions)
	}
}

func TestALostTaskStandsWhereItsSessionSays(t *testing.T) {
	for place, want := range map[job.Place][]string{
		job.PlaceUnset: {"b", "a", "c"}, job.PlaceFront: {"b", "a", "c"}, job.PlaceKeep: {"a", "b", "c"}, job.PlaceBack: {"a", "c", "b"},
	} {
		for _, charged := range []bool{true, false} {
			w := newWorld(t, seedGrid)
			w.queue.Grid.LostPlace, w.queue.Grid.LossesCharged = place, charged
			for _, name := range []string{"a", "b", "c"} {
				w.put(name)
			}
			w.take("b", "x")
			w.lose("b", "x", job.ByLapse)
			w.expectLine(want...)
		}
	}
}
