package grid

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/grid/plan"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Copies of tasks that take long (grid.md 7). What is measured is known in
// memory only, as of breakers: after a start it is measured anew, and what runs
// is found by its leases. The clock looks at a session with redundancy at the
// moment at which the oldest of its runs is a straggler, and at no other run.

// Redundant is what the copies of a session came to since the server started.
type Redundant struct {
	Started    [job.RedundancyStrategies]uint64 // copies asked for, by strategy
	Suppressed map[string]uint64                // stragglers that got none, by what barred it
	Withdrawn  uint64                           // copies taken back because they had spent what they may
	Seconds    job.Millis                       // spent on copies
	Useful     job.Millis
}

// pace is what is known of the runs and copies of a session with redundancy.
type pace struct {
	own    plan.Durations
	spend  plan.Spend
	wanted int                               // copies that run or wait
	runs   runQueue                          // what runs, the longest first; some are over
	asked  map[job.ID]job.RedundancyStrategy // who asked for the copies of open tasks
	due    job.Millis
	barred bool // it asks again when anything of the grid changes
	told   Redundant

	firsts []job.ID           // tasks that began for the first time and may get clones: with the strategy clone
	heads  map[job.ID]headway // how far runs are that tell it and may be copied: with time_left
	left   leftLook

	cloned, clonedOf int // so many of firsts have the clones they may, in a session of so many tasks
}

// paces are those of all sessions, and the runs of task types where a session
// has the strategy hedge.
type paces struct {
	of    map[string]*pace
	kinds map[string]*plan.Durations
}

// kindsMax bounds the task types whose runs are remembered.
const kindsMax = 1000

// copies is the room of the copies of tasks.
type copies struct {
	*Grid
	paces

	// Of the transaction.
	noted []paced
	due   map[string]job.Millis // when sessions are looked at again
	looks map[string]leftLook   // at sessions with the strategy time_left
}

func (g *copies) begin() { g.noted, g.due, g.looks = nil, nil, nil }

// startedRun is a run that began.
type startedRun struct {
	since job.Millis // on the steady clock
	id    job.ID
	token job.Token
}

type runQueue []startedRun

func (q runQueue) Len() int           { return len(q) }
func (q runQueue) Less(i, j int) bool { return q[i].since < q[j].since }
func (q runQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *runQueue) Push(x any)        { *q = append(*q, x.(startedRun)) }
func (q *runQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// paced is what one step means for the pace of its session. It counts once the
// transaction is applied.
type paced struct {
	session, kind string
	id            job.ID
	began         []startedRun
	copies        int // change of those that run
	wanted        int // change of those that run or wait
	took          job.Millis
	done          bool
	copyWon       bool
	over          bool
	at, steady    job.Millis
	offered       *job.RedundancyStrategy
	barred        string
	atLimit       *startedRun // a straggler whose task had as many copies as it may
	withdrawn     bool

	first job.ID // it began for the first time
	head  *headway
}

// note notes what a step on a task means.
func (g *copies) note(tx *engine.Tx, q *job.Queue, c *rule.Command, old, j *job.Job, eff *rule.Effect) {
	p := paced{session: j.Queue, kind: j.Type, id: j.ID, over: !j.State.Open(), at: tx.Now(), steady: tx.Steady()}
	if old == nil {
		return
	}
	after := j
	if !j.State.Open() {
		after = nil
	}
	p.copies = max(0, leasesOf(after)-1) - max(0, leasesOf(old)-1)
	p.wanted = extra(after) - extra(old)
	p.begins(tx, c, old, j)
	p.ends(tx, c, j, eff)
	p.cloneable(q, c, old, j)
	p.tells(tx, q, c, old, after)
	if p.copies != 0 || p.wanted != 0 || p.began != nil || p.done || p.head != nil || old.State != j.State {
		g.copies.noted = append(g.copies.noted, p)
	}
}

// begins notes runs that began, and those that may be copied again because another one
// of their task ended.
func (p *paced) begins(tx *engine.Tx, c *rule.Command, old, j *job.Job) {
	if c.Verb == rule.Extend && c.Started {
		if i := j.LeaseOf(c.Token); i >= 0 && j.Leases[i].Started == tx.Now() {
			p.began = append(p.began, startedRun{tx.Steady(), j.ID, c.Token})
		}
	}
	if c.Verb != rule.Extend && j.State.Open() && leasesOf(j) < leasesOf(old) {
		for i := range j.Leases {
			if l := &j.Leases[i]; l.Started > 0 {
				p.began = append(p.began, startedRun{tx.Steady() - (tx.Now() - l.Started), j.ID, l.Token})
			}
		}
	}
}

// ends notes how long the run took that finished a task.
func (p *paced) ends(tx *engine.Tx, c *rule.Command, j *job.Job, eff *rule.Effect) {
	if c.Verb == rule.SettleOK && j.State == job.Done && !eff.Late && len(eff.Ended) > 0 {
		l := &eff.Ended[len(eff.Ended)-1]
		if began := max(l.Started, c.RunStart); began > 0 {
			p.done, p.took = true, max(0, tx.Now()-began)
		}
		p.copyWon = l.Copy
	}
}

// extra is how many copies of a task run or wait beside the one there always is.
func extra(j *job.Job) int {
	if j == nil || j.State != job.Leased {
		return 0
	}
	return max(0, int(j.CopiesWanted)-1)
}

// publish makes true what was noted.
func (g *copies) publish() {
	all := &g.copies.paces
	for name, due := range g.copies.due {
		if s := all.of[name]; s != nil {
			s.due = due
		}
	}
	for name, look := range g.copies.looks {
		if s := all.of[name]; s != nil {
			s.left = look
		}
	}
	for i := range g.copies.noted { // straggle did not know of these yet
		p := &g.copies.noted[i]
		s := all.of[p.session]
		if s == nil {
			if all.of == nil {
				all.of = map[string]*pace{}
			}
			s = &pace{due: p.steady}
			all.of[p.session] = s
		}
		if s.follow(p); p.done {
			all.kind(p.kind).Add(p.took, p.at)
		}
		g.copies.tell(s, p)
	}
	for _, name := range g.sessions.dropped {
		delete(all.of, name)
	}
}

// follow takes over what runs of a session, and what its runs took.
func (s *pace) follow(p *paced) {
	for _, b := range p.began {
		heap.Push(&s.runs, b)
	}
	for n := p.copies; n > 0; n-- {
		s.spend.Start(p.steady)
	}
	for n := p.copies; n < 0; n++ {
		s.spend.End(p.steady)
	}
	s.wanted += p.wanted
	if p.done {
		s.own.Add(p.took, p.at)
		s.spend.Earn(p.took)
	}
	if !p.first.IsZero() {
		s.firsts = append(s.firsts, p.first)
	}
	if p.head != nil {
		s.hear(p.head)
	}
	if p.barred == "" {
		s.due = min(s.due, p.steady) // look again, now
	}
}

// tell counts copies that were asked for, came first, were taken back or barred.
func (g *copies) tell(s *pace, p *paced) {
	if p.offered != nil {
		s.told.Started[*p.offered]++
		g.counts.staged().Started[*p.offered]++
		if s.asked == nil {
			s.asked = map[job.ID]job.RedundancyStrategy{}
		}
		s.asked[p.id] = *p.offered
	}
	if by, ok := s.asked[p.id]; ok && p.over {
		if delete(s.asked, p.id); p.copyWon {
			g.counts.staged().Won[by]++
		}
	}
	if p.withdrawn {
		s.told.Withdrawn++
	}
	if s.barred = p.barred != ""; s.barred {
		g.copies.suppressed(s, p.barred)
	}
	if p.atLimit != nil {
		g.copies.suppressed(s, atLimit)
		if i := slices.Index(s.runs, *p.atLimit); i >= 0 { // once
			heap.Remove(&s.runs, i)
		}
	}
}

func (g *copies) suppressed(s *pace, bar string) {
	if s.told.Suppressed == nil {
		s.told.Suppressed = map[string]uint64{}
	}
	s.told.Suppressed[bar]++
	g.counts.staged().suppressed(bar)
}

func (all *paces) kind(name string) *plan.Durations {
	if all.kinds == nil || len(all.kinds) >= kindsMax && all.kinds[name] == nil {
		all.kinds = map[string]*plan.Durations{}
	}
	if all.kinds[name] == nil {
		all.kinds[name] = &plan.Durations{}
	}
	return all.kinds[name]
}

// straggle asks for copies of the stragglers of sessions that are due.
func (g *copies) straggle(tx *engine.Tx) error {
	for _, name := range sortedKeys(g.copies.paces.of) {
		s := g.copies.paces.of[name]
		if s.due > tx.Steady() && (!s.barred || !g.stirred) {
			continue
		}
		due, err := g.copies.look(tx, name, s)
		if err != nil {
			return err
		}
		if g.copies.due == nil {
			g.copies.due = map[string]job.Millis{}
		}
		g.copies.due[name] = due
	}
	return nil
}

// look is one look at a session for who is to have a copy.
type look struct {
	name  string
	q     *job.Queue
	red   *job.Redundancy
	pace  *pace
	known *job.Session
	depth engine.Depth
	due   job.Millis // when to look again
}

// look looks for a run that is to have a copy, and says when to look again.
func (g *copies) look(tx *engine.Tx, name string, s *pace) (due job.Millis, err error) {
	q, err := tx.Queue(name)
	if err != nil || q.Grid == nil || q.Grid.Redundancy == nil || !q.Grid.Served() {
		return job.MaxMillis, err
	}
	l := &look{name: name, q: q, red: q.Grid.Redundancy, pace: s, due: job.MaxMillis, depth: tx.Store().Depth(name)}
	if dry := s.spend.Dry(l.red, tx.Steady()); dry > 0 {
		if l.due = dry; dry <= tx.Steady() {
			return tx.Steady() + 1, g.copies.withdraw(tx, l)
		}
	}
	if l.known, err = g.sessions.find(tx, name); err != nil {
		return l.due, err
	}
	barred := ""
	for _, seek := range []func(*engine.Tx, *look) (*job.Job, job.RedundancyStrategy, string, error){g.copies.overdue, g.copies.endsLast, g.copies.clone} {
		j, by, bar, err := seek(tx, l)
		if err != nil {
			return l.due, err
		}
		if j != nil && bar == "" {
			_, err := tx.Step(j, rule.Command{Verb: rule.Offer})
			g.copies.noted = append(g.copies.noted, paced{session: name, id: j.ID, offered: &by, steady: tx.Steady()})
			return tx.Steady(), err // perhaps there are more
		}
		if barred == "" {
			barred = bar
		}
	}
	if barred != "" && !s.barred {
		g.copies.noted = append(g.copies.noted, paced{session: name, barred: barred, steady: tx.Steady()})
	}
	return l.due, nil
}

// bar is why a run does not get a copy now; "" = it does.
func (g *copies) bar(tx *engine.Tx, l *look) (string, error) {
	idle, err := g.copies.idleSlots(tx)
	if err != nil {
		return "", err
	}
	expected := job.Millis(l.pace.own.Median())
	return l.pace.spend.Bar(l.red, tx.Steady(), expected, l.pace.wanted, int(l.depth.Leases), idle, l.q.Grid.CopyPlace == job.PlaceFront).String(), nil
}

// noHost bars a copy that no engine may run: by a session's rule on hosts, by
// conditions, or because they are excluded.
const noHost = "no_eligible_host"

// atLimit is why a straggler whose task has had max_reschedules gets no copy, ever
// (V10 of the reference).
const atLimit = "limit"

// overdueLook is how many of the oldest runs are looked at: those before may have
// no host for a copy.
const overdueLook = 16

// overdue is the run of a session that goes on longest, of those that can have
// a copy, if it is a straggler by a threshold.
func (g *copies) overdue(tx *engine.Tx, l *look) (_ *job.Job, _ job.RedundancyStrategy, bar string, err error) {
	s := l.pace
	var aside []startedRun
	defer func() {
		for _, run := range aside {
			heap.Push(&s.runs, run)
		}
	}()
	for range overdueLook {
		oldest, j, limited, err := g.copies.oldestRun(tx, l)
		if err != nil || j == nil {
			return nil, 0, bar, err
		}
		age, by, ok := g.copies.threshold(tx, l, j.Type)
		if !ok {
			return nil, 0, bar, nil
		}
		if at := plan.StragglesAt(oldest.since, age); at > tx.Steady() {
			l.due = min(l.due, at)
			return nil, 0, bar, nil
		}
		if limited {
			g.copies.noted = append(g.copies.noted, paced{session: l.name, id: j.ID, atLimit: &oldest, steady: tx.Steady()})
			aside = append(aside, oldest)
			heap.Pop(&s.runs)
			continue
		}
		fits, err := g.sight.canRun(tx, l.known, j)
		if err != nil {
			return nil, 0, "", err
		}
		if fits {
			bar, err = g.copies.bar(tx, l)
			return j, by, bar, err
		}
		bar = noHost
		aside = append(aside, oldest)
		heap.Pop(&s.runs)
	}
	return nil, 0, bar, nil
}

// oldestRun is the run of a session that goes on longest, of those that can have
// a copy yet, or could if max_reschedules were higher. The others are dropped.
func (g *copies) oldestRun(tx *engine.Tx, l *look) (_ startedRun, _ *job.Job, limited bool, err error) {
	s := l.pace
	for len(s.runs) > 0 {
		oldest := s.runs[0]
		j, err := tx.Store().Get(oldest.id)
		if err != nil {
			return oldest, nil, false, err
		}
		if j != nil && j.LeaseOf(oldest.token) >= 0 {
			if bar := rule.NoCopy(j, l.q, tx.Rules()); bar == rule.CopyAllowed || bar == rule.CopyLimit {
				return oldest, j, bar == rule.CopyLimit, nil
			}
		}
		heap.Pop(&s.runs) // also if this transaction does not commit: it cannot later either
	}
	return startedRun{}, nil, false, nil
}

// idleSlots is how many slots are free, less the first runs that wait for one.
func (g *copies) idleSlots(tx *engine.Tx) (int, error) {
	t, err := g.shares.roster(tx)
	if err != nil {
		return 0, err
	}
	idle := 0
	err = g.fleet.each(tx, func(h *job.Holder) error {
		if slotsOf(h) == 0 {
			return nil
		}
		ids, err := tx.Store().IDs(store.Held(h.Name), store.All)
		idle += max(0, slotsOf(h)-len(ids))
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, share := range t.rota.Targets() {
		if share.Weight > 0 {
			idle -= int(tx.Store().Depth(share.Name).States[job.Ready])
		}
	}
	return idle, nil
}

// withdraw takes copies of a session back, the youngest first, until what is left
// lasts for the others: they have spent what they may. Their tasks run on, and
// nothing is charged.
func (g *copies) withdraw(tx *engine.Tx, l *look) error {
	list, err := tx.Store().List(store.Filter{Queues: []string{l.name}, States: []job.State{job.Leased}}, 1<<20)
	if err != nil {
		return err
	}
	var copies []copied
	for _, j := range list {
		for i := 1; i < len(j.Leases); i++ {
			copies = append(copies, copied{j.ID, j.Leases[i].Holder, j.Leases[i].Since})
		}
	}
	slices.SortStableFunc(copies, func(a, b copied) int { return cmp.Compare(b.since, a.since) })
	spend := l.pace.spend
	for _, c := range copies[:min(len(copies), engine.TickMax)] {
		if dry := spend.Dry(l.red, tx.Steady()); dry == 0 || dry > tx.Steady() {
			break
		}
		g.copies.noted = append(g.copies.noted, paced{session: l.name, withdrawn: true, steady: tx.Steady()})
		if err := tx.EndLeases(c.holder, []job.ID{c.of}, job.ByWithdraw); err != nil {
			return err
		}
		spend.End(tx.Steady())
	}
	return nil
}

// copied is a run of a task beside its first one.
type copied struct {
	of     job.ID
	holder string
	since  job.Millis
}

// next is when the clock looks for the next straggler; 0 = never.
func (g *copies) next() (soonest job.Millis) {
	for name, s := range g.copies.paces.of {
		due, changed := g.copies.due[name]
		if !changed {
			due = s.due
		}
		if due < job.MaxMillis && (soonest == 0 || due < soonest) {
			soonest = max(due, 1)
		}
	}
	return soonest
}

// load finds what runs of a session with redundancy.
func (g *copies) load(v store.Reader, session string, steady job.Millis) error {
	list, err := v.List(store.Filter{Queues: []string{session}, States: []job.State{job.Leased}}, 1<<30)
	if err != nil {
		return err
	}
	s := &pace{due: steady}
	for _, j := range list {
		s.wanted += extra(j)
		for i := range j.Leases {
			l := &j.Leases[i]
			if i > 0 {
				s.spend.Start(steady)
			}
			if l.Started > 0 {
				heap.Push(&s.runs, startedRun{steady - max(0, v.Now()-l.Started), j.ID, l.Token})
			}
		}
	}
	if g.copies.paces.of == nil {
		g.copies.paces.of = map[string]*pace{}
	}
	g.copies.paces.of[session] = s
	return nil
}

// of is what the copies of a session came to.
func (g *copies) of(tx *engine.Tx, name string) Redundant {
	s := g.copies.paces.of[name]
	if s == nil {
		return Redundant{}
	}
	told := s.told
	told.Seconds, told.Useful = s.spend.Spent, s.spend.Useful
	return told
}

// explain tells why a task that runs has no copy although one is due: it is
// a straggler by a threshold, or a copy was asked for and nobody took it.
func (g *copies) explain(tx *engine.Tx, s *rule.Situation) error {
	j := s.Job
	l := &look{name: j.Queue, q: s.Queue, red: s.Queue.Grid.Redundancy, pace: g.copies.paces.of[j.Queue], depth: tx.Store().Depth(j.Queue)}
	var err error
	if l.known, err = g.sessions.find(tx, j.Queue); err != nil {
		return err
	}
	asked := int(j.CopiesWanted) > len(j.Leases)
	if !asked && !g.copies.straggles(tx, l, j) {
		return nil
	}
	if bar := rule.NoCopy(j, l.q, tx.Rules()); bar != rule.CopyAllowed && !asked {
		s.CopyBar = bar.String()
		return nil
	}
	fits, err := g.sight.canRun(tx, l.known, j)
	if s.NoHost = !fits; !fits || asked || err != nil {
		return err
	}
	s.CopyBar, err = g.copies.bar(tx, l)
	return err
}

// straggles reports whether a run of a task is a straggler by a threshold.
func (g *copies) straggles(tx *engine.Tx, l *look, j *job.Job) bool {
	if l.red == nil || l.pace == nil {
		return false
	}
	age, _, ok := g.copies.threshold(tx, l, j.Type)
	return ok && slices.ContainsFunc(j.Leases, func(run job.Lease) bool { return run.Started > 0 && tx.Now()-run.Started > age })
}

// threshold is the age above which runs of a type are stragglers.
func (g *copies) threshold(tx *engine.Tx, l *look, kind string) (job.Millis, job.RedundancyStrategy, bool) {
	return plan.Threshold(l.red, &l.pace.own, g.copies.kinds[kind], plan.Work{
		Total: int(l.known.Submitted), Done: int(l.known.Done), Waiting: int(l.depth.States[job.Ready]),
	})
}
