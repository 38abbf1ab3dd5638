package pipeline

import (
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
)

// InputCount is what an input brought since the start.
type InputCount struct {
	Records, Bytes atomic.Int64
	Dropped        atomic.Int64 // records whose tag no output matches
}

// OutputCount is what became of what an output was given since the start. Records count
// once for each chunk that came to such an end (reference 1.4).
type OutputCount struct {
	Records, Bytes         atomic.Int64 // delivered
	Errors                 atomic.Int64 // chunks that the target refused for good
	Retries, Retried       atomic.Int64 // chunks that are tried again, and their records
	GivenUp                atomic.Int64 // chunks whose retries are spent
	Dropped                atomic.Int64 // records that will not be delivered
	Refused                atomic.Int64 // of those, for want of room (storage.total_limit_size)
	Delivering, Deliveries atomic.Int64 // calls that go on, and all
}

// end counts what became of one chunk, or a part of one: what the target said, and the
// state in which the core left it.
func (c *OutputCount) end(o job.Outcome, now job.State, records, bytes int64, retries bool) {
	switch o {
	case job.OK:
		c.Records.Add(records)
		c.Bytes.Add(bytes)
	case job.Died:
		c.Errors.Add(1)
		c.Dropped.Add(records)
	case job.Retried:
		if now != job.Dead {
			c.Retries.Add(1)
			c.Retried.Add(records)
			return
		}
		if c.Dropped.Add(records); retries { // without retries there are none to be spent
			c.GivenUp.Add(1)
		}
	case job.Released: // comes again as if it had not been delivered
	}
}

// partly counts a chunk that the target took in part: the rest by its own outcome, each
// piece by its own, and what is in none of them is done.
func (c *OutputCount) partly(r *connect.Result, now job.State, whole size, count func([]byte) size, retries bool) {
	left := whole
	if p := r.Parts; p != nil {
		if p.Rest != nil {
			left = count(p.Rest)
		}
		done := whole
		done.sub(left)
		for i := range p.Pieces {
			s := count(p.Pieces[i].Body)
			done.sub(s)
			c.end(p.Pieces[i].Outcome, job.Dead, s.records, s.bytes, retries)
		}
		if done.records > 0 {
			c.end(job.OK, job.Done, done.records, done.bytes, retries)
		}
	}
	c.end(r.Outcome, now, left.records, left.bytes, retries)
}

// size is how much there is of something.
type size struct{ records, bytes int64 }

func (s *size) sub(o size) {
	s.records -= o.records
	s.bytes -= o.bytes
}
