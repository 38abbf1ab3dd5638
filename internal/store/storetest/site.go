package storetest

import (
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// site is a store under test, in a world of its own, with short verbs that
// end the test when they fail. The type of a job is its name in the test.
type site struct {
	*testing.T
	*world
	s      store.Store
	closed bool // no check afterwards
}

// update runs a durable transaction and waits for it.
func (x *site) update(fn func(tx store.Tx) error) {
	x.Helper()
	if err := write(x, fn); err != nil {
		x.Fatal(err)
	}
}

func write(x *site, fn func(tx store.Tx) error) error {
	c, err := x.s.Update(x.Context(), func(tx store.Tx) error {
		tx.Durable()
		return fn(tx)
	})
	if err != nil {
		return err
	}
	return c.Wait()
}

func (x *site) view(fn func(r store.Reader) error) {
	x.Helper()
	if err := x.s.View(x.Context(), fn); err != nil {
		x.Fatal(err)
	}
}

// with changes a Put before it happens.
type with func(c *rule.Command)

func edit(f func(j *job.Job)) with { return func(c *rule.Command) { f(c.New) } }
func group(name string) with       { return edit(func(j *job.Job) { j.Group = name }) }
func priority(p uint16) with       { return edit(func(j *job.Job) { j.Priority = p }) }
func copied(n uint8) with          { return edit(func(j *job.Job) { j.Copies = n }) }
func payload(ref job.ID, size uint32) with {
	return edit(func(j *job.Job) { j.Payload, j.PayloadSize = ref, size })
}

func kept(done, dead job.Millis) with {
	return edit(func(j *job.Job) { j.RetainDone, j.RetainDead = done, dead })
}
func readyAt(m job.Millis) with             { return edit(func(j *job.Job) { j.ReadyAt = m }) }
func expiresAt(m job.Millis) with           { return edit(func(j *job.Job) { j.ExpiresAt = m }) }
func requires(list ...job.Requirement) with { return edit(func(j *job.Job) { j.Requires = list }) }
func atFront() with                         { return func(c *rule.Command) { c.Place = job.PlaceFront } }

func needs(prop, value string) with {
	return requires(job.Requirement{Property: prop, Op: "=", Value: value})
}

// newJob is a job as asked for.
func (x *site) newJob(queue, name string, how ...with) rule.Command {
	c := rule.Command{New: &job.Job{
		ID: x.id(), Queue: queue, Type: name, Priority: job.PriorityDefault,
		RetainDone: job.Unset, RetainDead: job.Unset,
	}}
	for _, w := range how {
		w(&c)
	}
	return c
}

// put brings a job in, in a transaction of its own.
func (x *site) put(queue, name string, how ...with) *job.Job {
	x.Helper()
	var j *job.Job
	c := x.newJob(queue, name, how...)
	x.update(func(tx store.Tx) (err error) {
		j, err = x.world.put(tx, c)
		return err
	})
	return j
}

// do applies a verb to a job and returns the job as it is then.
func (x *site) do(j *job.Job, c rule.Command) *job.Job {
	x.Helper()
	var e rule.Effect
	x.update(func(tx store.Tx) (err error) {
		e, err = x.step(tx, j.ID, c)
		return err
	})
	return e.Job
}

// take gives a job to a holder.
func (x *site) take(j *job.Job, holder string) *job.Job {
	x.Helper()
	return x.do(j, rule.Command{Verb: rule.Take, Lease: &job.Lease{Token: x.token(), Holder: holder, Kind: job.Named}})
}

// settle ends the first lease of a job.
func (x *site) settle(j *job.Job, v rule.Verb) *job.Job {
	x.Helper()
	return x.do(j, rule.Command{Verb: v, Token: j.Leases[0].Token})
}

// set keeps rows.
func (x *site) set(list ...job.Row) {
	x.Helper()
	x.update(func(tx store.Tx) error {
		for _, row := range list {
			if err := tx.Set(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// queue changes the settings of a queue.
func (x *site) queue(name string, change func(q *job.Queue)) {
	x.Helper()
	x.update(func(tx store.Tx) error {
		q, err := queueOf(tx, name)
		if err != nil {
			return err
		}
		changed := *q
		change(&changed)
		return tx.Set(&changed)
	})
}

// expect compares what came out, written as text.
func (x *site) expect(what, got, want string) {
	x.Helper()
	if got != want {
		x.Errorf("%s: got %.200q, want %.200q", what, got, want)
	}
}

// line returns the names of the jobs the seeker may take, in line order.
func (x *site) line(s rule.Seeker, n int, queues ...string) string {
	x.Helper()
	var list []*job.Job
	x.view(func(r store.Reader) (err error) {
		list, err = r.Ready(queues, s, n)
		return err
	})
	return names(list)
}

// offered expects what anybody may take from all queues.
func (x *site) offered(what, want string) {
	x.Helper()
	x.expect(what, x.line(rule.Seeker{Holder: "anybody"}, 100), want)
}

func names(list []*job.Job) string {
	var b []string
	for _, j := range list {
		b = append(b, j.Type)
	}
	return strings.Join(b, " ")
}

// ids asks for ids and returns the names of their jobs.
func (x *site) ids(ask func(r store.Reader) ([]job.ID, error)) string {
	x.Helper()
	var list []*job.Job
	x.view(func(r store.Reader) error {
		list = nil
		ids, err := ask(r)
		for _, id := range ids {
			j, e := r.Get(id)
			if e != nil || j == nil {
				x.Fatalf("an answer names job %s, which Get does not find (%v)", id, e)
			}
			list = append(list, j)
		}
		return err
	})
	return names(list)
}
