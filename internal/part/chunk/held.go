package chunk

import (
	"maps"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
	"github.com/reprisehq/reprise/internal/rule"
)

// Held is what is not done of what an input brought.
type Held struct {
	Chunks int   // payloads
	Bytes  int64 // of them, each once
	Routes int   // jobs
	Busy   int   // of those, how many run
}

// holdings are the payloads that jobs of pipelines refer to, and what that comes to for each input.
type holdings struct {
	payloads map[job.ID]*shared
	inputs   map[string]Held
}

// shared is a payload and how many open jobs refer to it.
type shared struct {
	refs int
	size uint32
}

// move is what a transaction made of a job.
type move struct{ old, new *job.Job }

func (s *Chunks) wrote(_ *engine.Tx, old, j *job.Job) error {
	if old != nil && old.Door == job.DoorPipeline || j != nil && j.Door == job.DoorPipeline {
		s.moves = append(s.moves, move{old, j})
	}
	return nil
}

// lost is how many records were pushed out of a queue at once.
type lost struct {
	queue   string
	records int64
}

// stepped counts the records of a chunk that is pushed out for want of room: it leaves with
// its payload (I9).
func (s *Chunks) stepped(tx *engine.Tx, _ rule.Command, old *job.Job, eff rule.Effect) error {
	if eff.Left == nil || eff.Left.Reason != job.Evicted {
		return nil
	}
	body := tx.Store().Peek(old.Payload)
	if body == nil {
		var err error // of one that cannot be read nothing is known
		if body, err = s.engine.Payload(old.Payload); engine.Fatal(err) && job.KindOf(err) != job.Corrupt {
			return err
		}
	}
	n, _, _ := record.Count(body)
	s.lost = append(s.lost, lost{old.Queue, int64(n)})
	return nil
}

// OnEvicted has f hear how many records of a queue were pushed out for want of room, when
// that is on disk. f must not wait; nil = nobody hears.
func (s *Chunks) OnEvicted(queue string, f func(records int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string]func(int64){}
	}
	if s.told[queue] = f; f == nil {
		delete(s.told, queue)
	}
}

// announce tells of what was pushed out by the transaction.
func (s *Chunks) announce() func(unknown bool) {
	if s.lost == nil {
		return nil
	}
	list := s.lost
	s.lost = nil
	return func(unknown bool) {
		for _, l := range list {
			s.mu.Lock()
			f := s.told[l.queue]
			s.mu.Unlock()
			if f != nil && !unknown {
				f(l.records)
			}
		}
	}
}

// move follows a job. The input is its type.
func (h *holdings) move(old, j *job.Job) {
	if h.payloads == nil {
		h.payloads, h.inputs = map[job.ID]*shared{}, map[string]Held{}
	}
	if counts(old) && (!counts(j) || old.Payload != j.Payload || old.PayloadSize != j.PayloadSize || old.State != j.State) {
		h.leave(old)
	} else if counts(old) {
		return
	}
	if counts(j) {
		h.come(j)
	}
}

func counts(j *job.Job) bool { return j != nil && j.Door == job.DoorPipeline && j.State.Open() }

func (h *holdings) come(j *job.Job) {
	in, p := h.inputs[j.Type], h.payloads[j.Payload]
	if p == nil {
		p = &shared{size: j.PayloadSize}
		h.payloads[j.Payload] = p
		in.Chunks++
		in.Bytes += int64(p.size)
	}
	if by := int64(j.PayloadSize) - int64(p.size); by > 0 { // it grew
		in.Bytes += by
		p.size = j.PayloadSize
	}
	p.refs++
	in.Routes++
	if j.State == job.Leased {
		in.Busy++
	}
	h.inputs[j.Type] = in
}

func (h *holdings) leave(j *job.Job) {
	in, p := h.inputs[j.Type], h.payloads[j.Payload]
	if p == nil {
		return
	}
	if p.refs--; p.refs == 0 {
		delete(h.payloads, j.Payload)
		in.Chunks--
		in.Bytes -= int64(p.size)
	}
	in.Routes--
	if j.State == job.Leased {
		in.Busy--
	}
	if h.inputs[j.Type] = in; in.Routes == 0 {
		delete(h.inputs, j.Type)
	}
}

// Freed is closed when any input holds less than now.
func (s *Chunks) Freed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.freed == nil {
		s.freed = make(chan struct{})
	}
	return s.freed
}

// Held is what is not done, by input.
func (s *Chunks) Held() map[string]Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.held.inputs)
}
