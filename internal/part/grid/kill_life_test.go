package grid_test

import (
	"fmt"
	"maps"
	"slices"
	"testing/synctest"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/model/account"
	gridpart "github.com/reprisehq/reprise/internal/part/grid"
	"github.com/reprisehq/reprise/internal/rule"
)

// What happens in the lives of a server that is killed (A30), and how it is judged.

// work is the life that is cut: engines come and go while tasks are submitted,
// run, fail, run twice and are given back.
func (k *killed) work() {
	k.session("s", killedSession)
	much := 1 + k.tasks/100 // of everything in one step
	acts := []func(){
		func() { k.submit(min(k.know.next+much, k.tasks)) }, k.hear, k.hear, func() { k.tell(much) }, func() { k.tell(much) },
		func() { k.begin(much) }, func() { k.offer(much) }, func() { k.join(much) }, k.leave, k.time,
	}
	k.join(much)
	for range 400 {
		acts[k.rng.IntN(len(acts))]()
		k.Pass(1)
		if s := k.state("s"); k.know.next == k.tasks && s.Open() == 0 {
			break
		}
	}
	k.finish()
}

func killedSession(q *job.Queue) {
	q.Retry.Limit, q.RunTimeout, q.FrontOrder = job.LimitOf(2), 30*job.Second, job.FrontBySeq
	q.Grid.MaxReschedules, q.Grid.MaxCopies, q.Grid.Collection = 2, 2, job.CollectLater
}

// submit asks for tasks up to a number; the first of them may be there already.
func (k *killed) submit(upTo int) {
	k.submitFrom(k.know.next, upTo)
}

func (k *killed) submitFrom(first, upTo int) {
	var list []engine.NewJob
	for i := first; i < upTo; i++ {
		list = append(list, newNamed("s", fmt.Sprint("t", i), task, func(n *engine.NewJob) { n.Key = string(n.Payload) }))
	}
	if len(list) == 0 {
		return
	}
	added, err := k.Put(k.Context(), list)
	if err != nil {
		k.Fatal(err)
	}
	k.learn(func(w *outside) {
		w.next = max(w.next, upTo)
		for i, a := range added {
			name := fmt.Sprint("t", first+i)
			if id, known := w.ids[name]; known && id != a.ID {
				k.Errorf("%s was %s and is %s: it was submitted again", name, id, a.ID)
			}
			w.ids[name] = a.ID
			k.Call(a.ID, name)
		}
	})
}

func (k *killed) join(much int) {
	if len(k.up) < 4 {
		name := fmt.Sprint("w", k.rng.IntN(1000))
		k.up = append(k.up, k.engine(name, 1+k.rng.IntN(2*much)))
	}
}

// leave is an engine that falls silent, drains or is logged off.
func (k *killed) leave() {
	if len(k.up) < 2 {
		return
	}
	i := k.rng.IntN(len(k.up))
	m := k.up[i]
	switch k.rng.IntN(3) {
	case 0:
		k.up = slices.Delete(k.up, i, i+1)
	case 1:
		m.drain()
	case 2:
		m.logoff()
		k.Pass(0)
		k.hear()
		k.up = slices.Delete(k.up, i, i+1)
	}
}

// time passes; the engines that are up say that they live.
func (k *killed) time() {
	for _, m := range k.up {
		_, _ = k.Part.Grid.Heartbeat(k.Context(), m.name, gridpart.Beat{Epoch: m.epoch})
	}
	k.Pass(job.Millis(1 + k.rng.IntN(4000)))
}

// hear reads what the engines were sent.
func (k *killed) hear() {
	for _, m := range k.up {
		list, err := m.Poll()
		if err != nil {
			continue
		}
		for _, d := range list {
			if d.Voided {
				if d.Ending == job.ByTimeout {
					_, _ = k.Part.Grid.Heartbeat(k.Context(), m.name, gridpart.Beat{Epoch: m.epoch, Stopped: []job.Token{d.Lease.Token}})
				}
				continue
			}
			k.learn(func(w *outside) {
				w.hands = append(w.hands, hand{m.name, k.Names[d.Job.ID], d.Job.ID, d.Lease.Token})
			})
		}
	}
}

// tell ends runs, those of engines that are given up too.
func (k *killed) tell(much int) {
	var ends []hand
	k.learn(func(w *outside) {
		for range min(much, len(w.hands)) {
			i := k.rng.IntN(len(w.hands))
			ends = append(ends, w.hands[i])
			w.hands = slices.Delete(w.hands, i, i+1)
		}
		w.spent = append(w.spent, ends...) // it is asked for, and may be answered after the kill
	})
	list := make([]engine.Settle, len(ends))
	for i, h := range ends {
		how := []job.Outcome{job.OK, job.OK, job.OK, job.OK, job.Retried, job.Retried, job.Released}[k.rng.IntN(7)]
		list[i] = engine.Settle{ID: h.id, Token: h.token, Outcome: how, Failure: job.Failure{Type: "E", Message: "boom"}}
	}
	k.settles(ends, list)
}

func (k *killed) settles(ends []hand, list []engine.Settle) {
	if len(list) == 0 {
		return
	}
	verdicts, err := k.Settle(k.Context(), list)
	if err != nil {
		k.Fatal(err)
	}
	k.learn(func(w *outside) {
		for i, v := range verdicts {
			name, by := ends[i].name, ends[i].token
			if v.Err != nil || list[i].Outcome != job.OK {
				continue
			}
			if old, has := w.won[name]; has && old != by {
				k.Errorf("%s has two accepted results", name)
			}
			w.won[name] = by
		}
	})
}

func (k *killed) begin(much int) {
	var list []engine.Extension
	for range min(much, len(k.know.hands)) {
		h := k.know.hands[k.rng.IntN(len(k.know.hands))]
		list = append(list, engine.Extension{ID: h.id, Token: h.token, Started: true})
	}
	if len(list) > 0 {
		if _, err := k.Extend(k.Context(), list); err != nil {
			k.Fatal(err)
		}
	}
}

func (k *killed) offer(much int) {
	for range min(much, len(k.know.hands)) {
		h := k.know.hands[k.rng.IntN(len(k.know.hands))]
		k.learn(func(w *outside) { w.offers[h.name]++ })
		if v, err := enginetest.Operate(k.Context(), k.Engine, h.id, rule.Command{Verb: rule.Offer}); err == nil && v.Err == nil {
			k.learn(func(w *outside) { w.offered[h.name]++ })
		}
	}
}

// finish is what comes after a kill: the driver submits what was not answered, a
// session that was not there yet too; engines come back with what they run, or
// do not; and every task comes to its end.
func (k *killed) finish() {
	if _, err := k.Part.Grid.Session(k.Context(), "s"); job.KindOf(err) == job.NotFound {
		k.session("s", killedSession)
	}
	k.submitFrom(max(0, k.know.next-2), k.tasks)
	k.up = nil
	var silent []hand
	back := map[string][]gridpart.Running{}
	for _, h := range slices.Concat(k.know.hands, k.know.spent) {
		back[h.engine] = append(back[h.engine], gridpart.Running{ID: h.id, Token: h.token})
	}
	for _, name := range slices.Sorted(maps.Keys(back)) {
		if k.rng.IntN(3) == 0 {
			continue
		}
		in := k.login(name, len(back[name]), func(l *gridpart.Login) { l.Running = back[name] })
		m := &machine{g: k.gridRig, name: name, epoch: in.Engine.Epoch}
		m.connect()
		k.up = append(k.up, m)
	}
	if k.at > 0 && k.rng.IntN(2) == 0 { // those who do not come back are given up before they are heard
		for range 10 {
			k.time()
			k.Pass(4 * job.Second)
		}
	}
	for i := range 2 {
		k.up = append(k.up, k.engine(fmt.Sprint("end", i), max(8, k.tasks/2)))
	}
	for _, h := range k.know.spent { // told again: the answer may not have come
		if k.know.won[h.name] != h.token {
			silent = append(silent, h)
		}
	}
	for range 60 {
		k.hear()
		ends := slices.Concat(silent, k.know.hands)
		silent = nil
		list := make([]engine.Settle, len(ends))
		for i, h := range ends {
			list[i] = engine.Settle{ID: h.id, Token: h.token, Outcome: job.OK}
		}
		k.learn(func(w *outside) { w.spent, w.hands = append(w.spent, w.hands...), nil })
		k.settles(ends, list)
		k.time()
		if k.state("s").Open() == 0 {
			k.judge()
			return
		}
	}
	list, _ := k.List(k.Context(), engine.Filter{Queues: []string{"s"}}, k.tasks)
	for _, l := range list {
		if l.Job.State.Open() {
			k.Errorf("I8: %s never came to an end: it is %s until %d, and the date is %d; %+v", k.Names[l.Job.ID], l.Job.State, l.Job.ReadyAt, k.Now(), l.Job.Leases)
		}
	}
}

// judge holds every task against what was told of it and against the replay.
func (k *killed) judge() {
	synctest.Wait()
	q, _, err := k.Queue(k.Context(), "s")
	if err != nil {
		k.Fatal(err)
	}
	list, err := enginetest.Page(k.Context(), k.Engine, engine.Filter{Queues: []string{"s"}}, k.tasks+10)
	if err != nil {
		k.Fatal(err)
	}
	asked := map[uint64]bool{} // whose engine told of a result
	for _, h := range k.know.spent {
		asked[h.token.Hash()] = true
	}
	seen := map[string]job.ID{}
	for _, l := range list {
		name := string(l.Payload)
		if id, twice := seen[name]; twice || k.know.ids[name] != l.Job.ID {
			k.Errorf("%s is %s and %s, and was answered to be %s", name, id, l.Job.ID, k.know.ids[name])
		}
		seen[name] = l.Job.ID
		k.judgeTask(q, l.Job, name, asked)
	}
	s, done := k.state("s"), k.counts["done"]
	if len(list) != k.tasks || s.Submitted != int64(k.tasks) || s.Done != int64(done) || s.Failed != int64(k.tasks-done) {
		k.Errorf("%d tasks were submitted: %d are there, %d of them done; the session counts %+v", k.tasks, len(list), done, s)
	}
}

func (k *killed) judgeTask(q *job.Queue, j *job.Job, name string, asked map[uint64]bool) {
	accepted, copies := []uint64(nil), 0
	for _, a := range j.History() {
		k.counts[a.Why.String()]++
		if a.Why == job.AttemptOK || a.Why == job.AttemptLate {
			accepted = append(accepted, a.Token)
		}
		copies += oneOf(a.Copy)
	}
	k.counts[j.State.String()]++
	k.counts["copied"] += oneOf(copies > 0)
	told, has := k.know.won[name]
	switch {
	case j.State == job.Done && len(accepted) != 1, j.State == job.Dead && len(accepted) > 0, j.State != job.Done && j.State != job.Dead:
		k.Errorf("%s is %s with %d accepted results", name, j.State, len(accepted))
	case j.State == job.Done && !asked[accepted[0]]:
		k.Errorf("%s is done, and nobody said so", name)
	case has != (j.State == job.Done) || has && told.Hash() != accepted[0]:
		k.Errorf("%s is %s, and somebody was told that his result is accepted: %t", name, j.State, has)
	}
	got := account.Tally{
		State: j.State, Reason: j.Reason, Retries: j.Attempts, Evictions: j.Evictions, Losses: j.Losses, Runs: j.Deliveries,
		Reschedules: j.Reschedules, Results: uint32(len(accepted)),
	}
	want, err := replayed(j, q)
	if asks, ran := j.Reschedules, want.Reschedules; asks >= ran && int(asks) <= k.know.offers[name] && int(asks) >= k.know.offered[name] {
		want.Reschedules = asks // copies that were asked for and did not run left no attempt
	}
	if err != nil || got != want {
		k.Errorf("%s is %+v, its attempts make it %+v: %v\n%+v", name, got, want, err, j.History())
	}
}
