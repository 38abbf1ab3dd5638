package rule

import (
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// docs/jobs.md, "How long a finished job is kept".
func TestAFewFinishedJobsOfAQueueAreKept(t *testing.T) {
	const none = job.Millis(0)
	for _, x := range []struct {
		what   string
		kept   int64
		queues int
		asked  func(*job.Job, *job.Queue)
		result uint32
		want   job.Millis
	}{
		{what: "the first", want: job.Hour},
		{what: "the 50th", kept: 49, want: job.Hour},
		{what: "the 51st", kept: 50, want: job.Minute},
		{what: "the 100th", kept: 99, want: job.Minute},
		{what: "the 101st", kept: 100, want: none},
		{what: "of 1,000 queues", queues: 1000, want: job.Hour},
		{what: "of more queues", queues: 1001, want: none},
		{what: "a large payload", asked: func(j *job.Job, _ *job.Queue) { j.PayloadSize = 64<<10 + 1 }, want: none},
		{what: "a large result", result: 64<<10 + 1, want: none},
		{what: "64 KiB in all", asked: func(j *job.Job, _ *job.Queue) { j.PayloadSize = 60 << 10 }, result: 4 << 10, want: job.Hour},
		{what: "a key until it is gone", asked: uniqueKey(job.WhileExists), want: none},
		{what: "a key until it is finished", asked: uniqueKey(job.WhileActive), want: job.Hour},
		{what: "the job says so", asked: func(j *job.Job, _ *job.Queue) { j.RetainDone = 7 }, kept: 100, want: 7},
		{what: "the queue says no", asked: func(_ *job.Job, q *job.Queue) { q.RetainDone = 0 }, want: none},
	} {
		w := newWorld(t)
		w.server.RetainDone = RetainRecent
		w.put("a", func(j *job.Job) {
			if x.asked != nil {
				x.asked(j, w.queue)
			}
		})
		token := w.take("a", "h")
		v := w.view(w.jobs["a"])
		v.Kept = func(string) (int64, int) { return x.kept, x.queues }
		eff, err := Step(v, Command{Verb: SettleOK, Token: token, Result: &job.Result{Size: x.result}})
		switch {
		case err != nil:
			t.Errorf("%s: %v", x.what, err)
		case x.want == none && (eff.Job != nil || eff.Gone != job.Done):
			t.Errorf("%s: it is kept", x.what)
		case x.want != none && (eff.Job == nil || eff.Job.PurgeAt != dawn+x.want):
			t.Errorf("%s: %+v", x.what, eff.Job)
		}
	}
}

func uniqueKey(while job.UniqueScope) func(*job.Job, *job.Queue) {
	return func(j *job.Job, _ *job.Queue) { j.Extras = &job.Extras{Unique: &job.Unique{Key: "k", While: while}} }
}
