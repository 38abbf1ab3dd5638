package engine

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
)

// A fault is a panic in the committer, or a refusal where none can be: of the
// clock, or of serving. It must not end the process, nor undo what others asked
// for. The transaction is taken back and run again without what is at fault: a
// command is refused, a job is set aside, a row waits a while, and so does a duty
// of which nothing else is known.

// faultRest is how long a row or a duty with a fault waits before it is tried again.
const faultRest = job.Minute

// errFault is the answer to a command that is at fault.
var errFault = job.Errorf(job.Internal, "a fault of the server stopped this request; nothing of it was done. The log of the server has the details")

// doing is what the committer is at.
type doing struct {
	duty string  // of the clock, or of serving; "" = a command, or what follows from it
	op   *op     // nil = no command
	job  job.ID  // the one that a step was last made on; zero = none
	row  job.Row // of the clock: which one it is at; nil = none
}

// mending is what a transaction does about faults.
type mending struct {
	*Tx
	doing    doing
	rejected []job.ID // jobs that were set aside
	cleared  bool     // those at fault among them
}

// faults is what is known to be at fault, until it is dealt with.
type faults struct {
	jobs  map[job.ID]string      // to be set aside, and why
	rest  map[resting]job.Millis // until a steady time
	wait  bool                   // all rests, and it was not enough: before the store is opened again
	apart int                    // so many commands come one in a transaction, to find the one at fault
}

// resting is a duty, or a row, that waits.
type resting struct {
	duty  string
	table job.Table
	row   string
}

func restingRow(row job.Row) resting { return resting{table: row.Table(), row: row.Key()} }

// faulty is a fault as the function of a transaction returns it.
type faulty struct {
	doing
	error
	stack []byte // nil = it was no panic
}

func (f *faulty) Unwrap() error { return f.error }

// attempt runs f, and turns a panic of it, or a refusal of a duty, into a fault.
func (r *mending) attempt(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &faulty{r.doing, fmt.Errorf("panic: %v", p), debug.Stack()}
		} else if err != nil && !storeFailed(err) && isFault(err) == nil {
			err = &faulty{r.doing, err, nil}
		}
	}()
	return f()
}

// storeFailed tells an error of the store, which has to be opened again, from others.
func storeFailed(err error) bool {
	kind := job.KindOf(err)
	return kind == job.Unavailable || kind == job.Corrupt
}

// duty does what the committer owes by itself, unless that rests for a fault.
func (r *mending) duty(name string, f func() error) error {
	if until := r.c.faults.rest[resting{duty: name}]; until > r.steady {
		return nil
	} else if until > 0 {
		r.hadFed = true // those who waited meanwhile
	}
	r.doing = doing{duty: name}
	err := f()
	if err == nil {
		r.doing = doing{}
	}
	return err
}

// blame notes what is at fault in a batch, so that it can run again without. It
// reports whether there was anything to leave out.
func (c *committer) blame(b *batch, f *faulty) bool {
	c.logFault(f)
	live := slices.DeleteFunc(slices.Clone(b.ops), func(o *op) bool { return o.fault })
	switch steady := c.clock.Steady(); {
	case f.op != nil:
		f.op.fault = true
	case f.duty == dutyAside: // it cannot even be set aside
		delete(c.faults.jobs, f.job)
		c.faults.restAll(steady)
	case f.duty != "" && f.job != (job.ID{}):
		c.faults.jobs[f.job] = f.Error()
	case f.row != nil:
		c.faults.rest[restingRow(f.row)] = steady.Add(faultRest)
	case f.duty != "":
		c.faults.rest[resting{duty: f.duty}] = steady.Add(faultRest)
	case len(live) > 1: // in what follows from commands, one of which is at fault: each comes alone
		first := slices.Index(b.ops, live[0]) + 1
		c.commands.putBack(b.ops[first:])
		c.faults.apart = len(b.ops) - first
		b.ops = b.ops[:first]
	case len(live) == 1:
		live[0].fault = true
	case c.faults.rest[resting{duty: dutyTick}] > steady: // all rests already
		c.faults.wait = true
		return false
	default:
		c.faults.restAll(steady)
	}
	return true
}

func (c *committer) logFault(f *faulty) {
	c.stats.Faults++
	row := ""
	if f.row != nil {
		row = f.row.Key()
	}
	c.log.Error("a fault of the server; please report it with these lines",
		"fault", f.error, "duty", f.duty, "row", row, "job", f.job, "command", f.op != nil, "stack", string(f.stack))
}

// The duties of the committer.
const (
	dutyAside = "set aside"
	dutyStart = "start"
	dutyTick  = "clock"
	dutyServe = "serve"
	dutyOther = "upkeep"
)

// restAll lets everything rest that the committer does by itself.
func (f *faults) restAll(steady job.Millis) {
	for _, name := range []string{dutyTick, dutyServe, dutyOther} {
		f.rest[resting{duty: name}] = steady.Add(faultRest)
	}
}

// rests reports whether anything rests, and forgets what did.
func (f *faults) rests(steady job.Millis) bool {
	if len(f.rest) == 0 {
		return false
	}
	maps.DeleteFunc(f.rest, func(_ resting, until job.Millis) bool { return until <= steady })
	return len(f.rest) > 0
}

// rejectFaulty gives up the jobs that are at fault.
func (r *mending) rejectFaulty() error {
	for id, why := range r.c.faults.jobs {
		r.doing.job = id
		j, err := r.tx.Get(id)
		switch {
		case err != nil:
		case j != nil && j.State.Open():
			err = r.Reject(j, "a fault of the server: "+why)
		case j != nil: // its time was over, and it could not leave
			err = r.tx.Write(j, nil)
		}
		if err != nil {
			return err
		}
	}
	r.cleared = true
	return nil
}

// Reject makes an open job dead that cannot be applied.
func (r *mending) Reject(j *job.Job, why string) error {
	eff := rule.SetAside(j, r.now, r.hooks.seq, why)
	if err := r.write(j, eff); err != nil {
		return err
	}
	r.stats.Died++
	r.tx.Durable()
	r.woken[j.Queue] = true
	r.rejected = append(r.rejected, j.ID)
	return r.e.parts.rejected(r.Tx, j, &eff)
}

// reportRejected tells an operator which jobs were set aside, once it is true.
func (r *mending) reportRejected() {
	if r.cleared {
		clear(r.c.faults.jobs)
	}
	for _, id := range r.rejected {
		r.e.log.Error("a job was set aside: it is dead with the reason rejected, and its failure says why", "job", id)
	}
}

// isFault returns the fault that ended a transaction, if one did.
func isFault(err error) *faulty {
	f, _ := errors.AsType[*faulty](err)
	return f
}
