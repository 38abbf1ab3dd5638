package rule

import (
	"fmt"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// Unique keys and batches: core.md section 7, zizq.md 1.15 and 1.16.

func unique(key string, while job.UniqueScope) func(*job.Job) {
	return func(j *job.Job) { j.Extras = &job.Extras{Unique: &job.Unique{Key: key, While: while}} }
}

func batched(key string) func(*job.Job) {
	return func(j *job.Job) { j.Extras = &job.Extras{Batch: &job.Batch{Key: key, When: "true", Fold: "$new"}} }
}

// anyKey draws a unique key, a batch, or none.
func anyKey(t *tape) *job.Extras {
	switch t.n(4) {
	case 1:
		return &job.Extras{Unique: &job.Unique{Key: "k", While: job.UniqueScope(t.n(int(job.UniqueScopes)))}}
	case 2:
		return &job.Extras{Batch: &job.Batch{Key: "k"}}
	}
	return nil
}

// otherOwner is the job, but this one, that has its unique key.
func (w *world) otherOwner(j *job.Job) (id job.ID) {
	if j == nil || KeyAsked(j).Kind != UniqueKey {
		return id
	}
	for _, other := range w.jobs {
		if EntriesOf(other).Key == KeyAsked(j) && other.ID != j.ID {
			return other.ID
		}
	}
	return id
}

// succeed lets whoever stands under the key of a newcomer yield.
func (w *world) succeed(j *job.Job) {
	for name, other := range w.jobs {
		if key := EntriesOf(other).Key; key != (Key{}) && key == EntriesOf(j).Key {
			w.jobs[name] = Yield(other)
		}
	}
}

// oneOwner is the law of keys: nobody else stands under the key of a job.
func (w *world) oneOwner(name string) {
	w.Helper()
	key := EntriesOf(w.jobs[name]).Key
	for other, j := range w.jobs {
		if other != name && key != (Key{}) && EntriesOf(j).Key == key {
			w.Fatalf("%s and %s stand under the key %+v", name, other, key)
		}
	}
}

// keyInScope: a job stands under its key only as long as its scope says, comes
// under it only when it is put or comes into line, and lets it go only by
// leaving its scope.
func keyInScope(v Verb, old, j *job.Job, _ Effect) error {
	x := j.Extras
	if x == nil || x.Unique == nil && x.Batch == nil {
		if j.HoldsKey {
			return fmt.Errorf("it stands under a key and has none")
		}
		return nil
	}
	inScope := j.State == job.Ready
	if x.Unique != nil {
		inScope = x.Unique.While.Holds(j.State)
	}
	waits := func(j *job.Job) bool { return j.State == job.Ready || j.State == job.Scheduled }
	switch {
	case j.HoldsKey && !inScope:
		return fmt.Errorf("it is %s and stands under its key still", j.State)
	case old.HoldsKey && !j.HoldsKey && inScope:
		return fmt.Errorf("%s took its key away", v)
	case j.HoldsKey && !old.HoldsKey && v != Put && (x.Batch != nil || waits(old) || !waits(j)):
		return fmt.Errorf("%s from %s to %s gave it its key", v, old.State, j.State)
	case v == Put && !j.HoldsKey && inScope:
		return fmt.Errorf("it was put and does not stand under its key")
	}
	return nil
}

func TestTheNewcomersScopeDecidesWhoIsInItsWay(t *testing.T) { // zizq.md 1.15
	for scope, want := range [job.UniqueScopes][job.States]bool{
		job.WhileQueued: {job.Scheduled: true, job.Ready: true},
		job.WhileActive: {job.Scheduled: true, job.Ready: true, job.Leased: true},
		job.WhileExists: {job.Scheduled: true, job.Ready: true, job.Leased: true, job.Done: true, job.Dead: true},
	} {
		for s := job.None; s < job.States; s++ {
			if got := Conflicts(job.UniqueScope(scope), s); got != want[s] {
				t.Errorf("%s against one that is %s: %t", job.UniqueScope(scope), s, got)
			}
		}
	}
}

func TestAJobHasItsKeyAsLongAsItsOwnScopeSays(t *testing.T) { // zizq.md 1.15
	for scope, want := range [job.UniqueScopes][job.States]bool{
		job.WhileQueued: {job.Scheduled: true, job.Ready: true},
		job.WhileActive: {job.Scheduled: true, job.Ready: true, job.Leased: true},
		job.WhileExists: {job.Scheduled: true, job.Ready: true, job.Leased: true, job.Done: true, job.Dead: true},
	} {
		key := unique("k", job.UniqueScope(scope))
		for s := job.Scheduled; s < job.States; s++ {
			w := newWorld(t)
			w.put("a", key, func(j *job.Job) {
				if s == job.Scheduled {
					j.ReadyAt = w.now + 1
				}
			})
			if s >= job.Leased {
				token := w.take("a", "h")
				switch s {
				case job.Done:
					w.ok("a", token)
				case job.Dead:
					w.do("a", Command{Verb: SettleDead, Token: token})
				default:
				}
			}
			j := w.jobs["a"]
			if named := EntriesOf(j).Key == (Key{UniqueKey, "k"}); j.State != s || j.HoldsKey != want[s] || named != want[s] {
				t.Errorf("%s, %s: owns %t, is found %t, want %t", job.UniqueScope(scope), j.State, j.HoldsKey, named, want[s])
			}
		}
	}
}

// returns are the ways back into line.
var returns = map[string]func(w *world, token job.Token){
	"retry with a wait": func(w *world, token job.Token) { w.fail("a", token) },
	"retry at once": func(w *world, token job.Token) {
		w.queue.Retry.Curve = wait(0)
		w.fail("a", token)
	},
	"release":            func(w *world, token job.Token) { w.do("a", Command{Verb: SettleRelease, Token: token}) },
	"release with delay": func(w *world, token job.Token) { w.do("a", Command{Verb: SettleRelease, Token: token, After: 5}) },
	"disconnect":         func(w *world, _ job.Token) { w.do("a", Command{Verb: Lapse, Holder: "h", Ending: job.ByDisconnect}) },
	"lapse":              func(w *world, _ job.Token) { w.do("a", Command{Verb: Lapse, Holder: "h", Ending: job.ByLapse}) },
	"restart":            func(w *world, _ job.Token) { w.do("a", Command{Verb: Lapse, Holder: "h", Ending: job.ByRestart}) },
	"run timeout": func(w *world, _ job.Token) {
		w.tick(job.Hour)
		w.do("a", Command{Verb: Lapse})
	},
}

func TestAJobThatComesBackHasItsKeyAgainIfItIsFree(t *testing.T) { // core.md section 7; zizq.md 9, defect 20
	for name, back := range returns {
		for _, taken := range []bool{false, true} {
			w := newWorld(t)
			w.put("a", unique("k", job.WhileQueued), func(j *job.Job) { j.RunTimeout = job.Minute })
			token := w.take("a", "h")
			if taken {
				w.put("b", unique("k", job.WhileQueued))
			}
			if w.jobs["a"].HoldsKey {
				t.Fatalf("%s: it has its key while it runs", name)
			}
			if back(w, token); w.jobs["a"].HoldsKey == taken || taken && !w.jobs["b"].HoldsKey {
				t.Errorf("%s, taken by another one %t: %+v", name, taken, w.jobs["a"])
			}
		}
	}
}

func TestACopyDoesNotTakeTheKeyAgain(t *testing.T) { // core.md section 7
	w := newWorld(t)
	w.put("a", unique("k", job.WhileQueued), func(j *job.Job) { j.Copies = 2 })
	first := w.take("a", "h")
	w.put("b", unique("k", job.WhileQueued))
	second := w.take("a", "i")
	w.do("a", Command{Verb: SettleRelease, Token: first})
	if w.jobs["a"].HoldsKey || !w.jobs["b"].HoldsKey {
		t.Error("a copy that ended moved the key")
	}
	w.take("b", "j")
	w.do("a", Command{Verb: SettleRelease, Token: second})
	if !w.jobs["a"].HoldsKey {
		t.Error("the key was free when the last copy came back")
	}
}

func TestAKeyThatWasTakenOverStaysWithTheNewcomer(t *testing.T) { // zizq.md 1.15: one owner per key
	w := newWorld(t)
	w.put("a", unique("k", job.WhileExists))
	token := w.take("a", "h")
	w.put("b", unique("k", job.WhileQueued)) // a runs, and so is not in its way
	if w.jobs["a"].HoldsKey || !w.jobs["b"].HoldsKey {
		t.Fatal("the newcomer did not take the key over")
	}
	w.ok("a", token)
	if w.jobs["a"].HoldsKey || !w.jobs["b"].HoldsKey {
		t.Error("the old owner's end moved the key")
	}
}

func TestADeadJobIsNotRevivedWhileAnotherHasItsKey(t *testing.T) { // core.md section 7
	for scope := range job.UniqueScopes {
		w := newWorld(t)
		w.put("a", unique("k", scope))
		w.do("a", Command{Verb: SettleDead, Token: w.take("a", "h")})
		w.put("b", unique("k", job.WhileActive))
		w.refused(job.Exists, "a", Command{Verb: Revive})
		w.ok("b", w.take("b", "h"))
		if j := w.do("a", Command{Verb: Revive}); j.State != job.Ready || !j.HoldsKey {
			t.Errorf("%s: %+v", scope, j)
		}
	}
}

func TestABatchIsClosedForGoodWhenItsJobIsTaken(t *testing.T) { // zizq.md 1.16
	for name, back := range returns {
		w := newWorld(t)
		w.put("a", batched("k"), func(j *job.Job) { j.RunTimeout = job.Minute })
		if EntriesOf(w.jobs["a"]).Key != (Key{BatchKey, "k"}) {
			t.Fatal("a job that waits does not collect")
		}
		token := w.take("a", "h")
		if back(w, token); w.jobs["a"].HoldsKey {
			t.Errorf("%s opened it again", name)
		}
	}
}

func TestOnlyAJobThatIsReadyCollects(t *testing.T) { // zizq.md 1.16
	w := newWorld(t)
	w.put("a", batched("k"), func(j *job.Job) { j.ReadyAt = w.now + 1 })
	w.tick(1)
	if j := w.do("a", Command{Verb: Promote}); j.HoldsKey {
		t.Error("a job that was scheduled collects")
	}
	w.put("b", batched("k"))
	w.do("b", Command{Verb: Patch, Edit: func(j *job.Job) { j.Priority = 1 }})
	if !w.jobs["b"].HoldsKey {
		t.Error("a patch of the priority closed the batch")
	}
	w.do("b", Command{Verb: Patch, Edit: func(j *job.Job) { j.ReadyAt = w.now + 1 }})
	if j := w.do("b", Command{Verb: Revive}); j.HoldsKey {
		t.Error("a job that was scheduled meanwhile collects")
	}
}

func TestAFoldGivesTheJobAnotherPayloadAndNothingElse(t *testing.T) {
	w := newWorld(t)
	a := w.put("a", batched("k"), func(j *job.Job) { j.Payload, j.PayloadSize = j.ID, 3 })
	ref := w.ids.Next(w.now)
	folded, err := Fold(a, ref, 7)
	if err != nil || folded.Payload != ref || folded.PayloadSize != 7 || a.Payload != a.ID {
		t.Fatalf("%+v, %v", folded, err)
	}
	folded.Payload, folded.PayloadSize = a.Payload, a.PayloadSize
	if fmt.Sprintf("%+v", folded) != fmt.Sprintf("%+v", a) {
		t.Errorf("%+v\n%+v", folded, a)
	}
	for _, j := range []*job.Job{Yield(a), w.put("c", unique("k", job.WhileExists)), w.put("d")} {
		if _, err := Fold(j, ref, 7); job.KindOf(err) != job.WrongState {
			t.Errorf("a job that collects nothing: %v", err)
		}
	}
}
