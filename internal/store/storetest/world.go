package storetest

import (
	"math/rand/v2"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// world is where ids, tokens, line positions, dice and the time of the steps
// come from. Two stores that are compared share one, so that what is written
// to them is the same; the time of the stores themselves plays no part.
type world struct {
	rng    *rand.Rand
	ids    *job.IDs
	now    job.Millis
	seq    int64
	server rule.Server
}

func newWorld(seed uint64) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 0)), now: 1_700_000_000_000, server: rule.DefaultServer()}
	w.ids = job.NewIDs(job.ID{}, w.rng.Uint64)
	return w
}

func (w *world) id() job.ID       { return w.ids.Next(w.now) }
func (w *world) token() job.Token { return job.NewToken(1, w.rng.Uint64) }

func (w *world) nextSeq() int64 {
	w.seq++
	return w.seq
}

// around is what a step of the job may look at.
func (w *world) around(r store.Reader, j *job.Job) (rule.View, error) {
	v := rule.View{Now: w.now, Steady: w.now, Job: j, Server: &w.server, Rand: w.rng.Float64, Seq: w.nextSeq, Start: 1}
	if x := j.Extras; x != nil && x.Unique != nil {
		if id, ok := r.Owner(rule.KeyAsked(j)); ok && id != j.ID {
			v.Owner = id
		}
	}
	var err error
	if v.Queue, err = queueOf(r, j.Queue); err == nil && (j.Group != "" || v.Queue.Protection.Fair != nil) {
		v.Gate, err = gateOf(r, j.Queue, j.Group)
	}
	return v, err
}

// queueOf returns the settings of a queue: without a row all are default.
func queueOf(r store.Reader, name string) (*job.Queue, error) {
	row, err := r.Row(job.Queues, name)
	if q, ok := row.(*job.Queue); ok {
		return q, err
	}
	return job.NewQueue(name), err
}

func gateOf(r store.Reader, queue, group string) (*job.Gate, error) {
	row, err := r.Row(job.Gates, job.GateKey(queue, group))
	if g, ok := row.(*job.Gate); ok {
		return g, err
	}
	return &job.Gate{Queue: queue, Group: group}, err
}

// put brings a job in.
func (w *world) put(tx store.Tx, c rule.Command) (*job.Job, error) {
	c.Verb = rule.Put
	v, err := w.around(tx, c.New)
	if err != nil {
		return nil, err
	}
	v.Job = nil
	e, err := rule.Step(v, c)
	if err != nil {
		return nil, err
	}
	if err := succeed(tx, rule.KeyOf(e.Job)); err != nil {
		return nil, err
	}
	return e.Job, enact(tx, nil, e)
}

// step applies a verb to a job and writes what comes of it.
func (w *world) step(tx store.Tx, id job.ID, c rule.Command) (rule.Effect, error) {
	j, err := tx.Get(id)
	if err != nil {
		return rule.Effect{}, err
	}
	if j == nil {
		return rule.Effect{}, job.Errorf(job.NotFound, "no job %s", id)
	}
	v, err := w.around(tx, j)
	if err != nil {
		return rule.Effect{}, err
	}
	e, err := rule.Step(v, c)
	if err != nil || e.Repeat {
		return e, err
	}
	return e, enact(tx, j, e)
}

// enact writes what a step asks for, as the engine does: what belongs to a
// job is written only while there is one.
func enact(tx store.Tx, old *job.Job, e rule.Effect) error {
	if err := tx.Write(old, e.Job); err != nil {
		return err
	}
	if e.Gate != nil {
		if err := setGate(tx, e.Gate); err != nil {
			return err
		}
	}
	if e.Job == nil {
		return nil
	}
	for i := range e.Failures {
		f := &e.Failures[i]
		if err := tx.PutFailure(e.Job.ID, f); err != nil {
			return err
		}
		if old := rule.OutdatedBy(f.Number); old > 0 {
			if err := tx.DropFailure(e.Job.ID, old); err != nil {
				return err
			}
		}
	}
	return nil
}

// setGate keeps a gate while there is something to keep.
func setGate(tx store.Tx, g *job.Gate) error {
	if g.Blank() {
		return tx.Unset(job.Gates, g.Key())
	}
	return tx.Set(g)
}

// refused reports whether an error is a rule that said no, not a store.
func refused(err error) bool {
	switch job.KindOf(err) {
	case job.Invalid, job.WrongState, job.NotFound, job.Superseded, job.TokenNeeded, job.OverLimit, job.Exists, job.Unprocessable:
		return true
	case job.Internal, job.Unavailable, job.Corrupt, job.Forbidden:
	}
	return false
}
