package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

var lists = []subject{
	{"selects by each field, ascending and descending, from and limit", listFilters},
	{"hides what is past its purge time, from counts too", listAlive},
	{"pages through many", listPages},
}

var counts = []subject{
	{"depth follows the jobs of a queue", depths},
	{"names and the highest id are those of jobs that exist", namesAndIDs},
}

func (x *site) list(f store.Filter, n int) string {
	x.Helper()
	var list []*job.Job
	x.view(func(r store.Reader) (err error) {
		list, err = r.List(f, n)
		return err
	})
	return names(list)
}

func listFilters(x *site) {
	a := x.put("q1", "a")
	b := x.take(x.put("q2", "b"), "h")
	c := x.put("q1", "c", readyAt(x.now+9))
	x.do(x.put("q3", "d"), rule.Command{Verb: rule.Cancel})
	e := x.settle(x.take(x.put("q1", "e", kept(job.Hour, 0)), "h"), rule.SettleOK)
	never := x.newJob("q", "never").New
	type F = store.Filter
	for _, t := range []struct {
		f    F
		n    int
		want string
	}{
		{F{}, 9, "a b c d e"},
		{F{}, 2, "a b"},
		{F{}, 0, ""},
		{F{Desc: true}, 9, "e d c b a"},
		{F{Desc: true}, 2, "e d"},
		{F{From: b.ID}, 9, "c d e"},
		{F{From: b.ID, Desc: true}, 9, "a"},
		{F{From: a.ID, Desc: true}, 9, ""},
		{F{From: never.ID}, 9, ""},
		{F{From: never.ID, Desc: true}, 2, "e d"},
		{F{States: []job.State{job.Ready}}, 9, "a"},
		{F{States: []job.State{job.Leased, job.Scheduled}}, 9, "b c"},
		{F{States: []job.State{job.Dead, job.Done}, Desc: true}, 9, "e d"},
		{F{Queues: []string{"q1"}}, 9, "a c e"},
		{F{Queues: []string{"q1"}}, 2, "a c"},
		{F{Queues: []string{"q3", "q2", "q2"}}, 9, "b d"},
		{F{Queues: []string{"unheard of"}}, 9, ""},
		{F{Types: []string{"a", "e", "unheard of"}}, 9, "a e"},
		{F{Types: []string{"unheard of"}}, 9, ""},
		{F{IDs: []job.ID{e.ID, never.ID, a.ID, e.ID}}, 9, "a e"},
		{F{IDs: []job.ID{a.ID, e.ID, c.ID}, Desc: true, From: e.ID}, 9, "c a"},
		{F{IDs: []job.ID{never.ID}}, 9, ""},
		{F{Queues: []string{"q1"}, States: []job.State{job.Ready, job.Done}, Types: []string{"e", "b"}}, 9, "e"},
		{F{Queues: []string{"q1"}, IDs: []job.ID{b.ID}}, 9, ""},
	} {
		x.expect(fmt.Sprintf("%+v", t.f), x.list(t.f, t.n), t.want)
		if t.f.From.IsZero() && t.n == 9 {
			x.view(func(r store.Reader) error {
				n, err := r.Count(t.f)
				if want := len(strings.Fields(t.want)); int(n) != want {
					x.Errorf("Count(%+v): got %d, want %d", t.f, n, want)
				}
				return err
			})
		}
	}
}

func listAlive(x *site) {
	done := x.settle(x.take(x.put("q", "done", kept(10, 0)), "h"), rule.SettleOK)
	dead := x.do(x.put("q", "dead", kept(0, 20)), rule.Command{Verb: rule.Cancel})
	x.put("q", "open")
	x.queue("blocking", func(q *job.Queue) { q.OnDead = job.DeadBlock })
	x.killed("blocking", "stays", group("g"))
	x.expect("no time given", x.list(store.Filter{}, 9), "done dead open stays")
	x.expect("before", x.list(store.Filter{Alive: x.now + 9}, 9), "done dead open stays")
	x.expect("at the first", x.list(store.Filter{Alive: x.now + 10}, 9), "dead open stays")
	x.expect("at the second", x.list(store.Filter{Alive: x.now + 20}, 1), "open")
	x.view(func(r store.Reader) error {
		n, err := r.Count(store.Filter{Alive: x.now + 20})
		if n != 2 {
			x.Errorf("Count sees what List hides: got %d of 2", n)
		}
		return err
	})
	for _, c := range []struct {
		f    store.Filter
		want int64
	}{
		{store.Filter{}, 3},
		{store.Filter{Queues: []string{"q"}}, 2},
		{store.Filter{Types: []string{"done"}}, 0},
		{store.Filter{Queues: []string{"q"}, Types: []string{"done", "dead"}}, 1},
		{store.Filter{States: []job.State{job.Dead}}, 2},
		{store.Filter{States: []job.State{job.Done}}, 0},
		{store.Filter{States: []job.State{job.Ready}}, 1},
		{store.Filter{IDs: []job.ID{done.ID, dead.ID}}, 1},
	} {
		c.f.Alive = x.now + 10
		x.view(func(r store.Reader) error {
			n, err := r.Count(c.f)
			if n != c.want {
				x.Errorf("Count(%+v): got %d, want %d", c.f, n, c.want)
			}
			return err
		})
	}
}

func listPages(x *site) {
	var want []string
	x.update(func(tx store.Tx) error {
		want = nil
		for i := range 700 {
			name := fmt.Sprint("j", i)
			want = append(want, name)
			if _, err := x.world.put(tx, x.newJob("q", name)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, desc := range []bool{false, true} {
		x.view(func(r store.Reader) error {
			list, err := listAll(r, store.Filter{Desc: desc, States: []job.State{job.Ready}})
			if len(list) != len(want) || list[0].Type != want[0] && !desc || list[0].Type != want[699] && desc {
				x.Errorf("%d jobs, desc %t, starting with %s", len(list), desc, list[0].Type)
			}
			return err
		})
	}
	x.expect("the whole line", x.line(rule.Seeker{Holder: "h"}, 1000), strings.Join(want, " "))
}

type statuses = [rule.Statuses]int64

func depths(x *site) {
	expect := func(when, queue string, want store.Depth) {
		x.Helper()
		x.view(func(r store.Reader) error {
			if got := r.Depth(queue); got != want {
				x.Errorf("%s: got %+v, want %+v", when, got, want)
			}
			return nil
		})
	}
	expect("nothing", "q", store.Depth{})
	ref := x.id()
	var a *job.Job
	x.update(func(tx store.Tx) (err error) {
		if err = tx.PutPayload(ref, []byte("12345")); err == nil {
			a, err = x.world.put(tx, x.newJob("q", "a", group("g"), payload(ref, 5), kept(job.Hour, 0)))
		}
		return err
	})
	b := x.put("q", "b", payload(ref, 5), readyAt(x.now+10))
	x.put("q2", "elsewhere")
	expect("open", "q", store.Depth{
		States: [job.States]int64{job.Ready: 1, job.Scheduled: 1}, Bytes: 10, Grouped: 1, Wanting: 1,
		Status: statuses{rule.StatusWaiting: 2},
	})
	a = x.take(a, "h")
	expect("taken", "q", store.Depth{
		States: [job.States]int64{job.Leased: 1, job.Scheduled: 1}, Bytes: 10, Grouped: 1, Leases: 1,
		Status: statuses{rule.StatusWaiting: 1, rule.StatusRunning: 1},
	})
	x.settle(a, rule.SettleOK)
	done := store.Depth{
		States: [job.States]int64{job.Done: 1, job.Scheduled: 1}, Bytes: 5,
		Status: statuses{rule.StatusWaiting: 1, rule.StatusDone: 1},
	}
	expect("done", "q", done)
	x.reopen()
	expect("done, reopened", "q", done)
	x.do(b, rule.Command{Verb: rule.Patch, Edit: func(j *job.Job) { j.Queue = "q2" }})
	expect("moved there", "q2", store.Depth{
		States: [job.States]int64{job.Ready: 1, job.Scheduled: 1}, Bytes: 5, Wanting: 1, Status: statuses{rule.StatusWaiting: 2},
	})
	x.do(a, rule.Command{Verb: rule.Purge})
	expect("nothing left", "q", store.Depth{})
}

func namesAndIDs(x *site) {
	expect := func(when, want string, highest job.ID) {
		x.Helper()
		x.view(func(r store.Reader) error {
			list, err := r.Names()
			x.expect(when, strings.Join(list, " "), want)
			got, bad := store.MaxID(r)
			if got != highest {
				x.Errorf("%s: the highest id is %s, want %s", when, got, highest)
			}
			return errors.Join(err, bad)
		})
	}
	expect("nothing", "", job.ID{})
	x.set(job.NewQueue("settings only"))
	a := x.put("q2", "a")
	b := x.put("q1", "b")
	expect("two", "q1 q2", b.ID)
	x.do(b, rule.Command{Verb: rule.Cancel})
	x.do(b, rule.Command{Verb: rule.Purge})
	expect("one gone", "q2", a.ID)
	x.settle(x.take(a, "h"), rule.SettleOK)
	expect("all gone", "", job.ID{})
	x.reopen()
	expect("all gone, reopened", "", job.ID{})
}
