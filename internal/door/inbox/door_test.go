package inbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/query"
)

// What is set over the API outlives a restart; what the configuration says wins
// at each start, and its secrets are not kept.
func TestInboxesComeBackAfterARestart(t *testing.T) {
	scenario(t, "", func(r *rig) {
		r.set("in", atOnce+byJSON+toHTTP[:len(toHTTP)-1])
		file := settings(t, `"group":{"json":".x"},"deliver":{"http":{"url":"http://f/","headers":{"A":"s3cret"}}}`)
		if err := r.Configure(r.Context(), []Named{{Name: "file", Settings: file, Secret: true}}); err != nil {
			t.Fatal(err)
		}
		rows, err := r.engine.Desk.Doors(r.Context(), job.DoorInbox)
		if err != nil || len(rows) != 2 || strings.Contains(string(rows[0].Body), "s3cret") || !strings.Contains(string(rows[0].Body), mask) {
			t.Fatalf("%s, %v", rows[0].Body, err)
		}
		again := settings(t, `"group":{"json":".y"},"deliver":{"http":{"url":"http://f/","headers":{"A":"s3cret"}}}`)
		r.stop()
		r.start(Named{Name: "file", Settings: again, Secret: true})
		if x := r.Get("file"); x == nil || x.Group.json != ".y" || x.HTTP.Headers["A"] != "s3cret" {
			t.Errorf("the inbox of the file is %+v", x)
		}
		r.put("g/m")
		r.expect("the inbox of the API works on", "0 m")

		r.stop()
		r.start() // the file names it no more, and its secret is not known
		r.accept("file", Message{Payload: []byte(`{"y":1}`)})
		r.until(60)
		r.expect("without its secret it takes messages in and delivers nothing", "")
		r.problem("file", "a header of its endpoint stood in the configuration, which does not name it any more")
		r.put("g/m2")
		r.expect("the inbox of the API works on", "60.001 m2")
	})
}

// An endpoint that may not be called any more stops its inbox, and no other.
func TestAnEndpointThatMustNotBeCalledStopsItsInboxOnly(t *testing.T) {
	scenario(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1], func(r *rig) {
		r.stop()
		r.allow = func(_ *HTTP, configured bool) error {
			if !configured {
				return &job.Error{Kind: job.Invalid, Field: "url", Text: "must not be called"}
			}
			return nil
		}
		r.start()
		r.put("g/m")
		r.expect("while it must not be called", "")
		r.look("1 in_progress, 1 groups ready")
		r.problem("in", "deliver.http.url: must not be called")
		s := settings(t, byJSON+`"deliver":{"http":{"url":"http://new/"}},"batch":{"mode":"fail_first","query":"none"}`)
		var bad *job.Error
		if err := r.Set(r.Context(), "in", s, job.Actor{}); !errors.As(err, &bad) || bad.Field != "deliver.http.url" {
			t.Errorf("%v", err)
		}
		r.allow = func(*HTTP, bool) error { return nil }
		if err := r.Set(r.Context(), "in", s, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.problem("in", "")
		r.expect("with settings that are allowed", "0 m")
	})
}

// What was in the way, such as a secret that is not there, is looked for again
// when the configuration is read again, and when the same settings are set.
func TestAnEndpointIsSetUpOnceItCanBe(t *testing.T) {
	const same = atOnce + byJSON + `"deliver":{"http":{"url":"http://target/","concurrent":1,"headers":{"A":"${file:k}"}}}`
	scenario(t, same, func(r *rig) {
		missing := func(*HTTP, bool) error {
			return &job.Error{Kind: job.Invalid, Field: "headers.A", Text: "there is no such file"}
		}
		there := func(*HTTP, bool) error { return nil }
		for i, again := range []func(){
			func() {
				if err := r.Configure(r.Context(), nil); err != nil {
					t.Fatal(err)
				}
			},
			func() { r.set("in", same) },
		} {
			r.stop()
			r.allow = missing
			r.start()
			id := fmt.Sprintf("m%d", i)
			r.put("g/" + id)
			if err := r.Configure(r.Context(), nil); err != nil {
				t.Errorf("one inbox must not keep others from a reload: %v", err)
			}
			r.problem("in", "deliver.http.headers.A: there is no such file")
			r.expect("without its secret", "")
			found, err := r.find(r.Context(), r.Get("in"), id)
			if err != nil {
				t.Fatal(err)
			}
			e, err := r.engine.Explain(r.Context(), found)
			if err != nil || len(e.Reasons) == 0 || !strings.Contains(r.Why(e, e.Reasons[0]), "there is no such file") {
				t.Errorf("the message is explained by %+v, %v", e.Reasons, err)
			}
			r.allow = there
			again()
			r.problem("in", "")
			r.expect("with its secret", "0 "+id)
		}
		closed := r.closed
		if err := r.Configure(r.Context(), nil); err != nil || r.closed != closed {
			t.Errorf("a reload took an inbox that works out of service: %v", err)
		}
		r.set("in", same) // its secret is read when it is set
		if r.closed != closed+1 {
			t.Error("the file of the secret was not read again")
		}
	})
}

// Of servers that share a store one runs an inbox at a time: a run that finds the
// lock taken is left out, and one that outlives it delivers nothing more.
func TestRunsTakeTheLockOfTheInbox(t *testing.T) {
	const polled = byJSON + toHTTP + `"batch":{"mode":"fail_first","query":{"pollInitialDelay":"PT5S","pollInterval":"PT5S"}}`
	scenario(t, "", func(r *rig) {
		r.o.LockMost, r.o.Node = 3*job.Second, "node-1"
		r.set("in", polled)
		other := job.LockAsk{Name: "inbox/in", By: "node-2", Most: 8 * job.Second}
		if _, got, err := r.engine.Locks.Take(r.Context(), other); !got || err != nil {
			t.Fatal(got, err)
		}
		r.put("g/m1", "g/m2", "g/m3")
		r.until(6)
		r.expect("while another server has the lock", "")
		r.replies(func(m *connect.Message) connect.Result {
			if m.ID == "m2" { // the sink would be told to end; what it delivers then, the next run repeats
				return connect.Result{Outcome: job.Released, Delay: 1}
			}
			return connect.Result{}
		})
		r.until(11)
		r.expect("when it is free", "10 m1, 10 m2")
		if s, err := r.engine.Locks.List(r.Context(), "", 9); err != nil || len(s) != 1 || s[0].Held || s[0].By != "node-1" {
			t.Errorf("after the run: %+v, %v", s, err)
		}
	})
}

// No message of an inbox that is full is taken in before an earlier one.
func TestAFullInboxRefusesTheWholeCall(t *testing.T) {
	scenario(t, atOnce+`"group":{"json":".g"}`, func(r *rig) {
		_, err := r.engine.Desk.SetQueue(r.Context(), "in", func(q *job.Queue) error { q.MaxJobs = 2; return nil }, job.Actor{})
		if err != nil {
			t.Fatal(err)
		}
		r.put("g/m1")
		x, _ := r.Find("in")
		in := x.NewIntake(r.Context(), []Message{{Payload: []byte(`{"g":1}`)}, {Payload: []byte(`{"g":2}`)}}, r.engine.Now())
		if err := in.Put(r.Context(), r.engine.Put); job.KindOf(err) != job.OverLimit {
			t.Errorf("%v, %+v", err, in.Out)
		}
		r.look("1 in_progress, 1 groups ready")
		var added []query.Listed
		if err := r.engine.Each(r.Context(), query.Search{}, func(l query.Listed) (bool, error) { added = append(added, l); return true, nil }); err != nil || len(added) != 1 {
			t.Error(added, err)
		}
	})
}

// Jobs without a group are no messages. An inbox is not made of their queue, and one
// of the configuration waits until they are gone: it keeps no server from starting.
func TestAnInboxIsNotMadeOfAQueueWithOtherWork(t *testing.T) {
	scenario(t, "", func(r *rig) {
		ctx := r.Context()
		var plain engine.NewJob
		plain.Job = job.Job{Queue: "q", Type: "t", RetainDone: job.Unset, RetainDead: job.Unset}
		if _, err := r.engine.Put(ctx, []engine.NewJob{plain, plain}); err != nil {
			t.Fatal(err)
		}
		s := settings(t, atOnce+byJSON+toHTTP[:len(toHTTP)-1])
		refused := func(kind job.Kind, text string, err error) {
			t.Helper()
			if err == nil || job.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
				t.Errorf("%v, want kind %d and %q", err, kind, text)
			}
		}
		const why = `queue "q" holds 2 jobs without a group, which are no messages; let workers finish them, move or delete them, or take another name`
		refused(job.Exists, why, r.Set(ctx, "q", s, job.Actor{}))
		if r.Get("q") != nil {
			t.Error("a refused inbox is there")
		}

		file := Named{Name: "q", Settings: s}
		r.stop()
		r.start(file)
		r.problem("q", why)
		list := []Message{{Payload: []byte(`{"g":"a"}`)}}
		in := r.Get("q").NewIntake(ctx, list, r.engine.Now())
		refused(job.WrongState, `queue "q" is no inbox`, in.Put(ctx, r.engine.Put))
		if n := r.Stuck(); n != 1 {
			t.Errorf("%d inboxes do not deliver", n)
		}
		if err := r.Configure(ctx, nil); err != nil || r.Get("q") != nil {
			t.Errorf("the configuration names it no more, and it is there: %v", err)
		}
		if err := r.Configure(ctx, []Named{file}); err != nil {
			t.Fatal(err)
		}
		refused(job.Exists, why, r.Set(ctx, "q", s, job.Actor{}))
		held, err := r.engine.Lease(ctx, engine.LeaseOptions{Queues: []string{"q"}, Max: 2})
		if err != nil || len(held) != 2 {
			t.Fatalf("workers of the queue got %d, %v", len(held), err)
		}
		for _, d := range held {
			if _, err := r.engine.Settle(ctx, []engine.Settle{{ID: d.Job.ID, Token: d.Lease.Token, Outcome: job.OK}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Configure(ctx, []Named{file}); err != nil {
			t.Fatal(err)
		}
		r.problem("q", "")
		paused := func(q *job.Queue) error { q.Paused = true; return nil } // else a message may be delivered before
		if _, err := r.engine.Desk.ChangeQueue(ctx, "q", paused, job.Actor{}); err != nil {
			t.Fatal(err)
		}
		r.accept("q", list...)
		if err := r.Delete(ctx, "q", job.Actor{}); job.KindOf(err) != job.WrongState {
			t.Errorf("an inbox with a message is deleted: %v", err)
		}
	})
}
