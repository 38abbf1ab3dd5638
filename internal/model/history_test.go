package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/desk"
	"github.com/reprisehq/reprise/internal/rule"
)

// settings are those of the queues that a history begins with.
func settings() []*job.Queue {
	queue := func(name string, edit func(*job.Queue)) *job.Queue {
		q := job.NewQueue(name)
		edit(q)
		return q
	}
	return []*job.Queue{
		queue("plain", func(*job.Queue) {}),
		queue("limited", func(q *job.Queue) {
			q.Concurrency, q.FrontOrder, q.RetainDone, q.LateOKNever = 1, job.FrontLIFO, 9*job.Second, true
		}),
		queue("start", func(q *job.Queue) { q.Order, q.Concurrency = job.OrderStart, 2 }),
		queue("strict", func(q *job.Queue) { q.Order = job.OrderStrict }),
		queue("fragile", func(q *job.Queue) { q.RequireToken, q.RunTimeout = true, 9007 }), // no stream reads it
		queue("ordered", func(q *job.Queue) { inbox(q, job.OrderStrict, 0); q.AgeCap = 1300 }),
		queue("anyway", func(q *job.Queue) { inbox(q, job.OrderStart, 1); q.GraceDelay, q.RetainDone = 1, 9*job.Second }),
	}
}

var (
	queues  = []string{"plain", "limited", "start", "strict", "fragile", "ordered", "anyway"}
	workers = []string{"u", "v"}
	places  = []job.Place{job.PlaceUnset, job.PlaceKeep, job.PlaceFront, job.PlaceBack}
)

// TestMain makes histories longer than rapid's default, and so many of them as
// a normal run has time for, and leaves no file behind when one fails: its seed
// is enough. Flags of the command line go before.
func TestMain(m *testing.M) {
	defaults := map[string]string{"rapid.steps": "70", "rapid.checks": "100", "rapid.nofailfile": "true"}
	for name, value := range defaults {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestEngineIsTheModel lets random histories happen to the model and to the
// engine on each store: same answers, same states, same order of delivery,
// same counters after every step. An action that shall happen more often has
// several names.
func TestEngineIsTheModel(t *testing.T) {
	for name, place := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				rapid.SyncTest(t, func(t *rapid.T) {
					w := newWorld(t, place(), settings())
					defer w.end()
					w.ranked = rapid.Bool().Draw(t, "ranked")
					w.used = rapid.SliceOfNDistinct(rapid.SampledFrom(queues), 1, 2, rapid.ID).Draw(t, "queues")
					t.Repeat(map[string]func(*rapid.T){
						"":    func(*rapid.T) { w.compared() },
						"put": w.put, "put 2": w.put, "put again": w.putAgain,
						"take": w.take, "take 2": w.take, "stream": w.connect,
						"settle": w.settleLive, "settle 2": w.settleLive, "settle any": w.settle, "late ok": w.lateOK, "settle by id": w.settleByID,
						"extend": w.extend, "extend worker": w.extendWorker, "set budget": w.setBudget, "rebind": w.rebind, "operate": w.operate, "many": w.many, "hold group": w.holdGroup, "set queue": w.setQueue,
						"pass": w.pass, "pass 2": w.pass, "restart": w.restart, "read": w.read,
						"lock":  w.useLock,
						"turns": w.takeTurns, "turns 2": w.takeTurns, "deliver": w.deliver, "deliver 2": w.deliver, "operate group": w.operateGroup, "pause": w.pauseOne,
					})
				})
			})
		})
	}
}

func one[V any](t *rapid.T, label string, list ...V) V { return rapid.SampledFrom(list).Draw(t, label) }

// draw makes a job.
func (w *world) draw(t *rapid.T) engine.NewJob {
	now := w.model.now
	curve := one(t, "curve", job.Curve{Kind: job.CurveImmediate}, job.Curve{Kind: job.CurveLinear, Base: 1000, Step: 500})
	n := engine.NewJob{
		Job: job.Job{
			Queue: one(t, "queue", w.used...), Type: "t", Group: one(t, "group", "", "a", "b"),
			Priority:   one[uint16](t, "priority", 5, 3),
			ReadyAt:    one(t, "ready at", 0, 0, now-5, now+700, now+3000),
			GraceUntil: one(t, "grace until", 0, 0, 0, now+5000),
			RunTimeout: one[job.Millis](t, "run timeout", 0, 0, 2503), StartTimeout: one[job.Millis](t, "start timeout", 0, 0, 1501),
			Copies:     one[uint8](t, "copies", 0, 1, 2, 3),
			RetainDone: one(t, "retain done", job.Unset, 0, 5000), RetainDead: one(t, "retain dead", job.Unset, 0, 5000),
			Retry: &job.Retry{
				Limit: job.LimitOf(one[uint32](t, "limit", 0, 1, 3)), MaxAge: one[job.Millis](t, "max age", 0, 0, 6000),
				Place: one(t, "retry place", places...), Curve: &curve, LossLimit: job.Unlimited(),
			},
		},
		Place:   one(t, "place", places...),
		Key:     one(t, "key", "", "", "k", "l"),
		Payload: fmt.Appendf(nil, "job %d", w.drawn),
	}
	w.drawn++
	if life := one[job.Millis](t, "expires in", 0, 0, 900, 4000); life > 0 {
		n.Job.ExpiresAt = max(now, n.Job.ReadyAt) + life
	}
	if n.Job.Queue == "ordered" && w.ranked { // all of a group are, or none: nobody knows the numbers of the others
		n.Job.Ranked, n.Job.Rank = true, one[int64](t, "rank", -3, 0, 5, 5, 9)
	}
	n.Job.Extras = w.drawKey(t)
	if n.Job.Queue == "plain" {
		if list := w.drawBudgets(t); list != nil && (n.Job.Extras == nil || n.Job.Extras.Batch == nil) {
			n.Job.Group, n.Job.Copies = "", min(n.Job.Copies, 1)
			setBudgets(&n.Job, list)
		}
	}
	if n.Job.Queue == "fragile" {
		n.Job.Copies = 1
		n.Job.Retry.LossLimit = job.LimitOf(one[uint32](t, "loss limit", 1, 2, 3))
	}
	return n
}

func (w *world) put(t *rapid.T) {
	var list []engine.NewJob
	for range rapid.IntRange(1, 2).Draw(t, "jobs") {
		list = append(list, w.draw(t))
	}
	w.putAll(list)
}

func (w *world) putAgain(t *rapid.T) {
	if len(w.keyed) == 0 {
		t.SkipNow()
	}
	w.putAll([]engine.NewJob{rapid.SampledFrom(w.keyed).Draw(t, "call")})
}

func (w *world) putAll(list []engine.NewJob) {
	want := accepted
	if w.model.keyTaken(list) {
		want = job.Exists
	}
	added, err := w.Put(w.Context(), slices.Clone(list)) // the engine writes ids into it
	if w.refused("put", err, want) {
		return
	}
	wants := make([]engine.Added, len(added))
	for i, got := range added {
		id := got.ID
		if !got.Duplicate && !got.Folded {
			for old := range w.model.jobs {
				if w.bodies[id] != nil || !old.Before(id) {
					w.Fatalf("id %s is not new, or not above %s", id, old)
				}
			}
			w.ids, w.bodies[id] = append(w.ids, id), list[i].Payload
		}
		want := w.model.put(list[i], id)
		wants[i] = want
		if got.ID != want.ID || got.Duplicate != want.Duplicate || got.Folded != want.Folded {
			w.Fatalf("put answered %s, duplicate %t, folded %t; want %s, %t, %t", got.ID, got.Duplicate, got.Folded, want.ID, want.Duplicate, want.Folded)
		}
		if list[i].Key != "" {
			w.keyed = append(w.keyed, list[i])
		}
	}
	settled := map[job.ID]bool{}
	for i, got := range added { // once all are in: later ones may have gone into earlier ones
		if got.Folded && !settled[got.ID] {
			w.folded(got.Job, wants[i].Job, slices.ContainsFunc(added[:i], func(a engine.Added) bool { return a.ID == got.ID && !a.Folded }))
			settled[got.ID] = true
		}
		if want := wants[i].Job; got.Job != nil && want != nil { // a later one of the call may have its key by now
			got.Job = got.Job.Clone()
			got.Job.HoldsKey = want.HoldsKey
		}
		w.same("put", got.Job, wants[i].Job)
	}
}

func (w *world) take(t *rapid.T) {
	o := engine.LeaseOptions{
		Worker: one(t, "worker", workers...), Max: rapid.IntRange(1, 3).Draw(t, "max"),
		For: one[job.Millis](t, "for", 4000, 9500),
	}
	if name := one(t, "from", append([]string{""}, w.used...)...); name != "" {
		o.Queues = []string{name}
	}
	holder := "u/" + o.Worker
	if one(t, "registered", false, false, true) {
		secret := w.secret(o.Worker)
		holder = registered(o.Worker, secret)
		var err error
		o.Worker, err = w.Workers.Name(w.Context(), o.Worker, secret)
		w.must(err)
	}
	now, cancel := context.WithCancel(w.Context())
	cancel()
	held := len(w.model.holds(holder))
	list, err := w.Lease(now, o)
	w.must(err)
	var own []delivery
	for _, d := range list {
		own = append(own, delivery{d, holder, job.Unary, o.For, o.Queues})
	}
	w.served(own...)
	if j := w.model.next(holder, o.Queues); j != nil && len(list) < o.Max {
		w.Fatalf("%s, which held %d, was given %d jobs of %d, although %s is in line", holder, held, len(list), o.Max, w.name(j))
	}
}

// connect begins a stream, or ends it if there is one.
func (w *world) connect(t *rapid.T) {
	queue := one(t, "queue", w.used...)
	if queue == "fragile" {
		t.SkipNow()
	}
	if w.conns[queue] != nil {
		w.conns[queue].Close()
		delete(w.conns, queue)
		w.model.leave(queue, job.ByDisconnect)
		return
	}
	o := engine.StreamOptions{
		Queues: []string{queue}, Name: one(t, "name", "", queue), Prefetch: rapid.IntRange(1, 3).Draw(t, "prefetch"),
	}
	c, err := w.Stream(w.Context(), o)
	w.must(err)
	s := &stream{holder: "a/" + c.Name(), kind: job.Anonymous, prefetch: o.Prefetch}
	if o.Name != "" {
		s.holder, s.kind = "w/"+o.Name, job.Named
		s.awaits = len(w.model.holds(s.holder))
	}
	w.conns[queue], w.model.streams[queue] = c, s
	delete(w.model.away, s.holder)
	w.served()
}

func (w *world) settle(t *rapid.T) {
	if len(w.tokens) == 0 {
		t.SkipNow()
	}
	token := rapid.SampledFrom(w.tokens).Draw(t, "token")
	w.settleAs(t, engine.Settle{ID: w.owners[token], Token: token, Outcome: w.outcome(t)})
}

// lateOK says OK under a token that is not live any more, of a job that is open.
func (w *world) lateOK(t *rapid.T) {
	late := slices.DeleteFunc(slices.Clone(w.tokens), func(token job.Token) bool {
		j := w.model.jobs[w.owners[token]]
		return j == nil || !j.State.Open() || j.LeaseOf(token) >= 0
	})
	if len(late) == 0 {
		t.SkipNow()
	}
	token := rapid.SampledFrom(late).Draw(t, "token")
	w.settleAs(t, engine.Settle{ID: w.owners[token], Token: token, Outcome: job.OK})
}

func (w *world) settleLive(t *rapid.T) {
	var live []job.Token
	for _, j := range w.model.sorted(func(j *job.Job) bool { return j.State == job.Leased }) {
		for _, l := range j.Leases {
			live = append(live, l.Token)
		}
	}
	if len(live) == 0 {
		t.SkipNow()
	}
	token := rapid.SampledFrom(live).Draw(t, "token")
	w.settleAs(t, engine.Settle{ID: w.owners[token], Token: token, Outcome: w.outcome(t)})
}

func (w *world) settleByID(t *rapid.T) {
	w.settleAs(t, engine.Settle{ID: w.anyID(t), Outcome: w.outcome(t)})
}

func (w *world) outcome(t *rapid.T) job.Outcome {
	return one(t, "outcome", job.OK, job.Retried, job.Died, job.Released)
}

func (w *world) settleAs(t *rapid.T, s engine.Settle) {
	s.Place = one(t, "place", places...)
	s.Failure = job.Failure{Type: "E", Message: "boom"}
	s.Hold = one[job.Millis](t, "hold", 0, 0, 0, 0, 1500, 3*job.Hour)
	s.Result = w.drawResult(t, s.Outcome)
	switch s.Outcome {
	case job.Retried:
		s.RetryAfter = one[job.Millis](t, "retry after", 0, 0, 2000)
		s.RetryIn = one[job.Millis](t, "retry in", 0, 0, 800)
		s.RetryAt = one(t, "retry at", 0, 0, w.model.now-1, w.model.now+900)
	case job.Died:
		s.RetryAfter = one[job.Millis](t, "retry after", 0, 1100)
	case job.Released:
		s.Delay = one[job.Millis](t, "delay", 0, 500)
	default:
	}
	list, err := w.Settle(w.Context(), []engine.Settle{s})
	w.must(err)
	state, kind := w.model.settle(s)
	if !w.refused("settle", list[0].Err, kind) && list[0].State != state {
		w.Fatalf("settled as %s, want %s", list[0].State, state)
	}
}

func (w *world) extend(t *rapid.T) {
	if len(w.tokens) == 0 {
		t.SkipNow()
	}
	token := rapid.SampledFrom(w.tokens).Draw(t, "token")
	x := engine.Extension{
		ID: w.owners[token], Token: token,
		For: one[job.Millis](t, "for", 0, 3500, 8000), Started: rapid.Bool().Draw(t, "started"),
	}
	if rapid.Bool().Draw(t, "progress") {
		x.Progress = &job.RunProgress{Fraction: 0.5, Text: "half"}
		if rapid.Bool().Draw(t, "checkpoint") {
			x.Progress.Checkpoint = []byte("1")
		}
	}
	list, err := w.Extend(w.Context(), []engine.Extension{x})
	w.must(err)
	w.refused("extend", list[0].Err, w.model.extend(x))
}

// anyID is that of a job, which may be gone.
func (w *world) anyID(t *rapid.T) job.ID {
	if len(w.ids) == 0 {
		t.SkipNow()
	}
	return rapid.SampledFrom(w.ids).Draw(t, "job")
}

func (w *world) operate(t *rapid.T) {
	verb := one(t, "verb", "delete", "cancel", "revive", "revive", "offer", "patch", "edit")
	id := w.anyID(t)
	switch verb {
	case "edit":
		w.edit(id)
	case "delete":
		w.delete(id)
	case "cancel":
		w.command(id, rule.Command{Verb: rule.Cancel}, w.model.cancel)
	case "revive":
		allow := rapid.Bool().Draw(t, "allow out of order")
		w.command(id, rule.Command{Verb: rule.Revive, Allow: allow}, func(j *job.Job) job.Kind { return w.model.revive(j, allow) })
	case "offer":
		if j := w.model.jobs[id]; j != nil && j.Budgets() != nil {
			t.SkipNow() // a further copy needs units of its own
		}
		w.command(id, rule.Command{Verb: rule.Offer}, w.model.offer)
	case "patch":
		priority, readyAt := one[uint16](t, "priority", 3, 5), w.model.now+one[job.Millis](t, "ready in", 0, 1200)
		edit := func(j *job.Job) { j.Priority, j.ReadyAt = priority, readyAt }
		w.command(id, rule.Command{Verb: rule.Patch, Edit: edit}, func(j *job.Job) job.Kind { return w.model.patch(j, priority, readyAt) })
	}
}

func (w *world) delete(id job.ID) {
	j, want := w.model.jobs[id], job.NotFound
	if j != nil {
		want = accepted
		w.model.remove(j)
	}
	_, err := w.Desk.Do(w.Context(), job.Actor{}, desk.Delete, id)
	w.refused("delete", err, want)
}

// command applies an operator's command to a job, if it is there.
func (w *world) command(id job.ID, c rule.Command, model func(*job.Job) job.Kind) {
	_, err := enginetest.Operate(w.Context(), w.Engine.Engine, id, c)
	want := job.NotFound
	if j := w.model.jobs[id]; j != nil {
		want = model(j)
	}
	w.refused(c.Verb.String(), err, want)
}

func (w *world) holdGroup(t *rapid.T) {
	queue, group := one(t, "queue", w.used...), one(t, "group", "a", "b")
	until := w.model.now + one[job.Millis](t, "for", 0, 1700)
	w.must(enginetest.HoldGroup(w.Context(), w.Engine.Engine, queue, group, until))
	g := w.model.group(queue, group)
	g.Hold = max(g.Hold, until)
}

func (w *world) setQueue(t *rapid.T) {
	name := one(t, "queue", w.used...)
	edit := map[string]func(*job.Queue){
		"pause": func(q *job.Queue) { q.Paused = true }, "resume": func(q *job.Queue) { q.Paused = false },
		"hold":       func(q *job.Queue) { q.HoldUntil = w.model.now + 1300 },
		"skip dead":  func(q *job.Queue) { q.OnDead = job.DeadSkip },
		"block":      func(q *job.Queue) { q.OnDead = job.DeadBlock },
		"park":       func(q *job.Queue) { q.OnDead = job.DeadPark },
		"no late ok": func(q *job.Queue) { q.LateOKNever = !q.LateOKNever },
	}[one(t, "edit", "pause", "resume", "resume", "hold", "skip dead", "block", "park", "no late ok")]
	_, err := w.Desk.SetQueue(w.Context(), name, func(q *job.Queue) error { edit(q); return nil }, job.Actor{})
	w.must(err)
	edit(w.model.queues[name])
}

// pass lets time go by. The engine wakes when something is due, or a
// millisecond after it did something; the model does what is due then too.
func (w *world) pass(t *rapid.T) {
	span := one[job.Millis](t, "span", 1, 250, 1000, 2600, 9000)
	m, end := w.model, w.model.now+span
	for m.now < end {
		next := m.nextTime()
		if next == 0 {
			next = end
		}
		next = min(max(next, m.now+1), end)
		<-time.After(time.Duration(next-m.now) * time.Millisecond)
		m.now = next
		w.settled()
	}
}

func (w *world) restart(t *rapid.T) {
	away := one[job.Millis](t, "away", 0, 1500, 12_000)
	w.end()
	<-time.After(time.Duration(away) * time.Millisecond)
	clear(w.conns)
	w.model.restart(away)
	w.begin()
}

// read asks for a page and for a job.
func (w *world) read(t *rapid.T) {
	w.page(t)
	w.get(w.anyID(t))
}

func (w *world) page(t *rapid.T) {
	f := engine.Filter{Desc: rapid.Bool().Draw(t, "desc")}
	if rapid.Bool().Draw(t, "by state") {
		f.States = []job.State{one(t, "state", job.Scheduled, job.Ready, job.Leased, job.Done, job.Dead), job.Ready}
	}
	if rapid.Bool().Draw(t, "by queue") {
		f.Queues = []string{one(t, "queue", queues...)}
	}
	if len(w.ids) > 0 && rapid.Bool().Draw(t, "from") {
		f.From = w.anyID(t)
	}
	w.listed(f, rapid.IntRange(1, 5).Draw(t, "limit"), true)
}

func (w *world) get(id job.ID) {
	want := w.model.jobs[id]
	got, body, err := w.Get(w.Context(), id)
	if want == nil {
		w.refused("get", err, job.NotFound)
		return
	}
	w.must(err)
	w.same("got", got, want)
	w.body(id, body)
	w.result(got)
	failures, err := w.Failures(w.Context(), id, 0, false, 100)
	w.must(err)
	for i, f := range failures {
		if f.Number != uint32(i+1) {
			w.Fatalf("failure %d has number %d", i+1, f.Number)
		}
	}
	if len(failures) != int(want.Failures) {
		w.Fatalf("%s has %d failures, want %d", w.name(want), len(failures), want.Failures)
	}
}
