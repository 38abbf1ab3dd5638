package chunk_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/chunk"
)

// rig is an engine with all parts, and the queues of two outputs, "x" and "y".
type rig struct {
	*enginetest.Rig
	part *part.Engine
}

func scenario(t *testing.T, f func(*rig)) {
	t.Helper()
	r := &rig{}
	enginetest.Scenario(t, func(in *enginetest.Rig) {
		r.Rig = in
		for _, name := range []string{"x", "y"} {
			r.output(name, func(*job.Queue) error { return nil })
		}
		f(r)
	}, func(in *enginetest.Rig) {
		in.Opts.Reserve = engine.Reserve{Bytes: 100}
		in.Parts = func() []engine.Part { r.part = part.All(); return r.part.Parts() }
	})
}

func (r *rig) output(name string, edit func(*job.Queue) error) {
	r.Helper()
	err := r.part.Desk.SetDoor(r.Context(), job.DoorSetting{Door: job.DoorPipeline, Name: name, Body: []byte("{}")}, edit,
		func(b []byte) string { return string(b) }, job.Actor{Name: "test"})
	if err != nil {
		r.Fatal(err)
	}
}

// add appends records under a key for outputs.
func (r *rig) add(key, records string, outputs ...string) chunk.Taken {
	r.Helper()
	a := chunk.Append{Key: key, Records: []byte(records), Flush: 5 * job.Second, Max: 10}
	for _, name := range outputs {
		a.Routes = append(a.Routes, job.Job{Queue: name, Type: key, Priority: job.PriorityDefault, RetainDone: 0, RetainDead: job.Unset})
	}
	out, err := r.part.Chunks.Append(r.Context(), []chunk.Append{a})
	if err != nil {
		r.Fatal(err)
	}
	return out[0]
}

// gets wants what an output is given now.
func (r *rig) gets(output string, want ...string) (list []engine.Delivery) {
	r.Helper()
	var got []string
	for range want {
		h := r.NewCaller(job.Unary, "", job.Hour, engine.StreamOptions{Queues: []string{output}})
		h.Want, h.Raw = 1, true
		more, err := r.Take(r.Context(), h, nil)
		if err != nil {
			r.Fatal(err)
		}
		list = append(list, more...)
		if got = append(got, string(more[0].Payload)); len(more[0].Payload) != int(more[0].Job.PayloadSize) {
			r.Errorf("a chunk of %d bytes says it has %d", len(more[0].Payload), more[0].Job.PayloadSize)
		}
	}
	if !slices.Equal(got, want) {
		r.Fatalf("%s got %q, want %q", output, got, want)
	}
	return list
}

func (r *rig) ok(list []engine.Delivery) {
	r.Helper()
	for i := range list {
		v, err := r.Settle(r.Context(), []engine.Settle{{ID: list[i].Job.ID, Token: list[i].Lease.Token, Outcome: job.OK}})
		if err := errors.Join(err, v[0].Err); err != nil {
			r.Fatal(err)
		}
	}
}

func (r *rig) held(input string, want chunk.Held) {
	r.Helper()
	if got := r.part.Chunks.Held()[input]; got != want {
		r.Fatalf("of %s is held %+v, want %+v", input, got, want)
	}
}

func TestAChunkGrowsForAllItsRoutes(t *testing.T) {
	scenario(t, func(r *rig) {
		first := r.add("in", "ab", "x", "y")
		if next := r.add("in", "cd", "x", "y"); next.Chunk != first.Chunk {
			t.Error("a second chunk was opened")
		}
		r.add("other", "--", "x", "y")
		r.held("in", chunk.Held{Chunks: 1, Bytes: 4, Routes: 2})
		began := time.Now()
		list := r.gets("x", "abcd", "--")
		if waited := time.Since(began); waited != 5*time.Second {
			t.Errorf("flushed after %s, want 5s (I6)", waited)
		}
		r.add("in", "ef", "x", "y") // the first one is closed: x has it
		r.held("in", chunk.Held{Chunks: 2, Bytes: 6, Routes: 4, Busy: 1})
		r.ok(list)
		r.ok(r.gets("y", "abcd", "--"))
		r.held("in", chunk.Held{Chunks: 1, Bytes: 2, Routes: 2})
		r.ok(r.gets("x", "ef"))
		r.ok(r.gets("y", "ef"))
		r.held("in", chunk.Held{})
		if body, err := r.Mem.Payloads(first.Chunk); err != nil || body[0] != nil {
			t.Errorf("the payload is kept behind its last route (I8): %q, %v", body, err)
		}
	})
}

func TestAFullChunkIsClosed(t *testing.T) {
	scenario(t, func(r *rig) {
		r.add("in", "123456", "x")
		r.add("in", "78901", "x") // would be 11 of 10 bytes
		r.add("in", "2", "x")
		r.add("in", "a very large one", "x") // goes alone, and at once
		began := time.Now()
		r.gets("x", "a very large one")
		if waited := time.Since(began); waited > 0 {
			t.Errorf("a full chunk waited for %s", waited)
		}
		r.gets("x", "123456", "789012")
	})
}

// TestAChunkIsClosedWhenARouteChanged: one that an operator let go ahead, moved or deleted
// must not grow, and the others get everything once.
func TestAChunkIsClosedWhenARouteChanged(t *testing.T) {
	scenario(t, func(r *rig) {
		r.add("in", "ab", "x", "y")
		list, err := r.List(r.Context(), engine.Filter{Queues: []string{"x"}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Do(r.Context(), 0, func(tx *engine.Tx) error {
			j, err := tx.Store().Get(list[0].Job.ID)
			if err == nil {
				_, err = tx.Edit(j, "x", func(j *job.Job) { j.ReadyAt = 1 })
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		r.add("in", "cd", "x", "y")
		r.gets("x", "ab", "cd")
		r.gets("y", "ab", "cd")
	})
}

// TestAPowerCutClosesChunks, and nothing that was taken is lost or grows into what was
// given out (I5).
func TestAPowerCutClosesChunks(t *testing.T) {
	scenario(t, func(r *rig) {
		r.add("in", "ab", "x", "y")
		r.add("in", "cd", "x", "y")
		r.PowerCut()
		r.held("in", chunk.Held{Chunks: 1, Bytes: 4, Routes: 2})
		r.add("in", "ef", "x", "y")
		r.gets("x", "abcd", "ef")
		r.gets("y", "abcd", "ef")
	})
}

// TestAFullOutputHoldsUpNobody: its oldest chunk leaves, and where that runs it does not
// get the records; the other output gets all of them.
func TestAFullOutputHoldsUpNobody(t *testing.T) { // pipeline.md, decision 4
	scenario(t, func(r *rig) {
		r.output("x", func(q *job.Queue) error { q.MaxBytes, q.OnFull = 6, job.FullDropOldest; return nil })
		r.add("in", "1234", "x", "y")
		r.Pass(6 * job.Second)
		r.add("in", "5678", "x", "y") // the first one leaves x
		if s, err := enginetest.Stats(r.Context(), r.Engine); err != nil || s.Evicted != 1 {
			t.Fatalf("%d were pushed out, %v", s.Evicted, err)
		}
		r.Pass(6 * job.Second)
		r.gets("x", "5678") // which runs now
		if got := r.add("in", "9012", "x", "y"); !slices.Equal(got.Refused, []int{0}) {
			t.Errorf("refused: %v, want that of x", got.Refused)
		}
		r.gets("y", "1234", "5678", "9012")
	})
}

func TestCursorsStandWithTheirRecords(t *testing.T) { // operations.md, acknowledging inputs
	scenario(t, func(r *rig) {
		at := func(source, body string) *job.Cursor {
			return &job.Cursor{Input: "tail.0", Source: source, Body: []byte(body)}
		}
		add := func(gone []string, list ...*job.Cursor) {
			t.Helper()
			if _, err := r.part.Chunks.Append(r.Context(), []chunk.Append{{Key: "k", Cursors: list, Gone: gone}}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(input string, bodies ...string) {
			t.Helper()
			list, err := r.part.Chunks.Cursors(r.Context(), input)
			var got []string
			for _, c := range list {
				got = append(got, c.Source+" "+string(c.Body))
			}
			if err != nil || !slices.Equal(got, bodies) {
				t.Errorf("%s has read %q, want %q (%v)", input, got, bodies, err)
			}
		}
		add(nil, at("/b", "7"), at("/a", "5"), &job.Cursor{Input: "tail.1", Source: "/a", Body: []byte("other")})
		add(nil, at("/a", "9"))
		want("tail.0", "/a 9", "/b 7")
		r.PowerCut()
		want("tail.0", "/a 9", "/b 7")
		add([]string{job.CursorKey("tail.0", "/a")})
		want("tail.0", "/b 7")
		want("tail.1", "/a other")
		want("tail")
	})
}

func TestNothingIsTakenWhileTheDiskIsLow(t *testing.T) {
	scenario(t, func(r *rig) {
		r.Room.Store(1)
		r.Pass(job.Hour)
		a := chunk.Append{Key: "k", Records: []byte("a"), Routes: []job.Job{{Queue: "x", Type: "k"}}, Max: 10}
		if _, err := r.part.Chunks.Append(r.Context(), []chunk.Append{a}); !errors.Is(err, engine.ErrDiskLow) {
			t.Errorf("taken on a full disk: %v", err)
		}
		r.held("k", chunk.Held{})
	})
}
