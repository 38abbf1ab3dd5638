package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/reprisehq/reprise/wire"
)

// The queues of the load. Queue strict is strictly ordered, in kept finished
// jobs stay, plain has no settings.
const loadConfig = `
retry: {limit: unlimited, curve: {kind: constant, delay: 20ms}}
queues:
  kept:
    retention: {completed: 1h}
  strict:
    order: strict
`

const (
	openMax     = 2000 // producers wait above it
	bulkMost    = 100
	leftMost    = 30 // jobs that a worker sits on until the crash
	strictLines = 2  // producers of strict groups, with groupsEach each
	groupsEach  = 6
)

// crew is everybody who works with the server between two crashes.
type crew struct {
	l     *ledger
	url   string
	ctx   context.Context //nolint:containedctx // the life of the crew, which has no call to hand it down
	leave context.CancelFunc
	down  atomic.Bool // the server is being killed, so requests may fail
	wg    sync.WaitGroup
}

// habits is what members of the crew remember over a crash.
type habits struct {
	pending map[string]*task // strict group -> an enqueue without an answer
	held    [2][]*task       // what an anonymous worker had when the server died
	leased  []delivery       // what the caller of POST /jobs/lease had
}

// delivery is a job under a token.
type delivery struct {
	task  *task
	lease string
}

func newHabits() *habits { return &habits{pending: map[string]*task{}} }

// muster starts the load.
func muster(l *ledger, url string, round int, h *habits) *crew {
	ctx, leave := context.WithCancel(context.Background())
	c := &crew{l: l, url: url, ctx: ctx, leave: leave}
	// Of the rounds before: those of this one are still on their way.
	unanswered := l.sample(100, func(t *task) bool { return t.key != "" && t.group == "" && !t.accepted })
	member := uint64(round) * 100
	hire := func(cl *client, work func(*client, *rand.Rand)) {
		member++
		rnd := dice(member)
		c.wg.Go(func() {
			defer cl.close()
			work(cl, rnd)
		})
	}
	hire(dial(url), c.single)
	hire(dialH2(url), c.single)
	hire(dial(url), c.bulk)
	hire(dialH2(url), func(cl *client, rnd *rand.Rand) { c.keyed(cl, rnd, unanswered) })
	for line := range strictLines {
		var groups []string
		mine := map[string]*task{}
		for i := range groupsEach {
			name := fmt.Sprintf("g%d-%d", line, i)
			groups = append(groups, name)
			mine[name] = h.pending[name]
		}
		hire(dial(url), func(cl *client, rnd *rand.Rand) { c.strict(cl, rnd, groups, mine, h) })
	}
	for i := range h.held {
		hire(dial(url), func(cl *client, rnd *rand.Rand) { h.held[i] = c.anonymous(cl, rnd, h.held[i]) })
	}
	hire(dial(url), func(cl *client, rnd *rand.Rand) { c.named(cl, rnd, "worker-1", "strict") })
	hire(dial(url), func(cl *client, rnd *rand.Rand) { c.named(cl, rnd, "worker-2", "strict", "plain") })
	hire(dial(url), func(cl *client, rnd *rand.Rand) { h.leased = c.unary(cl, rnd, h.leased) })
	return c
}

// dismiss ends the load and waits until everybody is gone.
func (c *crew) dismiss() {
	c.leave()
	c.wg.Wait()
}

// answered reports whether an answer came, and notes one that should not have.
func (c *crew) answered(r reply, err error, want ...int) bool {
	switch {
	case c.ctx.Err() != nil && err != nil:
		return false
	case err != nil:
		if !c.down.Load() {
			c.l.report("a request got no answer, and nobody had killed the server: %v", err)
		}
		return false
	case !slices.Contains(want, r.status):
		c.l.report("an answer was %s, want %v", r, want)
		return false
	}
	return true
}

// gate lets producers go on unless there is too much to do already.
func (c *crew) gate() bool {
	for c.l.openTasks() > openMax && c.ctx.Err() == nil {
		c.l.wait(c.ctx.Done())
	}
	return c.ctx.Err() == nil && !c.down.Load() && !c.l.isClosed()
}

// put enqueues one job, with its key in the header if it has one.
func (c *crew) put(cl *client, t *task) bool {
	var header []string
	if t.key != "" {
		header = []string{"Idempotency-Key", t.key}
	}
	r, err := cl.do(c.ctx, "POST", "/jobs", t.body, header...)
	if !c.answered(r, err, 200, 201) {
		return false
	}
	var answer wire.Enqueued
	if err := r.into(&answer); err != nil {
		c.l.report("an enqueue was answered with %s: %v", r, err)
		return false
	}
	if answer.Duplicate != (r.status == 200) {
		c.l.report("an enqueue was answered with %s", r)
	}
	c.l.accepted(t, answer)
	return true
}

func (c *crew) single(cl *client, rnd *rand.Rand) {
	for c.gate() {
		queue := "plain"
		if rnd.IntN(50) == 0 {
			queue = "kept"
		}
		if !c.put(cl, c.l.ask(queue, "", "")) {
			return
		}
	}
}

// keyed enqueues with idempotency keys, and again what had no answer, and
// again what had one.
func (c *crew) keyed(cl *client, rnd *rand.Rand, unanswered []*task) {
	for _, t := range unanswered {
		if !c.put(cl, t) {
			return
		}
	}
	var mine []*task
	for c.gate() {
		t := c.l.ask("plain", "", fmt.Sprintf("key-%d", rnd.Uint64()))
		if len(mine) > 0 && rnd.IntN(10) == 0 {
			t = mine[rnd.IntN(len(mine))]
		} else {
			mine = append(mine, t)
		}
		if !c.put(cl, t) {
			return
		}
	}
}

func (c *crew) bulk(cl *client, rnd *rand.Rand) {
	for c.gate() {
		tasks := make([]*task, 1+rnd.IntN(bulkMost))
		bodies := make([]map[string]any, len(tasks))
		for i := range tasks {
			queue, key := "plain", ""
			if rnd.IntN(50) == 0 {
				queue = "kept"
			}
			if rnd.IntN(5) == 0 {
				key = fmt.Sprintf("bulk-%d", rnd.Uint64())
			}
			tasks[i] = c.l.ask(queue, "", key)
			bodies[i] = tasks[i].body
			if key != "" {
				bodies[i] = maps.Clone(bodies[i])
				bodies[i]["idempotency_key"] = key
			}
		}
		r, err := cl.do(c.ctx, "POST", "/jobs/bulk", map[string]any{"jobs": bodies})
		if !c.answered(r, err, 201) {
			c.l.doubt(tasks)
			return
		}
		var answer wire.BulkEnqueued
		if err := r.into(&answer); err != nil || len(answer.Jobs) != len(tasks) {
			c.l.report("a bulk of %d was answered with %.200s: %v", len(tasks), r.body, err)
			return
		}
		for i, t := range tasks {
			c.l.accepted(t, answer.Jobs[i])
		}
	}
}

// strict enqueues into strictly ordered groups. The next member of a group is
// only sent when the one before it was answered, so their order is known.
func (c *crew) strict(cl *client, rnd *rand.Rand, groups []string, pending map[string]*task, h *habits) {
	defer func() {
		c.l.mu.Lock() // which also guards habits
		defer c.l.mu.Unlock()
		maps.Copy(h.pending, pending)
	}()
	for c.gate() {
		name := groups[rnd.IntN(len(groups))]
		t := pending[name]
		if t == nil {
			t = c.l.ask("strict", name, fmt.Sprintf("strict-%s-%d", name, rnd.Uint64()))
		}
		pending[name] = t
		if !c.put(cl, t) {
			return
		}
		pending[name] = nil
	}
}

// anonymous works on a stream without a name and settles without tokens. It
// returns what it holds in the end; late is what it held in the last round,
// half of which it now finishes after all.
func (c *crew) anonymous(cl *client, rnd *rand.Rand, late []*task) (left []*task) {
	if len(late) > 1 && !c.success(cl, late[:len(late)/2]) {
		return nil
	}
	stream, err := cl.openTake(c.ctx, "", 100, "plain", "kept")
	if err != nil {
		c.answered(reply{}, err)
		return nil
	}
	defer func() { _ = stream.Close() }()
	var done []*task
	for {
		j, err := stream.next()
		if err != nil {
			return append(left, done...)
		}
		t := c.l.delivered(j)
		if t == nil {
			continue
		}
		switch dice := rnd.IntN(100); {
		case dice < 2 && len(left) < leftMost && !c.l.isClosed():
			left = append(left, t)
		case dice < 12:
			if !c.failure(cl, t, rnd) {
				return append(left, done...)
			}
		default:
			done = append(done, t)
		}
		if len(done) > 50 || len(done) > 0 && !stream.more() {
			if !c.success(cl, done) {
				return left
			}
			done = done[:0]
		}
	}
}

// success settles without tokens, in bulk.
func (c *crew) success(cl *client, tasks []*task) bool {
	ids := make([]string, len(tasks))
	for i, t := range tasks {
		c.l.settling(t, wire.OutcomeOK)
		ids[i] = t.id
	}
	r, err := cl.do(c.ctx, "POST", "/jobs/success", map[string]any{"ids": ids})
	if !c.answered(r, err, 204, 422) {
		return false
	}
	var missing struct {
		NotFound []string `json:"not_found"`
	}
	if r.status == 422 {
		if err := r.into(&missing); err != nil || len(missing.NotFound) == 0 {
			c.l.report("a bulk success was answered with %s", r)
		}
	}
	for _, t := range tasks {
		c.l.settled(t, wire.OutcomeOK, !slices.Contains(missing.NotFound, t.id))
	}
	return true
}

func (c *crew) failure(cl *client, t *task, rnd *rand.Rand) bool {
	outcome, body := wire.OutcomeRetry, map[string]any{"message": "it failed", "error_type": "Test"}
	switch rnd.IntN(10) {
	case 0:
		outcome, body["kill"] = wire.OutcomeDead, true
	case 1, 2, 3:
		body["retry_in_ms"] = rnd.IntN(30)
	}
	c.l.settling(t, outcome)
	r, err := cl.do(c.ctx, "POST", "/jobs/"+t.id+"/failure", body)
	if !c.answered(r, err, 200, 404) {
		return false
	}
	c.l.settled(t, outcome, r.status == 200)
	return true
}

// named works on a stream with a name, whose leases survive the crash.
func (c *crew) named(cl *client, rnd *rand.Rand, name string, queues ...string) {
	stream, err := cl.openTake(c.ctx, name, 40, queues...)
	if err != nil {
		c.answered(reply{}, err)
		return
	}
	defer func() { _ = stream.Close() }()
	var list []delivery
	left := 0
	for {
		j, err := stream.next()
		if err != nil {
			return
		}
		if t := c.l.delivered(j); t == nil {
			continue
		} else if rnd.IntN(100) == 0 && left < leftMost/2 && !c.l.isClosed() {
			left++
		} else {
			list = append(list, delivery{t, j.Lease})
		}
		if len(list) == 0 || len(list) < 20 && stream.more() {
			continue
		}
		if !c.settleAll(cl, rnd, list) {
			return
		}
		list = list[:0]
	}
}

// unary works with leases of its own, some of which it sits on. It returns
// what it holds in the end; late is what it held in the last round, which it
// now settles: its leases survived the crash.
func (c *crew) unary(cl *client, rnd *rand.Rand, late []delivery) (left []delivery) {
	if len(late) > 0 && !c.settleAll(cl, rnd, late) {
		return nil
	}
	ask := map[string]any{"queues": []string{"plain", "kept"}, "max": 20, "lease_ms": 3000, "wait_ms": 200, "worker": "unary"}
	for c.ctx.Err() == nil && !c.down.Load() {
		r, err := cl.do(c.ctx, "POST", "/jobs/lease", ask)
		if !c.answered(r, err, 200) {
			return left
		}
		var page wire.Page
		if err := r.into(&page); err != nil {
			c.l.report("a lease was answered with %s: %v", r, err)
			return left
		}
		var list []delivery
		for _, j := range page.Jobs {
			if t := c.l.delivered(j); t != nil {
				list = append(list, delivery{t, j.Lease})
			}
		}
		if n := len(list); n > 0 && rnd.IntN(10) == 0 && !c.l.isClosed() {
			left, list = append(left, list[n-1]), list[:n-1]
		}
		if len(list) > 0 && !c.settleAll(cl, rnd, list) {
			return left
		}
	}
	return left
}

// settleAll ends attempts by token, most of them well.
func (c *crew) settleAll(cl *client, rnd *rand.Rand, list []delivery) bool {
	ends := make([]wire.Settle, len(list))
	for i, d := range list {
		end := wire.Settle{ID: d.task.id, Lease: d.lease, Outcome: wire.OutcomeOK}
		switch dice := rnd.IntN(100); {
		case dice < 10:
			end.Outcome, end.Error = wire.OutcomeRetry, &wire.Failure{Message: "it failed"}
		case dice < 12:
			end.Outcome, end.Error = wire.OutcomeDead, &wire.Failure{Message: "it is hopeless"}
		case dice < 15:
			end.Outcome, end.DelayMS = wire.OutcomeRelease, int64(rnd.IntN(20))
		}
		ends[i] = end
		c.l.settling(d.task, end.Outcome)
	}
	r, err := cl.do(c.ctx, "POST", "/jobs/settle", ends)
	if !c.answered(r, err, 200) {
		return false
	}
	var answer wire.Verdicts
	if err := r.into(&answer); err != nil || len(answer.Verdicts) != len(ends) {
		c.l.report("settling %d was answered with %.200s: %v", len(ends), r.body, err)
		return false
	}
	for i, v := range answer.Verdicts {
		if v.ID != ends[i].ID || v.Code != "" && v.Code != wire.CodeNotFound && v.Code != wire.CodeSuperseded {
			c.l.report("settling %+v was answered with %+v", ends[i], v)
		}
		t := list[i].task
		if v.Code != "" && t.group != "" { // nobody else could have had it
			c.l.report("group %s: the turn of job %d was taken from its named holder: %+v", t.group, t.n, v)
		}
		c.l.settled(t, ends[i].Outcome, v.Code == "")
	}
	return true
}
