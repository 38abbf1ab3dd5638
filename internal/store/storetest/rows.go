package storetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

var rows = []subject{
	{"of every table come back as they were set", rowsComeBack},
	{"page by key", rowPages},
	{"are due soonest first, ties by key", rowsDue},
	{"are read by their type, however many", rowsByType},
}

func fullRows() []job.Row {
	return []job.Row{
		&job.Queue{
			Name: "q", Order: job.OrderStart, Concurrency: 3, OnDead: job.DeadPark, FrontOrder: job.FrontLIFO,
			Paused: true, HoldUntil: 11, LateOKNever: true, RequireToken: true, NonIdempotent: true,
			Retry: job.Retry{
				Limit: job.Unlimited(), MaxAge: 12, Place: job.PlaceBack, LossLimit: job.LimitOf(4),
				Curve: &job.Curve{Kind: job.CurveExponential, Unit: 1, Factor: 2.5, Offset: 3, Cap: 4, Jitter: job.Jitter{Kind: job.JitterDecorrelated}},
				Rules: &job.Rules{{When: job.When{ErrorTypes: []string{"E"}}, Do: job.DoDead}, {Do: job.DoRetry, Limit: job.LimitOf(1)}},
			},
			MaxJobs: 13, MaxBytes: 14, OnFull: job.FullDropOldest, RunTimeout: 15, StartTimeout: 16, Turns: true, Outlet: true, GraceDelay: 40, AgeCap: 41,
			RetainDone: 17, RetainDead: 18,
			Protection: job.Protection{
				Breaker: new(job.DefaultBreaker()), GroupBreaker: new(job.DefaultBreaker()), Rate: job.Rate{PerSecond: 19.5},
				GroupRate: job.Rate{PerSecond: 20, Burst: 21}, MaxRunning: 22, Budget: new(job.DefaultBudget()),
				Fair: &job.FairShare{Weights: map[string]int{"g": 23}},
			},
			Grid: fullGrid(),
		},
		&job.Queue{Name: "ü", RetainDone: job.Unset, Retry: job.Retry{Limit: job.LimitOf(0)}},
		&job.Gate{Queue: "q", Group: "g", Hold: 21, Park: "breaker", Turn: 22, LastSeq: -23},
		&job.Gate{Queue: "q", Place: 24, Served: 25},
		&job.Gate{Queue: "q", Group: "turn", Served: 26},
		&job.Gate{Queue: "q", Group: "paused", Paused: true},
		&job.Gate{Queue: "q", Group: "paused later", Paused: true, Turn: 27, Place: 28},
		&job.Throttle{
			Queue: "q", Group: "g", State: job.BreakerRamping, Forced: true, Since: 51, Until: 52, Openings: 53,
			Allowed: 54, Out: 55, Won: 56, Step: 57, Slow: 58,
		},
		&job.Holder{Name: "h", Kind: job.Unary, Until: 31, Properties: map[string]string{"os": "linux", "": ""}},
		&job.Holder{Name: "h2", Kind: job.Named},
		&job.Holder{Name: "h3", Kind: job.Named, Engine: &job.GridEngine{
			Host: "ü", Slots: 32, Epoch: 33, LoggedIn: 34, Heard: 35, Health: job.Health{State: job.HealthProbed, Until: 36, Row: []job.FastFail{{Task: job.ID{2}, Elsewhere: true}}}, Polls: true, Draining: true, Lost: true, Awaited: true, Stopping: []uint64{1 << 63},
		}},
		&job.Session{
			Name: "q", State: job.SessionErrors, By: job.Actor{Name: "ann", From: "::1"}, Info: []byte(`{"a":1}`), Created: 1, Closed: 2, Ended: 3,
			Submitted: 4, Done: 5, Failed: 6, Cancelled: 7, Collected: 8, Forgotten: 10, Dropped: true, Why: "ü", Next: 9, Stalled: true,
			Strikes: []job.Strike{{Engine: "e", Tasks: []job.ID{{1}}, Count: 2, Last: 3, Until: 4, Out: true}},
		},
		&job.Session{Name: "bare"},
		&job.Receipt{Hash: [16]byte{1, 0, 255}, Content: [16]byte{2}, Job: job.ID{3}, Expires: 41},
		&job.Receipt{Hash: [16]byte{1, 0, 254}},
		&job.Reserve{Name: "seq", Next: -1},
		&job.Budget{Name: "b/1", Allocation: 71, Strategy: job.TimeBased, Duration: 72, Burst: 73, Created: 74, Updated: 75, Jobs: 76},
		&job.Budget{Name: "ü", Allocation: 1},
		fullReplay(),
		&job.Mark{Print: 1<<63 + 1, Muted: true, Paused: true, Note: "ü", By: job.Actor{Name: "ann", From: "::1"}, At: 51, Releasing: 52},
		&job.Credential{
			ID: "0a", Name: "ci", Hash: [32]byte{0, 1, 31: 255}, Scopes: job.ScopeWork | job.ScopeRead, Queues: []string{"mail-*", "ü"},
			Created: 64, Expires: 65, By: job.Actor{Name: "ann", From: "::1"},
		},
		&job.Audit{
			ID: job.ID{5}, At: 61, By: job.Actor{Name: "ann"}, Action: "replay", Subject: "queue q", Count: 62, Expires: 63,
			Changes: []job.Change{{Field: "rate", From: "null", To: `{"per_second":1}`}},
		},
		&job.CronGroup{Name: "nightly", Zone: "Europe/Berlin", Missed: job.MissedAll, Paused: true, PausedAt: 81, ResumedAt: 82},
		fullCronEntry(), &job.CronEntry{Group: "nightly", Name: "bare"},
	}
}

func fullGrid() *job.Grid {
	return &job.Grid{
		Profile: job.ProfileModern, Weight: 9, Suspended: true, Urgent: true, MaxEngines: 91, LossesCharged: true,
		EvictedPlace: job.PlaceBack, LostPlace: job.PlaceKeep, CopyPlace: job.PlaceFront, MaxCopies: 3, MaxReschedules: 92, OnTimeout: job.TimeoutReschedule,
		PollPeriod: 93, TimeoutSlack: 98, AffinityWait: 97, AnyHost: true, Collection: job.CollectNever, AutoCancel: job.AutoCancelAlways, Retain: 94, FenceWait: 95, ClientTimeout: 96, RetryElsewhere: true,
		Redundancy: new(job.DefaultRedundancy()), Exclusion: new(job.DefaultExclusion()),
	}
}

func fullReplay() *job.Replay {
	return &job.Replay{
		ID: job.ID{4}, Action: job.ActionDelete, By: job.Actor{Name: "ann", From: "::1"},
		Select: job.Selection{
			IDs: []job.ID{{1}, {2}}, Queues: []string{"q"}, Types: []string{"t"}, Groups: []string{""}, Reasons: []job.Reason{job.Lost},
			Prints: []job.Fingerprint{1<<63 + 1}, ErrorTypes: []string{"E"}, Text: "boom", DiedFrom: 1, DiedBefore: 2, AttemptsFrom: 3, AttemptsBelow: 4, Filter: ".a",
		},
		Rate: 0.1, Ramp: 5, Remaining: true, Place: job.PlaceBack, Allow: true, MaxReplays: 6,
		Created: 7, Finished: 8, Progress: job.Cancelled, Cursor: job.ID{3}, Total: 9, Done: 10, Refused: 11, Guarded: 12, Gone: 13, Conflict: 14,
		Paced: 14, At: 15, Next: 16,
	}
}

// fullCronEntry has a template with what an enqueue may choose.
func fullCronEntry() *job.CronEntry {
	return &job.CronEntry{
		Group: "nightly", Name: "a/b", Expression: "0 3 * * *", Zone: "Asia/Kathmandu", Missed: new(job.MissedSkip),
		Paused: true, PausedAt: 71, ResumedAt: 72,
		Job: &job.Job{
			Queue: "q", Type: "t", Group: "g", Priority: 5, State: job.Ready, RunTimeout: 6, StartTimeout: 7, Copies: 2, CopiesWanted: 1,
			Retry: &job.Retry{Limit: job.LimitOf(3)}, RetainDone: job.Unset, RetainDead: 8,
			Requires: []job.Requirement{{Property: "os", Op: "=", Value: "linux"}},
			Extras:   &job.Extras{Labels: []job.Label{{Key: "team", Value: "x"}}},
		},
		Place: job.PlaceFront, Payload: []byte(`{"n":1}`), Next: 73, Last: 74, LastJob: job.ID{6}, Skipped: 78,
		Error: "the queue is full", ErrorAt: 75, Failures: 76, Retry: 77,
	}
}

func rowsComeBack(x *site) {
	list := fullRows()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[job.Queue]()) {
		if reflect.ValueOf(list[0]).Elem().FieldByIndex(f.Index).IsZero() {
			x.Errorf("fullRows leaves the field %s empty", f.Name)
		}
	}
	for _, full := range []reflect.Value{reflect.ValueOf(*fullReplay()), reflect.ValueOf(fullReplay().Select), reflect.ValueOf(*fullCronEntry()), reflect.ValueOf(*fullGrid())} {
		for i := range full.NumField() {
			if full.Field(i).IsZero() {
				x.Errorf("the full %s leaves the field %s empty", full.Type().Name(), full.Type().Field(i).Name)
			}
		}
	}
	x.set(list...)
	for _, when := range []string{"at once", "after Reopen"} {
		x.view(func(r store.Reader) error {
			for _, row := range list {
				got, err := r.Row(row.Table(), row.Key())
				if err != nil || !reflect.DeepEqual(got, row) {
					x.Errorf("%s, got and want: %s (%v)", when, apart(got, row), err)
				}
			}
			return nil
		})
		x.reopen()
	}
	x.update(func(tx store.Tx) error {
		var errs []error
		for _, row := range list {
			errs = append(errs, tx.Unset(row.Table(), row.Key()), tx.Unset(row.Table(), "unheard of"))
		}
		return errors.Join(errs...)
	})
	for t := range job.Tables {
		x.expect("unset", x.keys(func(r store.Reader) ([]job.Row, error) { return r.Rows(t, "", 9) }), "")
	}
}

// rowsByType has a queue with more groups than are read at a time, between two others.
func rowsByType(x *site) {
	const groups = 1000
	list := []job.Row{job.NewQueue("q"), &job.Throttle{Queue: "p", Group: "g"}, &job.Throttle{Queue: "q"}, &job.Throttle{Queue: "q2"}}
	for i := range groups {
		list = append(list, &job.Throttle{Queue: "q", Group: fmt.Sprintf("%04d", i)})
	}
	x.set(list...)
	x.view(func(r store.Reader) error {
		q, err := store.Row[*job.Queue](r, "q")
		none, errNone := store.Row[*job.Queue](r, "q2")
		if q == nil || none != nil {
			x.Errorf("the queues are %v and %v", q, none)
		}
		some, errSome := store.Rows[*job.Throttle](r, job.GateKey("q", "0997"), 3)
		x.expect("behind a key", fmt.Sprintf("%d %s %s %s", len(some), some[0].Group, some[1].Group, some[2].Queue), "3 0998 0999 q2")
		var all []string
		errEach := store.EachRow(r, job.GateKey("p", "g"), func(t *job.Throttle) error { all = append(all, t.Queue+t.Group); return nil })
		x.expect("each", fmt.Sprintf("%d %s %s %s %s", len(all), all[0], all[1], all[len(all)-2], all[len(all)-1]), "1002 q q0000 q0999 q2")
		own, errOwn := store.RowsOfQueue[*job.Throttle](r, "q")
		x.expect("of a queue", fmt.Sprintf("%d %s %s", len(own), own[0].Group, own[len(own)-1].Group), "1001  0999")
		stop := errors.New("stop")
		if err := store.EachRow(r, "", func(*job.Throttle) error { return stop }); !errors.Is(err, stop) {
			x.Errorf("each goes on behind an error: %v", err)
		}
		return errors.Join(err, errNone, errSome, errEach, errOwn)
	})
}

func (x *site) keys(ask func(r store.Reader) ([]job.Row, error)) string {
	x.Helper()
	var keys []string
	x.view(func(r store.Reader) error {
		list, err := ask(r)
		keys = nil
		for _, row := range list {
			keys = append(keys, strings.TrimRight(nameOf(row), "\x00"))
		}
		return err
	})
	return strings.Join(keys, " ")
}

// nameOf is what rowOf was given to make the key of.
func nameOf(row job.Row) string {
	switch r := row.(type) {
	case *job.Replay:
		return string(r.ID[:])
	case *job.Audit:
		return string(r.ID[:])
	case *job.DoorSetting:
		return r.Name
	case *job.Cursor:
		return r.Source
	case *job.Mark:
		return string(binary.BigEndian.AppendUint64(nil, uint64(r.Print)))
	}
	return row.Key()
}

// rowOf makes a small row of a table; the key of a receipt is a hash.
func rowOf(t job.Table, key string, due job.Millis) job.Row {
	switch t {
	case job.Queues:
		q := job.NewQueue(key)
		q.HoldUntil = due
		return q
	case job.Gates:
		return &job.Gate{Queue: key, Hold: due, Turn: 1}
	case job.Holders:
		return &job.Holder{Name: key, Until: due}
	case job.Receipts:
		r := &job.Receipt{Expires: due}
		copy(r.Hash[:], key)
		return r
	case job.Replays:
		r := &job.Replay{Next: due}
		copy(r.ID[:], key)
		return r
	case job.Audits:
		a := &job.Audit{Expires: due}
		copy(a.ID[:], key)
		return a
	case job.Marks:
		var b [8]byte
		copy(b[:], key)
		return &job.Mark{Print: job.Fingerprint(binary.BigEndian.Uint64(b[:])), Releasing: due}
	case job.Throttles:
		return &job.Throttle{Queue: key, State: job.BreakerOpen, Until: due}
	case job.Credentials:
		return &job.Credential{ID: key, Name: "n", Scopes: job.ScopeRead}
	case job.CronGroups:
		return &job.CronGroup{Name: key}
	case job.CronEntries:
		return &job.CronEntry{Group: key, Next: due}
	case job.Budgets:
		return &job.Budget{Name: key, Allocation: 1}
	case job.Locks:
		return &job.Lock{Name: key, Fence: 1, Forget: due}
	case job.DoorSettings:
		return &job.DoorSetting{Door: job.DoorInbox, Name: key}
	case job.Sessions:
		return &job.Session{Name: key, Next: due}
	case job.Affinities:
		session, tag, _ := strings.Cut(key, "\x00")
		return &job.AffinityTag{Session: session, Tag: tag, Until: due}
	case job.Cursors:
		return &job.Cursor{Source: key}
	case job.Reserves, job.Tables:
	}
	return &job.Reserve{Name: key}
}

func rowPages(x *site) {
	for t := range job.Tables {
		for _, key := range []string{"b", "d", "a", "c"} {
			x.set(rowOf(t, key, 0))
		}
		for _, c := range []struct {
			after string
			n     int
			want  string
		}{{"", 9, "a b c d"}, {"", 2, "a b"}, {"", 0, ""}, {"b", 9, "c d"}, {"bb", 1, "c"}, {"d", 9, ""}} {
			after := c.after
			if after != "" {
				after = rowOf(t, after, 0).Key()
			}
			x.expect(fmt.Sprint("table ", t, " after ", c.after),
				x.keys(func(r store.Reader) ([]job.Row, error) { return r.Rows(t, after, c.n) }), c.want)
		}
	}
}

func rowsDue(x *site) {
	for t := range job.Tables {
		if t == job.Reserves || t == job.Credentials || t == job.CronGroups || t == job.Budgets || t == job.DoorSettings || t == job.Cursors {
			continue // never due
		}
		due := func(until job.Millis, n int) string {
			return x.keys(func(r store.Reader) ([]job.Row, error) { return r.DueRows(t, until, n) })
		}
		next := func(want job.Millis) {
			x.Helper()
			x.view(func(r store.Reader) error {
				if got := r.NextRow(t); got != want {
					x.Errorf("table %d: the next is due at %d, want %d", t, got, want)
				}
				return nil
			})
		}
		x.set(rowOf(t, "d", 30), rowOf(t, "c", 20), rowOf(t, "b", 20), rowOf(t, "a", 10), rowOf(t, "never", 0))
		x.expect("before all", due(9, 9), "")
		x.expect("some", due(20, 9), "a b c")
		x.expect("two", due(job.MaxMillis, 2), "a b")
		x.set(rowOf(t, "a", 40))
		x.expect("later now", due(job.MaxMillis, 9), "b c d a")
		next(20)
		x.reopen()
		x.expect("reopened", due(job.MaxMillis, 9), "b c d a")
		next(20)
		for _, key := range []string{"b", "c"} {
			x.update(func(tx store.Tx) error { return tx.Unset(t, rowOf(t, key, 0).Key()) })
		}
		x.expect("some unset", due(job.MaxMillis, 9), "d a")
		next(30)
		x.set(rowOf(t, "d", 0), rowOf(t, "a", 0))
		x.expect("never due", due(job.MaxMillis, 9), "")
		next(0)
	}
}
