package grid_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
	"github.com/reprisehq/reprise/internal/store/embedded"
)

// A30: a session runs while its server is killed behind every record that it
// wrote to its log. Another server goes on from there, and each task comes to one
// accepted result, or to the end of its retries, with counters that are those of
// a replay of its attempts.

// killTasks are as many as the session has; GRID_KILL_TASKS says more, and
// GRID_KILL_CUTS behind how many of the records the server is killed then.
const killTasks = 4

func TestA30KilledBehindEveryRecordOfItsLog(t *testing.T) {
	tasks, apart := killTasks, 1 // tasks, and records from cut to cut
	dry := newKilled(1, tasks)
	if n, err := strconv.Atoi(os.Getenv("GRID_KILL_TASKS")); err == nil {
		tasks, dry = n, newKilled(1, n)
	}
	dry.live(t, (*killed).work)
	if cuts, err := strconv.Atoi(os.Getenv("GRID_KILL_CUTS")); err == nil {
		apart = max(1, 2*dry.records/cuts)
	}
	const disks = 200 // that are kept at once
	total, cuts := map[string]int{}, 0
	for from := 1; from <= dry.records; from += disks * apart {
		first := newKilled(1, tasks)
		first.cutAt = func(n int) bool { return n >= from && n < from+disks*apart && n%apart < 2 }
		first.live(t, (*killed).work)
		cuts += len(first.cuts)
		for i, c := range first.cuts {
			var before *cut
			if i > 0 && first.cuts[i-1].record == c.record-1 {
				before = first.cuts[i-1]
			}
			if c.goOn(t, before, tasks, total); t.Failed() {
				t.Fatalf("cut behind record %d", c.record)
			}
		}
	}
	t.Logf("%d tasks, %d records, cut behind %d of them: %v", tasks, dry.records, cuts, total)
	for _, what := range []string{"done", "dead", "ok", "late", "error", "lost", "timeout", "restarted", "superseded", "released", "evicted", "copied", "killed twice", "power cut"} {
		if total[what] == 0 {
			t.Errorf("never seen: %s", what)
		}
	}
}

// outside is what driver and engines know: what they asked for and what they were
// answered. Names are those of tasks.
type outside struct {
	ids     map[string]job.ID    // submitted, and answered
	won     map[string]job.Token // whose result was accepted
	offers  map[string]int       // copies asked for
	offered map[string]int       // and granted
	hands   []hand               // runs that engines have
	spent   []hand               // that they told the end of, or gave up
	next    int                  // of the tasks to submit
}

// hand is a run that an engine was given.
type hand struct {
	engine, name string
	id           job.ID
	token        job.Token
}

func (k *outside) clone() *outside {
	c := *k
	c.ids, c.won, c.offers, c.offered = maps.Clone(k.ids), maps.Clone(k.won), maps.Clone(k.offers), maps.Clone(k.offered)
	c.hands, c.spent = slices.Clone(k.hands), slices.Clone(k.spent)
	return &c
}

// cut is the disk of a server that was killed behind a record, and what was known
// outside: when nobody had been told of the record, and when all had.
type cut struct {
	record        int
	disk          *vfs.MemFS
	at            job.Millis
	before, after *outside
	durable       bool // the record had to reach the disk before anybody was told
}

// goOn lets another server go on from the cut, and from the one it is cut to; where
// the record need not have reached the disk, also as if the power had gone, and
// the record with it, after it was told.
func (c *cut) goOn(t *testing.T, before *cut, tasks int, total map[string]int) {
	t.Helper()
	resume := func(disk *vfs.MemFS, at job.Millis, known *outside, cutAt func(int) bool) *killed {
		k := newKilled(uint64(c.record), tasks)
		k.disk, k.at, k.know, k.cutAt = disk.CrashClone(vfs.CrashCloneCfg{}), at, known.clone(), cutAt
		k.live(t, (*killed).finish)
		for what, n := range k.counts {
			total[what] += n
		}
		return k
	}
	never := func(int) bool { return false }
	known, cutAt := c.before, never
	if c.record%2 == 1 {
		known = c.after
	}
	if c.record%5 == 0 { // the one that recovers is killed too
		cutAt = func(n int) bool { return n == 1+c.record/5%9 }
	}
	for _, again := range resume(c.disk, c.at, known, cutAt).cuts {
		resume(again.disk, again.at, again.before, never)
		total["killed twice"]++
	}
	if before != nil && !c.durable && c.record%2 == 0 {
		resume(before.disk, c.at, c.after, never)
		total["power cut"]++
	}
}

// killed is one life of the server, on a disk of its own.
type killed struct {
	*gridRig
	rng   *rand.Rand
	tasks int
	disk  *vfs.MemFS
	at    job.Millis // date of its start; 0 = it is the first life

	mu   sync.Mutex // guards known
	know *outside
	up   []*machine

	cutAt   func(record int) bool
	records int
	cuts    []*cut
	counts  map[string]int
}

func newKilled(seed uint64, tasks int) *killed {
	return &killed{
		rng: rand.New(rand.NewPCG(seed, 30)), tasks: tasks, disk: vfs.NewCrashableMem(), counts: map[string]int{},
		know:  &outside{ids: map[string]job.ID{}, won: map[string]job.Token{}, offers: map[string]int{}, offered: map[string]int{}},
		cutAt: func(int) bool { return false },
	}
}

// recorder is the store of a life: it counts what is written to the log, and
// takes the disk as it is behind a record.
type recorder struct {
	store.Store
	k *killed
}

// watched is a transaction that tells whether anything was written, and whether
// that has to survive a power cut.
type watched struct {
	store.Tx
	wrote, durable bool
}

func (w *watched) Write(old, j *job.Job) error { w.wrote = true; return w.Tx.Write(old, j) }

func (w *watched) Set(row job.Row) error { w.wrote = true; return w.Tx.Set(row) }

func (w *watched) Unset(t job.Table, key string) error { w.wrote = true; return w.Tx.Unset(t, key) }

func (w *watched) Durable() { w.durable = true; w.Tx.Durable() }

type synced struct{}

func (synced) Wait() error { return nil }

// Update implements store.Store.
func (r *recorder) Update(ctx context.Context, fn func(store.Tx) error) (store.Commit, error) {
	k := r.k
	if n := len(k.cuts); n > 0 && k.cuts[n-1].after == nil {
		k.cuts[n-1].after = k.knows()
	}
	w, cuts := watched{}, k.cutAt(k.records+1)
	c, err := r.Store.Update(ctx, func(tx store.Tx) error {
		w = watched{Tx: tx}
		err := fn(&w)
		if cuts && w.wrote {
			tx.Durable()
		}
		return err
	})
	if err != nil || !w.wrote {
		return c, err
	}
	k.records++
	if !cuts {
		return c, nil
	}
	if err := c.Wait(); err != nil {
		return nil, err
	}
	k.cuts = append(k.cuts, &cut{record: k.records, disk: k.disk.CrashClone(vfs.CrashCloneCfg{}), at: k.Clock.Wall(), before: k.knows(), durable: w.durable})
	return synced{}, nil
}

func (k *killed) knows() *outside {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.know.clone()
}

func (k *killed) learn(f func(*outside)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.know)
}

// live lets a server start on the disk, and something happen to it.
func (k *killed) live(t *testing.T, what func(*killed)) {
	t.Helper()
	grid(t, func(g *gridRig) {
		for name, id := range k.know.ids {
			g.Call(id, name)
		}
		what(k)
		g.End()
		if n := len(k.cuts); n > 0 && k.cuts[n-1].after == nil {
			k.cuts[n-1].after = k.know.clone()
		}
	}, func(r *rig) {
		k.gridRig = &gridRig{r}
		if k.at > 0 {
			r.Clock.Step.Store(int64(k.at - r.Clock.Wall()))
		}
		r.Around = func(store.Store) store.Store {
			s, err := embedded.Open(embedded.Options{Dir: "data", FS: k.disk, Now: r.Clock.Wall, Cache: 1 << 20})
			if err != nil {
				r.Fatal(err)
			}
			r.Cleanup(func() { _ = s.Close() })
			return &recorder{s, k}
		}
	})
}
