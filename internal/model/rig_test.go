package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/bits"
	"reflect"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
	"github.com/reprisehq/reprise/internal/store/storetest/mem"
)

// stores are those the engine is held against the model on. Each entry makes
// an empty place and returns what opens it, again and again. A further store
// is one more line.
var stores = map[string]func() (open func() (store.Store, error)){
	"mem": func() func() (store.Store, error) {
		s := mem.Open(mem.Options{Now: bubble{}.Wall, Twice: true})
		return func() (store.Store, error) { return s, s.Reopen(context.Background()) }
	},
	"embedded": func() func() (store.Store, error) {
		fs := vfs.NewMem()
		return func() (store.Store, error) {
			return embedded.Open(embedded.Options{Dir: "data", FS: fs, Now: bubble{}.Wall, Cache: 1 << 20})
		}
	},
}

// bubble is the clock of a synctest bubble, which goes only while all wait.
type bubble struct{}

func (bubble) Wall() job.Millis   { return job.Millis(time.Now().UnixMilli()) }
func (bubble) Steady() job.Millis { return job.Millis(time.Now().UnixMilli()) }

// world is an engine and the model of it, to which the same happens.
type world struct {
	*rapid.T
	*part.Engine
	model *model
	open  func() (store.Store, error)
	store store.Store
	conns map[string]*engine.Stream // by queue, as model.streams
	dice  uint64
	drawn int // jobs

	used   []string // queues that this history uses
	ids    []job.ID // of all jobs ever put
	bodies map[job.ID][]byte
	tokens []job.Token // all ever granted, and of which job
	owners map[job.Token]job.ID
	keyed  []engine.NewJob // calls with an idempotency key

	lockTokens []job.Token
	fence      int64             // the highest
	ranked     bool              // members of the strict inbox have ranks
	lastTurn   int64             // the latest number of a turn
	rest       *rest             // of a turn that was given out
	secrets    map[string]string // of workers
}

func newWorld(t *rapid.T, open func() (store.Store, error), queues []*job.Queue) *world {
	w := &world{
		T: t, open: open, model: newModel(bubble{}.Wall(), queues), conns: map[string]*engine.Stream{},
		bodies: map[job.ID][]byte{}, owners: map[job.Token]job.ID{},
	}
	w.begin()
	w.beginBudgets()
	w.model.drawn = w.held
	for _, q := range queues {
		_, err := w.Desk.SetQueue(w.Context(), q.Name, func(set *job.Queue) error { *set = *q; return nil }, job.Actor{})
		w.must(err)
	}
	return w
}

// begin opens the store and starts a server on it.
func (w *world) begin() {
	var err error
	w.store, err = w.open()
	w.must(err)
	rnd := func() uint64 { // both halves are distinct, which ids ask for, and tokens rise: they tell the order of leases
		w.dice++
		return bits.ReverseBytes64(w.dice<<32 | w.dice)
	}
	server := rule.DefaultServer()
	server.RetainDead, server.GraceDelay = retainDead, graceDelay
	w.Engine = part.New(w.store, bubble{}, rnd, slog.New(slog.DiscardHandler),
		engine.Options{Server: server, Reattach: reattach, Idempotency: idempotency})
	w.Folds.Folder = joined
	w.must(w.Start(context.Background()))
}

func (w *world) end() {
	w.must(w.Stop(context.Background()))
	w.must(w.store.Close())
}

func (w *world) must(err error) {
	if err != nil {
		w.Fatal(err)
	}
}

// refused compares an answer with what the model expects, and reports whether
// the verb was refused.
func (w *world) refused(what string, err error, want job.Kind) bool {
	if (err == nil) != (want == accepted) || err != nil && job.KindOf(err) != want {
		w.Fatalf("%s: answered %v, want kind %d", what, err, want)
	}
	return err != nil
}

// delivery is a job on its way to a holder.
type delivery struct {
	engine.Delivery
	to     string
	kind   job.HolderKind
	life   job.Millis // of a unary lease
	queues []string   // that the holder reads
}

// granted notes deliveries, each of which must be of the job that the model
// gives next. Holders that wait together are served in turns, so the order is
// that of their leases.
func (w *world) granted(list []delivery) {
	slices.SortFunc(list, func(a, b delivery) int { return bytes.Compare(a.Lease.Token[:], b.Lease.Token[:]) })
	for _, d := range list {
		j := w.model.next(d.to, d.queues)
		if j == nil || j.ID != d.Job.ID {
			w.Fatalf("%s was given %s, want %s", d.to, w.name(d.Job), w.name(j))
		}
		w.model.take(j, d.Lease.Token, d.to, d.kind, d.life, false)
		w.same("delivered", d.Job, j)
		if _, old := w.owners[d.Lease.Token]; old {
			w.Fatalf("token of %s was issued before (I2)", w.name(j))
		}
		w.tokens = append(w.tokens, d.Lease.Token)
		w.owners[d.Lease.Token] = j.ID
		w.body(d.Job.ID, d.Payload)
	}
}

func (w *world) body(id job.ID, got []byte) {
	if !bytes.Equal(got, w.bodies[id]) {
		w.Fatalf("payload of %s is %q, want %q", id, got, w.bodies[id])
	}
}

// served compares what streams received with what they should have. A unary
// call that was answered meanwhile got the others.
func (w *world) served(others ...delivery) {
	list := others
	for _, queue := range queues {
		if w.conns[queue] != nil {
			list = append(list, w.received(queue)...)
		}
	}
	w.granted(list)
	for _, queue := range queues {
		s := w.model.streams[queue]
		if s == nil {
			continue
		}
		room := s.prefetch - len(w.model.holds(s.holder))
		if room < 0 && slices.ContainsFunc(list, func(d delivery) bool { return d.to == s.holder }) {
			w.Fatalf("the stream of %s holds more than %d", queue, s.prefetch)
		}
		if j := w.model.next(s.holder, []string{queue}); j != nil && room > 0 {
			w.Fatalf("the stream of %s waits, although it has room and %s is in line", queue, w.name(j))
		}
	}
}

// received is what a stream was given since the last time. A job that it held
// already must be as the model knows it, and comes only to a holder that
// returned.
func (w *world) received(queue string) (fresh []delivery) {
	now, cancel := context.WithCancel(w.Context())
	cancel()
	list, err := w.conns[queue].Next(now)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.Fatalf("stream of %s: %v", queue, err)
	}
	s := w.model.streams[queue]
	for _, d := range list {
		if d.Voided {
			if j := w.model.jobs[d.Job.ID]; j != nil && j.LeaseOf(d.Lease.Token) >= 0 {
				w.Fatalf("%s was told that %s is over for it, and holds it", s.holder, w.name(j))
			}
			continue
		}
		if !d.Held {
			fresh = append(fresh, delivery{d, s.holder, s.kind, 0, []string{queue}})
			continue
		}
		j := w.model.jobs[d.Job.ID]
		if s.awaits == 0 || j == nil || j.LeaseOf(d.Lease.Token) < 0 || !j.HeldBy(s.holder) {
			w.Fatalf("%s was handed %s, which it does not hold, or has", s.holder, w.name(d.Job))
		}
		w.same("handed back", d.Job, j)
		w.body(j.ID, d.Payload)
		s.awaits--
	}
	if s.awaits > 0 {
		w.Fatalf("%s was not handed back %d jobs that it holds", s.holder, s.awaits)
	}
	return fresh
}

// settled lets engine and model do what is due now, twice, because what one
// hand does another may have to look at.
func (w *world) settled() {
	for range 2 {
		_, err := enginetest.Stats(w.Context(), w.Engine) // a command wakes the clock too
		w.must(err)
		w.model.tick()
		w.served()
	}
}

// compared settles, and compares all there is to see but payloads.
func (w *world) compared() {
	w.settled()
	stats, err := enginetest.Stats(w.Context(), w.Engine)
	w.must(err)
	stats.Batches = 0
	if folded := w.Folds.Folded(); stats != w.model.stats || folded != w.model.folded {
		w.Fatalf("counters are\n%+v, %d folded, want\n%+v, %d", stats, folded, w.model.stats, w.model.folded)
	}
	w.listed(engine.Filter{}, len(w.ids)+1, false)
	w.depths()
	w.gates()
	w.standings()
	w.budgets()
}

// listed compares one page.
func (w *world) listed(f engine.Filter, n int, payloads bool) {
	want := w.model.list(f)
	count, err := w.Count(w.Context(), f)
	w.must(err)
	if f.From.IsZero() && int(count) != len(want) {
		w.Fatalf("count is %d, want %d", count, len(want))
	}
	got, err := w.List(w.Context(), f, n)
	w.must(err)
	if payloads {
		w.must(w.Payloads(w.Context(), got))
	}
	if want = want[:min(n, len(want))]; len(got) != len(want) {
		w.Fatalf("list has %d jobs, want %d", len(got), len(want))
	}
	for i := range got {
		w.same("listed", got[i].Job, want[i])
		if payloads {
			w.body(got[i].Job.ID, got[i].Payload)
		}
	}
}

func (w *world) depths() {
	for _, name := range w.used {
		want := w.model.queues[name]
		q, got, err := w.Queue(w.Context(), name)
		w.must(err)
		if !reflect.DeepEqual(q, want) {
			w.Fatalf("queue is\n%+v, want\n%+v", q, want)
		}
		depth := w.model.depth(name)
		for _, g := range w.model.standing(name) {
			depth.Groups[g.Is]++
		}
		depth.Status = got.Status // storetest counts those
		if slices.ContainsFunc(slices.Collect(maps.Values(w.model.jobs)), func(j *job.Job) bool { return j.Budgets() != nil }) {
			depth.Wanting = got.Wanting // who is put aside depends on who looked
		}
		if got != depth {
			w.Fatalf("depth of %s is %+v, want %+v", name, got, depth)
		}
	}
}

// gates compares what is kept of groups: which there are, and what keeps them
// out of line.
func (w *world) gates() {
	type gate struct {
		hold   job.Millis
		parked bool
		paused bool
	}
	var rows []job.Row
	err := w.store.View(w.Context(), func(v store.Reader) (err error) {
		rows, err = v.Rows(job.Gates, "", 100)
		return err
	})
	w.must(err)
	got, want := map[string]gate{}, map[string]gate{}
	for _, row := range rows {
		g := row.(*job.Gate)
		got[g.Key()] = gate{g.Hold, g.Park != "", g.Paused}
	}
	for key, g := range w.model.groups {
		if !g.Blank() {
			want[key] = gate{g.Hold, g.Park != "", g.Paused}
		}
	}
	if !reflect.DeepEqual(got, want) {
		w.Fatalf("the groups that are remembered, held until and parked, are %v, want %v", got, want)
	}
}

// held is until when the engine holds a group, or a queue.
func (w *world) held(queue, group string) (until job.Millis) {
	w.must(w.store.View(w.Context(), func(v store.Reader) error {
		row, err := v.Row(job.Queues, queue)
		if group != "" {
			row, err = v.Row(job.Gates, job.GateKey(queue, group))
		}
		switch row := row.(type) {
		case *job.Queue:
			until = row.HoldUntil
		case *job.Gate:
			until = row.Hold
		}
		return err
	}))
	return until
}

// same compares a job of the engine with the model's, in all fields but
// numbers of which only the order means something, the memory of jitter, the
// fingerprint of its failure, and how its wait is explained.
func (w *world) same(what string, got, want *job.Job) {
	if (got == nil) != (want == nil) {
		w.Fatalf("%s: %s, want %s", what, w.name(got), w.name(want))
	}
	if got == nil {
		return
	}
	if diff := differences(bare(got), bare(want)); diff != "" {
		w.Fatalf("%s: of %s%s", what, w.name(want), diff)
	}
}

// differences are the fields that are not the same. They are told without a
// pointer: the same failure has to read the same, or it is not shrunk.
func differences(got, want *job.Job) (text string) {
	a, b := reflect.ValueOf(*got), reflect.ValueOf(*want)
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		switch name := a.Type().Field(i).Name; {
		case reflect.DeepEqual(x, y):
		case a.Field(i).Kind() == reflect.Pointer:
			text += fmt.Sprintf("\n  %s is not what was put", name)
		default:
			text += fmt.Sprintf("\n  %s is %+v, want %+v", name, x, y)
		}
	}
	return text
}

func bare(j *job.Job) *job.Job {
	c := j.Clone()
	c.Seq, c.LastDelay, c.Print, c.Wait = 0, 0, 0, job.Wait{}
	for i := range c.Leases {
		c.Leases[i].Turn = 0
	}
	for i := range c.Ended {
		c.Ended[i].Turn = 0
	}
	if len(c.Leases) == 0 {
		c.Leases = nil
	}
	if len(c.Ended) == 0 {
		c.Ended = nil
	}
	if rule.WaitsFor(c) != "" { // when it was put aside depends on who looked
		c.Park = ""
	}
	if r := c.Result(); r != nil { // where a large one is kept only the engine can say
		c.Extras = c.WithOutcome(&job.Result{Size: r.Size, Bytes: r.Bytes}, c.History())
	}
	return c
}

// name tells a job by the number of its put.
func (w *world) name(j *job.Job) string {
	if j == nil {
		return "nothing"
	}
	return string(w.bodies[j.ID]) + " of " + j.Queue + "/" + j.Group
}

// list is what a page should begin with.
func (m *model) list(f engine.Filter) []*job.Job {
	list := m.sorted(func(j *job.Job) bool {
		past := f.From.IsZero() || !f.Desc && f.From.Before(j.ID) || f.Desc && j.ID.Before(f.From)
		return past && (len(f.States) == 0 || slices.Contains(f.States, j.State)) &&
			(len(f.Queues) == 0 || slices.Contains(f.Queues, j.Queue))
	})
	if f.Desc {
		slices.Reverse(list)
	}
	return list
}

// depth counts a queue.
func (m *model) depth(queue string) (d engine.Depth) {
	for _, j := range m.jobs {
		if j.Queue != queue {
			continue
		}
		d.States[j.State]++
		d.Status[rule.StatusOf(j)]++
		d.Leases += int64(len(j.Leases))
		if rule.EntriesOf(j).Wants {
			d.Wanting++
		}
		if j.State.Open() {
			d.Bytes += int64(j.PayloadSize)
			if j.Group != "" {
				d.Grouped++
			}
		}
	}
	return d
}
