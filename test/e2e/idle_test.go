package e2e

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/wire"
)

var idleRounds = flag.Int("idle-rounds", 4, "rounds of TestNothingIsLostWhenAnIdleServerIsKilled in each sync mode (nightly: 200)")

// TestNothingIsLostWhenAnIdleServerIsKilled makes every kind of change there is, each
// in a place of its own and in random order, lets the server be idle for a while, kills
// it, and wants each change to be there as it was answered (I5), and nothing that is
// leased with anybody else (I3). Which kind comes last rotates: what comes behind a
// change would save it. In every other round it is a lease, the only change that does
// not wait for the disk.
func TestNothingIsLostWhenAnIdleServerIsKilled(t *testing.T) {
	told(t)
	for i, mode := range []string{"always", "interval", "os"} {
		t.Run(mode, func(t *testing.T) {
			rnd := dice(uint64(100 + i)) //nolint:gosec // small
			// However slow the machine is, no engine is lost meanwhile.
			config := write(t, filepath.Join(t.TempDir(), "grid.yaml"), "grid:\n  lost_after: 1h\n")
			args := []string{"-c", config, "--sync", mode, "--sync-interval", "1m", "--reattach-window", "10m"}
			const perRoot = 20 // then in a new directory
			var s *server
			var k *idle
			for round := range *idleRounds {
				if round%perRoot == 0 {
					if s != nil {
						s.kill()
					}
					root := filepath.Join(t.TempDir(), "root")
					s = start(t, root, args...)
					k = &idle{T: t, rnd: rnd, root: root}
					k.open(s.url)
				}
				last := idleKinds[round/2%len(idleKinds)]
				if round%2 == 1 {
					last = idleLeases[round/2%len(idleLeases)]
				}
				k.round(round, last)
				<-time.After(time.Duration(rnd.IntN(1200)) * time.Millisecond) // the pause
				s.kill()
				k.hangUp()
				s = start(t, k.root, args...)
				k.again(s.url)
				k.audit()
				if t.Failed() {
					t.Fatalf("round %d, in which %q was last", round, last)
				}
			}
			s.kill()
		})
	}
}

// idle is a server that gets changes, and what was answered.
type idle struct {
	*testing.T
	*client
	rnd    *rand.Rand
	root   string
	token  string // of an administrator
	id     string // makes names of this change
	kind   string
	seen   map[string]any // what reads answered, by path
	rivals []func()       // ask for what is leased
	leased []wire.Job     // with somebody
	checks []func()
	calls  []*takeStream
}

func (k *idle) open(url string) {
	k.client = dial(url)
	var root struct{ Token string }
	k.call(&root, "POST", "/tokens", `{"name": "root", "scopes": ["admin"]}`)
	k.token = root.Token
	k.again(url)
}

// again talks to a server that was started again.
func (k *idle) again(url string) {
	k.client = dial(url)
	k.http.Transport = tokenShown{k.token, k.http.Transport}
}

// tokenShown shows a token.
type tokenShown struct {
	token string
	under http.RoundTripper
}

func (b tokenShown) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.under.RoundTrip(r)
}

func (k *idle) hangUp() {
	for _, s := range k.calls {
		_ = s.Close()
	}
	k.calls = nil
}

// round makes all kinds of changes, one of them last.
func (k *idle) round(n int, last string) {
	k.Helper()
	k.seen, k.rivals, k.leased, k.checks = map[string]any{}, nil, nil, nil
	order := slices.Clone(idleKinds)
	k.rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	order = append(slices.DeleteFunc(order, func(name string) bool { return name == last }), last)
	for _, name := range order {
		k.kind, k.id = name, fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), n)
		if idleChanges[name] != nil {
			idleChanges[name](k)
		} else {
			idleTakes[name](k)
		}
	}
}

// audit holds what is there against what was answered.
func (k *idle) audit() {
	k.Helper()
	for path, before := range k.seen {
		if now := k.read(path); !reflect.DeepEqual(before, now) {
			k.Errorf("GET %s\nbefore the kill: %v\nafterwards:      %v", path, before, now)
		}
	}
	for _, ask := range k.rivals {
		ask()
	}
	for _, j := range k.leased {
		if v := k.settle(k, wire.Settle{ID: j.ID, Lease: j.Lease, Outcome: "ok"}); v.Code != "" {
			k.Errorf("the lease of %s (%s) is gone: %+v", j.ID, j.Queue, v)
		}
	}
	for _, check := range k.checks {
		check()
	}
}

// call sends a request that has to succeed.
func (k *idle) call(v any, method, path, body string, args ...any) {
	k.Helper()
	var b any
	if len(args) > 0 {
		body = fmt.Sprintf(body, args...)
	}
	if body != "" {
		b = body
	}
	r, err := k.do(k.Context(), method, path, b)
	if err == nil && r.status/100 != 2 {
		err = errors.New(r.String())
	}
	if err == nil && v != nil {
		err = r.into(v)
	}
	if err != nil {
		k.Fatalf("%s %s %s: %v", method, path, body, err)
	}
}

// keep notes what a path answers now, which is to be so after the kill.
func (k *idle) keep(paths ...string) {
	k.Helper()
	for _, path := range paths {
		k.seen[path] = k.read(path)
	}
}

// read is what a path answers, without what is not kept.
func (k *idle) read(path string) any {
	k.Helper()
	r, err := k.do(k.Context(), "GET", path, nil)
	if err != nil {
		k.Fatal(err)
	}
	if r.status != 200 {
		return r.status
	}
	var v any
	if err := r.into(&v); err != nil {
		k.Fatal(err)
	}
	if m, ok := v.(map[string]any); ok {
		for _, name := range []string{"rates", "since_start", "oldest_ms", "share", "heard_at", "stalled", "available", "lock_until", "locked_at"} {
			delete(m, name)
		}
		if strings.HasPrefix(path, "/engines/") && m["state"] != "draining" {
			delete(m, "state") // suspect: its connection is gone
		}
	}
	return v
}

// put makes a job in a queue of this change; more is further members.
func (k *idle) put(more string) string {
	k.Helper()
	var out wire.Enqueued
	k.call(&out, "POST", "/jobs", `{"type": "t", "queue": %q, "payload": [1], "retention": {"completed_ms": 86400000}%s}`, k.id, more)
	return out.ID
}

// lease takes one job of a queue that is there.
func (k *idle) lease(more string) wire.Job {
	k.Helper()
	list := k.ask(more)
	if len(list) != 1 {
		k.Fatalf("%s: %d jobs were leased", k.id, len(list))
	}
	return list[0]
}

func (k *idle) ask(more string) []wire.Job {
	k.Helper()
	var out struct{ Jobs []wire.Job }
	k.call(&out, "POST", "/jobs/lease", `{"queues": [%q], "lease_ms": 600000%s}`, k.id, more)
	return out.Jobs
}

// out notes that jobs are with somebody: a rival that asks gets none.
func (k *idle) out(rival func() []wire.Job, list ...wire.Job) {
	k.Helper()
	if len(list) == 0 {
		k.Fatalf("%s: nothing was leased", k.id)
	}
	id := k.id
	for _, j := range list {
		k.keep("/jobs/" + j.ID)
	}
	k.leased = append(k.leased, list...)
	k.rivals = append(k.rivals, func() {
		k.id = id
		if got := rival(); len(got) > 0 {
			k.Errorf("%s: what is leased was given to somebody else: %+v", id, got)
		}
	})
}

func (k *idle) settled(j wire.Job, end string) {
	k.Helper()
	var out wire.Verdicts
	k.call(&out, "POST", "/jobs/settle", `[{"id": %q, "lease": %q, %s}]`, j.ID, j.Lease, end)
	if len(out.Verdicts) != 1 || out.Verdicts[0].Code != "" {
		k.Fatalf("%s: %+v", k.id, out)
	}
}

// stream opens a take and reads its first job.
func (k *idle) stream(query, worker string) wire.Job {
	k.Helper()
	var header []string
	if worker != "" {
		header = []string{"Worker-Id", worker}
	}
	s, err := k.openQuery(k.Context(), "prefetch=1&"+query, header...)
	if err != nil {
		k.Fatal(err)
	}
	k.calls = append(k.calls, s)
	return s.read(k, 1)[0]
}

// dead makes a dead job.
func (k *idle) dead() string {
	k.Helper()
	id := k.put("")
	k.settled(k.lease(""), `"outcome": "dead", "error": {"message": "no", "error_type": "E"}`)
	return id
}

// session opens one with two tasks, logs an engine in, and says its login.
func (k *idle) session() (engine string) {
	k.Helper()
	k.call(nil, "POST", "/sessions", `{"id": %q}`, k.id)
	k.call(nil, "POST", "/sessions/"+k.id+"/tasks", `{"tasks": [{"seq": 1, "payload": 1}, {"seq": 2, "payload": 2}]}`)
	return k.engine("e-" + k.id)
}

func (k *idle) engine(name string) string {
	k.Helper()
	var in struct{ Epoch int64 }
	k.call(&in, "POST", "/engines", `{"id": %q, "slots": 1, "host": %q}`, name, name)
	return fmt.Sprintf(`, "engine": %q, "epoch": %d`, name, in.Epoch)
}

func (k *idle) inbox(mode string) {
	k.Helper()
	k.call(nil, "PUT", "/inboxes/"+k.id, `{"group": {"json": ".g"}, "batch": {"mode": %q, "query": "none"}, "message": {"timeToLive": "1d"}}`, mode)
	k.call(nil, "POST", "/inboxes/"+k.id+"/messages/bulk", `{"messages": [{"headers": {"X-CORRELATE-ID": "m1"}, "payload": {"g": 1}},
		{"headers": {"X-CORRELATE-ID": "m2"}, "payload": {"g": 1}}]}`)
}

func (k *idle) messages() (list []wire.Job) {
	k.Helper()
	var out struct {
		Messages []struct{ ID, Lease string }
	}
	k.call(&out, "POST", "/inboxes/"+k.id+"/lease", `{"lease_ms": 600000}`)
	for _, m := range out.Messages {
		list = append(list, wire.Job{ID: m.ID, Lease: m.Lease, Queue: k.id})
	}
	return list
}

var idleLeases = kindsOf(idleTakes)

var idleKinds = slices.Concat(kindsOf(idleChanges), idleLeases)

func kindsOf(m map[string]func(*idle)) []string { return slices.Sorted(maps.Keys(m)) }

// idleTakes are the leases there are, by those who ask.
var idleTakes = map[string]func(k *idle){
	"unary lease": func(k *idle) {
		k.put("")
		k.out(func() []wire.Job { return k.ask("") }, k.lease(""))
	},
	"lease of a registered worker": func(k *idle) {
		k.put("")
		k.out(func() []wire.Job { return k.ask(`, "worker": "box"`) }, k.lease(`, "worker": "box-`+k.id+`", "register": true`))
	},
	"stream of a named worker": func(k *idle) {
		k.put("")
		k.out(func() []wire.Job { return k.ask("") }, k.stream("lease=token&queue="+k.id, "box-"+k.id))
	},
	"lease of a group": func(k *idle) {
		k.call(nil, "PATCH", "/queues/"+k.id, `{"order": "strict"}`)
		k.put(`, "group": "g"`)
		k.put(`, "group": "g"`)
		k.out(func() []wire.Job { return k.ask("") }, k.lease(""))
	},
	"lease of a task": func(k *idle) {
		login := k.session()
		k.out(func() []wire.Job { return k.rivalEngine(1) }, k.lease(login))
	},
	"stream of an engine": func(k *idle) {
		login := k.session()
		query := strings.NewReplacer(`, "engine": "`, "engine=", `", "epoch": `, "&epoch=").Replace(login)
		k.out(func() []wire.Job { return k.rivalEngine(1) }, k.stream(query+"&queue="+k.id, ""))
	},
	"group of an inbox": func(k *idle) {
		k.inbox("fail_first")
		k.out(k.messages, k.messages()...)
	},
	"group of an inbox of mode all": func(k *idle) {
		k.inbox("all")
		k.out(k.messages, k.messages()...)
	},
}

// rivalEngine is an engine that asks for more than the tasks of a session that wait.
func (k *idle) rivalEngine(wait int) []wire.Job {
	k.Helper()
	var in struct{ Epoch int64 }
	name := "rival-" + k.id
	k.call(&in, "POST", "/engines", `{"id": %q, "slots": 9, "host": %q}`, name, name)
	list := k.ask(fmt.Sprintf(`, "max": 9, "engine": %q, "epoch": %d`, name, in.Epoch))
	return list[min(wait, len(list)):]
}

// idleChanges are all other kinds.
var idleChanges = map[string]func(k *idle){
	"enqueue": func(k *idle) { k.keep("/jobs/" + k.put("")) },
	"enqueue for later": func(k *idle) {
		k.keep("/jobs/" + k.put(`, "ready_at": 4102444800000, "priority": 3, "labels": {"a": "b"}`))
	},
	"enqueue many": func(k *idle) {
		for _, j := range k.enqueueMany(k, k.id, 30) {
			k.keep("/jobs/" + j.ID)
		}
	},
	"unique": func(k *idle) {
		id, queue := k.put(`, "unique_key": "u"`), k.id
		k.repeated(id, fmt.Sprintf(`{"type": "t", "queue": %q, "payload": [1], "unique_key": "u"}`, queue))
	},
	"idempotency key": func(k *idle) {
		body := fmt.Sprintf(`{"type": "t", "queue": %q, "payload": 1, "idempotency_key": "key-%s"}`, k.id, k.id)
		var out wire.Enqueued
		k.call(&out, "POST", "/jobs", body)
		k.repeated(out.ID, body)
	},
	"batch": func(k *idle) {
		const batch = `, "batch": {"key": "b", "when": "true", "fold": "$existing + $new"}`
		id := k.put(batch)
		k.call(nil, "POST", "/jobs", `{"type": "t", "queue": %q, "payload": [1], "retention": {"completed_ms": 86400000}%s}`, k.id, batch)
		k.keep("/jobs/" + id)
	},
	"extend": func(k *idle) {
		id := k.put(`, "run_timeout_ms": 86400000`)
		j := k.lease("")
		k.call(nil, "POST", "/jobs/extend", `{"leases": [{"id": %q, "lease": %q, "started": true}], "ms": 700000}`, id, j.Lease)
		k.out(func() []wire.Job { return k.ask("") }, j)
	},
	"progress": func(k *idle) {
		id := k.put("")
		j := k.lease("")
		k.call(nil, "POST", "/jobs/"+id+"/progress", `{"lease": %q, "fraction": 0.5, "checkpoint": {"page": 7}}`, j.Lease)
		k.checkpoint(id)
	},
	"ok":      func(k *idle) { k.ended(`"outcome": "ok"`) },
	"result":  func(k *idle) { k.ended(`"outcome": "ok", "result": {"price": 4}`) },
	"retry":   func(k *idle) { k.ended(`"outcome": "retry", "retry_in_ms": 86400000, "error": {"message": "no"}`) },
	"die":     func(k *idle) { k.ended(`"outcome": "dead", "error": {"message": "no"}`) },
	"release": func(k *idle) { k.ended(`"outcome": "release", "delay_ms": 86400000`) },
	"settle with a hold": func(k *idle) {
		k.ended(`"outcome": "ok", "hold": 3000000`)
		k.keep("/queues/" + k.id)
	},
	"delete": func(k *idle) {
		id := k.put("")
		k.call(nil, "DELETE", "/jobs/"+id, "")
		k.keep("/jobs/" + id)
	},
	"delete many": func(k *idle) {
		id := k.put("")
		k.call(nil, "DELETE", "/jobs?queue="+k.id, "")
		k.keep("/jobs/" + id)
	},
	"cancel": func(k *idle) {
		id := k.put("")
		k.call(nil, "POST", "/jobs/"+id+"/cancel", `{"reason": "withdrawn"}`)
		k.keep("/jobs/" + id)
	},
	"patch": func(k *idle) {
		id := k.put("")
		k.call(nil, "PATCH", "/jobs/"+id, `{"priority": 7, "queue": "moved-%s", "retry_limit": 2}`, k.id)
		k.keep("/jobs/" + id)
	},
	"patch many": func(k *idle) {
		id := k.put("")
		k.call(nil, "PATCH", "/jobs?queue="+k.id, `{"priority": 7}`)
		k.keep("/jobs/" + id)
	},
	"queue settings": func(k *idle) { k.queue(`{"max_jobs": 5, "retry": {"limit": 3}, "rate": {"per_second": 5}}`) },
	"pause":          func(k *idle) { k.queue(`{"paused": true}`) },
	"resume": func(k *idle) {
		k.queue(`{"paused": true}`)
		k.queue(`{"paused": false}`)
	},
	"hold": func(k *idle) {
		k.put(`, "group": "g"`)
		k.call(nil, "POST", "/queues/"+k.id+"/hold", `{"group": "g", "for_ms": 3000000}`)
		k.nothing()
	},
	"end of a hold": func(k *idle) {
		k.call(nil, "POST", "/queues/"+k.id+"/hold", `{"for_ms": 3000000}`)
		k.call(nil, "POST", "/queues/"+k.id+"/release", "{}")
		k.keep("/queues/" + k.id)
	},
	"breaker": func(k *idle) {
		k.put("")
		k.call(nil, "POST", "/queues/"+k.id+"/breaker", `{"state": "open"}`)
		k.keep("/queues/" + k.id)
		k.nothing()
	},
	"budget": func(k *idle) { k.budget() },
	"budget changed": func(k *idle) {
		k.budget()
		k.call(nil, "PATCH", "/budgets/"+k.id, `{"allocation": 3}`)
		k.keep("/budgets/" + k.id)
	},
	"budget deleted": func(k *idle) {
		k.budget()
		k.call(nil, "DELETE", "/budgets/"+k.id, "")
		k.keep("/budgets/" + k.id)
	},
	"budget used": func(k *idle) {
		k.call(nil, "POST", "/budgets", `{"key": %q, "allocation": 1, "strategy": {"type": "while_in_flight"}}`, k.id)
		budgets := fmt.Sprintf(`, "budgets": [{"key": %q}]`, k.id)
		k.put(budgets)
		k.put(budgets)
		k.out(func() []wire.Job { return k.ask("") }, k.lease(""))
	},
	"cron group": func(k *idle) { k.crons() },
	"cron paused": func(k *idle) {
		k.crons()
		k.call(nil, "PATCH", "/crons/"+k.id, `{"paused": true}`)
		k.keep("/crons/" + k.id)
	},
	"cron entry gone": func(k *idle) {
		k.crons()
		k.call(nil, "DELETE", "/crons/"+k.id+"/entries/e", "")
		k.keep("/crons/" + k.id)
	},
	"cron run now": func(k *idle) {
		k.crons()
		var out wire.Enqueued
		k.call(&out, "POST", "/crons/"+k.id+"/entries/e/run", "")
		k.keep("/jobs/" + out.ID)
	},
	"lock":          func(k *idle) { k.named() },
	"lock extended": func(k *idle) { k.lockAct("extend", `{"token": %q, "lock_at_most_ms": 2000000}`) },
	"lock broken":   func(k *idle) { k.lockAct("break", "") },
	"lock given back": func(k *idle) {
		k.must(k, 200, nil, "DELETE", "/locks/"+k.id, nil, "Lock-Token", k.named())
		k.keep("/locks/" + k.id)
	},
	"session": func(k *idle) { k.call(nil, "POST", "/sessions", `{"id": %q}`, k.id); k.keep("/sessions/" + k.id) },
	"session changed": func(k *idle) {
		k.session()
		k.call(nil, "PATCH", "/sessions/"+k.id, `{"suspend": true, "options": {"max_retries": 9}}`)
		k.keep("/sessions/" + k.id)
	},
	"tasks": func(k *idle) { k.session(); k.keep("/sessions/"+k.id, "/sessions/"+k.id+"/tasks/2") },
	"session closed": func(k *idle) {
		k.session()
		k.call(nil, "POST", "/sessions/"+k.id+"/close", "")
		k.keep("/sessions/" + k.id)
	},
	"session cancelled": func(k *idle) {
		k.session()
		k.call(nil, "DELETE", "/sessions/"+k.id, "")
		k.keep("/sessions/"+k.id+"/tasks/1", "/sessions/"+k.id+"/tasks/2")
	},
	"session forgotten": func(k *idle) {
		k.session()
		k.call(nil, "DELETE", "/sessions/"+k.id, "")
		until(k, "the end of a session", func() (bool, string) {
			var now struct{ State string }
			k.call(&now, "GET", "/sessions/"+k.id, "")
			return now.State == "cancelled", now.State
		})
		k.call(nil, "DELETE", "/sessions/"+k.id+"?forget=true", "")
		k.seen["/sessions/"+k.id] = 404 // its tasks go one by one
	},
	"task done": func(k *idle) {
		k.settled(k.lease(k.session()), `"outcome": "ok", "result": 7`)
		k.keep("/sessions/"+k.id+"/tasks/1", "/sessions/"+k.id+"/results?after=0")
	},
	"task collected": func(k *idle) {
		k.settled(k.lease(k.session()), `"outcome": "ok", "result": 7`)
		var page struct{ Next int64 }
		k.call(&page, "GET", "/sessions/"+k.id+"/results?after=0", "")
		k.call(nil, "POST", "/sessions/"+k.id+"/collected", `{"cursor": %d}`, page.Next)
		k.keep("/sessions/"+k.id, "/sessions/"+k.id+"/results?after=0")
	},
	"try_commit": func(k *idle) {
		j := k.lease(k.session())
		k.call(nil, "POST", "/sessions/"+k.id+"/tasks/1/try_commit", `{"lease": %q}`, j.Lease)
		k.out(func() []wire.Job { return k.rivalEngine(1) }, j)
	},
	"engine": func(k *idle) { k.engine("e-" + k.id); k.keep("/engines/e-" + k.id) },
	"engine drained": func(k *idle) {
		k.engine("e-" + k.id)
		k.call(nil, "POST", "/engines/e-"+k.id+"/drain", "{}")
		k.keep("/engines/e-" + k.id)
	},
	"engine logged off": func(k *idle) {
		k.engine("e-" + k.id)
		k.call(nil, "POST", "/engines/e-"+k.id+"/logoff", "{}")
		k.keep("/engines/e-" + k.id)
	},
	"inbox": func(k *idle) { k.inbox("all"); k.keep("/inboxes/"+k.id, "/inboxes/"+k.id+"/messages") },
	"inbox forgotten": func(k *idle) {
		k.call(nil, "PUT", "/inboxes/"+k.id, `{"group": {"json": ".g"}}`)
		k.gone("/inboxes/" + k.id)
	},
	"message delivered": func(k *idle) {
		k.inbox("fail_first")
		for _, m := range k.messages() {
			k.settled(m, `"outcome": "ok"`)
		}
		k.keep("/inboxes/"+k.id, "/inboxes/"+k.id+"/messages")
	},
	"message paused":  func(k *idle) { k.act(`{"action": "pause", "group": "1"}`) },
	"message skipped": func(k *idle) { k.act(`{"action": "skip", "group": "1"}`) },
	"message edited":  func(k *idle) { k.act(`{"action": "edit", "message": "m1", "payload": {"g": 1, "x": 2}}`) },
	"message deleted": func(k *idle) { k.act(`{"action": "delete", "message": "m2"}`) },
	"dead replayed": func(k *idle) {
		id := k.dead()
		k.call(nil, "POST", "/dead/"+id+"/replay", `{"budget": "remaining"}`)
		k.keep("/jobs/" + id)
	},
	"dead deleted": func(k *idle) {
		id := k.dead()
		k.call(nil, "DELETE", "/dead/"+id, "")
		k.keep("/jobs/" + id)
	},
	"fingerprint marked": func(k *idle) {
		path := fmt.Sprintf("/dead/groups/%016x", k.rnd.Uint64())
		k.call(nil, "PATCH", path, `{"muted": true, "note": "known"}`)
		k.keep(path)
	},
	"token": func(k *idle) {
		k.call(nil, "POST", "/tokens", `{"name": %q, "scopes": ["enqueue"]}`, k.id)
		k.tokens()
	},
	"token deleted": func(k *idle) {
		var out struct{ ID string }
		k.call(&out, "POST", "/tokens", `{"name": %q, "scopes": ["enqueue"]}`, k.id)
		k.gone("/tokens/" + out.ID)
		k.tokens()
	},
}

// repeated wants an enqueue that is said again to be answered with the job of before.
func (k *idle) repeated(id, body string) {
	k.keep("/jobs/" + id)
	k.checks = append(k.checks, func() {
		var out wire.Enqueued
		if k.call(&out, "POST", "/jobs", body); out.ID != id {
			k.Errorf("%s again made job %s, was %s", body, out.ID, id)
		}
	})
}

func (k *idle) ended(end string) {
	id := k.put("")
	k.settled(k.lease(""), end)
	k.keep("/jobs/"+id, "/jobs/"+id+"/errors")
	k.nothing()
}

// nothing wants no worker to get anything of this queue.
func (k *idle) nothing() {
	id := k.id
	k.rivals = append(k.rivals, func() {
		if k.id = id; len(k.ask("")) > 0 {
			k.Errorf("%s: there is a job to be had", id)
		}
	})
}

// checkpoint wants the progress of a job to be there.
func (k *idle) checkpoint(id string) {
	k.checks = append(k.checks, func() {
		if j := k.get(k, id); j.Progress == nil || string(j.Progress.Checkpoint) != `{"page": 7}` && string(j.Progress.Checkpoint) != `{"page":7}` {
			k.Errorf("the checkpoint of %s is gone: %+v", id, j.Progress)
		}
	})
}

func (k *idle) queue(body string) {
	k.call(nil, "PATCH", "/queues/"+k.id, body)
	k.keep("/queues/" + k.id)
}

func (k *idle) budget() {
	k.call(nil, "POST", "/budgets", `{"key": %q, "allocation": 2, "strategy": {"type": "while_in_flight"}}`, k.id)
	k.keep("/budgets/" + k.id)
}

func (k *idle) crons() {
	k.call(nil, "PUT", "/crons/"+k.id, `{"entries": [{"name": "e", "expression": "0 0 1 1 *", "job": {"type": "t", "queue": %q, "payload": 1}}]}`, k.id)
	k.keep("/crons/" + k.id)
}

// named takes a lock and returns its token.
func (k *idle) named() string {
	var out struct{ Token string }
	k.call(&out, "POST", "/locks/"+k.id, `{"owner": "a", "lock_at_most_ms": 3000000}`)
	k.keep("/locks/" + k.id)
	return out.Token
}

func (k *idle) lockAct(act, body string) {
	if token := k.named(); body != "" {
		body = fmt.Sprintf(body, token)
	}
	k.call(nil, "POST", "/locks/"+k.id+"/"+act, body)
	k.keep("/locks/" + k.id)
}

func (k *idle) gone(path string) {
	k.call(nil, "DELETE", path, "")
	k.keep(path)
}

func (k *idle) act(body string) {
	k.inbox("fail_first")
	k.call(nil, "POST", "/inboxes/"+k.id+"/actions", body)
	k.keep("/inboxes/"+k.id, "/inboxes/"+k.id+"/messages")
}

// tokens notes the names of all tokens there are when the round is over.
func (k *idle) tokens() {
	id := k.id
	has := strings.Contains(fmt.Sprint(k.read("/tokens")), "name:"+id+" ")
	k.checks = append(k.checks, func() {
		if now := strings.Contains(fmt.Sprint(k.read("/tokens")), "name:"+id+" "); now != has {
			k.Errorf("%s: the token is there: %t, was %t", id, now, has)
		}
	})
}
