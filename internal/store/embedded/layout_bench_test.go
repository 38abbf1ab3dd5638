package embedded

import (
	"container/heap"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"
	"testing"

	"github.com/RaduBerinde/btreemap"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// The measurements behind docs/adr/0001: the layout of the store and what it
// was chosen over, on a real directory, with the store's own options for
// Pebble. What is counted (bytes, blocks, keys) does not depend on who else
// uses the machine; what is timed does. Key, Payload and Listing want
// -benchtime 1x, Page and Line the default.
//
//	go test ./internal/store/embedded -run '^$' -bench 'Layout(Key|Payload|Listing)' -benchtime 1x -jobs 1000000 -timeout 0
//	go test ./internal/store/embedded -run '^$' -bench 'Layout(Page|Line)' -jobs 1000000 -timeout 0
var layoutJobs = flag.Int("jobs", 100_000, "how many jobs the Layout benchmarks use")

const (
	layoutBatch = 500       // jobs in one commit
	layoutTake  = 256       // jobs read at a time
	layoutBytes = 512 << 20 // payload bytes in one benchmark at most
)

// layoutMix is how many priorities and queues the jobs have, which come in turn.
type layoutMix struct {
	name               string
	priorities, queues int
}

var layoutMixes = []layoutMix{{"fifo", 1, 1}, {"16prio", 16, 1}, {"8queues", 1, 8}}

func (m layoutMix) jobs(n int) []*job.Job {
	rnd := rand.New(rand.NewPCG(1, 2))
	ids, list := job.NewIDs(job.ID{}, rnd.Uint64), make([]*job.Job, n)
	for i := range list {
		now := job.Millis(1_700_000_000_000 + i/50)
		id := ids.Next(now)
		list[i] = &job.Job{
			ID: id, Queue: fmt.Sprint("webhooks-", i%m.queues), Type: "deliver", State: job.Ready,
			Priority: job.PriorityDefault + uint16(rnd.IntN(m.priorities)), Band: job.BandNormal, Seq: int64(i),
			Created: now, ReadyAt: now, Payload: id, PayloadSize: 128, Copies: 1, CopiesWanted: 1,
			RetainDone: job.Unset, RetainDead: job.Unset,
		}
	}
	return list
}

// layoutKey is a choice of the metadata key: the id, or the place in line with
// a map from id to place, in memory or on disk.
type layoutKey struct {
	name        string
	order, disk bool
}

var layoutKeys = []layoutKey{{"id", false, false}, {"order+map", true, false}, {"order+disk", true, true}}

func (k layoutKey) key(queue string, p rule.Pos) []byte {
	if !k.order {
		return jobKey(nil, p.ID)
	}
	b := append([]byte{'o'}, 0, 0, 0, queue[len(queue)-1]) // a queue number takes four bytes
	b = append(binary.BigEndian.AppendUint16(b, p.Priority), p.Band)
	b = binary.BigEndian.AppendUint64(b, uint64(p.Seq)^1<<63)
	return append(b, p.ID[:]...)
}

func layoutIDKey(id job.ID) []byte { return append([]byte{'i'}, id[:]...) }

func layoutListingKey(queue uint32, s job.State, id job.ID) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'l'}, queue)
	return append(append(b, byte(s)), id[:]...)
}

func layoutCheck(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

func layoutOpen(b *testing.B, dir string) *handle {
	h := &handle{fence: &fence{FS: vfs.Default}}
	cache := pebble.NewCache(64 << 20)
	defer cache.Unref()
	db, err := pebble.Open(dir, pebbleOptions(h, cache, &Store{opts: Options{Logf: b.Logf}}))
	layoutCheck(b, err)
	h.db = db
	return h
}

func layoutMisses(h *handle) float64 { return float64(h.db.Metrics().BlockCache.Misses) }

// layoutCommit commits what each writes for every job, layoutBatch jobs at a time.
func layoutCommit(b *testing.B, h *handle, jobs []*job.Job, each func(*pebble.Batch, *job.Job)) {
	for part := range slices.Chunk(jobs, layoutBatch) {
		batch := h.db.NewBatch()
		for _, j := range part {
			each(batch, j)
		}
		layoutCheck(b, batch.Commit(pebble.NoSync))
	}
}

// layoutReport tells how many bytes went to the log, to flushed tables and to
// compacted ones, once nothing is being compacted any more, and closes.
func layoutReport(b *testing.B, h *handle, jobs int) {
	layoutCheck(b, h.db.Flush())
	m := h.db.Metrics()
	for m.Compact.NumInProgress > 0 {
		runtime.Gosched()
		m = h.db.Metrics()
	}
	var flush, compact uint64
	for i := range m.Levels {
		flush += m.Levels[i].TableBytesFlushed
		compact += m.Levels[i].TableBytesCompacted
	}
	layoutCheck(b, h.db.Close())
	n := float64(jobs)
	b.ReportMetric(float64(m.WAL.BytesWritten)/n, "walB/job")
	b.ReportMetric(float64(flush)/n, "flushB/job")
	b.ReportMetric(float64(compact)/n, "compactB/job")
	b.ReportMetric(float64(m.WAL.BytesWritten+flush+compact)/n, "writtenB/job")
}

func layoutHeap() float64 {
	for range 3 { // pools and finalizers need more than one
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkLayoutKey compares the metadata keys: what a put writes, what a
// load costs and keeps, what it costs to read a long line from its head and
// to take jobs away by id. Every part starts with an empty cache.
func BenchmarkLayoutKey(b *testing.B) {
	for _, m := range layoutMixes {
		for _, k := range layoutKeys {
			b.Run(m.name+"/"+k.name, func(all *testing.B) {
				var dir string
				all.Run("put", func(b *testing.B) { // first: the others use what it wrote last
					for b.Loop() {
						dir = all.TempDir()
						k.put(b, dir, m)
					}
				})
				all.Run("load", func(b *testing.B) { k.benchLoad(b, dir) })
				all.Run("heads", func(b *testing.B) { k.benchHeads(b, dir) })
				all.Run("byid", func(b *testing.B) { k.benchByID(b, dir) })
			})
		}
	}
}

func (k layoutKey) put(b *testing.B, dir string, m layoutMix) {
	h, jobs := layoutOpen(b, dir), m.jobs(*layoutJobs)
	body, rnd := make([]byte, 128), rand.NewChaCha8([32]byte{})
	layoutCommit(b, h, jobs, func(batch *pebble.Batch, j *job.Job) {
		_, _ = rnd.Read(body)
		key := k.key(j.Queue, rule.EntriesOf(j).Pos)
		_ = batch.Set(key, appendJob(nil, j), nil)
		_ = batch.Set(payloadKey(nil, j.ID), body, nil)
		if k.disk {
			_ = batch.Set(layoutIDKey(j.ID), key[:len(key)-len(j.ID)], nil)
		}
	})
	layoutReport(b, h, len(jobs))
}

// layoutPlace is what a key in dispatch order holds beside the id.
type layoutPlace struct {
	seq      int64
	queue    uint32
	priority uint16
	band     uint8
}

// load computes the in-memory index, as Store.loadJobs does.
func (k layoutKey) load(b *testing.B, h *handle) (*index, map[job.ID]layoutPlace) {
	x, places := newIndex(newNames()), map[job.ID]layoutPlace{}
	kind := k.key("0", rule.Pos{})[0]
	layoutCheck(b, h.scan([]byte{kind}, []byte{kind + 1}, func(key, value []byte) error {
		var id job.ID
		copy(id[:], key[len(key)-len(id):])
		j, err := decodeJob(id, value, x.names)
		if err != nil {
			return err
		}
		x.refs.move(nil, j, nil)
		x.move(nil, j)
		if k.order && !k.disk {
			places[id] = layoutPlace{j.Seq, x.of(j.Queue).num, j.Priority, j.Band}
		}
		return nil
	}))
	return x, places
}

func (k layoutKey) benchLoad(b *testing.B, dir string) {
	var held float64
	for b.Loop() {
		b.StopTimer()
		h := layoutOpen(b, dir)
		before := layoutHeap()
		b.StartTimer()
		x, places := k.load(b, h)
		b.StopTimer()
		held = layoutHeap() - before
		runtime.KeepAlive(x)
		runtime.KeepAlive(places)
		layoutCheck(b, h.db.Close())
		b.StartTimer()
	}
	b.ReportMetric(held/float64(*layoutJobs), "heapB/job")
}

// benchHeads reads metadata and payloads of one queue in line order, a take
// at a time, until the line is at its end.
func (k layoutKey) benchHeads(b *testing.B, dir string) {
	h := layoutOpen(b, dir)
	x, _ := k.load(b, h)
	layoutCheck(b, h.db.Close())
	const queue = "webhooks-0"
	line := &x.queues[queue].lines[0].jobs
	var meta, body, misses float64
	for b.Loop() {
		b.StopTimer()
		h := layoutOpen(b, dir)
		before := layoutMisses(h)
		b.StartTimer()
		for cur, left := line.start(), line.len(); left > 0; {
			var keys, refs [][]byte
			for ; left > 0 && len(keys) < layoutTake; left-- {
				p, _ := cur.item()
				keys, refs = append(keys, k.key(queue, p)), append(refs, payloadKey(nil, p.ID))
				cur.next()
			}
			meta += layoutRead(b, h, keys)
			body += layoutRead(b, h, refs)
		}
		b.StopTimer()
		misses += layoutMisses(h) - before
		layoutCheck(b, h.db.Close())
		b.StartTimer()
	}
	n := float64(line.len()) * float64(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/job")
	b.ReportMetric(meta/n, "metaB/job")
	b.ReportMetric(body/n, "bodyB/job")
	b.ReportMetric(1000*misses/n, "blocks/1000")
}

// layoutRead looks keys up as handle.seekEach does and returns how many bytes
// did not come from the cache.
func layoutRead(b *testing.B, h *handle, keys [][]byte) float64 {
	slices.SortFunc(keys, slices.Compare)
	it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: keys[0][:1], UpperBound: []byte{keys[0][0] + 1}})
	layoutCheck(b, err)
	at := false
	for _, key := range keys {
		if !at || string(it.Key()) != string(key) {
			at = it.SeekGE(key)
		}
		if !at || string(it.Key()) != string(key) || len(it.Value()) == 0 {
			b.Fatalf("%x is not there", key)
		}
		at = it.Next()
	}
	s := it.Stats().InternalStats
	layoutCheck(b, it.Close())
	return float64(s.BlockBytes - s.BlockBytesInCache)
}

// benchByID reads 20,000 jobs by id, at random, and deletes them, in a batch
// that is dropped. A settle spares the read: leased jobs are in memory.
func (k layoutKey) benchByID(b *testing.B, dir string) {
	h := layoutOpen(b, dir)
	x, places := k.load(b, h)
	layoutCheck(b, h.db.Close())
	ids := slices.Collect(func(yield func(job.ID) bool) {
		x.list(&store.Filter{}, yield)
	})
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	ids = ids[:min(len(ids), 20_000)]
	h = layoutOpen(b, dir)
	before := layoutMisses(h)
	for b.Loop() {
		batch := h.db.NewBatch()
		for _, id := range ids {
			key := jobKey(nil, id)
			if k.disk {
				place, err := h.get(layoutIDKey(id))
				layoutCheck(b, err)
				key = append(place, id[:]...)
				_ = batch.Delete(layoutIDKey(id), nil)
			} else if k.order {
				p := places[id]
				key = k.key(x.order[p.queue].name, rule.Pos{Seq: p.seq, Priority: p.priority, Band: p.band, ID: id})
			}
			value, err := h.get(key)
			layoutCheck(b, err)
			if value == nil {
				b.Fatalf("job %s is not there", id)
			}
			_ = batch.Delete(key, nil)
			_ = batch.Delete(payloadKey(nil, id), nil)
		}
		layoutCheck(b, batch.Close())
	}
	n := float64(len(ids)) * float64(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/job")
	b.ReportMetric(1000*(layoutMisses(h)-before)/n, "blocks/1000")
	layoutCheck(b, h.db.Close())
}

// layoutLife is how happy lives are written: put, take, settle.
type layoutLife struct {
	size    int    // payload bytes
	inside  bool   // the payload is inside the metadata value
	listing string // "memory", "disk", or none
}

// BenchmarkLayoutPayload writes lives with the payload apart or inside.
func BenchmarkLayoutPayload(b *testing.B) {
	for _, size := range []int{128, 1 << 10, 16 << 10} {
		for _, place := range []string{"apart", "inside"} {
			layoutLife{size: size, inside: place == "inside"}.bench(b, fmt.Sprintf("%dB/%s", size, place))
		}
	}
}

// BenchmarkLayoutListing writes lives with the listing in memory or on disk.
func BenchmarkLayoutListing(b *testing.B) {
	for _, place := range []string{"memory", "disk"} {
		layoutLife{size: 128, listing: place}.bench(b, place)
	}
}

// bench runs lives in batches, each job right after it came ("at-once"), or
// only when all the others are waiting too.
func (l layoutLife) bench(b *testing.B, name string) {
	jobs := layoutMixes[0].jobs(min(*layoutJobs, layoutBytes/l.size))
	for part, atOnce := range map[string]int{"at-once": layoutBatch, "waiting": len(jobs)} {
		b.Run(name+"/"+part, func(b *testing.B) {
			keys := 0
			for b.Loop() {
				b.StopTimer()
				h, rnd, list := layoutOpen(b, b.TempDir()), rand.NewChaCha8([32]byte{}), sorted[listed]{}
				b.StartTimer()
				for part := range slices.Chunk(jobs, atOnce) {
					for _, state := range []job.State{job.Ready, job.Leased, job.Done} {
						layoutCommit(b, h, part, func(batch *pebble.Batch, j *job.Job) {
							l.write(j, state, rnd, &list, func(key, value []byte) {
								if keys++; value == nil {
									_ = batch.Delete(key, nil)
								} else {
									_ = batch.Set(key, value, nil)
								}
							})
						})
					}
				}
				b.StopTimer()
				layoutReport(b, h, len(jobs))
				b.StartTimer()
			}
			b.ReportMetric(float64(keys)/float64(len(jobs)*b.N), "keys/job")
			b.ReportMetric(float64(len(jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// write puts, takes or settles (and forgets) a job; a nil value deletes.
func (l layoutLife) write(j *job.Job, to job.State, rnd *rand.ChaCha8, list *sorted[listed], set func(key, value []byte)) {
	var value, body []byte
	if to != job.Done {
		t := *j
		if t.State = to; to == job.Leased {
			t.DequeuedAt, t.Deliveries = j.Created+1000, 1
			t.Leases = []job.Lease{{Holder: "a/0123456789abcdef", Since: t.DequeuedAt}}
			copy(t.Leases[0].Token[:], j.ID[:])
		}
		value = appendJob(nil, &t)
	}
	if to == job.Ready || l.inside && to == job.Leased {
		body = make([]byte, l.size)
		_, _ = rnd.Read(body)
	}
	if l.inside {
		value = append(value, body...)
	} else if to != job.Leased {
		set(payloadKey(nil, j.ID), body)
	}
	set(jobKey(nil, j.ID), value)
	entry, typ := listed{id: j.ID, state: to}, []byte{0, 0, 0, 0}
	switch {
	case l.listing == "disk":
		if to != job.Ready {
			set(layoutListingKey(0, to-1, j.ID), nil)
		}
		if to != job.Done {
			set(layoutListingKey(0, to, j.ID), typ)
		}
	case l.listing == "memory" && to == job.Ready:
		list.insert(entry)
	case l.listing == "memory" && to == job.Leased:
		list.at(entry).state = to
	case l.listing == "memory":
		list.remove(entry)
	}
}

// BenchmarkLayoutPage reads list pages of 50 ids of one queue of eight, and
// counts by walking ("all"). Nearly all jobs are ready; 60 jobs of the queue,
// evenly spread, are dead.
func BenchmarkLayoutPage(b *testing.B) {
	h, x := layoutOpen(b, b.TempDir()), newIndex(newNames())
	defer func() { layoutCheck(b, h.db.Close()) }()
	jobs := layoutMixes[2].jobs(*layoutJobs)
	for i := 0; i < len(jobs); i += max(len(jobs)/60/8*8, 8) {
		jobs[i].State = job.Dead
	}
	layoutCommit(b, h, jobs, func(batch *pebble.Batch, j *job.Job) {
		x.move(nil, j)
		_ = batch.Set(layoutListingKey(x.of(j.Queue).num, j.State, j.ID), []byte{0, 0, 0, 0}, nil)
	})
	layoutCheck(b, h.db.Flush())
	for _, c := range []struct {
		name  string
		state job.State
		n     int
	}{{"common", job.Ready, 50}, {"rare", job.Dead, 50}, {"all", job.Ready, len(jobs)}} {
		f := store.Filter{Queues: []string{"webhooks-0"}, States: []job.State{c.state}}
		num := x.of("webhooks-0").num
		lo, hi := layoutListingKey(num, c.state, job.ID{}), layoutListingKey(num, c.state+1, job.ID{})
		b.Run(c.name+"/memory", func(b *testing.B) {
			for b.Loop() {
				left := c.n
				x.list(&f, func(job.ID) bool { left--; return left > 0 })
			}
		})
		b.Run(c.name+"/disk", func(b *testing.B) {
			for b.Loop() {
				it, err := h.db.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
				layoutCheck(b, err)
				left := c.n
				for ok := it.First(); ok && left > 0; ok = it.Next() {
					left--
				}
				layoutCheck(b, it.Close())
			}
		})
		b.Run(c.name+"/counters", func(b *testing.B) {
			for b.Loop() {
				x.counted(&f)
			}
		})
	}
}

// layoutLine is an in-memory line.
type layoutLine interface {
	insert(rule.Pos)
	pop()
}

type layoutChunks struct{ sorted[rule.Pos] }

func (l *layoutChunks) pop() { p, _ := l.first(); l.remove(p) }

type layoutSlice []rule.Pos

func (l *layoutSlice) pop() { *l = (*l)[1:] }
func (l *layoutSlice) insert(p rule.Pos) {
	i := sort.Search(len(*l), func(k int) bool { return !(*l)[k].Before(p) })
	*l = slices.Insert(*l, i, p)
}

type layoutHeapLine struct{ list layoutSlice }

func (l *layoutHeapLine) Len() int           { return len(l.list) }
func (l *layoutHeapLine) Less(i, j int) bool { return l.list[i].Before(l.list[j]) }
func (l *layoutHeapLine) Swap(i, j int)      { l.list[i], l.list[j] = l.list[j], l.list[i] }
func (l *layoutHeapLine) Push(p any)         { l.list = append(l.list, p.(rule.Pos)) }
func (l *layoutHeapLine) Pop() any           { l.list = l.list[:len(l.list)-1]; return nil }
func (l *layoutHeapLine) insert(p rule.Pos)  { heap.Push(l, p) }
func (l *layoutHeapLine) pop()               { heap.Pop(l) }

type layoutTree struct {
	*btreemap.BTreeMap[rule.Pos, struct{}]
}

func (l layoutTree) insert(p rule.Pos) { l.ReplaceOrInsert(p, struct{}{}) }
func (l layoutTree) pop()              { l.DeleteMin() }

func layoutCompare(p, q rule.Pos) int { return int(bit(q.Before(p))) - int(bit(p.Before(q))) }

func layoutFill(kind string, priorities uint16) (l layoutLine, seq int64) {
	switch kind {
	case "chunks":
		l = &layoutChunks{}
	case "slice":
		l = &layoutSlice{}
	case "heap":
		l = &layoutHeapLine{}
	case "btree":
		l = layoutTree{btreemap.New[rule.Pos, struct{}](64, layoutCompare)}
	}
	for ; seq < int64(*layoutJobs); seq++ {
		l.insert(rule.Pos{Seq: seq, Priority: uint16(seq) % priorities})
	}
	return l, seq
}

// BenchmarkLayoutLine compares structures for a line that holds all the jobs:
// end and random insert one more, front takes the first and puts one at the
// end, fill makes the line in order or by 16 priorities in turn.
func BenchmarkLayoutLine(b *testing.B) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, kind := range []string{"chunks", "slice", "heap", "btree"} {
		for part, do := range map[string]func(l layoutLine, seq int64){
			"end":   func(l layoutLine, seq int64) { l.insert(rule.Pos{Seq: seq}) },
			"front": func(l layoutLine, seq int64) { l.pop(); l.insert(rule.Pos{Seq: seq}) },
			"random": func(l layoutLine, seq int64) {
				l.insert(rule.Pos{Seq: rnd.Int64N(seq), ID: job.ID{byte(seq), byte(seq >> 8), byte(seq >> 16)}})
			},
		} {
			b.Run(kind+"/"+part, func(b *testing.B) {
				l, seq := layoutFill(kind, 1)
				for b.Loop() {
					do(l, seq)
					seq++
				}
			})
		}
		for _, priorities := range []uint16{1, 16} {
			if kind == "slice" && priorities > 1 {
				continue // it would move half the line for every job
			}
			b.Run(fmt.Sprintf("%s/fill-%d", kind, priorities), func(b *testing.B) {
				var held float64
				for b.Loop() {
					b.StopTimer()
					before := layoutHeap()
					b.StartTimer()
					l, _ := layoutFill(kind, priorities)
					b.StopTimer()
					held = layoutHeap() - before
					runtime.KeepAlive(l)
					b.StartTimer()
				}
				b.ReportMetric(held/float64(*layoutJobs), "heapB/job")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N**layoutJobs), "ns/job")
			})
		}
	}
}
