package pipeline

import (
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/chunk"
)

// inputAgain is how long an input rests that failed, and how long one waits that the engine
// cannot serve, as on a full disk.
const inputAgain = time.Second

// intake takes in what one input reads: through the filters, into chunks.
type intake struct {
	*Pipeline
	in *Input
}

// Take implements connect.Intake. While the input holds as much as it may, or the engine
// takes nothing, it waits: the source is paused.
func (t *intake) Take(ctx context.Context, list ...connect.Records) error {
	var adds []chunk.Append
	var tags []string
	for i := range list {
		before := len(adds)
		for _, r := range t.filtered(list[i]) {
			adds = append(adds, t.appendOf(&r))
			tags = append(tags, r.Tag)
		}
		if len(adds) == before { // what was dropped was read, too
			adds, tags = append(adds, chunk.Append{}), append(tags, "")
		}
		t.cursors(&adds[len(adds)-1], list[i].At)
	}
	if err := t.room(ctx); err != nil {
		return err
	}
	for {
		taken, err := t.engine.Chunks.Append(ctx, adds)
		if err == nil {
			if t.in.pausing.end() {
				t.log.InfoContext(ctx, "an input goes on", "input", t.in.Name)
			}
			t.count(list, adds, tags, taken)
			return nil
		}
		if job.KindOf(err) != job.Unavailable {
			return err
		}
		if _, ok := t.in.pausing.again(t.engine.Now()); ok {
			t.log.WarnContext(ctx, "an input is paused: nothing can be taken in now", "input", t.in.Name, "error", err)
		}
		if !wait(ctx, inputAgain) {
			return ctx.Err()
		}
	}
}

// room waits until the input holds less than it may. One write may go beyond that, as in
// the original.
func (t *intake) room(ctx context.Context) error {
	for t.in.Most > 0 {
		freed := t.engine.Chunks.Freed()
		if t.engine.Chunks.Held()[t.input()].Bytes < t.in.Most {
			break
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// input names the input among those of all pipelines.
func (t *intake) input() string { return t.Name + "/" + t.in.Name }

// appendOf is what the chunks are told of records of one tag.
func (t *intake) appendOf(r *connect.Records) chunk.Append {
	a := chunk.Append{Key: t.input() + " " + r.Tag, Records: r.Events, Flush: t.Flush, Max: ChunkMax}
	labels := &job.Extras{Labels: []job.Label{{Key: connect.TagLabel, Value: r.Tag}}}
	for _, o := range t.routesOf(r.Tag) {
		a.Routes = append(a.Routes, job.Job{
			Queue: o.Queue, Type: t.input(), Priority: job.PriorityDefault, RetainDone: job.Unset, RetainDead: job.Unset, Extras: labels,
		})
	}
	return a
}

// cursors adds how far the source has read.
func (t *intake) cursors(a *chunk.Append, at map[string][]byte) {
	for source, where := range at {
		if where == nil {
			a.Gone = append(a.Gone, job.CursorKey(t.input(), source))
		} else {
			a.Cursors = append(a.Cursors, &job.Cursor{Input: t.input(), Source: source, Body: where})
		}
	}
}

func (t *intake) count(list []connect.Records, adds []chunk.Append, tags []string, taken []chunk.Taken) {
	for i := range list {
		t.in.Count.Records.Add(int64(list[i].Count))
		t.in.Count.Bytes.Add(int64(len(list[i].Events)))
	}
	for i := range adds {
		if len(adds[i].Records) == 0 || len(adds[i].Routes) > 0 && taken[i].Refused == nil {
			continue
		}
		n := countOf(adds[i].Records)
		if len(adds[i].Routes) == 0 {
			t.in.Count.Dropped.Add(n)
		}
		outputs := t.routesOf(tags[i])
		for _, at := range taken[i].Refused {
			o := outputs[at]
			o.Count.Dropped.Add(n)
			o.Count.Refused.Add(n)
			if !o.refuses.Swap(true) {
				t.log.Warn("an output drops records: its queue is full, and nothing in it can leave; this is said once until something is delivered",
					"output", o.Name, "queue", o.Queue)
			}
		}
	}
}

// Cursors implements connect.Intake.
func (t *intake) Cursors(ctx context.Context) (map[string][]byte, error) {
	list, err := t.engine.Chunks.Cursors(ctx, t.input())
	at := make(map[string][]byte, len(list))
	for _, c := range list {
		at[c.Source] = c.Body
	}
	return at, err
}
