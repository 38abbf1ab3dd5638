package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Part is a feature with rows and memory of its own that takes part in the
// transactions of the engine. The engine has a list of parts and knows none of them
// by name; parts do not know each other. docs/adr/0008 says why it is so.
//
// What a part knows is rows, which every reader of the store sees, or memory that Load
// makes from rows. It keeps nothing that cannot be lost with the process.
type Part interface {
	// Join is called once, by New. It tells at which points the part is asked.
	Join(*Engine) Hooks
}

// Hooks are the points at which a part is asked, in the order of a transaction; nil =
// it has nothing to do there. They are called by one goroutine at a time, and may be
// called again for the same transaction: then Begin comes first.
type Hooks struct {
	// Recover makes rows fit for work, before any lease is looked at: at a start, and
	// after a commit failed. Times on the steady clock that stand in rows move by shift
	// to the clock of this start.
	Recover func(tx *Tx, shift job.Millis) error
	// Migrate brings rows of earlier versions up to date, in transactions of its own, when
	// Recover is done. Recovered ends each transaction of a recovery.
	Migrate   func(step func(func(*Tx) error) error) error
	Recovered func(*Tx) error
	// Load makes the memory of the part from rows: at a start, and after a commit failed.
	Load func(store.Reader) error
	// Configure writes what the configuration says: at a start, and when it is read again.
	Configure func(*Tx) error
	// Restart is Recover for rows that no lease depends on. It is called once at a start.
	Restart func(tx *Tx, shift job.Millis) error

	// Begin drops what the part noted in memory for a transaction that did not take effect.
	Begin func()

	// Plan calls put with a plan of what becomes of the jobs of a call until that holds;
	// planned is whether it did. It runs outside of transactions.
	Plan func(ctx context.Context, list []NewJob, known KnownJobs, put func(Plan) error) (planned bool, err error)
	// Coming follows a call that brings work, whatever becomes of it. Check refuses work
	// before anything is written, when it is known in out which of it is here already, and
	// Takes a job that its queue does not take. Prepare comes before a job is written.
	Coming  func(tx *Tx, list []NewJob) error
	Check   func(tx *Tx, list []NewJob, out []Added) error
	Takes   func(tx *Tx, q *job.Queue, j *job.Job) error
	Prepare func(tx *Tx, n *NewJob) error
	// Intake begins to look at the jobs of one call that brings work.
	Intake func(*Tx) Intake
	// Session is the session that a queue is; nil = it is none.
	Session func(tx *Tx, q *job.Queue) (*job.Session, error)
	// Wrote follows a job that was written; old or j is nil if it came or left.
	Wrote func(tx *Tx, old, j *job.Job) error
	// Stepped follows a command that was applied to a job, when it is written; old is nil
	// of a job that came. Follows reports whether it is to be called for a job; nil = for all.
	Follows func(j *job.Job) bool
	Stepped func(tx *Tx, c rule.Command, old *job.Job, eff rule.Effect) error
	// Refused follows a settle that was refused, Voided a run that ended without its holder,
	// and Rejected a job that was set aside.
	Refused  func(j *job.Job, o job.Outcome, eff rule.Effect, err error)
	Voided   func(tx *Tx, v *rule.Void) error
	Rejected func(tx *Tx, old *job.Job, eff rule.Effect) error
	// Settings follows a queue whose settings were written.
	Settings func(tx *Tx, q *job.Queue) error

	// Audit keeps an entry of the audit log.
	Audit func(tx *Tx, entry *job.Audit) error

	// Due are rows that come up by themselves, and Tick is what the clock owes beside
	// them. Next is when Tick or Upkeep has something to do, on the steady clock; 0 = it
	// is not known.
	Due  []Due
	Tick func(*Tx) error
	Next func(*Tx) job.Millis

	// Silent is what happens to a named holder that was silent for too long; own is whether
	// it is one of the part. Silence is how long those may be silent.
	Silent  func(tx *Tx, h *job.Holder) (own bool, err error)
	Silence func() job.Millis

	// Upkeep follows what commands and clock did, before holders are served.
	Upkeep func(*Tx) error
	// Limited reports whether the part limits a queue, or any if it is "". Room is how
	// much of such a queue may be given out now.
	Limited func(tx *Tx, queue string) bool
	Room    func(tx *Tx, queue string) rule.Room
	// Lets reports whether one more job of a limited queue may run, whatever Room said
	// before others were given out.
	Lets func(tx *Tx, j *job.Job) (bool, error)
	// Aside is the label under which a job that would be given out now leaves its line; ""
	// = it may run.
	Aside func(tx *Tx, j *job.Job) (park string, err error)
	// Given follows a job that was given to a holder.
	Given func(tx *Tx, q *job.Queue, j *job.Job) error
	// Served follows what holders were given.
	Served func(*Tx) error
	// Keep writes rows that change with many jobs, once in a transaction.
	Keep func(*Tx) error
	// Publish makes true what the part noted: the transaction took effect.
	Publish func()
	// Announce follows Publish. What it returns is called when the transaction is on disk, or
	// when it is unknown whether it is, beside later transactions; nil = there is nothing to say.
	Announce func() func(unknown bool)
	// Timed is how long a transaction of so many commands took, and its way to the disk then.
	Timed func(commands int, commit, sync time.Duration)

	// Allow adds what the part has against a job that is ready and changes from moment to
	// moment, Explain everything else that it knows of a job.
	Allow   func(tx *Tx, s *rule.Situation) error
	Explain func(tx *Tx, s *rule.Situation, told *Remarks) error
	// Crew counts who could run a job; counted is whether the part knows.
	Crew func(tx *Tx, s *rule.Situation) (counted bool, err error)
	// Templates are jobs that the part puts later: nothing may come to be that would
	// refuse them.
	Templates func(store.Reader) ([]Template, error)
	// Show is the payload of a job as JSON, for people, searches and workers; nil = it is
	// that already.
	Show func(j *job.Job, payload []byte) []byte
	// Keeps reports whether the part knows of a queue without jobs and settings.
	Keeps func(queue string) bool
	// Wipe removes up to n rows that a reset removes, and reports whether there may be more.
	// WipeLast does the same when all jobs are gone.
	Wipe, WipeLast func(tx *Tx, n int) (left bool, err error)
	// Stop ends what the part does outside transactions; Stop of the engine waits for it.
	Stop func()
}

// Intake looks at jobs before any of them is written. All jobs of a call are admitted,
// and then Make is called once.
type Intake struct {
	Field string // of a job, which an error of Admit is about
	Admit func(i int, n *NewJob) error
	Make  func() error
}

// Template is a job that a part puts later.
type Template struct {
	Name string // what it is, for people
	Job  *job.Job
}

// Due is what happens to the rows of a table at their times.
type Due struct {
	Table  job.Table
	Steady bool // their times are on the steady clock
	Spared bool // none comes up while holders have extra time, because the clock stepped
	Do     func(*Tx, job.Row) error
}

// Row makes a function of the rows of one type what is done when one of their table is due.
func Row[R job.Row](do func(*Tx, R) error) func(*Tx, job.Row) error {
	return func(tx *Tx, row job.Row) error { return do(tx, row.(R)) }
}

// Soonest is the first of the times that a part knows by name, 0 = there is none. What a
// transaction stages takes the place of what is known.
func Soonest(known, staged map[string]job.Millis) (soonest job.Millis) {
	sooner := func(at job.Millis) {
		if at > 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	for name, at := range known {
		if _, changed := staged[name]; !changed {
			sooner(at)
		}
	}
	for _, at := range staged {
		sooner(at)
	}
	return soonest
}

// parts are the hooks of all parts, in the order in which they are asked.
type parts []Hooks

// each calls one hook of every part that has it.
func (p parts) each(has func(*Hooks) bool, call func(*Hooks) error) error {
	for i := range p {
		if h := &p[i]; has(h) {
			if err := call(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// at calls a hook of the kind that most are.
func (p parts) at(r *Tx, of func(*Hooks) func(*Tx) error) error {
	return p.each(func(h *Hooks) bool { return of(h) != nil }, func(h *Hooks) error { return of(h)(r) })
}

func (p parts) recover(r *Tx, shift job.Millis) error {
	return p.each(func(h *Hooks) bool { return h.Recover != nil }, func(h *Hooks) error { return h.Recover(r, shift) })
}

func (p parts) load(v store.Reader) error {
	return p.each(func(h *Hooks) bool { return h.Load != nil }, func(h *Hooks) error { return h.Load(v) })
}

func (p parts) restart(r *Tx, shift job.Millis) error {
	return p.each(func(h *Hooks) bool { return h.Restart != nil }, func(h *Hooks) error { return h.Restart(r, shift) })
}

func (p parts) settings(r *Tx, q *job.Queue) error {
	return p.each(func(h *Hooks) bool { return h.Settings != nil }, func(h *Hooks) error { return h.Settings(r, q) })
}

func (p parts) allow(r *Tx, s *rule.Situation) error {
	return p.each(func(h *Hooks) bool { return h.Allow != nil }, func(h *Hooks) error { return h.Allow(r, s) })
}

func (p parts) explain(r *Tx, s *rule.Situation, told *Remarks) error {
	return p.each(func(h *Hooks) bool { return h.Explain != nil }, func(h *Hooks) error { return h.Explain(r, s, told) })
}

func (p parts) crew(r *Tx, s *rule.Situation) (counted bool, err error) {
	for i := range p {
		if f := p[i].Crew; f != nil {
			if counted, err := f(r, s); counted || err != nil {
				return counted, err
			}
		}
	}
	return false, nil
}

func (p parts) migrate(step func(func(*Tx) error) error) error {
	return p.each(func(h *Hooks) bool { return h.Migrate != nil }, func(h *Hooks) error { return h.Migrate(step) })
}

func (p parts) coming(r *Tx, list []NewJob) error {
	return p.each(func(h *Hooks) bool { return h.Coming != nil }, func(h *Hooks) error { return h.Coming(r, list) })
}

func (p parts) check(r *Tx, list []NewJob, out []Added) error {
	return p.each(func(h *Hooks) bool { return h.Check != nil }, func(h *Hooks) error { return h.Check(r, list, out) })
}

func (p parts) voided(r *Tx, v *rule.Void) error {
	return p.each(func(h *Hooks) bool { return h.Voided != nil }, func(h *Hooks) error { return h.Voided(r, v) })
}

func (p parts) rejected(r *Tx, old *job.Job, eff *rule.Effect) error {
	return p.each(func(h *Hooks) bool { return h.Rejected != nil }, func(h *Hooks) error { return h.Rejected(r, old, *eff) })
}

func (p parts) audit(r *Tx, entry *job.Audit) error {
	return p.each(func(h *Hooks) bool { return h.Audit != nil }, func(h *Hooks) error { return h.Audit(r, entry) })
}

func (p parts) refused(j *job.Job, o job.Outcome, eff rule.Effect, err error) {
	for i := range p {
		if f := p[i].Refused; f != nil {
			f(j, o, eff, err)
		}
	}
}

func (p parts) silent(r *Tx, row *job.Holder) (own bool, err error) {
	for i := range p {
		if f := p[i].Silent; f != nil {
			if own, err := f(r, row); own || err != nil {
				return own, err
			}
		}
	}
	return false, nil
}

// silence is how long holders of parts may be silent.
func (p parts) silence() (most job.Millis) {
	for i := range p {
		if f := p[i].Silence; f != nil {
			most = max(most, f())
		}
	}
	return most
}

func configures(h *Hooks) func(*Tx) error { return h.Configure }
func ticks(h *Hooks) func(*Tx) error      { return h.Tick }
func upkeeps(h *Hooks) func(*Tx) error    { return h.Upkeep }
func served(h *Hooks) func(*Tx) error     { return h.Served }
func keeps(h *Hooks) func(*Tx) error      { return h.Keep }
func recovers(h *Hooks) func(*Tx) error   { return h.Recovered }

// intakes begins to look at a call; those of parts that have nothing to do there are
// left out.
func (p parts) intakes(r *Tx) (list []Intake) {
	for i := range p {
		if begin := p[i].Intake; begin != nil {
			list = append(list, begin(r))
		}
	}
	return list
}

// The hooks that are called for every job are loops of their own: they are on the hot
// path.

func (p parts) takes(r *Tx, q *job.Queue, j *job.Job) error {
	for i := range p {
		if f := p[i].Takes; f != nil {
			if err := f(r, q, j); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p parts) prepare(r *Tx, n *NewJob) error {
	for i := range p {
		if f := p[i].Prepare; f != nil {
			if err := f(r, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p parts) session(r *Tx, q *job.Queue) (*job.Session, error) {
	for i := range p {
		if f := p[i].Session; f != nil {
			if s, err := f(r, q); s != nil || err != nil {
				return s, err
			}
		}
	}
	return nil, nil
}

func (p parts) wrote(r *Tx, old, j *job.Job) error {
	for i := range p {
		if f := p[i].Wrote; f != nil {
			if err := f(r, old, j); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p parts) stepped(r *Tx, c *rule.Command, old *job.Job, eff *rule.Effect) error {
	j := cmp.Or(eff.Job, eff.Left, old)
	for i := range p {
		if f := p[i].Stepped; f != nil && (p[i].Follows == nil || p[i].Follows(j)) {
			if err := f(r, *c, old, *eff); err != nil { // by value: pointers would put both on the heap
				return err
			}
		}
	}
	return nil
}

func (p parts) given(r *Tx, q *job.Queue, j *job.Job) error {
	for i := range p {
		if f := p[i].Given; f != nil {
			if err := f(r, q, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// aside is the first label under which a job must leave its line; "" = it may run.
func (p parts) aside(r *Tx, j *job.Job) (string, error) {
	for i := range p {
		if f := p[i].Aside; f != nil {
			if park, err := f(r, j); park != "" || err != nil {
				return park, err
			}
		}
	}
	return "", nil
}

// limited reports whether any part limits a queue, or any queue if it is "".
func (p parts) limited(r *Tx, queue string) bool {
	for i := range p {
		if f := p[i].Limited; f != nil && f(r, queue) {
			return true
		}
	}
	return false
}

// room is how much of a queue all parts together let run.
func (p parts) room(r *Tx, queue string) rule.Room {
	room := rule.Room{All: rule.NoLimit, Retried: rule.NoLimit}
	for i := range p {
		if p[i].Room != nil && p[i].Limited(r, queue) {
			own := p[i].Room(r, queue)
			room.All, room.Retried = min(room.All, own.All), min(room.Retried, own.Retried)
		}
	}
	return room
}

func (p parts) lets(r *Tx, j *job.Job) (bool, error) {
	for i := range p {
		if f := p[i].Lets; f != nil {
			if lets, err := f(r, j); !lets || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// next is when the first part has something to do by the clock; 0 = that is not known.
func (p parts) next(r *Tx) (soonest job.Millis) {
	for i := range p {
		if f := p[i].Next; f != nil {
			if at := f(r); at > 0 && (soonest == 0 || at < soonest) {
				soonest = at
			}
		}
	}
	return soonest
}

func (p parts) keepsQueue(name string) bool {
	for i := range p {
		if f := p[i].Keeps; f != nil && f(name) {
			return true
		}
	}
	return false
}

func (p parts) templates(v store.Reader) (list []Template, err error) {
	for i := range p {
		if f := p[i].Templates; f != nil {
			more, err := f(v)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		}
	}
	return list, nil
}

// show is the payload of a job as JSON.
func (p parts) show(j *job.Job, payload []byte) []byte {
	for i := range p {
		if f := p[i].Show; f != nil {
			payload = f(j, payload)
		}
	}
	return payload
}

func (p parts) stop() {
	for i := range p {
		if p[i].Stop != nil {
			p[i].Stop()
		}
	}
}

func (p parts) begin() {
	for i := range p {
		if p[i].Begin != nil {
			p[i].Begin()
		}
	}
}

func (p parts) publish() {
	for i := range p {
		if p[i].Publish != nil {
			p[i].Publish()
		}
	}
}

// announce is what parts have to say when the transaction is on disk.
func (p parts) announce() (list []func(unknown bool)) {
	for i := range p {
		if p[i].Announce == nil {
			continue
		}
		if tell := p[i].Announce(); tell != nil {
			list = append(list, tell)
		}
	}
	return list
}

func (p parts) timed(commands int, commit, sync time.Duration) {
	for i := range p {
		if f := p[i].Timed; f != nil {
			f(commands, commit, sync)
		}
	}
}
