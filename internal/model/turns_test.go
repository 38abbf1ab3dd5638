package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Turns as inbox.md tells of them: the members of a group that are there, in their
// order, go to one holder, and the head alone decides whether there is a turn.

const (
	pausePark   = "pause"
	localHolder = "a/door"
)

// inbox lets the groups of a queue be given out in turns.
func inbox(q *job.Queue, order job.Order, concurrency int) {
	q.Order, q.Concurrency, q.Turns, q.OnDead = order, concurrency, true, job.DeadBlock
	q.Protection.Fair = &job.FairShare{}
}

func (m *model) graceDelay(j *job.Job) job.Millis {
	return cmp.Or(m.queues[j.Queue].GraceDelay, graceDelay)
}

// head is the first member of a group, whatever it does; nil if it has none.
func (m *model) head(queue, group string) *job.Job {
	members := m.members(queue, group)
	if len(members) == 0 {
		return nil
	}
	return slices.MinFunc(members, inGroup)
}

// follows reports whether a member runs, or just ran, behind another one of a
// strict turn that runs.
func (m *model) follows(j *job.Job) bool {
	return j.Group != "" && j.Order == job.OrderStrict && slices.ContainsFunc(m.members(j.Queue, j.Group), func(o *job.Job) bool {
		return len(o.Leases) > 0 && inGroup(o, j) < 0
	})
}

// cut sends the members of a strict turn back that are behind one that ended it.
func (m *model) cut(j *job.Job) {
	if j.Group == "" || j.Order != job.OrderStrict || len(j.Leases) > 0 {
		return
	}
	for _, o := range m.members(j.Queue, j.Group) {
		if len(o.Leases) > 0 && inGroup(j, o) < 0 {
			m.end(o, o.Leases[0], job.ByTurn)
			m.giveBack(o, job.PlaceKeep, 0)
		}
	}
}

// recall sends members back that must not be delivered any more, once it is their
// turn: a worker settled one before them.
func (m *model) recall(queue, group string) {
	for {
		out := slices.DeleteFunc(m.members(queue, group), func(j *job.Job) bool { return len(j.Leases) == 0 || j.Leases[0].Turn == 0 })
		if len(out) == 0 {
			return
		}
		next := slices.MinFunc(out, inGroup)
		if m.mayDeliver(next) == nil {
			return
		}
		m.end(next, next.Leases[0], job.ByTurn)
		m.giveBack(next, job.PlaceKeep, 0)
		if !m.over(next.ExpiresAt) {
			m.cut(next)
		}
	}
}

// mayDeliver is what is said of a member whose lease lives.
func (m *model) mayDeliver(j *job.Job) error {
	q, g := m.queues[j.Queue], m.group(j.Queue, j.Group)
	switch {
	case m.over(j.ExpiresAt):
		return turn.ErrExpired
	case q.Paused || q.HoldUntil > 0 || j.Park == pausePark || g.Paused || g.Hold > 0 || g.Park != "":
		return turn.ErrOutOfLine
	}
	return nil
}

// turn is the number of the turn of a member that is given out.
func (m *model) turn(j *job.Job, joins bool) int64 {
	fair := m.queues[j.Queue].Protection.Fair != nil
	if !fair && (j.Group == "" || j.Order != job.OrderStrict) {
		return 0
	}
	g, at := m.group(j.Queue, j.Group), sortOf(j)
	if j.Group != "" && j.Order == job.OrderStrict {
		if g.Turn != 0 && at < g.LastSeq {
			m.stats.OutOfOrder++
		}
		if !joins && (g.Turn == 0 || at > g.LastSeq) {
			g.LastSeq = at
		}
	}
	if !joins && j.Group != "" {
		g.Turn = m.draw()
	}
	if !joins && fair { // who was served is the last
		g.Place = m.draw()
	}
	return g.Turn
}

// passes: a member that was delivered is the highest so far.
func (m *model) passes(j *job.Job, o job.Outcome) {
	if j.Group != "" && j.Order == job.OrderStrict && o != job.Released {
		g := m.group(j.Queue, j.Group)
		g.LastSeq = max(g.LastSeq, sortOf(j))
	}
}

// timeOuts ends what is over, the soonest first: runs before leases.
func (m *model) timeOuts() {
	for _, ends := range []func(l job.Lease) job.Millis{
		func(l job.Lease) job.Millis {
			if l.RunEnd == 0 || l.StartBy == 0 {
				return max(l.RunEnd, l.StartBy)
			}
			return min(l.RunEnd, l.StartBy)
		},
		func(l job.Lease) job.Millis { return l.Until },
	} {
		soonest := func(j *job.Job) (first job.Millis) {
			for _, l := range j.Leases {
				if at := ends(l); m.over(at) && (first == 0 || at < first) {
					first = at
				}
			}
			return first
		}
		over := m.sorted(func(j *job.Job) bool { return soonest(j) > 0 })
		slices.SortStableFunc(over, func(a, b *job.Job) int { return cmp.Compare(soonest(a), soonest(b)) })
		for _, j := range over {
			if soonest(j) > 0 { // its turn was not cut by one before it
				m.timeOut(j)
			}
		}
	}
}

// stand is where a job, or the gate of its group for it, stands in a fair line.
func (m *model) stand(j *job.Job) int64 {
	g := m.groups[job.GateKey(j.Queue, j.Group)]
	if g == nil || g.Place == 0 {
		return j.Seq
	}
	return max(j.Seq, g.Place)
}

// nextTurn is the turn that a holder is given next: its members in their order.
func (m *model) nextTurn(holder string, o turn.Options, round int64) []*job.Job {
	line := m.sorted(func(j *job.Job) bool {
		return j.Queue == o.Queue && m.offered(j) && !j.HeldBy(holder) && (round == 0 || m.stand(j) < round)
	})
	if len(line) == 0 {
		return nil
	}
	head := slices.MinFunc(line, func(a, b *job.Job) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), cmp.Compare(a.Band, b.Band), cmp.Compare(m.stand(a), m.stand(b)), before(a, b))
	})
	if head.Group == "" {
		return []*job.Job{head}
	}
	members := m.members(head.Queue, head.Group)
	slices.SortFunc(members, inGroup)
	list, most := []*job.Job(nil), o.Members
	for _, j := range members {
		if most == 0 {
			most = 1
		}
		switch {
		case wanted(j) && (most < 0 || len(list) < most):
			list = append(list, j)
		case j.Order == job.OrderStrict:
			return list
		}
	}
	return list
}

// rest is what the model knows of where a batch goes on.
type rest struct {
	*turn.Rest
	queue, group string
	batch, turn  int64 // as the model numbers them
	last         job.Job
}

// behind is the members of a batch that are next; busy is whether its latest turn
// goes on.
func (m *model) behind(b *rest, most int) (list []*job.Job, busy bool) {
	q, g := m.queues[b.queue], m.group(b.queue, b.group)
	members := m.members(b.queue, b.group)
	if g.Turn != b.turn || len(members) == 0 {
		return nil, false
	}
	if slices.ContainsFunc(members, func(j *job.Job) bool { return len(j.Leases) > 0 }) {
		return nil, true
	}
	if q.Paused || q.HoldUntil > 0 || g.Hold > 0 || g.Park != "" || g.Paused {
		return nil, false
	}
	slices.SortFunc(members, inGroup)
	for _, j := range members {
		passed := inGroup(j, &b.last) <= 0 || !wanted(j) || j.Seq >= b.batch
		switch {
		case passed && j.Order == job.OrderStrict:
			return list, false
		case !passed && (most < 0 || len(list) < max(most, 1)):
			list = append(list, j)
		}
	}
	return list, false
}

// goOn takes the rest of a batch, and holds it against the model.
func (w *world) goOn(o turn.Options, holder string, kind job.HolderKind, life job.Millis) {
	b := w.rest
	o.Queue, o.Behind = b.queue, b.Rest
	members, busy := w.model.behind(b, o.Members)
	list, err := w.Turns.Lease(w.Context(), o)
	want := accepted
	if busy || !w.model.queues[b.queue].Turns {
		want = job.WrongState
	}
	if w.refused("go on with a batch", err, want) {
		return
	}
	switch {
	case len(list) != oneIf(len(members) > 0):
		w.Fatalf("%d turns of a batch of %s/%s were given out, and %d members of it are there", len(list), b.queue, b.group, len(members))
	case len(list) == 1:
		w.given(list[0], members, holder, kind, life)
		w.rest.batch = b.batch
	}
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}

// takeTurns takes what is there now, and holds it against the model.
func (w *world) takeTurns(t *rapid.T) {
	o := turn.Options{
		Queue: one(t, "inbox", w.used...), Turns: rapid.IntRange(0, 3).Draw(t, "turns"), Members: one(t, "members", -1, -1, 0, 1, 2),
		For: one[job.Millis](t, "for", 4000, 9500), Once: true,
	}
	holder, kind, life := "u/turner", job.Unary, o.For
	if o.Worker = "turner"; rapid.Bool().Draw(t, "local") {
		o.Worker, o.Local = "door", true
		holder, kind, life = localHolder, job.Anonymous, 0
	}
	if w.rest != nil && one(t, "goes on", false, false, true) {
		w.goOn(o, holder, kind, life)
		return
	}
	before := int64(0)
	if one(t, "a run", false, false, true) {
		var err error
		o.Before, err = w.Turns.Round(w.Context())
		w.must(err)
		before = w.model.draw()
	}
	ctx := w.Context()
	if rapid.Bool().Draw(t, "waits") { // for nothing
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		cancel()
		o.Once = false
	}
	list, err := w.Turns.Lease(ctx, o)
	want := accepted
	if !w.model.queues[o.Queue].Turns {
		want = job.WrongState
	}
	if w.refused("take turns", err, want) {
		return
	}
	for n := range max(o.Turns, 1) {
		members := w.model.nextTurn(holder, o, before)
		if n >= len(list) {
			if len(members) > 0 {
				w.Fatalf("%d turns of %s were given out of %d, and %s is in line", n, o.Queue, o.Turns, w.name(members[0]))
			}
			return
		}
		w.given(list[n], members, holder, kind, life)
	}
	if len(list) > max(o.Turns, 1) {
		w.Fatalf("%d turns were given out, want %d", len(list), o.Turns)
	}
}

// given compares one turn.
func (w *world) given(turn turn.Turn, want []*job.Job, holder string, kind job.HolderKind, life job.Millis) {
	if len(turn.Deliveries) != len(want) || len(want) == 0 {
		w.Fatalf("a turn of %s/%s has %d members, want %d", turn.Queue, turn.Group, len(turn.Deliveries), len(want))
	}
	if grouped := want[0].Group != ""; grouped != (turn.Number > w.lastTurn) || turn.Group != want[0].Group {
		w.Fatalf("turn %d of group %q comes after %d, want one of group %q", turn.Number, turn.Group, w.lastTurn, want[0].Group)
	}
	w.lastTurn = max(w.lastTurn, turn.Number)
	var last job.Token
	for i, d := range turn.Deliveries {
		j := want[i]
		if d.Job.ID != j.ID || d.Lease.Turn != turn.Number || bytes.Compare(d.Lease.Token[:], last[:]) <= 0 {
			w.Fatalf("member %d of turn %d is %s in turn %d, want %s", i+1, turn.Number, w.name(d.Job), d.Lease.Turn, w.name(j))
		}
		last = d.Lease.Token
		w.model.take(j, d.Lease.Token, holder, kind, life, i > 0)
		w.same("in a turn", d.Job, j)
		w.tokens = append(w.tokens, d.Lease.Token)
		w.owners[d.Lease.Token] = j.ID
		w.body(j.ID, d.Payload)
	}
	if last := want[len(want)-1]; turn.Number != 0 {
		number := w.model.group(turn.Queue, turn.Group).Turn
		w.rest = &rest{turn.Rest(), turn.Queue, turn.Group, number, number, *last}
	}
}

// deliver settles a member that is out, mostly the first of its turn that is, after it
// asked whether it may be delivered.
func (w *world) deliver(t *rapid.T) {
	var out []*job.Job
	for _, j := range w.model.sorted(func(j *job.Job) bool { return len(j.Leases) > 0 && w.model.queues[j.Queue].Turns }) {
		if first := one(t, "in order", true, true, false); !first || !w.model.follows(j) {
			out = append(out, j)
		}
	}
	if len(out) == 0 {
		t.SkipNow()
	}
	j := rapid.SampledFrom(out).Draw(t, "member")
	token := j.Leases[0].Token
	w.mayDeliver(j.ID, token)
	if late := w.tokens[0]; w.owners[late] != j.ID {
		w.mayDeliver(w.owners[late], late)
	}
	w.settleAs(t, engine.Settle{ID: j.ID, Token: token, Outcome: one(t, "outcome", job.OK, job.OK, job.OK, job.Retried, job.Died, job.Released)})
}

func (w *world) mayDeliver(id job.ID, token job.Token) {
	j, err := w.model.jobs[id], w.Turns.MayDeliver(w.Context(), id, token)
	switch {
	case j == nil:
		w.refused("may deliver", err, job.NotFound)
		return
	case j.LeaseOf(token) < 0:
		w.refused("may deliver", err, job.Superseded)
		return
	}
	want := w.model.mayDeliver(j)
	if !errors.Is(err, want) || want == nil && err != nil {
		w.Fatalf("whether %s may be delivered: %v, want %v", w.name(j), err, want)
	}
}

// operateGroup pauses a group, or lets it go on, or does something to its head.
func (w *world) operateGroup(t *rapid.T) {
	queue, group := one(t, "queue", w.used...), one(t, "group", "a", "b")
	m, by := w.model, job.Actor{}
	switch one(t, "action", "pause", "resume", "resume", "retry", "skip") {
	case "pause":
		w.must(w.Desk.PauseGroup(w.Context(), by, queue, group, true))
		m.group(queue, group).Paused = true
	case "resume":
		w.must(w.Desk.PauseGroup(w.Context(), by, queue, group, false))
		m.group(queue, group).Paused = false
	case "retry":
		if !m.known(queue, group) {
			t.SkipNow()
		}
		_, err := w.Desk.DoHead(w.Context(), by, desk.RetryNow, queue, group)
		w.onHead("retry head", err, queue, group, func(j *job.Job) job.Kind { return m.revive(j, false) })
	case "skip":
		if !m.known(queue, group) {
			t.SkipNow()
		}
		_, err := w.Desk.DoHead(w.Context(), by, desk.Skip, queue, group)
		w.onHead("skip head", err, queue, group, m.skip)
	}
}

// known reports whether a queue knows which member of a group is first.
func (m *model) known(queue, group string) bool { return m.queues[queue].Order != job.OrderNone }

func (w *world) onHead(what string, err error, queue, group string, model func(*job.Job) job.Kind) {
	want := job.NotFound
	if head := w.model.head(queue, group); head != nil {
		want = model(head)
	}
	w.refused(what, err, want)
}

// skip gives up a member of a group; one that is dead and holds it steps aside as
// it died.
func (m *model) skip(j *job.Job) job.Kind {
	switch {
	case !j.State.Open() && !j.BlocksGroup:
		return job.WrongState
	case j.State != job.Dead:
		j.Failures++
		m.endAll(j, job.ByCancel)
		m.bury(j, job.Killed)
		return accepted
	}
	why, revived := j.Reason, j.RevivedAt
	counters := [...]uint32{j.Attempts, j.Losses, j.Overrides, j.Suppressed}
	alone := j.Isolated
	if kind := m.revive(j, true); kind != accepted {
		return kind
	}
	j.Attempts, j.Losses, j.Overrides, j.Suppressed, j.Isolated, j.RevivedAt = counters[0], counters[1], counters[2], counters[3], alone, revived
	m.bury(j, why)
	return accepted
}

// pauseOne pauses a job, lets it go on, calls it up, or gives it up.
func (w *world) pauseOne(t *rapid.T) {
	id, by := w.anyID(t), job.Actor{}
	act, change := desk.Pause, func(j *job.Job) { j.Park = pausePark }
	switch one(t, "action", "pause", "resume", "resume", "retry", "skip") {
	case "skip":
		_, err := w.Desk.Do(w.Context(), by, desk.Skip, id)
		w.onJob("skip", err, id, w.model.skip)
		return
	case "resume":
		act, change = desk.Resume, func(j *job.Job) {
			if j.Park == pausePark {
				j.Park = ""
			}
		}
	case "retry":
		_, err := w.Desk.Do(w.Context(), by, desk.RetryNow, id)
		w.onJob("retry now", err, id, func(j *job.Job) job.Kind { return w.model.revive(j, false) })
		return
	}
	if j := w.model.jobs[id]; j != nil && j.Budgets() != nil {
		t.SkipNow() // it may be aside for those
	}
	_, err := w.Desk.Do(w.Context(), by, act, id)
	w.onJob("pause or resume", err, id, func(j *job.Job) job.Kind {
		if !j.State.Open() {
			return job.WrongState
		}
		if change(j); j.State != job.Leased {
			w.model.wait(j)
			w.model.setBack(j)
		}
		return accepted
	})
}

func (w *world) onJob(what string, err error, id job.ID, model func(*job.Job) job.Kind) {
	want := job.NotFound
	if j := w.model.jobs[id]; j != nil {
		want = model(j)
	}
	w.refused(what, err, want)
}

// standing are the groups of a queue that is given out in turns, each in the one
// condition that it is in.
func (m *model) standing(queue string) (list []store.Standing) {
	if !m.queues[queue].Turns {
		return nil
	}
	for _, group := range []string{"a", "b"} {
		members := m.members(queue, group)
		if len(members) == 0 {
			continue
		}
		g, head := m.group(queue, group), slices.MinFunc(members, inGroup)
		s := store.Standing{Group: group, Members: int64(len(members)), Head: head.ID}
		switch {
		case slices.ContainsFunc(members, func(j *job.Job) bool { return len(j.Leases) > 0 }):
			s.Is = rule.GroupRunning
		case g.Park != "":
			s.Is = rule.GroupAside
		case head.State == job.Dead:
			s.Is = rule.GroupBlocked
		case g.Paused:
			s.Is = rule.GroupPaused
		case head.State == job.Scheduled:
			s.Is = rule.GroupBackingOff
		case g.Hold > 0:
			s.Is = rule.GroupHeld
		case !wanted(head):
			s.Is = rule.GroupPaused
		default:
			s.Is = rule.GroupReady
		}
		list = append(list, s)
	}
	return list
}

// standings compares what is told of groups.
func (w *world) standings() {
	for _, queue := range w.used {
		want := w.model.standing(queue)
		got, err := w.Turns.Groups(w.Context(), queue, nil, "", 9)
		w.must(err)
		if len(got) != len(want) {
			w.Fatalf("%s has %d groups, want %d", queue, len(got), len(want))
		}
		for i, g := range got {
			if g.Group != want[i].Group || g.Is != want[i].Is || g.Members != want[i].Members || g.Head.ID != want[i].Head {
				w.Fatalf("group %s/%s is %s with %d members, want %+v", queue, g.Group, g.Is, g.Members, want[i])
			}
		}
	}
}
