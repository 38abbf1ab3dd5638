// Package budget is the part for budgets: units that jobs share across queues, of which
// a run takes some and gives them back (reference 1.17). A job that lacks units leaves
// its line, and returns in order when there are enough.
//
// Its state is rows, and in memory what is out of each: what goes on is counted by its
// leases at a start, and what comes with time is all there then (core.md section 9).
package budget

import (
	"maps"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// returnMax is how many jobs return to their lines in one transaction.
const returnMax = 500

// Budgets are the budgets of a server.
type Budgets struct {
	engine *engine.Engine
	memory
}

// memory is what is made by load.
type memory struct {
	rows  int                   // how many there are
	usage map[string]rule.Usage // of those that were used
	due   map[string]job.Millis // when the first who waits has what it needs, on the steady clock
	awake map[string]bool       // those whose waiters are to be looked at

	staged staged // by the transaction
}

// staged is what one transaction changes.
type staged struct {
	rows    int
	usage   map[string]*rule.Usage
	jobs    map[string]int64      // change of the jobs that refer to a budget
	touched map[string]bool       // something returned to it, or who waits for it changed
	due     map[string]job.Millis // 0 = not any more
	awake   map[string]bool
	looked  bool // due and awake are as they shall be
}

// Join implements engine.Part.
func (s *Budgets) Join(e *engine.Engine) engine.Hooks {
	s.engine, s.memory = e, none()
	return engine.Hooks{
		Load:     s.load,
		Begin:    func() { s.staged = staged{} },
		Intake:   s.intake,
		Wrote:    s.wrote,
		Tick:     s.tick,
		Next:     s.next,
		Upkeep:   s.returnWaiting,
		Aside:    s.aside,
		Served:   s.lookAhead,
		Keep:     s.keep,
		Publish:  s.publish,
		Allow:    s.allow,
		WipeLast: s.wipe,
	}
}

// none is no budget.
func none() memory {
	return memory{usage: map[string]rule.Usage{}, due: map[string]job.Millis{}, awake: map[string]bool{}}
}

func (s *Budgets) publish() {
	t := &s.staged
	s.rows += t.rows
	for key, u := range t.usage {
		if s.usage[key] = *u; *u == (rule.Usage{}) {
			delete(s.usage, key)
		}
	}
	for key, at := range t.due {
		if s.due[key] = at; at == 0 {
			delete(s.due, key)
		}
	}
	if t.looked {
		if s.awake = t.awake; s.awake == nil {
			s.awake = map[string]bool{}
		}
		return
	}
	for key := range t.touched {
		s.awake[key] = true
	}
}

// find returns a budget, nil if there is none.
func find(tx *engine.Tx, key string) (*job.Budget, error) {
	b, err := row(tx, key)
	if b != nil && b.Gone {
		b = nil
	}
	return b, err
}

// row is find with one that is gone.
func row(tx *engine.Tx, key string) (*job.Budget, error) {
	return store.Row[*job.Budget](tx.Store(), key)
}

// used returns what is out of a budget, to be changed.
func (s *Budgets) used(key string) *rule.Usage {
	u := s.staged.usage[key]
	if u == nil {
		if s.staged.usage == nil {
			s.staged.usage = map[string]*rule.Usage{}
		}
		u = new(s.usage[key])
		s.staged.usage[key] = u
	}
	return u
}

// touch notes that who waits for a budget is to be looked at.
func (s *Budgets) touch(key string) {
	if s.staged.touched == nil {
		s.staged.touched = map[string]bool{}
	}
	s.staged.touched[key] = true
}

// wrote counts what a job that changes takes from its budgets and gives back: the one
// place through which every lease begins and ends.
func (s *Budgets) wrote(tx *engine.Tx, old, j *job.Job) error {
	if old.Budgets() == nil && j.Budgets() == nil {
		return nil
	}
	if key := rule.WaitsFor(old); key != "" && (j == nil || j.Park != old.Park) {
		s.touch(key) // the next who waits may fit
	}
	for _, u := range old.Budgets() {
		if refers(old) {
			s.refer(u.Key, -1)
		}
	}
	for _, u := range j.Budgets() {
		if refers(j) {
			s.refer(u.Key, 1)
		}
	}
	started := leasesOf(j) - leasesOf(old)
	list := j.Budgets()
	if started < 0 {
		list = old.Budgets()
	}
	for _, u := range list {
		for range started {
			b, err := find(tx, u.Key)
			if err != nil {
				return err
			}
			s.used(u.Key).Start(b, u.Cost, tx.Steady())
		}
		for range -started {
			s.used(u.Key).End(u.Cost)
			s.touch(u.Key)
		}
	}
	return nil
}

func leasesOf(j *job.Job) int {
	if j == nil {
		return 0
	}
	return len(j.Leases)
}

// refers reports whether a job counts among those of its budgets: a completed
// one never runs again.
func refers(j *job.Job) bool { return j != nil && j.State != job.Done }

func (s *Budgets) refer(key string, n int64) {
	if s.staged.jobs == nil {
		s.staged.jobs = map[string]int64{}
	}
	if s.staged.jobs[key] += n; s.staged.jobs[key] == 0 {
		delete(s.staged.jobs, key)
	}
}

// keep writes how many jobs refer to each budget, with the jobs that do.
func (s *Budgets) keep(tx *engine.Tx) error {
	for _, key := range sorted(s.staged.jobs) {
		b, err := row(tx, key)
		if err != nil {
			return err
		}
		if b == nil { // an earlier version forgot the dead jobs of a budget that it deleted
			continue
		}
		next := *b
		if next.Jobs = max(0, next.Jobs+s.staged.jobs[key]); next.Gone && next.Jobs == 0 {
			s.staged.rows--
			err = tx.Store().Unset(job.Budgets, key)
		} else {
			err = tx.Store().Set(&next)
		}
		if err != nil {
			return err
		}
	}
	clear(s.staged.jobs)
	return nil
}

// aside is the place in which a job waits for units.
func (s *Budgets) aside(tx *engine.Tx, j *job.Job) (park string, err error) {
	key, err := s.lacks(tx, j)
	if key == "" || err != nil {
		return "", err
	}
	s.touch(key)
	return rule.BudgetPark(key), nil
}

// lacks is the first budget that does not let the job start now: "" if all
// do. Who stands behind somebody that waits for one waits for it, too.
func (s *Budgets) lacks(tx *engine.Tx, j *job.Job) (string, error) {
	for _, u := range j.Budgets() {
		b, err := find(tx, u.Key)
		if err != nil {
			return "", err
		}
		if b == nil {
			continue
		}
		if !s.used(u.Key).Lets(b, u.Cost, tx.Steady()) {
			return u.Key, nil
		}
		first, err := firstWaiting(tx, u.Key)
		if err != nil {
			return "", err
		}
		if first != nil && rule.EntriesOf(first).Pos.Before(rule.EntriesOf(j).Pos) {
			return u.Key, nil
		}
	}
	return "", nil
}

func firstWaiting(tx *engine.Tx, key string) (*job.Job, error) {
	ids, err := tx.Store().IDs(store.Parked(rule.BudgetPark(key)), 1)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return tx.Store().Get(ids[0])
}

// tick notes those that time has given what their first waiter needs.
func (s *Budgets) tick(tx *engine.Tx) error {
	for key, at := range s.due {
		if at <= tx.Steady() {
			s.touch(key)
		}
	}
	return nil
}

// returnWaiting lets those who waited back into their lines, in order, as many as there
// are units for.
func (s *Budgets) returnWaiting(tx *engine.Tx) error {
	if len(s.awake)+len(s.staged.touched) == 0 {
		return nil
	}
	for key := range s.awake {
		s.touch(key)
	}
	left := returnMax
	for _, key := range sorted(s.staged.touched) {
		if left <= 0 {
			return nil
		}
		n, err := s.returnSome(tx, key, left)
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (s *Budgets) returnSome(tx *engine.Tx, key string, most int) (n int, err error) {
	b, err := find(tx, key)
	if err != nil || b == nil {
		return 0, err
	}
	const page = 50
	steady := tx.Steady()
	u := *s.used(key) // as it will be when they have started
	for n < most {
		ids, err := tx.Store().IDs(store.Parked(rule.BudgetPark(key)), min(page, most-n))
		if err != nil || len(ids) == 0 {
			return n, err
		}
		for _, id := range ids {
			j, err := tx.Store().Get(id)
			if err != nil {
				return n, err
			}
			cost := costOf(j, key)
			if !u.Lets(b, cost, steady) {
				return n, nil
			}
			u.Start(b, cost, steady)
			if err := tx.Park(j, ""); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}

func costOf(j *job.Job, key string) int64 {
	if i := job.BudgetAt(j.Budgets(), key); i >= 0 {
		return j.Budgets()[i].Cost
	}
	return 0
}

// lookAhead says for every budget that changed when it is looked at again:
// at once if its first waiter fits, because those who returned before it found
// no worker; else when time has given enough.
func (s *Budgets) lookAhead(tx *engine.Tx) error {
	t, steady := &s.staged, tx.Steady()
	if t.looked = true; len(t.touched) == 0 {
		return nil
	}
	t.due, t.awake = map[string]job.Millis{}, map[string]bool{}
	for _, key := range sorted(t.touched) {
		b, err := find(tx, key)
		if err != nil {
			return err
		}
		first, err := firstWaiting(tx, key)
		if err != nil {
			return err
		}
		if t.due[key] = 0; b == nil || first == nil {
			continue
		}
		u, cost := s.used(key), costOf(first, key)
		if u.Lets(b, cost, steady) {
			t.awake[key] = true
			tx.More()
			continue
		}
		if at := u.Next(b, cost, steady); at > 0 {
			t.due[key] = max(at, steady+1)
		}
	}
	return nil
}

// next is when the first of them is due; 0 = never.
func (s *Budgets) next(*engine.Tx) job.Millis { return engine.Soonest(s.due, s.staged.due) }

// load counts what is out.
func (s *Budgets) load(v store.Reader) error {
	rows, err := v.Rows(job.Budgets, "", job.BudgetsMax)
	if err != nil {
		return err
	}
	s.memory = none()
	s.rows = len(rows)
	for _, row := range rows {
		s.awake[row.Key()] = true
	}
	running, err := store.Leased(v)
	for _, j := range running {
		for i := range j.Leases {
			s.count(j, j.Leases[i].Holder)
		}
	}
	return err
}

// count counts what a holder runs of a job.
func (s *Budgets) count(j *job.Job, holder string) {
	for _, u := range j.Budgets() {
		for i := range j.Leases {
			if j.Leases[i].Holder == holder {
				usage := s.usage[u.Key]
				usage.Start(nil, u.Cost, s.engine.Steady())
				s.usage[u.Key] = usage
			}
		}
	}
}

// allow tells which budget keeps a ready job from running, and when time gives what
// it needs.
func (s *Budgets) allow(tx *engine.Tx, is *rule.Situation) error {
	j := is.Job
	if j.Budgets() == nil || j.State != job.Ready {
		return nil
	}
	key := rule.WaitsFor(j)
	if key == "" {
		var err error
		if key, err = s.lacks(tx, j); err != nil || key == "" {
			return err
		}
	}
	b, err := find(tx, key)
	if err != nil || b == nil {
		return err
	}
	is.Short = b
	first, err := firstWaiting(tx, key)
	if err != nil || first != nil && rule.EntriesOf(first).Pos.Before(rule.EntriesOf(j).Pos) {
		return err
	}
	is.ShortAgain = s.used(key).Next(b, costOf(j, key), tx.Steady())
	return nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
