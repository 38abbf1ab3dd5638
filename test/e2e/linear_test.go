package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprisehq/reprise/wire"
)

// Nothing lapses while these tests run, and a failure is retried at once.
const linearConfig = `
retry: {limit: unlimited, curve: {kind: immediate}}
queues:
  ordered-false: {order: strict}
  ordered-true: {order: strict}
`

const (
	linearClients = 6
	leaseMS       = 600_000
)

// recorder keeps who asked what when, by job or by group.
type recorder struct {
	t     *testing.T
	began time.Time
	down  atomic.Bool // the server is being killed: requests may fail

	mu        sync.Mutex // guards everything below
	keys      []string   // of all jobs or groups
	histories map[string][]porcupine.Operation
	turns     []turn // all that were given out
	lost      int    // takes without an answer
	start     int    // of the server
}

// turn is a job under a token.
type turn struct {
	key, id, lease string
	token, start   int
}

func newRecorder(t *testing.T, keys ...string) *recorder {
	return &recorder{t: t, began: time.Now(), keys: keys, histories: map[string][]porcupine.Operation{}}
}

func (r *recorder) now() int64 { return int64(time.Since(r.began)) }

// note adds a request to the history of a job or group; without a key to all.
func (r *recorder) note(client int, key string, from int64, c call, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	op := porcupine.Operation{ClientId: client, Input: c, Output: a, Call: from, Return: r.now()}
	if a.unknown && !r.down.Load() { // it may yet happen
		op.Return = math.MaxInt64
	}
	keys := r.keys
	if key != "" {
		keys = []string{key}
	}
	for _, k := range keys {
		r.histories[k] = append(r.histories[k], op)
	}
}

// given notes a delivery and numbers its token.
func (r *recorder) given(j wire.Job, key string) turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := turn{key, j.ID, j.Lease, 2*len(r.turns) + 1, r.start}
	r.turns = append(r.turns, d)
	return d
}

// forgone numbers the token that a take without an answer may have given out.
func (r *recorder) forgone() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost += 2
	return r.lost
}

// anyTurn picks one that was given out, mostly a late one.
func (r *recorder) anyTurn(rnd *rand.Rand) (d turn, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.turns) == 0 {
		return d, false
	}
	n := min(len(r.turns), 1+rnd.IntN(8))
	return r.turns[len(r.turns)-n], true
}

// ask sends a request; without an answer its outcome is unknown.
func (r *recorder) ask(cl *client, method, path string, body, into any, statuses ...int) (status int, known bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	reply, err := cl.do(ctx, method, path, body)
	switch {
	case err != nil && r.down.Load():
		return 0, false
	case err != nil, !slices.Contains(statuses, reply.status):
		r.t.Errorf("%s %s: %v, %s", method, path, err, reply)
		return 0, false
	}
	if into != nil && reply.status == 200 {
		if err := reply.into(into); err != nil {
			r.t.Errorf("%s %s: %v in %s", method, path, err, reply)
		}
	}
	return reply.status, true
}

// take asks for one job of a queue. key tells whose history it belongs to, and
// which member of it it is.
func (r *recorder) take(cl *client, client int, queue string, key func(wire.Job) (string, int)) (d turn, ok bool) {
	from := r.now()
	var page wire.Page
	c := call{verb: "take"}
	_, known := r.ask(cl, "POST", "/jobs/lease", map[string]any{"queues": []string{queue}, "lease_ms": leaseMS}, &page, 200)
	switch {
	case !known:
		r.note(client, "", from, c, answer{unknown: true, token: r.forgone()})
		return d, false
	case len(page.Jobs) == 0:
		r.note(client, "", from, c, answer{code: "none"})
		return d, false
	}
	j := page.Jobs[0]
	k, member := key(j)
	d = r.given(j, k)
	r.note(client, k, from, c, answer{status: j.Status, token: d.token, member: member})
	return d, true
}

// settle ends a turn, or extends it.
func (r *recorder) settle(cl *client, client int, d turn, verb string) {
	from := r.now()
	path, body := "/jobs/settle", any([]wire.Settle{{ID: d.id, Lease: d.lease, Outcome: verb}})
	if verb == "extend" {
		path, body = "/jobs/extend", wire.Extensions{Leases: []wire.Extension{{ID: d.id, Lease: d.lease, MS: leaseMS}}}
	}
	var got wire.Verdicts
	_, known := r.ask(cl, "POST", path, body, &got, 200)
	a := answer{unknown: !known}
	if known && len(got.Verdicts) == 1 {
		a.status, a.code = got.Verdicts[0].Status, got.Verdicts[0].Code
	}
	r.note(client, d.key, from, call{verb: verb, token: d.token, start: d.start}, a)
}

func (r *recorder) get(cl *client, client int, id string) {
	from := r.now()
	var j wire.Job
	status, known := r.ask(cl, "GET", "/jobs/"+id, nil, &j, 200, 404)
	a := answer{unknown: !known, status: j.Status, attempts: int(j.Attempts)}
	if status == 404 {
		a = answer{code: wire.CodeNotFound}
	}
	r.note(client, id, from, call{verb: "get"}, a)
}

func (r *recorder) delete(cl *client, client int, id string) {
	from := r.now()
	status, known := r.ask(cl, "DELETE", "/jobs/"+id, nil, nil, 204, 404)
	a := answer{unknown: !known}
	if status == 404 {
		a.code = wire.CodeNotFound
	}
	r.note(client, id, from, call{verb: "delete"}, a)
}

// crowd lets clients work side by side, each with its own dice and connection.
func (r *recorder) crowd(s *server, round uint64, work func(cl *client, client int, rnd *rand.Rand)) *sync.WaitGroup {
	var all sync.WaitGroup
	for client := range linearClients {
		all.Go(func() {
			cl := dial(s.url)
			defer cl.close()
			work(cl, client, dice(1_000_000+round*linearClients+uint64(client)))
		})
	}
	return &all
}

// crash kills the server in the middle of it, and starts the next one.
func (r *recorder) crash(s *server, dir, config string, all *sync.WaitGroup) *server {
	until(r.t, "some deliveries", func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.turns) >= 4, fmt.Sprint(len(r.turns))
	})
	from := r.now()
	r.down.Store(true)
	s.kill()
	r.mu.Lock()
	r.start++
	r.mu.Unlock()
	all.Wait()
	s = start(s.t, dir, "--config", config)
	r.note(linearClients, "", from, call{verb: "crash"}, answer{})
	r.down.Store(false)
	return s
}

// TestJobsAreLinearizable: whatever clients do to a job side by side, there is
// one order that explains every answer; over kill -9 too.
func TestJobsAreLinearizable(t *testing.T) { // I2, I3, I5
	t.Parallel()
	told(t)
	dir := t.TempDir()
	config := write(t, dir+"/reprise.yaml", linearConfig)
	s := start(t, dir+"/root", "--config", config)
	for round := range uint64(4) {
		crash := round%2 == 1
		t.Run(fmt.Sprintf("round %d, crash %t", round, crash), func(t *testing.T) {
			cl := dial(s.url)
			defer cl.close()
			queue, ids := fmt.Sprint("free-", round), []string(nil)
			for range 3 {
				var out wire.Enqueued
				cl.must(t, 201, &out, "POST", "/jobs", map[string]any{
					"type": "test", "queue": queue, "payload": nil, "retention": map[string]any{"completed_ms": leaseMS},
				})
				ids = append(ids, out.ID)
			}
			r := newRecorder(t, ids...)
			s = r.rounds(s, dir+"/root", config, round, crash, func(cl *client, client int, rnd *rand.Rand) {
				r.jobStep(cl, client, rnd, queue)
			})
			for id, history := range r.histories {
				linearizable(t, id, jobModel, withoutDirtyReads(history))
			}
		})
	}
}

// rounds lets the crowd do a number of steps each, and after a crash as many
// again.
func (r *recorder) rounds(s *server, root, config string, round uint64, crash bool, step func(*client, int, *rand.Rand)) *server {
	const steps = 40
	work := func(cl *client, client int, rnd *rand.Rand) {
		for range steps {
			if step(cl, client, rnd); r.down.Load() {
				return
			}
		}
	}
	all := r.crowd(s, 2*round, work)
	if crash {
		s = r.crash(s, root, config, all)
		all = r.crowd(s, 2*round+1, work)
	}
	all.Wait()
	unknown := 0
	for _, history := range r.histories {
		for _, op := range history {
			if op.Output.(answer).unknown {
				unknown++
			}
		}
	}
	r.t.Logf("%d deliveries, %d takes without an answer; %d requests of unknown outcome in the histories", len(r.turns), r.lost/2, unknown)
	return s
}

// jobStep is one request of a client that likes to get in the way of others.
func (r *recorder) jobStep(cl *client, client int, rnd *rand.Rand, queue string) {
	id := r.keys[rnd.IntN(len(r.keys))]
	d, some := r.anyTurn(rnd)
	switch n := rnd.IntN(100); {
	case n < 35 || !some:
		r.take(cl, client, queue, func(j wire.Job) (string, int) { return j.ID, 0 })
	case n < 55:
		r.settle(cl, client, d, "retry")
	case n < 65:
		r.settle(cl, client, d, "release")
	case n < 78:
		r.settle(cl, client, d, "extend")
	case n < 80:
		r.settle(cl, client, d, "ok")
	case n < 82:
		r.settle(cl, client, d, "dead")
	case n < 83:
		r.delete(cl, client, id)
	default:
		r.get(cl, client, id)
	}
}

// withoutDirtyReads leaves out what was read while a request was at work that
// a crash left without an answer: a GET may tell what is not on disk yet.
func withoutDirtyReads(history []porcupine.Operation) []porcupine.Operation {
	var lost []porcupine.Operation
	for _, op := range history {
		if op.Output.(answer).unknown {
			lost = append(lost, op)
		}
	}
	return slices.DeleteFunc(slices.Clone(history), func(op porcupine.Operation) bool {
		return op.Input.(call).verb == "get" && slices.ContainsFunc(lost, func(l porcupine.Operation) bool {
			return l.Call <= op.Return && op.Call <= l.Return
		})
	})
}

// TestGroupsAreLinearizable: of a strictly ordered group one member is out at a
// time, and they leave in sequence, whoever asks; over kill -9 too.
func TestGroupsAreLinearizable(t *testing.T) { // I7
	t.Parallel()
	told(t)
	const groups, size = 12, 8
	dir := t.TempDir()
	config := write(t, dir+"/reprise.yaml", linearConfig)
	s := start(t, dir+"/root", "--config", config)
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %t", crash), func(t *testing.T) {
			cl := dial(s.url)
			defer cl.close()
			members := map[string]int{} // id -> place in its group
			r := newRecorder(t)
			for g := range groups {
				r.keys = append(r.keys, fmt.Sprint(g))
			}
			queue, jobs := fmt.Sprint("ordered-", crash), []map[string]any(nil)
			for n := range size {
				for _, g := range r.keys {
					jobs = append(jobs, map[string]any{"type": "test", "queue": queue, "group": g, "payload": n})
				}
			}
			var out wire.BulkEnqueued
			cl.must(t, 201, &out, "POST", "/jobs/bulk", map[string]any{"jobs": jobs})
			for i, j := range out.Jobs {
				members[j.ID] = i/groups + 1
			}
			s = r.rounds(s, dir+"/root", config, 100, crash, func(cl *client, client int, rnd *rand.Rand) {
				d, ok := r.take(cl, client, queue, func(j wire.Job) (string, int) { return j.Group, members[j.ID] })
				if verbs := []string{"ok", "ok", "ok", "retry", "release", "dead"}; ok {
					r.settle(cl, client, d, verbs[rnd.IntN(len(verbs))])
				}
			})
			m := groupModel(size)
			for _, g := range slices.Sorted(maps.Keys(r.histories)) {
				linearizable(t, g, m, r.histories[g])
			}
		})
	}
}
