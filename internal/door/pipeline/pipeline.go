package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/part/chunk"
)

// Defaults of the service section.
const (
	FlushDefault = job.Second
	BaseDefault  = 5 * job.Second
	CapDefault   = 2000 * job.Second
	// ChunkMax is the size in bytes at which a chunk is closed, as in the original.
	ChunkMax = 2_048_000
)

// Plan is a pipeline as a configuration describes it, ready to run.
type Plan struct {
	Name    string
	Flush   job.Millis // how long a chunk is open
	Base    job.Millis // scheduler.base
	Cap     job.Millis // scheduler.cap
	Inputs  []*Input
	Filters []*Filter
	Outputs []*Output
	Now     func() time.Time
}

// Input is where records come from.
type Input struct {
	Name   string // its alias, or plugin and number
	Source connect.Source
	Most   int64 // Mem_Buf_Limit: bytes that are not delivered, above which it pauses; 0 = any
	Count  InputCount

	pausing rarely // what was told of it
}

// Match says which tags go somewhere. With neither part of it set, all do.
type Match struct {
	Glob  string
	Regex *regexp.Regexp // tried at the beginning of the tag; nil = none
}

// Fits reports whether a tag goes there.
func (m *Match) Fits(tag string) bool {
	if m.Regex != nil {
		if at := m.Regex.FindStringIndex(tag); at != nil && at[0] == 0 && at[1] > 0 {
			return true
		}
		return m.Glob != "" && Matches(m.Glob, tag)
	}
	return m.Glob == "" || Matches(m.Glob, tag)
}

// Output is where records go.
type Output struct {
	Name string // its alias, or plugin and number
	Match
	Sink  connect.Sink
	Limit job.Limit // Retry_Limit
	Most  int64     // storage.total_limit_size; 0 = any
	Lanes int       // calls at a time
	Queue string    // of its chunks, set by Start
	Count OutputCount

	refuses                  atomic.Bool // that it drops records was told
	failing, refusing, spent rarely      // what was told of chunks
}

// retries reports whether Retry_Limit is not no_retries.
func (o *Output) retries() bool {
	n, counted := o.Limit.Count()
	return !counted || n > 0
}

// Pipeline is a plan that runs.
type Pipeline struct {
	*Plan
	engine   *part.Engine
	log      *slog.Logger
	couriers []*courier
	inputs   sync.WaitGroup
	stop     context.CancelFunc

	now  func() time.Time
	told sync.Map // names of filters whose trouble was told

	mu     sync.RWMutex
	routes map[string][]*Output // by tag, as far as it was seen
}

// Start makes the queues of the outputs, and begins to deliver and to read.
func Start(ctx context.Context, e *part.Engine, p *Plan, log *slog.Logger) (*Pipeline, error) {
	x := &Pipeline{Plan: p, engine: e, log: log, stop: func() {}, now: p.Now, routes: map[string][]*Output{}}
	for _, o := range p.Outputs {
		o.Queue = p.Name + "/" + o.Name
		row := job.DoorSetting{Door: job.DoorPipeline, Name: o.Queue, Body: []byte("{}")}
		same := func([]byte) string { return "null" }
		if err := e.Desk.SetDoor(ctx, row, o.apply(p), same, job.Actor{Name: "configuration"}); err != nil {
			return nil, fmt.Errorf("making the queue of output %s: %w", o.Name, err)
		}
	}
	if err := x.tellLeft(ctx); err != nil {
		return nil, err
	}
	for _, o := range p.Outputs {
		e.Chunks.OnEvicted(o.Queue, func(records int64) {
			o.Count.Dropped.Add(records)
			o.Count.Refused.Add(records)
		})
		c := &courier{engine: e, log: log, out: o}
		x.couriers = append(x.couriers, c)
		c.start(ctx)
	}
	ctx, x.stop = context.WithCancel(context.WithoutCancel(ctx))
	for _, in := range p.Inputs {
		x.inputs.Go(func() { x.read(ctx, in) })
	}
	return x, nil
}

// tellLeft tells of chunks that wait for outputs that the plan does not name any more.
func (p *Pipeline) tellLeft(ctx context.Context) error {
	rows, err := p.engine.Desk.Doors(ctx, job.DoorPipeline)
	if err != nil {
		return err
	}
	for _, row := range rows {
		name, own := strings.CutPrefix(row.Name, p.Name+"/")
		if !own || slices.ContainsFunc(p.Outputs, func(o *Output) bool { return o.Name == name }) {
			continue
		}
		_, d, err := p.engine.Queue(ctx, row.Name)
		if err != nil {
			return err
		}
		if n := d.Open(); n > 0 {
			p.log.WarnContext(ctx, "chunks wait for an output that the configuration does not name any more; give an output this alias, or delete them",
				"output", name, "queue", row.Name, "chunks", n)
		}
	}
	return nil
}

// apply is what an output asks of its queue.
func (o *Output) apply(p *Plan) func(*job.Queue) error {
	return func(q *job.Queue) error {
		q.Retry = job.Retry{
			Limit: o.Limit, MaxAge: job.MaxMillis, // Retry_Limit alone decides
			Curve: &job.Curve{Kind: job.CurveUniform, Base: p.Base, Cap: p.Cap},
		}
		q.MaxBytes, q.OnFull = o.Most, job.FullDropOldest
		q.RetainDone, q.Outlet = 0, true
		return nil
	}
}

// read runs an input until it ends. One that fails begins again later.
func (p *Pipeline) read(ctx context.Context, in *Input) {
	for ctx.Err() == nil {
		err := in.Source.Run(ctx, &intake{p, in})
		if err == nil || ctx.Err() != nil {
			return
		}
		p.log.ErrorContext(ctx, "an input cannot go on; it begins again in a moment", "input", in.Name, "error", err)
		wait(ctx, inputAgain)
	}
}

// Wait returns when all inputs have ended by themselves.
func (p *Pipeline) Wait() { p.inputs.Wait() }

// Close frees what the outputs of a plan keep open, which does not run any more.
func (p *Plan) Close(log *slog.Logger) {
	for _, o := range p.Outputs {
		if err := o.Sink.Close(); err != nil {
			log.Warn("an output did not close well", "output", o.Name, "error", err)
		}
	}
}

// Stop ends inputs and deliveries. What is not delivered stays, with its attempts. The plan
// may be started again, or closed.
func (p *Pipeline) Stop() {
	p.stop()
	p.inputs.Wait()
	for _, c := range p.couriers {
		c.stop() // all of them, before one is waited for
	}
	for _, c := range p.couriers {
		c.end()
		p.engine.Chunks.OnEvicted(c.out.Queue, nil)
	}
}

// Idle reports whether nothing that came in waits for an output.
func (p *Pipeline) Idle(ctx context.Context) (bool, error) {
	for _, o := range p.Outputs {
		if _, d, err := p.engine.Queue(ctx, o.Queue); err != nil || d.Open() > 0 {
			return false, err
		}
	}
	return true, nil
}

// Held is what is not done of what an input brought.
func (p *Pipeline) Held(in *Input) chunk.Held {
	return p.engine.Chunks.Held()[(&intake{p, in}).input()]
}

// routesOf are the outputs of a tag.
func (p *Pipeline) routesOf(tag string) []*Output {
	p.mu.RLock()
	list, known := p.routes[tag]
	p.mu.RUnlock()
	if known {
		return list
	}
	for _, o := range p.Outputs {
		if o.Fits(tag) {
			list = append(list, o)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.routes) >= tagsKnown {
		clear(p.routes)
	}
	p.routes[tag] = list
	return list
}

// tagsKnown bounds the tags whose routes are remembered.
const tagsKnown = 10_000

var _ connect.Intake = (*intake)(nil)
