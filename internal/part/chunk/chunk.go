// Package chunk is the part for records that come in bulk. What inputs bring is gathered
// in chunks: a chunk is one payload, shared by a job for each of its routes, which is due
// when the chunk is flushed. Until then the payload grows. What a route does from there
// on, its retries and its death, is that of any job (pipeline.md).
//
// Its rows are the cursors of inputs, written with the records that were read. In memory
// are the chunks that are open, which a start closes, and what the chunks hold that are not
// done, made from the jobs.
package chunk

import (
	"bytes"
	"context"
	"sync"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// Chunks are the open chunks of a server.
type Chunks struct {
	engine *engine.Engine
	open   map[string]*open // by the key of an Append
	staged map[string]*open // changes of it by the transaction; nil = closed

	lost []lost // pushed out for want of room, by the transaction

	mu    sync.Mutex // guards held, freed, told
	held  holdings
	freed chan struct{}                  // nil = nobody waits for it
	told  map[string]func(records int64) // by queue: who hears of chunks that were pushed out
	moves []move                         // of jobs, by the transaction
}

// open is a chunk that takes in more. A value is never changed in place.
type open struct {
	payload job.ID
	jobs    []job.ID
	size    int
	due     job.Millis
}

// Append is what an input brings at once.
type Append struct {
	Key     string // records of one key come into one chunk: those of an input with a tag
	Records []byte // not kept: who appends may use them for something else then
	// Routes are the jobs of a new chunk, one for each output: Queue, Type, Extras. Door,
	// ReadyAt and the payload are set here. Nil = nobody wants the records, only the
	// cursors are kept.
	Routes  []job.Job
	Flush   job.Millis    // how long a chunk stays open
	Max     int           // bytes at which it is closed before
	Cursors []*job.Cursor // how far the input has read with these records
	Gone    []string      // keys of cursors that are not needed any more
}

// Taken is what became of an Append.
type Taken struct {
	Chunk job.ID // its payload
	// Refused are the routes that did not get the records, by their place: mostly because
	// their queues are full and nothing in them can leave.
	Refused []int
}

// Join implements engine.Part.
func (s *Chunks) Join(e *engine.Engine) engine.Hooks {
	s.engine = e
	return engine.Hooks{
		Load:     s.load,
		Begin:    s.begin,
		Wrote:    s.wrote,
		Follows:  func(j *job.Job) bool { return j.Door == job.DoorPipeline },
		Stepped:  s.stepped,
		Publish:  s.publish,
		Announce: s.announce,
		Show:     show,
	}
}

func (s *Chunks) begin() {
	s.staged = map[string]*open{}
	s.moves, s.lost = s.moves[:0], nil
}

func (s *Chunks) publish() {
	for key, o := range s.staged {
		if o == nil {
			delete(s.open, key)
		} else {
			s.open[key] = o
		}
	}
	s.forgetClosed()
	s.mu.Lock()
	defer s.mu.Unlock()
	less := false
	for _, m := range s.moves {
		s.held.move(m.old, m.new)
		less = less || counts(m.old) && !counts(m.new)
	}
	if less && s.freed != nil {
		close(s.freed)
		s.freed = nil
	}
}

// forgetClosed drops chunks that are due: most keys are seen again before it comes to that.
func (s *Chunks) forgetClosed() {
	if len(s.staged) == 0 {
		return
	}
	now := s.engine.Now()
	for key, o := range s.open {
		if o.due <= now {
			delete(s.open, key)
		}
	}
}

// load finds no chunk open, and what the jobs of all pipelines hold.
func (s *Chunks) load(v store.Reader) error {
	s.open, s.staged, s.moves = map[string]*open{}, map[string]*open{}, nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = holdings{}
	doors, err := store.Rows[*job.DoorSetting](v, "", store.All)
	if err != nil {
		return err
	}
	for _, d := range doors {
		if d.Door != job.DoorPipeline {
			continue
		}
		list, err := v.List(store.Filter{Queues: []string{d.Name}, States: []job.State{job.Scheduled, job.Ready, job.Leased}}, store.All)
		if err != nil {
			return err
		}
		for _, j := range list {
			s.held.move(nil, j)
		}
	}
	return nil
}

// Append takes records in, all of the list or, with an error, nothing. They survive a power
// cut when it returns (I5).
func (s *Chunks) Append(ctx context.Context, list []Append) ([]Taken, error) {
	size := 0
	for i := range list {
		size += len(list[i].Records)
	}
	out := make([]Taken, len(list))
	err := s.engine.Do(ctx, size, func(tx *engine.Tx) error {
		if tx.DiskLow() {
			return engine.ErrDiskLow
		}
		for i := range list {
			t, err := s.take(tx, &list[i])
			if err != nil {
				return err
			}
			out[i] = t
		}
		tx.Store().Durable()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Chunks) take(tx *engine.Tx, a *Append) (t Taken, err error) {
	if len(a.Records) > 0 && len(a.Routes) > 0 {
		grown, err := s.grow(tx, a)
		if err == nil && grown == nil {
			grown, t.Refused, err = s.begun(tx, a)
		}
		if err != nil {
			return t, err
		}
		if s.staged[a.Key] = grown; grown != nil {
			t.Chunk = grown.payload
		}
	}
	for _, c := range a.Cursors {
		if err := tx.Store().Set(c); err != nil {
			return t, err
		}
	}
	for _, key := range a.Gone {
		if err := tx.Store().Unset(job.Cursors, key); err != nil {
			return t, err
		}
	}
	return t, nil
}

// of is the chunk that is open under a key, with what the transaction did; nil = none.
func (s *Chunks) of(key string) *open {
	if o, ok := s.staged[key]; ok {
		return o
	}
	return s.open[key]
}

// grow adds records to the chunk that is open under their key, for all its routes; nil =
// they need a new one.
func (s *Chunks) grow(tx *engine.Tx, a *Append) (*open, error) {
	o := s.of(a.Key)
	if o == nil || o.size+len(a.Records) > a.Max || len(o.jobs) != len(a.Routes) {
		return nil, nil
	}
	for i := range a.Routes {
		if err := tx.MakeRoom(a.Routes[i].Queue, int64(len(a.Records))); err != nil {
			return nil, fatal(err)
		}
	}
	was, grown := make([]*job.Job, len(o.jobs)), make([]*job.Job, len(o.jobs))
	for i, id := range o.jobs {
		j, err := tx.Store().Get(id)
		if err != nil {
			return nil, err
		}
		if j == nil || j.Queue != a.Routes[i].Queue || j.Payload != o.payload {
			return nil, nil // it was pushed out, moved or edited
		}
		was[i] = j
		if grown[i], err = rule.Grow(j, uint32(len(a.Records))); err != nil {
			return nil, nil // it was given out before its time
		}
	}
	if err := tx.Store().AppendPayload(o.payload, a.Records); err != nil {
		return nil, err
	}
	for i := range grown {
		if err := tx.Write(was[i], grown[i]); err != nil {
			return nil, err
		}
	}
	return &open{o.payload, o.jobs, o.size + len(a.Records), o.due}, nil
}

// fatal is an error that ends the transaction, nil for a refusal.
func fatal(err error) error {
	if engine.Fatal(err) {
		return err
	}
	return nil
}

// begun opens a chunk for records, which is flushed at once if it is full. Routes whose
// queues are full do not get them.
func (s *Chunks) begun(tx *engine.Tx, a *Append) (o *open, refused []int, err error) {
	o = &open{size: len(a.Records), due: tx.Now()}
	if o.size < a.Max {
		o.due = o.due.Add(a.Flush)
	}
	payload := bytes.Clone(a.Records) // which the store keeps in memory for those who take it soon
	for i := range a.Routes {
		n := engine.NewJob{Job: a.Routes[i], Payload: payload, Shares: o.payload}
		n.Job.Door, n.Job.ReadyAt = job.DoorPipeline, o.due
		var added [1]engine.Added
		err := tx.Put([]engine.NewJob{n}, nil, added[:])
		if engine.Fatal(err) {
			return nil, nil, err
		}
		if err != nil {
			refused = append(refused, i)
			continue
		}
		if o.jobs = append(o.jobs, added[0].ID); len(o.jobs) == 1 {
			o.payload = added[0].Job.Payload
		}
	}
	if o.size >= a.Max {
		return nil, refused, nil
	}
	return o, refused, nil
}

// Cursors returns how far an input has read, by the names of its sources.
func (s *Chunks) Cursors(ctx context.Context, input string) (list []*job.Cursor, err error) {
	err = s.engine.View(ctx, func(v store.Reader) error {
		list, err = store.Rows[*job.Cursor](v, job.CursorKey(input, ""), store.All)
		for i, c := range list {
			if c.Input != input {
				list = list[:i]
				break
			}
		}
		return err
	})
	return list, err
}
