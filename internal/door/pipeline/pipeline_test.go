package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/deadset"
)

// vectors are those of the specification that are about a running pipeline.
type vectors struct {
	Counters struct {
		Rows []struct {
			Limit   string
			Answers []string
			Calls   int
			wanted
		}
	}
	Match [][]any
}

// wanted are the counters of an output (reference 1.4).
type wanted struct {
	Retries, Retried_records, Retries_failed, Dropped_records, Errors, Proc_records int64 //nolint:revive // as the file has them
}

func (o *Output) counted() wanted {
	c := &o.Count
	return wanted{c.Retries.Load(), c.Retried.Load(), c.GivenUp.Load(), c.Dropped.Load(), c.Errors.Load(), c.Records.Load()}
}

func load(t *testing.T) (v vectors) {
	t.Helper()
	text, err := os.ReadFile("testdata/pipeline.json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil || len(v.Counters.Rows) == 0 || len(v.Match) == 0 {
		t.Fatal(err, v)
	}
	return v
}

func TestMatchAsTheVectorsSay(t *testing.T) {
	for _, row := range load(t).Match {
		tag, pattern, want := row[0].(string), row[1].(string), row[2].(bool)
		if got := Matches(pattern, tag); got != want {
			t.Errorf("tag %q, match %q: %t, want %t", tag, pattern, got, want)
		}
	}
	for _, pattern := range []string{"a", "a*a", "*aa", "aa*", "a**a*"} { // no part is used twice
		if Matches(pattern, "") || Matches(pattern, "b") {
			t.Errorf("%q matches", pattern)
		}
	}
	if Matches("a*a", "a") {
		t.Error(`"a*a" matches "a"`)
	}
}

func TestCountersAsTheVectorsSay(t *testing.T) { // reference 1.4
	outcome := map[string]job.Outcome{"OK": job.OK, "RETRY": job.Retried, "ERROR": job.Died}
	limits := map[string]job.Limit{"no_retries": job.LimitOf(0), "1": job.LimitOf(1), "2": job.LimitOf(2), "3": job.LimitOf(3), "5": job.LimitOf(5)}
	for _, row := range load(t).Counters.Rows {
		scenario(t, func(r *rig) {
			limit, known := limits[row.Limit]
			if !known {
				t.Fatalf("limit %s", row.Limit)
			}
			var answers []func([]byte) connect.Result
			for _, a := range row.Answers {
				answers = append(answers, says(outcome[a]))
			}
			o := output("o", limit, answers...)
			r.start(o)
			r.take("t", strings.Split("0123456789", "")...)
			r.Pass(job.Day)
			if got := len(o.calls()); got != row.Calls {
				t.Errorf("limit %s, %v: %d calls, want %d", row.Limit, row.Answers, got, row.Calls)
			}
			if got := o.counted(); got != row.wanted {
				t.Errorf("limit %s, %v:\n%+v, want\n%+v", row.Limit, row.Answers, got, row.wanted)
			}
		})
	}
}

// TestOnlyTheFailingRouteIsRetried: also over a restart and a power cut; the attempts go on,
// and the healthy output gets nothing twice (decision 3).
func TestOnlyTheFailingRouteIsRetried(t *testing.T) {
	for name, again := range map[string]func(*rig) func(){
		"restart":   func(r *rig) func() { return func() { r.Restart(job.Second) } },
		"power cut": func(r *rig) func() { return r.PowerCut },
	} {
		t.Run(name, func(t *testing.T) {
			scenario(t, func(r *rig) {
				sick, well := output("sick", job.LimitOf(3), says(job.Retried)), output("well", job.LimitOf(1), says(job.OK))
				r.start(sick, well)
				r.take("t", "a")
				r.Pass(2 * job.Second)
				if len(sick.calls()) != 1 || len(well.calls()) != 1 {
					t.Fatalf("calls: %v, %v", sick.calls(), well.calls())
				}
				r.restart(again(r), sick, well)
				r.Pass(job.Day)
				if got := sick.calls(); len(got) != 4 {
					t.Errorf("the sick output was called %d times, want 4: the attempts do not begin anew", len(got))
				}
				if got := well.calls(); len(got) != 1 {
					t.Errorf("the healthy output got %v", got)
				}
			})
		})
	}
}

// TestAStopBurnsNoAttempts: also one in the middle of a call (reference 1.7).
func TestAStopBurnsNoAttempts(t *testing.T) {
	scenario(t, func(r *rig) {
		o := output("o", job.LimitOf(1), says(job.Released), says(job.Retried))
		r.start(o)
		r.take("t", "a")
		r.Pass(2 * job.Second)
		for range 5 {
			r.restart(func() { r.Restart(job.Second) }, o)
		}
		list, err := r.List(r.Context(), storeAll, 10)
		if err != nil || len(list) != 1 || list[0].Job.Attempts > 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		r.Pass(job.Day)
		if got := o.counted(); got.Retries != 1 || got.Retries_failed != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// TestADeadOutputHoldsUpNobody: a live one gets its chunks at the next flush (decision 4).
func TestADeadOutputHoldsUpNobody(t *testing.T) {
	scenario(t, func(r *rig) {
		dead, live := output("dead", job.Unlimited(), says(job.Retried)), output("live", job.LimitOf(1), says(job.OK))
		r.start(dead, live)
		for n := range 100 {
			r.take("t", "a")
			r.Pass(FlushDefault + job.Millis(n%2))
		}
		if n := live.Count.Records.Load(); n < 99 {
			t.Errorf("the live output got %d records of 100", n)
		}
		if n := dead.Count.Retries.Load(); n < 100 {
			t.Errorf("the dead output was called again %d times", n)
		}
	})
}

// TestTheTagSaysWhereRecordsGo, and what nobody wants is counted.
func TestTheTagSaysWhereRecordsGo(t *testing.T) {
	scenario(t, func(r *rig) {
		cpu, all := output("cpu", job.LimitOf(1), says(job.OK)), output("all", job.LimitOf(1), says(job.OK))
		cpu.Glob, all.Glob = "cpu.*", "*.x"
		r.start(cpu, all)
		r.take("cpu.x", "1")
		r.take("mem.x", "2")
		r.take("cpu.y", "3", "4")
		r.take("disk", "5", "6", "7")
		r.Pass(job.Minute)
		got, want := cpu.calls(), []string{"cpu.x: 1", "cpu.y: 3 4"}
		if slices.Sort(got); !reflect.DeepEqual(got, want) {
			t.Errorf("cpu got %q, want %q", got, want)
		}
		got, want = all.calls(), []string{"cpu.x: 1", "mem.x: 2"}
		if slices.Sort(got); !reflect.DeepEqual(got, want) {
			t.Errorf("all got %q, want %q", got, want)
		}
		if n := r.pipe.Inputs[0].Count.Dropped.Load(); n != 3 {
			t.Errorf("%d records are counted as unmatched, want 3", n)
		}
	})
}

// TestAPartOfAChunkIsRetriedAlone: of three records one is delivered, one is dead with its
// reason, one is retried: each exactly once (decision 6).
func TestAPartOfAChunkIsRetriedAlone(t *testing.T) {
	scenario(t, func(r *rig) {
		o := output("o", job.LimitOf(5), func([]byte) connect.Result {
			return connect.Result{
				Outcome: job.Retried, Failure: job.Failure{Type: "429", Message: "later"},
				Parts: &connect.Parts{
					Rest: records("t", "b").Events,
					Pieces: []connect.Piece{{
						Body: records("t", "c").Events, Outcome: job.Died, Failure: job.Failure{Type: "mapper_parsing_exception", Message: "no number"},
					}},
				},
			}
		}, says(job.OK))
		r.start(o)
		r.take("t", "a", "b", "c")
		r.Pass(job.Hour)
		if got, want := o.calls(), []string{"t: a b c", "t: b"}; !reflect.DeepEqual(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		if got, want := o.counted(), (wanted{Retries: 1, Retried_records: 1, Dropped_records: 1, Errors: 1, Proc_records: 2}); got != want {
			t.Errorf("counted %+v, want %+v", got, want)
		}
		list, err := r.List(r.Context(), storeAll, 10)
		if err != nil || len(list) != 1 || list[0].Job.State != job.Dead {
			t.Fatalf("left: %+v, %v", list, err)
		}
		if err := r.Payloads(r.Context(), list); err != nil || !reflect.DeepEqual(r.shownLines(list[0].Payload), []string{"c"}) || connect.TagOf(list[0].Job) != "t" {
			t.Errorf("dead is %q of tag %q, %v", r.shownLines(list[0].Payload), connect.TagOf(list[0].Job), err)
		}
	})
}

// TestAnInputPausesAtItsLimit, and goes on when there is room (Mem_Buf_Limit, reference 3.3).
func TestAnInputPausesAtItsLimit(t *testing.T) {
	scenario(t, func(r *rig) {
		o := output("o", job.Unlimited(), says(job.Retried), says(job.OK))
		r.start(o)
		in := r.pipe.Inputs[0]
		in.Most = int64(len(records("t", "a").Events)) + 1
		r.take("t", "a")
		r.take("t", "b") // beyond by one write
		taken := make(chan error, 1)
		go func() { taken <- r.feed.intake.Take(r.Context(), records("t", "c")) }()
		r.Pass(2 * job.Second)
		select {
		case err := <-taken:
			t.Fatalf("not paused: %v", err)
		default:
		}
		r.Pass(job.Minute) // the retry is delivered
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		if got, want := o.calls(), []string{"t: a b", "t: a b", "t: c"}; !reflect.DeepEqual(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
	})
}

// TestAnOutputKeepsNoMoreThanItMay: the oldest leave (storage.total_limit_size).
func TestAnOutputKeepsNoMoreThanItMay(t *testing.T) {
	scenario(t, func(r *rig) {
		small, large := output("small", job.Unlimited(), says(job.Retried)), output("large", job.LimitOf(1), says(job.OK))
		small.Most = 2 * int64(len(records("t", "a").Events))
		r.start(small, large)
		for _, line := range []string{"a", "b", "c", "d", "e"} {
			r.take("t", line)
			r.Pass(1500)
		}
		if got := r.part.Chunks.Held()["p/in"].Bytes; got > small.Most {
			t.Errorf("%d bytes wait, of %d", got, small.Most)
		}
		if n := large.Count.Records.Load(); n != 5 {
			t.Errorf("the other output got %d records", n)
		}
		if n := small.Count.Dropped.Load(); n != 3 {
			t.Errorf("%d records are counted as dropped, want 3 (I9)", n)
		}
		if list, err := r.List(r.Context(), engine.Filter{Queues: []string{"p/small"}}, 10); err != nil || len(list) != 2 {
			t.Errorf("%d chunks are kept, want the 2 that wait (%v)", len(list), err)
		}
	})
}

// TestAChunkIsShownAsJSON: to people, to searches and to a worker that names the queue of
// an output; and it is not edited, since sinks read it as it is kept.
func TestAChunkIsShownAsJSON(t *testing.T) {
	scenario(t, func(r *rig) {
		o := output("o", job.LimitOf(0), says(job.Died))
		r.start(o)
		r.take("t", "a\xff", "b")
		r.Pass(job.Minute)
		const want = `[{"date":"1970-01-01T00:00:00.000000Z","log":"a` + "\ufffd" + `"},{"date":"1970-01-01T00:00:01.000000Z","log":"b"}]`
		list, err := r.List(r.Context(), storeAll, 10)
		if err == nil {
			err = r.Payloads(r.Context(), list)
		}
		if err != nil || len(list) != 1 || string(list[0].Payload) != want {
			t.Fatalf("listed as %+v, %v, want %s", list, err, want)
		}
		id := list[0].Job.ID
		if _, got, err := r.Get(r.Context(), id); err != nil || string(got) != want {
			t.Errorf("one is %s, %v", got, err)
		}
		if d, err := r.part.Dead.Job(r.Context(), id); err != nil || string(d.Payload) != want {
			t.Errorf("dead is %s, %v", d.Payload, err)
		}
		if _, err := r.part.Dead.Revive(r.Context(), id, deadset.Revival{Payload: []byte(`{}`)}, job.Actor{}); job.KindOf(err) != job.WrongState {
			t.Errorf("replayed with another payload: %v", err)
		}
		o.Sink.(*target).answers = []func([]byte) connect.Result{says(job.OK)}
		if _, err := r.part.Dead.Revive(r.Context(), id, deadset.Revival{}, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		if n := o.Count.Records.Load(); n != 2 {
			t.Errorf("%d records were delivered by the replay", n)
		}
	})
}

// TestWhoTakesFromAllQueuesGetsNoChunks, and no other job comes into the queue of an output.
func TestWhoTakesFromAllQueuesGetsNoChunks(t *testing.T) {
	scenario(t, func(r *rig) {
		o := output("o", job.LimitOf(1), says(job.Released))
		o.Lanes = 0
		r.start(o)
		r.take("t", "a")
		r.Pass(job.Minute)
		ctx, stop := context.WithCancel(r.Context())
		stop()
		if list, err := r.Lease(ctx, engine.LeaseOptions{Max: 10}); err != nil || len(list) != 0 {
			t.Errorf("a worker of all queues got %+v, %v", list, err)
		}
		list, err := r.Lease(r.Context(), engine.LeaseOptions{Queues: []string{"p/o"}, Max: 10})
		if err != nil || len(list) != 1 || !json.Valid(list[0].Payload) {
			t.Errorf("a worker of the queue got %+v, %v", list, err)
		}
		_, err = r.Put(r.Context(), []engine.NewJob{{Job: job.Job{Queue: "p/o", Type: "t"}, Payload: []byte("{}")}})
		if job.KindOf(err) != job.WrongState {
			t.Errorf("another job in the queue of an output: %v", err)
		}
	})
}

// TestChunksOfAnOutputThatIsGoneAreTold, and an output that gets its name delivers them.
func TestChunksOfAnOutputThatIsGoneAreTold(t *testing.T) {
	scenario(t, func(r *rig) {
		var told bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&told, nil))
		r.start(output("old", job.Unlimited(), says(job.Retried)))
		r.take("t", "a")
		r.Pass(job.Minute)
		again := func() { r.Restart(job.Second) }
		r.restart(again, output("new", job.LimitOf(1), says(job.OK)))
		if text := told.String(); !strings.Contains(text, "output=old queue=p/old chunks=1") {
			t.Errorf("told: %s", text)
		}
		well := output("old", job.LimitOf(1), says(job.OK))
		r.restart(again, well)
		r.Pass(job.Hour)
		if n := well.Count.Records.Load(); n != 1 {
			t.Errorf("%d records were delivered, want 1", n)
		}
	})
}

// TestRecordsThatAnOutputRefusesAreTold: an operator lets its queue refuse what is too much.
func TestRecordsThatAnOutputRefusesAreTold(t *testing.T) {
	scenario(t, func(r *rig) {
		var told bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&told, nil))
		full, well := output("full", job.Unlimited(), says(job.Retried)), output("well", job.LimitOf(1), says(job.OK))
		r.start(full, well)
		reject := func(q *job.Queue) error { q.MaxJobs, q.OnFull = 1, job.FullReject; return nil }
		if _, err := r.part.Desk.SetQueue(r.Context(), "p/full", reject, job.Actor{Name: "test"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			r.take("t", "a")
			r.Pass(2 * job.Second)
		}
		if n := full.Count.Refused.Load(); n != 2 {
			t.Errorf("%d records are counted as refused, want 2", n)
		}
		if n := well.Count.Records.Load(); n != 3 {
			t.Errorf("the other output got %d records, want 3", n)
		}
		if n := strings.Count(told.String(), "an output drops records"); n != 1 {
			t.Errorf("told %d times:\n%s", n, told.String())
		}
	})
}

// TestADeadOutputDoesNotFillTheLog: it is told once a minute, and when it is over.
func TestADeadOutputDoesNotFillTheLog(t *testing.T) {
	scenario(t, func(r *rig) {
		var told bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&told, nil))
		o := output("o", job.Unlimited(), says(job.Retried))
		r.start(o)
		for range 60 {
			r.take("t", "a")
			r.Pass(2 * job.Second)
		}
		calls, lines := len(o.calls()), strings.Count(told.String(), "chunks could not be delivered")
		if calls < 60 || lines < 2 || lines > 3 {
			t.Errorf("%d lines of %d calls in two minutes", lines, calls)
		}
		o.Sink.(*target).turn(says(job.OK))
		r.Pass(job.Hour)
		if n := strings.Count(told.String(), "an output delivers again"); n != 1 {
			t.Errorf("its recovery is told %d times", n)
		}
	})
}

// TestAFullDiskPausesAnInput, which is told once a minute, and goes on with what it has.
func TestAFullDiskPausesAnInput(t *testing.T) {
	scenario(t, func(r *rig) {
		var told bytes.Buffer
		r.log = slog.New(slog.NewTextHandler(&told, nil))
		o := output("o", job.LimitOf(1), says(job.OK))
		r.start(o)
		r.Room.Store(1)
		r.Pass(job.Minute)
		taken := make(chan error, 1)
		go func() { taken <- r.feed.intake.Take(r.Context(), records("t", "a")) }()
		r.Pass(90 * job.Second)
		if n := strings.Count(told.String(), "an input is paused"); n != 2 {
			t.Errorf("told %d times in a minute and a half:\n%s", n, told.String())
		}
		r.Room.Store(1000)
		if err := <-taken; err != nil {
			t.Fatal(err)
		}
		r.Pass(job.Minute)
		if n := o.Count.Records.Load(); n != 1 || !strings.Contains(told.String(), "an input goes on") {
			t.Errorf("%d records came:\n%s", n, told.String())
		}
	})
}
