package engine

import (
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

const (
	asideMax  = 1000 // jobs put aside for a budget in one transaction
	returnMax = 500  // jobs that return to their lines in one transaction
)

// budgets is what the committer knows of them: all of it is empty where there
// are none. What is out follows from the leases, and is counted anew at start.
type budgets struct {
	rows  int                   // how many there are
	usage map[string]rule.Usage // of those that were used
	due   map[string]job.Millis // when the first who waits has what it needs, on the steady clock
	awake map[string]bool       // those whose waiters are to be looked at
}

// spending is what one run changes of it.
type spending struct {
	rows    int
	usage   map[string]*rule.Usage
	jobs    map[string]int64      // change of the jobs that refer to a budget
	touched map[string]bool       // something returned to it, or who waits for it changed
	due     map[string]job.Millis // 0 = not any more
	awake   map[string]bool
	looked  bool // due and awake are as they shall be
	aside   int
}

func (c *budgets) publish(s *spending) {
	c.rows += s.rows
	for key, u := range s.usage {
		if c.usage == nil {
			c.usage = map[string]rule.Usage{}
		}
		if c.usage[key] = *u; *u == (rule.Usage{}) {
			delete(c.usage, key)
		}
	}
	for key, at := range s.due {
		if c.due == nil {
			c.due = map[string]job.Millis{}
		}
		if c.due[key] = at; at == 0 {
			delete(c.due, key)
		}
	}
	if s.looked {
		c.awake = s.awake
		return
	}
	for key := range s.touched {
		if c.awake == nil {
			c.awake = map[string]bool{}
		}
		c.awake[key] = true
	}
}

// budget returns a budget, nil if there is none.
func (r *Tx) budget(key string) (*job.Budget, error) {
	b, err := r.budgetRow(key)
	if b != nil && b.Gone {
		b = nil
	}
	return b, err
}

// budgetRow is budget with one that is gone.
func (r *Tx) budgetRow(key string) (*job.Budget, error) {
	row, err := r.tx.Row(job.Budgets, key)
	b, _ := row.(*job.Budget)
	return b, err
}

// usage returns what is out of a budget, to be changed.
func (r *Tx) usage(key string) *rule.Usage {
	u := r.spending.usage[key]
	if u == nil {
		if r.spending.usage == nil {
			r.spending.usage = map[string]*rule.Usage{}
		}
		u = new(r.c.budgets.usage[key])
		r.spending.usage[key] = u
	}
	return u
}

// touch notes that who waits for a budget is to be looked at.
func (r *Tx) touch(key string) {
	if r.spending.touched == nil {
		r.spending.touched = map[string]bool{}
	}
	r.spending.touched[key] = true
}

// bill counts what a job that changes takes from its budgets and gives back:
// the one place through which every lease begins and ends.
func (r *Tx) bill(old, j *job.Job) error {
	if key := rule.WaitsFor(old); key != "" && (j == nil || j.Park != old.Park) {
		r.touch(key) // the next who waits may fit
	}
	for _, u := range old.Budgets() {
		if refers(old) {
			r.refer(u.Key, -1)
		}
	}
	for _, u := range j.Budgets() {
		if refers(j) {
			r.refer(u.Key, 1)
		}
	}
	started := leasesOf(j) - leasesOf(old)
	list := j.Budgets()
	if started < 0 {
		list = old.Budgets()
	}
	for _, u := range list {
		for range started {
			b, err := r.budget(u.Key)
			if err != nil {
				return err
			}
			r.usage(u.Key).Start(b, u.Cost, r.steady)
		}
		for range -started {
			r.usage(u.Key).End(u.Cost)
			r.touch(u.Key)
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

func (r *Tx) refer(key string, n int64) {
	if r.spending.jobs == nil {
		r.spending.jobs = map[string]int64{}
	}
	if r.spending.jobs[key] += n; r.spending.jobs[key] == 0 {
		delete(r.spending.jobs, key)
	}
}

// keepBudgets writes how many jobs refer to each budget, with the jobs that do.
func (r *Tx) keepBudgets() error {
	for _, key := range sortedKeys(r.spending.jobs) {
		b, err := r.budgetRow(key)
		if err != nil {
			return err
		}
		if b == nil { // an earlier version forgot the dead jobs of a budget that it deleted
			continue
		}
		next := *b
		if next.Jobs = max(0, next.Jobs+r.spending.jobs[key]); next.Gone && next.Jobs == 0 {
			r.spending.rows--
			err = r.tx.Unset(job.Budgets, key)
		} else {
			err = r.tx.Set(&next)
		}
		if err != nil {
			return err
		}
	}
	clear(r.spending.jobs)
	return nil
}

// lacks is the first budget that does not let the job start now: "" if all
// do. Who stands behind somebody that waits for one waits for it, too.
func (r *Tx) lacks(j *job.Job) (string, error) {
	for _, u := range j.Budgets() {
		b, err := r.budget(u.Key)
		if err != nil {
			return "", err
		}
		if b == nil {
			continue
		}
		if !r.usage(u.Key).Lets(b, u.Cost, r.steady) {
			return u.Key, nil
		}
		first, err := r.firstWaiting(u.Key)
		if err != nil {
			return "", err
		}
		if first != nil && rule.EntriesOf(first).Pos.Before(rule.EntriesOf(j).Pos) {
			return u.Key, nil
		}
	}
	return "", nil
}

func (r *Tx) firstWaiting(key string) (*job.Job, error) {
	ids, err := r.tx.Parked(rule.BudgetPark(key), 1)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.tx.Get(ids[0])
}

// setAside takes a job out of its line until a budget has what it needs.
func (r *Tx) setAside(j *job.Job, key string) error {
	r.spending.aside++
	r.touch(key)
	r.moved = r.moved || j.Group != ""
	return r.park(j, rule.BudgetPark(key))
}

// taskAside takes a task that lacks units of a budget out of its line. What was
// read ahead of that line knows it as given out. Of very many the rest comes in
// the next run.
func (r *Tx) taskAside(j *job.Job) (aside bool, err error) {
	key, err := r.lacks(j)
	if err != nil || key == "" {
		return false, err
	}
	r.grants++
	r.granted[j.ID] = r.grants
	r.fed = r.fed || r.spending.aside >= asideMax
	return true, r.setAside(j, key)
}

func (r *Tx) park(j *job.Job, label string) error {
	_, err := r.Step(j, rule.Command{Verb: rule.Patch, Edit: func(n *job.Job) { n.Park = label }})
	return err
}

// dueBudgets notes those that time has given what their first waiter needs.
func (r *Tx) dueBudgets() {
	for key, at := range r.c.budgets.due {
		if at <= r.steady {
			r.touch(key)
		}
	}
}

// returnBudgeted lets those who waited back into their lines, in order, as
// many as there are units for.
func (r *Tx) returnBudgeted() error {
	if len(r.c.budgets.awake)+len(r.spending.touched) == 0 {
		return nil
	}
	for key := range r.c.budgets.awake {
		r.touch(key)
	}
	left := returnMax
	for _, key := range sortedKeys(r.spending.touched) {
		if left <= 0 {
			return nil
		}
		n, err := r.returnSome(key, left)
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func (r *Tx) returnSome(key string, most int) (n int, err error) {
	b, err := r.budget(key)
	if err != nil || b == nil {
		return 0, err
	}
	const page = 50
	u := *r.usage(key) // as it will be when they have started
	for n < most {
		ids, err := r.tx.Parked(rule.BudgetPark(key), min(page, most-n))
		if err != nil || len(ids) == 0 {
			return n, err
		}
		for _, id := range ids {
			j, err := r.tx.Get(id)
			if err != nil {
				return n, err
			}
			cost := costOf(j, key)
			if !u.Lets(b, cost, r.steady) {
				return n, nil
			}
			u.Start(b, cost, r.steady)
			if err := r.park(j, ""); err != nil {
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
func (r *Tx) lookAhead() error {
	s := &r.spending
	if s.looked = true; len(s.touched) == 0 {
		return nil
	}
	for _, key := range sortedKeys(s.touched) {
		b, err := r.budget(key)
		if err != nil {
			return err
		}
		first, err := r.firstWaiting(key)
		if err != nil {
			return err
		}
		if s.due == nil {
			s.due = map[string]job.Millis{}
		}
		if s.due[key] = 0; b == nil || first == nil {
			continue
		}
		u, cost := r.usage(key), costOf(first, key)
		if u.Lets(b, cost, r.steady) {
			if s.awake == nil {
				s.awake = map[string]bool{}
			}
			s.awake[key], r.ticked = true, true
			continue
		}
		if at := u.Next(b, cost, r.steady); at > 0 {
			s.due[key] = max(at, r.steady+1)
		}
	}
	return nil
}

// nextBudget is when the first of them is due; 0 = never.
func (r *Tx) nextBudget() (soonest job.Millis) {
	sooner := func(at job.Millis) {
		if at > 0 && (soonest == 0 || at < soonest) {
			soonest = at
		}
	}
	for key, at := range r.c.budgets.due {
		if _, changed := r.spending.due[key]; !changed {
			sooner(at)
		}
	}
	for _, at := range r.spending.due {
		sooner(at)
	}
	return soonest
}

// loadBudgets counts what is out: what goes on, by its leases. What comes with
// time is all there after a start (core.md section 9).
func (c *committer) loadBudgets(v store.Reader, holders []string, steady job.Millis) error {
	rows, err := v.Rows(job.Budgets, "", job.BudgetsMax)
	if err != nil {
		return err
	}
	c.budgets = budgets{rows: len(rows), usage: map[string]rule.Usage{}, awake: map[string]bool{}}
	for _, row := range rows {
		c.budgets.awake[row.Key()] = true
	}
	for _, h := range holders {
		ids, err := v.Held(h)
		if err != nil {
			return err
		}
		for _, id := range ids {
			j, err := v.Get(id)
			if err != nil {
				return err
			}
			for _, u := range j.Budgets() {
				for i := range j.Leases {
					if j.Leases[i].Holder == h {
						usage := c.budgets.usage[u.Key]
						usage.Start(nil, u.Cost, steady)
						c.budgets.usage[u.Key] = usage
					}
				}
			}
		}
	}
	return nil
}

// shortOf is the budget that keeps a ready job from running, nil if none does,
// and when time gives what it needs.
func (r *Tx) shortOf(j *job.Job) (short *job.Budget, again job.Millis, err error) {
	key := rule.WaitsFor(j)
	if key == "" {
		if key, err = r.lacks(j); err != nil || key == "" {
			return nil, 0, err
		}
	}
	b, err := r.budget(key)
	if err != nil || b == nil {
		return nil, 0, err
	}
	first, err := r.firstWaiting(key)
	if err != nil || first != nil && rule.EntriesOf(first).Pos.Before(rule.EntriesOf(j).Pos) {
		return b, 0, err
	}
	return b, r.usage(key).Next(b, costOf(j, key), r.steady), nil
}
