package embedded

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// sampleJobs are jobs that between them have every optional field.
func sampleJobs() []*job.Job {
	id, other := job.ID{1, 2, 3}, job.ID{15: 9}
	limit := job.LimitOf(3)
	plain := &job.Job{
		ID: id, Payload: id, State: job.Ready, Queue: "mail", Type: "welcome", Priority: job.PriorityDefault, Band: job.BandNormal,
		Seq: 7, Created: 1_700_000_000_000, ReadyAt: 1_700_000_000_000, PayloadSize: 12,
		Copies: 1, CopiesWanted: 1, RetainDone: job.Unset, RetainDead: job.Unset,
	}
	full := *plain
	full.State, full.Order, full.Group, full.Park, full.Band = job.Leased, job.OrderStrict, "g", "hold", job.BandFront
	full.ExpiresAt, full.GraceUntil, full.RunTimeout, full.StartTimeout, full.LastDelay = 5, 6, 7, 8, 9
	full.DequeuedAt, full.FailedAt, full.CompletedAt, full.PurgeAt, full.RevivedAt = 1, 2, 3, 4, 5
	full.Attempts, full.Losses, full.Evictions, full.Reschedules = 1, 2, 3, 4
	full.Deliveries, full.Suppressed, full.Overrides, full.Failures = 5, 6, 7, 1<<32-1
	full.Copies, full.CopiesWanted, full.Retry = 3, 2, &job.Retry{Limit: limit}
	full.RetainDone, full.RetainDead, full.Payload, full.BlocksGroup, full.Isolated = 0, job.Day, other, true, true
	full.Requires = []job.Requirement{{Property: "cpu", Op: ">=", Value: "4"}, {Property: "region", Op: "=", Value: "eu"}}
	full.Leases = []job.Lease{
		{Token: job.Token{19: 1}, Holder: "w/a", Kind: job.Named, Since: 1, Started: 2, Until: 3, RunEnd: 4, StartBy: 5, Turn: 6, Exclusive: true},
		{Token: job.Token{1}, Holder: "u/b", Kind: job.Unary, Until: 1 << 40},
	}
	full.Ended = []job.Ended{{Hash: 1, How: job.ByLapse}, {Hash: 1 << 63, How: job.ByTimeout, Turn: -1}}
	dead := *plain
	dead.State, dead.Reason, dead.ReadyAt, dead.Seq = job.Dead, job.Exhausted, 0, -7
	dead.Print, dead.DiedAt, dead.Replays = 1<<63+5, 6, 7
	full.Wait = job.Wait{By: job.WaitGrace, Rule: 255}
	done := *plain
	done.State, done.CompletedAt, done.PurgeAt = job.Done, 8, 9
	done.Extras = &job.Extras{Result: &job.Result{Ref: other, Size: 1<<32 - 1}}
	inline, empty := done, done
	inline.Extras = &job.Extras{Traceparent: "t", Result: job.InlineResult([]byte("[1]")), Attempts: []job.Attempt{{Number: 1, Ended: 8}}}
	empty.Extras = &job.Extras{Result: job.InlineResult(nil)}
	return []*job.Job{plain, &full, &dead, &done, &inline, &empty}
}

func damaged(t *testing.T, what string, err error) {
	t.Helper()
	if job.KindOf(err) != job.Corrupt || !strings.Contains(err.Error(), "restore a backup") {
		t.Fatalf("%s is refused with %v", what, err)
	}
}

// inRange checks that every word of a decoded job has a name: one that has
// none would panic as soon as somebody prints it.
func inRange(j *job.Job) {
	_ = j.State.String() + j.Reason.String() + j.Order.String() + j.Wait.By.String()
	for _, l := range j.Leases {
		_ = l.Kind.String()
	}
	for _, e := range j.Ended {
		_ = e.How.String()
	}
}

// FuzzJobCodec: whatever is on disk is a job or damaged; a job is written and
// read back the same, and has no other form that is longer than it was.
func FuzzJobCodec(f *testing.F) {
	for _, j := range sampleJobs() {
		f.Add(j.ID[:], appendJob(nil, j))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		var id job.ID
		copy(id[:], key)
		j, err := decodeJob(id, value, newNames())
		if err != nil {
			damaged(t, "the job", err)
			return
		}
		inRange(j)
		written := appendJob(nil, j)
		again, err := decodeJob(id, written, nil)
		if err != nil || !reflect.DeepEqual(again, j) {
			t.Fatalf("%+v\ncame back as\n%+v, %v", j, again, err)
		}
		if twice := appendJob(nil, again); !bytes.Equal(twice, written) {
			t.Fatalf("written as %x, and again as %x", written, twice)
		}
	})
}

func sampleRows() []job.Row {
	queue := job.NewQueue("mail")
	queue.Order, queue.OnDead, queue.MaxJobs, queue.HoldUntil = job.OrderStrict, job.DeadBlock, 5, 7
	queue.Retry = job.Retry{Limit: job.LimitOf(2), Curve: &job.Curve{Kind: job.CurveConstant, Delay: 5}}
	guarded := job.NewQueue("guarded")
	guarded.Protection = job.Protection{
		Breaker: new(job.DefaultBreaker()), GroupBreaker: new(job.DefaultBreaker()), Rate: job.Rate{PerSecond: 5, Burst: 2},
		MaxRunning: 3, Budget: new(job.DefaultBudget()), Fair: &job.FairShare{Weights: map[string]int{"g": 2}},
	}
	return []job.Row{
		queue, job.NewQueue("q"), guarded,
		&job.Holder{Name: "w/host", Kind: job.Named, Until: 5, Properties: map[string]string{"cpu": "4"}},
		&job.Holder{Name: "w/bare"},
		&job.Holder{Name: "engine/e1", Properties: map[string]string{}, Engine: &job.GridEngine{
			Host: "h", Slots: 4, Epoch: 1 << 40, LoggedIn: 1, Heard: 2, Polls: true, Lost: true,
			Health:   job.Health{State: job.HealthProbed, Until: 9, Row: []job.FastFail{{Task: job.ID{1}}, {Task: job.ID{2}, Elsewhere: true}}},
			Stopping: []uint64{1, 1<<64 - 1},
		}},
		&job.Holder{Name: "engine/e2", Engine: &job.GridEngine{Slots: 1, Draining: true, Awaited: true}},
		&job.Session{Name: "s"},
		&job.Session{
			Name: "s2", State: job.SessionCancelling, By: job.Actor{Name: "ann", From: "::1"}, Info: []byte("{}"), Created: 1, Closed: 2, Ended: 3,
			Submitted: 1 << 40, Done: 5, Failed: 6, Cancelled: 7, Depends: true, Tags: 8, Collected: 9, Forgotten: 10, Dropped: true, Why: "w", Next: 11,
			Strikes: []job.Strike{{Engine: "e", Tasks: []job.ID{{1}, {2}}, Count: 3, Last: 4, Until: 5, Out: true}, {Engine: "f"}}, Stalled: true,
		},
		&job.Gate{Queue: "q", Group: "g", Hold: 1, Park: "hold", Turn: 3, LastSeq: -4},
		&job.Gate{Queue: "q", Group: "", Place: 5, Served: 1},
		&job.Throttle{Queue: "q", Group: "g", State: job.BreakerHalfOpen, Since: 1, Until: 2, Openings: 3, Allowed: 1, Out: 1, Slow: 9},
		&job.Receipt{Hash: [16]byte{1}, Content: [16]byte{2}, Job: job.ID{3}, Expires: 4},
		&job.Reserve{Name: "seq", Next: 1 << 40},
		&job.Replay{ID: job.ID{1}, Action: job.ActionDelete, Select: job.Selection{IDs: []job.ID{{2}}, Reasons: []job.Reason{job.Lost}}, Rate: 2.5, Next: 7},
		&job.Mark{Print: 1<<63 + 5, Muted: true, Note: "n"},
		&job.CronGroup{Name: "nightly", Zone: "Europe/Berlin", Missed: job.MissedAll, Paused: true, PausedAt: 5},
		&job.CronEntry{Group: "nightly", Name: "a/b", Expression: "0 3 * * *", Job: sampleJobs()[0], Payload: []byte("{}"), Next: 7, Error: "full", Retry: 9},
		&job.Audit{ID: job.ID{3}, At: 4, By: job.Actor{Name: "ann", From: "::1"}, Action: "replay", Subject: "s", Count: 5, Expires: 6},
		&job.Lock{Name: "nightly", Fence: 7, Token: job.Token{1, 255}, By: "a@h", At: 1, Span: 5, Until: 2, Least: 3, Given: true, Forget: 4},
		&job.Lock{Name: "asked", Fence: 8, Token: job.Token{2}, By: "a@h", Until: 2, Forget: 4, Request: job.LockRequest{1, 255}},
		&job.DoorSetting{Door: job.DoorInbox, Name: "reservations", Body: []byte(`{"group":{"json":".orderId"}}`)},
		&job.Credential{ID: "0a", Name: "ci", Hash: [32]byte{1, 255}, Scopes: job.ScopeWork, Queues: []string{"mail-*"}, Created: 7, Expires: 8},
	}
}

// FuzzRowCodec does the same for the rows of every table, and for failure
// records, which are table Tables here.
func FuzzRowCodec(f *testing.F) {
	for _, row := range sampleRows() {
		b, err := appendRow(nil, row)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(row.Table()), row.Key(), b)
	}
	f.Add(byte(job.Tables), "", appendFailure(nil, &job.Failure{Attempt: 2, Type: "E", Message: "m", Backtrace: "b", Holder: "w/h", Status: 503, Started: 1, Failed: 2}))
	f.Fuzz(func(t *testing.T, table byte, key string, value []byte) {
		if job.Table(table) == job.Tables {
			failureRoundTrips(t, value)
			return
		}
		row, err := decodeRow(job.Table(table), key, value)
		if err != nil {
			damaged(t, "the row", err)
			return
		}
		if row.Key() != key || row.Table() != job.Table(table) {
			t.Fatalf("row %q of table %d was read under %q of table %d", row.Key(), row.Table(), key, table)
		}
		if q, ok := row.(*job.Queue); ok {
			_ = q.Order.String() + q.OnDead.String() + q.FrontOrder.String() + q.OnFull.String()
		}
		if h, ok := row.(*job.Holder); ok {
			_ = h.Kind.String()
		}
		written, err := appendRow(nil, row)
		if err != nil {
			t.Fatalf("%+v cannot be written: %v", row, err)
		}
		again, err := decodeRow(job.Table(table), key, written)
		if err != nil || !reflect.DeepEqual(again, row) {
			t.Fatalf("%+v\ncame back as\n%+v, %v", row, again, err)
		}
	})
}

func failureRoundTrips(t *testing.T, value []byte) {
	t.Helper()
	failure, err := decodeFailure(3, value)
	if err != nil {
		damaged(t, "the failure", err)
		return
	}
	again, err := decodeFailure(3, appendFailure(nil, &failure))
	if err != nil || again != failure {
		t.Fatalf("%+v\ncame back as\n%+v, %v", failure, again, err)
	}
}
