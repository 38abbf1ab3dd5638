package pipeline

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/record"
)

// rig is an engine with all parts in fake time, and a pipeline.
type rig struct {
	*enginetest.Rig
	part *part.Engine
	pipe *Pipeline
	feed *feed
	log  *slog.Logger
}

func scenario(t *testing.T, f func(*rig)) {
	t.Helper()
	r := &rig{log: enginetest.Quiet}
	enginetest.Scenario(t, func(in *enginetest.Rig) {
		r.Rig = in
		f(r)
		if r.pipe != nil {
			r.pipe.Stop()
		}
	}, func(in *enginetest.Rig) {
		in.Opts.Reserve = engine.Reserve{Bytes: 100}
		in.Parts = func() []engine.Part { r.part = part.All(); return r.part.Parts() }
	})
}

// start runs a plan with one input, "in", that the test feeds.
func (r *rig) start(outputs ...*Output) {
	r.Helper()
	r.part.Engine, r.part.Reads = r.Engine, r.Reads
	r.feed = &feed{into: make(chan connect.Intake, 1)}
	plan := &Plan{
		Name: "p", Flush: FlushDefault, Base: BaseDefault, Cap: CapDefault,
		Inputs: []*Input{{Name: "in", Source: r.feed}}, Outputs: outputs, Now: time.Now,
	}
	var err error
	if r.pipe, err = Start(r.Context(), r.part, plan, r.log); err != nil {
		r.Fatal(err)
	}
	r.feed.intake = <-r.feed.into
}

// restart ends the pipeline and the engine, or has the power cut, and begins anew with
// the same outputs.
func (r *rig) restart(again func(), outputs ...*Output) {
	r.Helper()
	r.pipe.Stop()
	again()
	r.start(outputs...)
}

// feed is a source that reads what a test gives it.
type feed struct {
	into   chan connect.Intake
	intake connect.Intake
}

func (f *feed) Run(ctx context.Context, into connect.Intake) error {
	f.into <- into
	<-ctx.Done()
	return nil
}

// take brings one line each in under a tag.
func (r *rig) take(tag string, lines ...string) {
	r.Helper()
	if err := r.feed.intake.Take(r.Context(), records(tag, lines...)); err != nil {
		r.Fatal(err)
	}
}

func records(tag string, lines ...string) connect.Records {
	x := connect.Records{Tag: tag, Count: len(lines)}
	for i, line := range lines {
		x.Events = record.AppendText(x.Events, record.Time{Sec: int64(i)}, "log", []byte(line))
	}
	return x
}

// target is a sink that answers by a script; the last answer repeats.
type target struct {
	answers []func(chunk []byte) connect.Result

	mu  sync.Mutex
	got []string // tag and lines of each call
}

func (s *target) Deliver(_ context.Context, b *connect.Batch) []connect.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &b.Messages[0]
	n := len(s.got)
	s.got = append(s.got, m.Type+": "+strings.Join(linesOf(m.Body), " "))
	return []connect.Result{s.answers[min(n, len(s.answers)-1)](m.Body)}
}

// turn lets the target answer otherwise from now on.
func (s *target) turn(answer func([]byte) connect.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = []func([]byte) connect.Result{answer}
}

func (s *target) Close() error { return nil }

func (s *target) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.got...)
}

func linesOf(chunk []byte) (lines []string) {
	path, _ := record.ParsePath("$log")
	for e := record.NewReader(chunk); e.Next(); {
		text, _ := record.Text(path.Find(e.Body))
		lines = append(lines, string(text))
	}
	return lines
}

// shownLines are the lines of a chunk as people see it.
func (r *rig) shownLines(payload []byte) (lines []string) {
	r.Helper()
	var list []struct{ Log string }
	if err := json.Unmarshal(payload, &list); err != nil {
		r.Fatalf("%s: %v", payload, err)
	}
	for _, x := range list {
		lines = append(lines, x.Log)
	}
	return lines
}

func says(o job.Outcome) func([]byte) connect.Result {
	return func([]byte) connect.Result {
		return connect.Result{Outcome: o, Failure: job.Failure{Type: "answer", Message: "as the script says"}}
	}
}

// output is one to a target that answers so, in order.
func output(name string, limit job.Limit, answers ...func([]byte) connect.Result) *Output {
	return &Output{Name: name, Sink: &target{answers: answers}, Limit: limit, Lanes: 2}
}

func (o *Output) calls() []string { return o.Sink.(*target).calls() }

// storeAll selects all jobs.
var storeAll engine.Filter
