package grid_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// chaos is a random history of sessions and engines, checked after every step:
// A42 of the reference, with its invariants I1 to I9. Their store is the dumb
// one; what is kept beside it must be what follows from it.
type chaos struct {
	*gridRig
	rng      *rand.Rand
	up       []*machine
	sessions []string
	names    []string
	won      map[string]job.Token // who gave the accepted result
	given    []given              // every delivery
	seen     map[string]int
	seed     uint64
	last     map[string]string // the latest task with a key, by session
	steps    int               // that were taken, and checked
	start    uint32            // of the server, as its tokens say; 0 = it gave none out yet
}

type given struct {
	m *machine
	d engine.Delivery
}

// chaosSeeds are as many histories as a test plays; GRID_SEEDS says more, and
// GRID_FROM the first of them.
const chaosSeeds = 16

// chaosSteps are as many steps as a history has, before everything is let come to
// its end.
const chaosSteps = 250

func TestA42RandomHistoriesKeepTheInvariantsOfTheGrid(t *testing.T) {
	seeds := chaosSeeds
	if testing.Short() {
		seeds = 10
	}
	if n, err := strconv.Atoi(os.Getenv("GRID_SEEDS")); err == nil {
		seeds = n
	}
	from, _ := strconv.ParseUint(os.Getenv("GRID_FROM"), 10, 64)
	seen, steps := map[string]int{}, 0
	for seed := from; seed < from+uint64(seeds); seed++ {
		if t.Failed() {
			return
		}
		grid(t, func(g *gridRig) {
			c := &chaos{gridRig: g, rng: rand.New(rand.NewPCG(seed, 42)), won: map[string]job.Token{}, seen: seen, seed: seed, last: map[string]string{}}
			defer func() { // also when it ends half way
				if steps += c.steps; g.Failed() {
					g.Logf("seed %d, behind step %d", seed, c.steps)
				}
			}()
			c.run(chaosSteps)
		}, func(r *rig) { r.Twice, r.Grid.BlackHoles = seed%4 == 0, new(job.DefaultBlackHoles()) })
	}
	t.Logf("%d histories from %d on, %d steps: %v", seeds, from, steps, seen)
	want := []string{"done", "dead", "copy", "two run", "superseded", "late", "lost", "power cut", "ended", "timeout", "evicted", "excluded", "client gone", "aside for another", "failed for another", "replayed", "late and refused"}
	if seeds >= 4*chaosSeeds { // of sixteen one copies by clone, and not however its goroutines run
		want = append(want, "copied by clone")
	}
	for _, what := range want {
		if seen[what] == 0 {
			t.Errorf("never seen: %s (%v)", what, seen)
		}
	}
}

func (c *chaos) run(steps int) {
	for i := range 3 {
		c.open(fmt.Sprint("s", i))
	}
	acts := []struct {
		weight int
		do     func()
	}{
		{20, c.submit},
		{30, c.settleOne},
		{25, c.begin},
		{12, c.time},
		{6, c.join},
		{4, func() {
			c.with(func(m *machine) {
				_ = c.Part.Grid.Logoff(c.Context(), m.name, 0, driver)
				c.Pass(0)
				c.hear()
				c.remove(m)
			})
		}},
		{3, func() { c.with(func(m *machine) { _, _ = c.Part.Grid.Drain(c.Context(), m.name, 0, driver) }) }},
		{3, func() { c.with(func(m *machine) { c.remove(m) }) }}, // falls silent
		{4, func() { c.with(c.reconnect) }},
		{6, c.offer},
		{2, c.cancelOne},
		{3, c.weigh},
		{3, c.collect},
		{1, func() { c.open(fmt.Sprint("s", len(c.sessions))) }},
		{1, func() { _, _ = c.Part.Grid.CloseSession(c.Context(), c.one(), driver) }},
		{1, func() { _, _ = c.Part.Grid.CancelSession(c.Context(), c.one(), "", driver) }},
		{1, func() { c.seen["power cut"]++; c.PowerCut(); c.relog() }},
		{1, func() { c.Restart(job.Second); c.relog() }},
	}
	total := 0
	for _, a := range acts {
		total += a.weight
	}
	for range steps {
		at := c.rng.IntN(total)
		for _, a := range acts {
			if at -= a.weight; at < 0 {
				a.do()
				break
			}
		}
		c.Pass(0)
		c.hear()
		if c.check(); c.Failed() {
			return
		}
		c.steps++
	}
	c.finish()
}

func (c *chaos) one() string { return c.sessions[c.rng.IntN(len(c.sessions))] }

func (c *chaos) with(f func(*machine)) {
	if len(c.up) > 0 {
		f(c.up[c.rng.IntN(len(c.up))])
	}
}

func (c *chaos) remove(m *machine) {
	c.up = slices.DeleteFunc(c.up, func(n *machine) bool { return n == m })
}

// reconnect breaks the connection of an engine; one that is lost stays away.
func (c *chaos) reconnect(m *machine) {
	m.End()
	s, err := c.Part.Grid.EngineStream(c.Context(), m.name, m.epoch, 0, nil)
	if err != nil {
		c.remove(m)
		return
	}
	m.Stream = s
}

func (c *chaos) open(name string) {
	c.session(name, func(q *job.Queue) {
		q.FrontOrder = job.FrontOrder(c.rng.IntN(2))
		q.RunTimeout = []job.Millis{0, 7 * job.Second, job.Minute}[c.rng.IntN(3)]
		q.StartTimeout = []job.Millis{0, 20 * job.Second}[c.rng.IntN(2)]
		g := q.Grid
		g.Weight, g.MaxEngines = uint8(c.rng.IntN(10)), c.rng.IntN(4)
		g.MaxCopies, g.MaxReschedules = uint8(1+c.rng.IntN(3)), uint32(c.rng.IntN(3))
		g.LossesCharged, g.AnyHost, g.Urgent = c.rng.IntN(2) == 0, c.rng.IntN(3) == 0, c.rng.IntN(6) == 0
		g.RetryElsewhere = !g.LossesCharged
		g.AffinityWait = []job.Millis{0, 6 * job.Second, job.Minute}[c.rng.IntN(3)]
		g.OnTimeout, g.Collection = job.OnTimeout(c.rng.IntN(2)), job.Collection(c.rng.IntN(4))
		g.EvictedPlace, g.CopyPlace = job.Place(c.rng.IntN(4)), job.Place(c.rng.IntN(4))
		if c.rng.IntN(2) == 0 {
			red := job.DefaultRedundancy()
			red.MinSamples, red.MedianDone, red.AlsoBusy, red.RunningShare, red.SecondsShare = 1, 0.2, c.rng.IntN(2) == 0, 1, 1
			red.Strategies, red.HedgeSamples, red.TailDone = job.RedundancySet(1+c.rng.IntN(1<<job.RedundancyStrategies-1)), 1, 0
			red.MedianFactor, red.MedianAge, red.MeanFactor, red.LeftFactor, red.HedgeQuantile = 1, 1, 1, 1, 0.5
			red.CloneTasks, red.CloneRisk = 100, 0.001
			g.MaxCopies, g.MaxReschedules = uint8(2+c.rng.IntN(2)), uint32(1+c.rng.IntN(2))
			g.Redundancy = &red
		}
		if c.rng.IntN(2) == 0 {
			x := job.Exclusion{Failures: 1 + c.rng.IntN(3), EachFailure: c.rng.IntN(2) == 0, MaxFraction: 0.5, TTL: job.Minute}
			g.Exclusion = &x
		}
		n := len(c.sessions) + int(c.seed) // these draw nothing, so that the others stay as they were
		if q.NonIdempotent = g.Redundancy == nil && n%3 == 0; q.NonIdempotent {
			g.FenceWait = job.Millis(n%4) * 5 * job.Second
		}
		if n%5 == 4 {
			g.ClientTimeout = 20 * job.Second
		}
	})
	c.sessions = append(c.sessions, name)
}

func (c *chaos) submit() {
	s := c.one()
	for range 1 + c.rng.IntN(4) {
		name := fmt.Sprint("t", len(c.names))
		edits := []func(*engine.NewJob){task}
		if n := len(c.names); n%3 == 0 {
			edits = append(edits, tagOf(fmt.Sprint("tag", n%2)))
		}
		edits = append(edits, c.needsOf(s, name))
		added, err := c.Put(c.Context(), []engine.NewJob{newNamed(s, name, edits...)})
		if err != nil {
			if job.KindOf(err) != job.WrongState {
				c.Errorf("submitting: %v", err)
			}
			delete(c.last, s)
			return
		}
		c.Call(added[0].ID, name)
		c.names = append(c.names, name)
	}
}

func (c *chaos) join() {
	if len(c.up) < 6 {
		name, host := fmt.Sprint("w", c.rng.IntN(8)), fmt.Sprint("h", c.rng.IntN(4))
		c.up = slices.DeleteFunc(c.up, func(m *machine) bool { return m.name == name })
		c.up = append(c.up, c.engine(name, 1+c.rng.IntN(3), onHost(host)))
	}
}

func (c *chaos) hear() {
	for _, m := range c.up {
		list, err := m.Poll()
		if err != nil {
			continue
		}
		for _, d := range list {
			switch {
			case d.Voided && d.Ending == job.ByTimeout:
				c.seen["timeout"]++
				_, _ = c.Part.Grid.Heartbeat(c.Context(), m.name, gridpart.Beat{Epoch: m.epoch, Stopped: []job.Token{d.Lease.Token}})
			case d.Voided && d.Ending.Evicts():
				c.seen["evicted"]++
			case !d.Voided:
				if !d.Held {
					c.start = d.Lease.Token.Start()
				}
				c.given = append(c.given, given{m, d})
			}
		}
	}
}

// any is a delivery, mostly a late one.
func (c *chaos) any() (given, bool) {
	if len(c.given) == 0 {
		return given{}, false
	}
	return c.given[len(c.given)-1-c.rng.IntN(min(len(c.given), 12))], true
}

func (c *chaos) begin() {
	if g, some := c.any(); some {
		x := engine.Extension{ID: g.d.Job.ID, Token: g.d.Lease.Token, Started: true}
		if c.rng.IntN(3) == 0 {
			x.Progress = &job.RunProgress{Fraction: c.rng.Float64()}
		}
		_, err := c.Extend(c.Context(), []engine.Extension{x})
		if err != nil {
			c.Error(err)
		}
		if j := c.Job(c.called(g)); len(c.given)%4 == 0 || j != nil && len(j.Leases) > 1 {
			c.commit(g)
		}
	}
}

func (c *chaos) settleOne() {
	g, some := c.any()
	if !some {
		return
	}
	name := c.called(g)
	before := c.Job(name)
	c.wrongToken(g)
	how := []job.Outcome{job.OK, job.OK, job.OK, job.Retried, job.Released, job.Died}[c.rng.IntN(6)]
	v := c.Try(engine.Settle{ID: g.d.Job.ID, Token: g.d.Lease.Token, Outcome: how, Failure: job.Failure{Type: "E", Message: "boom"}})
	live := before != nil && before.LeaseOf(g.d.Lease.Token) >= 0
	switch {
	case v.Err != nil && live:
		c.Errorf("%s of %s under a live token was refused: %v", how, name, v.Err)
	case v.Err != nil && job.KindOf(v.Err) == job.Superseded:
		c.seen["superseded"]++
		c.refusedLate(before, how)
	case v.Err == nil && how == job.OK:
		if by, has := c.won[name]; has && by != g.d.Lease.Token { // I1, I9
			c.Errorf("%s has two accepted results", name)
		}
		if c.won[name] = g.d.Lease.Token; !live {
			c.seen["late"]++
			c.acceptedLate(before, g.d.Lease.Token)
		}
	}
}

func (c *chaos) called(g given) string { return c.Names[g.d.Job.ID] }

func (c *chaos) time() {
	for _, m := range c.up {
		if c.rng.IntN(8) > 0 {
			_, _ = c.Part.Grid.Heartbeat(c.Context(), m.name, gridpart.Beat{Epoch: m.epoch})
		}
	}
	c.Pass(job.Millis(1 + c.rng.IntN(9000)))
	for _, name := range c.sessions {
		if s, err := c.Part.Grid.Session(c.Context(), name); err == nil {
			for by, n := range s.Redundant.Started {
				c.seen["copied by "+job.RedundancyStrategy(by).String()] += int(n)
			}
		}
	}
}

func (c *chaos) offer() {
	if g, some := c.any(); some {
		if _, err := enginetest.Operate(c.Context(), c.Engine, g.d.Job.ID, rule.Command{Verb: rule.Offer}); err == nil {
			c.seen["copy"]++
		}
	}
}

func (c *chaos) cancelOne() {
	if g, some := c.any(); some {
		_, _ = enginetest.Operate(c.Context(), c.Engine, g.d.Job.ID, cancel)
	}
}

func (c *chaos) weigh() {
	_, _ = c.Part.Grid.ChangeSession(c.Context(), c.one(), func(q *job.Queue) error {
		q.Grid.Weight, q.Grid.Suspended = uint8(c.rng.IntN(10)), c.rng.IntN(4) == 0
		return nil
	}, driver)
}

func (c *chaos) collect() {
	name := c.one()
	if list, _, err := c.Part.Grid.Results(c.Context(), name, 0, 1+c.rng.IntN(5)); err == nil && len(list) > 0 {
		if _, err := c.Part.Grid.Collected(c.Context(), name, list[len(list)-1].Number); err != nil {
			c.Error(err)
		}
	}
}

// relog is what engines do when the server was away: those that come back tell
// what they run.
func (c *chaos) relog() {
	back := c.up
	c.up, c.start = nil, 0
	for _, m := range back {
		if c.rng.IntN(4) == 0 {
			continue
		}
		var running []gridpart.Running
		for _, g := range c.given {
			if g.m.name == m.name && c.rng.IntN(3) > 0 {
				running = append(running, gridpart.Running{ID: g.d.Job.ID, Token: g.d.Lease.Token})
			}
		}
		in := c.login(m.name, 2, func(l *gridpart.Login) { l.Running = running })
		n := &machine{g: c.gridRig, name: m.name, epoch: in.Engine.Epoch}
		n.connect()
		c.up = append(c.up, n)
	}
}

// check holds what there is to the invariants.
func (c *chaos) check() {
	c.Helper()
	synctest.Wait() // what the committer did is published
	err := c.Mem.View(c.Context(), func(v store.Reader) error {
		rows, err := v.Rows(job.Sessions, "", 1000)
		for _, row := range rows {
			if err == nil {
				err = c.checkSession(v, row.(*job.Session))
			}
		}
		return err
	})
	if err != nil {
		c.Error(err)
	}
	c.checkSlots()
}

func (c *chaos) checkSession(v store.Reader, s *job.Session) error {
	row, err := v.Row(job.Queues, s.Name)
	q, ok := row.(*job.Queue)
	if err != nil || !ok {
		return fmt.Errorf("session %s has no settings: %w", s.Name, err)
	}
	list, err := v.List(store.Filter{Queues: []string{s.Name}}, 10_000)
	if err != nil {
		return err
	}
	d := v.Depth(s.Name)
	if s.Open() != d.Open() {
		c.Errorf("%s: %d tasks are open, the session counts %+v", s.Name, d.Open(), s)
	}
	if s.State.Ended() != (s.Ended > 0) || s.State.Ended() && s.Open() > 0 || s.State > job.SessionOpen && s.State < job.SessionDone && s.Open() == 0 {
		c.Errorf("%s with %d open tasks is %s", s.Name, s.Open(), s.State)
	}
	if s.State.Ended() {
		c.seen["ended"]++
	}
	if strings.Contains(s.Why, "client_timeout") {
		c.seen["client gone"]++
	}
	if len(s.Strikes) > 0 {
		c.seen["excluded"]++
	}
	if err := c.checkTags(v, s.Name); err != nil {
		return err
	}
	copies, wanted := 0, 0
	limit, _ := q.Retry.LimitValue()
	for _, j := range list {
		c.checkTask(q, j, limit)
		if err := c.checkAside(v, j); err != nil {
			return err
		}
		c.checkAttempts(q, j)
		if j.State == job.Leased {
			copies += len(j.Leases) - 1
			wanted += max(0, int(j.CopiesWanted)-1)
		}
	}
	if waiting, running, known := c.Part.Grid.Roster(s.Name); known && (waiting != int(d.Wanting) || running != int(d.Leases)) { // I7
		c.Errorf("%s: the shares know of %d that wait and %d that run, there are %d and %d", s.Name, waiting, running, d.Wanting, d.Leases)
	}
	if out, asked, known := c.Part.Grid.Pace(s.Name); known && (out != copies || asked != wanted) {
		c.Errorf("%s: %d copies run and %d are wanted, known are %d and %d", s.Name, copies, wanted, out, asked)
	}
	return nil
}

// checkTags: of the tasks of a tag that wait for their first run one is next, and
// stands in line, if any stands aside; nobody stands aside for nothing.
func (c *chaos) checkTags(v store.Reader, session string) error {
	rows, err := v.Rows(job.Affinities, session, 100)
	if err != nil {
		return err
	}
	for _, row := range rows {
		t := row.(*job.AffinityTag)
		if t.Session != session {
			continue
		}
		aside, err := v.IDs(store.Parked(rule.AffinityPark(session, t.Tag)), 100)
		if err != nil {
			return err
		}
		head, err := v.Get(t.Head)
		if err != nil {
			return err
		}
		switch {
		case t.Head.IsZero() && len(aside) > 0:
			c.Errorf("I6: %d tasks of %s stand behind nobody", len(aside), t.Tag)
		case t.Head.IsZero() != (t.Until == 0):
			c.Errorf("%s: %+v", t.Tag, t)
		case !t.Head.IsZero() && (head == nil || head.State != job.Ready || head.Park != ""):
			c.Errorf("I6: the next of %s is %+v", t.Tag, head)
		}
		if len(aside) > 0 {
			c.seen["aside"]++
		}
		if head != nil && len(head.Affinity().For) > 0 {
			c.seen["kept"]++
		}
	}
	return nil
}

func (c *chaos) checkTask(q *job.Queue, j *job.Job, limit int64) {
	name, g := c.Names[j.ID], q.Grid
	hosts, holders := map[string]bool{}, map[string]bool{}
	for _, l := range j.Leases {
		if host := l.Bars(); host != "" && hosts[host] || holders[l.Holder] {
			c.Errorf("I4: two runs of %s on one engine or host: %+v", name, j.Leases)
		}
		hosts[l.Bars()], holders[l.Holder] = true, true
	}
	switch {
	case len(j.Leases) > int(g.MaxCopies):
		c.Errorf("I4: %s runs %d times", name, len(j.Leases))
	case int64(j.Attempts) > limit+int64(g.MaxCopies):
		c.Errorf("I2: %s was retried %d times", name, j.Attempts)
	case int64(j.Attempts) > limit && j.State == job.Ready:
		c.Errorf("I2: %s waits with %d retries", name, j.Attempts)
	case j.Reschedules > g.MaxReschedules:
		c.Errorf("I3: %s was rescheduled %d times", name, j.Reschedules)
	case (j.State == job.Leased) != (len(j.Leases) > 0):
		c.Errorf("I6: %s is %s with %d runs", name, j.State, len(j.Leases))
	case j.State == job.Done && c.won[name] == job.Token{}:
		c.Errorf("I1: %s is done, and nobody was told so", name)
	case j.State.Open() && c.won[name] != job.Token{}:
		c.Errorf("I1: %s is %s after its result was accepted", name, j.State)
	}
	switch {
	case j.State == job.Done:
		c.seen["done"]++
	case j.State == job.Dead:
		c.seen["dead"]++
	case len(j.Leases) > 1:
		c.seen["two run"]++
	}
	if j.Losses > 0 {
		c.seen["lost"]++
	}
}

// finish lets everything come to its end: no task is lost.
func (c *chaos) finish() {
	for _, name := range c.sessions {
		_, _ = c.Part.Grid.ChangeSession(c.Context(), name, func(q *job.Queue) error {
			q.Grid.Weight, q.Grid.Suspended, q.Grid.MaxEngines, q.Grid.Exclusion, q.Grid.ClientTimeout = 5, false, 0, nil, 0
			return nil
		}, driver)
		_, _ = c.Part.Grid.CloseSession(c.Context(), name, driver)
	}
	c.up = nil
	for i := range 4 {
		c.up = append(c.up, c.engine(fmt.Sprint("end", i), 5, onHost(fmt.Sprint("end", i))))
	}
	for range 400 {
		c.hear()
		for _, g := range c.given {
			v := c.Try(engine.Settle{ID: g.d.Job.ID, Token: g.d.Lease.Token, Outcome: job.OK})
			if name := c.called(g); v.Err == nil {
				if by, has := c.won[name]; has && by != g.d.Lease.Token {
					c.Errorf("%s has two accepted results", name)
				}
				c.won[name] = g.d.Lease.Token
			}
		}
		c.given = nil
		for _, m := range c.up {
			_, _ = c.Part.Grid.Heartbeat(c.Context(), m.name, gridpart.Beat{Epoch: m.epoch})
		}
		c.Pass(job.Second)
		open := int64(0)
		for _, name := range c.sessions {
			if s, err := c.Part.Grid.Session(c.Context(), name); err == nil {
				open += s.Open()
			}
		}
		if open == 0 {
			c.check()
			return
		}
	}
	c.Error("I8: some tasks never came to an end")
}
