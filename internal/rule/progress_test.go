package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

func TestWhatAWorkerLeavesOutOfItsProgressStays(t *testing.T) { // spec/jobs.md, progress
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Extras = &job.Extras{Traceparent: "t"} })
	token := w.take("a", "x")
	tell := func(p job.RunProgress, want job.RunProgress) {
		t.Helper()
		w.tick(5)
		w.do("a", Command{Verb: Extend, Token: token, Progress: &p})
		want.At = w.now
		x := w.jobs["a"].Extras
		if x == nil || x.Traceparent != "t" || x.Progress.Fraction != want.Fraction || x.Progress.Text != want.Text ||
			string(x.Progress.Checkpoint) != string(want.Checkpoint) || x.Progress.At != want.At {
			t.Errorf("knows %+v, want %+v", x.Progress, want)
		}
	}
	tell(job.RunProgress{Fraction: 0, Text: "begun"}, job.RunProgress{Fraction: 0, Text: "begun"})
	tell(job.RunProgress{Fraction: job.FractionUnset, Checkpoint: []byte("1")}, job.RunProgress{Text: "begun", Checkpoint: []byte("1")})
	tell(job.RunProgress{Fraction: 1}, job.RunProgress{Fraction: 1, Text: "begun", Checkpoint: []byte("1")})
	w.do("a", Command{Verb: SettleRetry, Token: token})
	w.tick(job.Day)
	w.do("a", Command{Verb: Promote})
	w.take("a", "y")
	if p := w.jobs["a"].Extras.Progress; p.Fraction != job.FractionUnset || p.Text != "" || string(p.Checkpoint) != "1" {
		t.Errorf("the next attempt knows %+v", p)
	}
}

func TestAFurtherCopyLeavesTheProgressOfTheFirst(t *testing.T) {
	w := newWorld(t)
	w.put("a", func(j *job.Job) { j.Copies = 2 })
	token := w.take("a", "x")
	w.do("a", Command{Verb: Extend, Token: token, Progress: &job.RunProgress{Fraction: 0.5}})
	w.take("a", "y")
	if x := w.jobs["a"].Extras; x == nil || x.Progress.Fraction != 0.5 {
		t.Errorf("knows %+v", x)
	}
}

func TestWithoutACheckpointNothingIsLeftOfAnAttempt(t *testing.T) {
	w := newWorld(t)
	w.put("a")
	token := w.take("a", "x")
	w.do("a", Command{Verb: Extend, Token: token, Progress: &job.RunProgress{Fraction: 0.5}})
	w.do("a", Command{Verb: SettleRelease, Token: token})
	w.take("a", "y")
	if x := w.jobs["a"].Extras; x != nil {
		t.Errorf("knows %+v", x)
	}
}
