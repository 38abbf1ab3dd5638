package storetest

import (
	"errors"
	"reflect"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var payloads = []subject{
	{"live as long as some job refers to them", payloadLife},
	{"that are empty are not gone", emptyPayload},
	{"go over to another job in one transaction", payloadPassedOn},
	{"that no job refers to are not kept", payloadOfNobody},
	{"are replaced by an edit", payloadEdited},
	{"grow for all jobs that share them", payloadGrows},
	{"of results live as long as their job", resultLife},
	{"of results come back in their job or beside it", anyResult},
}

// body expects what is kept under a ref; "" = nothing.
func (x *site) body(when string, ref job.ID, want string) {
	x.Helper()
	body, err := store.Payload(x.s, ref)
	if err != nil || string(body) != want || (body == nil) != (want == "") {
		x.Errorf("%s: got %q (%v), want %q", when, body, err, want)
	}
	x.view(func(r store.Reader) error {
		if peeked := r.Peek(ref); peeked != nil && string(peeked) != want {
			x.Errorf("%s: Peek says %q, want %q or nothing", when, peeked, want)
		}
		return nil
	})
}

// putWith brings a job in with a payload that is new.
func (x *site) putWith(name, body string, own bool) *job.Job {
	x.Helper()
	c := x.newJob("q", name)
	c.New.Payload, c.New.PayloadSize = c.New.ID, uint32(len(body))
	if !own {
		c.New.Payload = x.id()
	}
	var j *job.Job
	x.update(func(tx store.Tx) (err error) {
		j, err = x.world.put(tx, c)
		return errors.Join(err, tx.PutPayload(c.New.Payload, []byte(body)))
	})
	return j
}

// end makes a job go away.
func (x *site) end(j *job.Job) {
	x.Helper()
	x.settle(x.take(j, "h"), rule.SettleOK)
}

func payloadLife(x *site) {
	for _, own := range []bool{true, false} { // under the id of its job or not
		a := x.putWith("a", "hello", own)
		b := x.put("q", "b", payload(a.Payload, 5))
		c := x.put("q", "c", payload(a.Payload, 5), kept(job.Unset, job.Hour))
		x.end(a)
		x.body("shared by two more", a.Payload, "hello")
		x.reopen()
		x.body("reopened", a.Payload, "hello")
		x.end(b)
		x.do(c, rule.Command{Verb: rule.Cancel})
		x.body("kept by a dead job", a.Payload, "hello")
		x.do(c, rule.Command{Verb: rule.Purge})
		x.body("nobody refers to it", a.Payload, "")
	}
}

func emptyPayload(x *site) {
	a := x.putWith("a", "", true)
	for range 2 {
		body, err := store.Payload(x.s, a.Payload)
		if body == nil || len(body) > 0 || err != nil {
			x.Errorf("got %v, %v", body, err)
		}
		x.reopen()
	}
}

func payloadPassedOn(x *site) {
	for _, own := range []bool{true, false} {
		a := x.putWith("a", "hello", own)
		var b *job.Job
		x.update(func(tx store.Tx) (err error) {
			if err = tx.Write(a, nil); err == nil {
				b, err = x.world.put(tx, x.newJob("q", "b", payload(a.Payload, 5)))
			}
			return err
		})
		x.body("passed on", a.Payload, "hello")
		x.end(b)
		x.body("gone", a.Payload, "")
	}
	c := x.newJob("q", "c", payload(x.id(), 1))
	x.update(func(tx store.Tx) error {
		j, err := x.world.put(tx, c)
		return errors.Join(err, tx.PutPayload(j.Payload, []byte("x")), tx.Write(j, nil))
	})
	x.body("came and went", c.New.Payload, "")
}

func payloadOfNobody(x *site) {
	ref := x.id()
	_ = write(x, func(tx store.Tx) error { return tx.PutPayload(ref, []byte("x")) }) // may be refused
	x.body("an orphan", ref, "")
}

func payloadEdited(x *site) {
	a := x.putWith("a", "old", true)
	ref := x.id()
	x.update(func(tx store.Tx) error {
		old, err := tx.Get(a.ID)
		if err != nil {
			return err
		}
		edited := old.Clone()
		edited.Payload, edited.PayloadSize = ref, 5
		return errors.Join(tx.PutPayload(ref, []byte("newer")), tx.Write(old, edited))
	})
	x.body("old", a.Payload, "")
	x.body("new", ref, "newer")
	x.reopen()
	x.end(a)
	x.body("gone", ref, "")
}

// payloadGrows: in the transaction that brings it, and in later ones.
func payloadGrows(x *site) {
	c := x.newJob("q", "a")
	c.New.Payload, c.New.PayloadSize = c.New.ID, 6
	var jobs []*job.Job
	x.update(func(tx store.Tx) error {
		a, err := x.world.put(tx, c)
		err = errors.Join(err, tx.PutPayload(c.New.Payload, []byte("hel")), tx.AppendPayload(c.New.Payload, []byte("lo,")))
		b, berr := x.world.put(tx, x.newJob("r", "b", payload(c.New.Payload, 6)))
		jobs = []*job.Job{a, b}
		return errors.Join(err, berr)
	})
	x.body("in one transaction", c.New.Payload, "hello,")
	_ = write(x, func(tx store.Tx) error {
		return errors.Join(tx.AppendPayload(c.New.Payload, []byte("lost")), errors.New("taken back"))
	})
	x.body("taken back", c.New.Payload, "hello,")
	for _, more := range []string{" wor", "ld"} {
		x.update(func(tx store.Tx) error {
			err := tx.AppendPayload(c.New.Payload, []byte(more))
			for _, j := range jobs {
				old, gerr := tx.Get(j.ID)
				grown := old.Clone()
				grown.PayloadSize += uint32(len(more))
				err = errors.Join(err, gerr, tx.Write(old, grown))
			}
			return err
		})
	}
	x.view(func(r store.Reader) error {
		if got := r.Depth("r").Bytes; got != 12 {
			x.Errorf("the queue holds %d bytes, want 12", got)
		}
		return nil
	})
	x.body("grown", c.New.Payload, "hello, world")
	x.end(jobs[0])
	x.reopen()
	x.body("reopened", c.New.Payload, "hello, world")
	x.end(jobs[1])
	x.body("gone", c.New.Payload, "")
}

// resultLife: a result is a payload that a done job refers to beside its own,
// and that another job may have as its payload.
func resultLife(x *site) {
	ref, c := x.id(), x.newJob("q", "a", kept(job.Hour, job.Unset))
	c.New.Payload, c.New.PayloadSize = c.New.ID, 5
	var a, done *job.Job
	x.update(func(tx store.Tx) (err error) {
		a, err = x.world.put(tx, c)
		return errors.Join(err, tx.PutPayload(a.Payload, []byte("hello")))
	})
	a = x.take(a, "h")
	x.update(func(tx store.Tx) error {
		e, err := x.step(tx, a.ID, rule.Command{
			Verb: rule.SettleOK, Token: a.Leases[0].Token, Result: &job.Result{Ref: ref, Size: 4},
		})
		done = e.Job
		return errors.Join(err, tx.PutPayload(ref, []byte("made")))
	})
	if done == nil || done.Result() == nil {
		x.Fatalf("the job has no result: %+v", done)
	}
	for range 2 {
		x.body("payload", a.Payload, "hello")
		x.body("result", ref, "made")
		x.reopen()
	}
	_ = write(x, func(tx store.Tx) error { return errors.Join(tx.Write(done, nil), errors.New("no")) })
	x.body("taken back", ref, "made")
	b := x.put("q", "b", payload(ref, 4))
	x.do(done, rule.Command{Verb: rule.Purge})
	x.body("payload of a job that is gone", a.Payload, "")
	x.body("the payload of another job", ref, "made")
	x.reopen()
	x.body("the payload of another job", ref, "made")
	x.end(b)
	x.body("nobody refers to it", ref, "")
}

// anyResult: a result comes back, in its job or as a payload, however often the
// store is opened, and goes with its job. An empty one is not none.
func anyResult(x *site) {
	for _, made := range []string{"", "1", strings.Repeat("1", job.ResultInline), strings.Repeat("1", job.ResultInline+1)} {
		a := x.take(x.put("q", "a", kept(job.Hour, job.Unset)), "h")
		want := job.InlineResult([]byte(made))
		if len(made) > job.ResultInline {
			want = &job.Result{Ref: x.id(), Size: want.Size}
		}
		var done *job.Job
		x.update(func(tx store.Tx) error {
			e, err := x.step(tx, a.ID, rule.Command{Verb: rule.SettleOK, Token: a.Leases[0].Token, Result: want})
			if done = e.Job; err == nil && want.Bytes == nil {
				err = tx.PutPayload(want.Ref, []byte(made))
			}
			return err
		})
		for range 2 {
			x.view(func(r store.Reader) error {
				got, err := r.Get(a.ID)
				if !reflect.DeepEqual(got.Result(), want) {
					x.Errorf("%d bytes were made: got %+v, want %+v", len(made), got.Result(), want)
				}
				return err
			})
			if want.Bytes == nil {
				x.body("result", want.Ref, made)
			}
			x.reopen()
		}
		_ = write(x, func(tx store.Tx) error { return errors.Join(tx.Write(done, nil), errors.New("no")) })
		x.do(done, rule.Command{Verb: rule.Purge})
		x.body("nobody refers to it", want.Ref, "")
	}
}
