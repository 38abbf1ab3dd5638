package rule

import (
	"math"

	"github.com/reprisehq/reprise/internal/job"
)

// Bucket is a token bucket on the steady clock. It knows when it will be full,
// and at which rate. The zero value is full.
type Bucket struct{ full, each int64 } // nanoseconds, and between two takes

const perMilli = 1_000_000

// follow takes over a rate that changed: as many takes are owed as before.
func (b *Bucket) follow(r job.Rate, steady job.Millis) (missing int64) {
	each := int64(math.Round(1e9 / r.PerSecond))
	missing = max(0, b.full-int64(steady)*perMilli)
	if b.each != each {
		if b.each != 0 {
			missing = int64(min(float64(missing)/float64(b.each)*float64(each), 1<<62))
		}
		*b = Bucket{full: int64(steady)*perMilli + missing, each: each}
	}
	return missing
}

// Left is how many takes the rate allows now.
func (b *Bucket) Left(r job.Rate, steady job.Millis) int {
	missing := b.follow(r, steady)
	return int(max(0, int64(r.BurstValue())-(missing+b.each-1)/b.each))
}

// Take counts one take.
func (b *Bucket) Take(r job.Rate, steady job.Millis) { b.takeSome(r, 1, steady) }

// Next is when the rate allows the next take: now, if it does.
func (b *Bucket) Next(r job.Rate, steady job.Millis) job.Millis { return b.nextSome(r, 1, steady) }

func (b *Bucket) takeSome(r job.Rate, n int64, steady job.Millis) {
	b.full = int64(steady)*perMilli + b.follow(r, steady) + n*b.each
}

func (b *Bucket) nextSome(r job.Rate, n int64, steady job.Millis) job.Millis {
	wait := max(0, b.follow(r, steady)-(int64(r.BurstValue())-n)*b.each)
	return steady.Add(job.Millis((wait + perMilli - 1) / perMilli))
}

// Credit is what a retry budget has left: a share of the takes so far, and a
// floor that comes with time. The zero value is a full floor.
type Credit struct {
	earned float64
	floor  Bucket
}

// creditTakes is how many takes the share remembers at most.
const creditTakes = 1000

func floorRate(b *job.RetryBudget) job.Rate {
	return job.Rate{PerSecond: b.Floor, Burst: max(1, int(b.Floor))}
}

// Left is how many retries may be taken now.
func (c *Credit) Left(b *job.RetryBudget, steady job.Millis) int {
	n := int(c.earned + 1e-9)
	if b.Floor > 0 {
		n += c.floor.Left(floorRate(b), steady)
	}
	return n
}

// Take counts a take; every one earns its share, a retry costs one.
func (c *Credit) Take(b *job.RetryBudget, retried bool, steady job.Millis) {
	if retried {
		if c.earned+1e-9 >= 1 {
			c.earned--
		} else if b.Floor > 0 {
			c.floor.Take(floorRate(b), steady)
		}
	}
	c.earned = min(max(c.earned, 0)+b.Share, b.Share*creditTakes)
}

// Next is when the floor allows the next retry; 0 = never by time alone.
func (c *Credit) Next(b *job.RetryBudget, steady job.Millis) job.Millis {
	if b.Floor == 0 {
		return 0
	}
	return c.floor.Next(floorRate(b), steady)
}

// Room is how many more jobs may be taken from a queue now.
type Room struct {
	All     int
	Retried int // of them, of jobs that failed before (strict groups are exempt)
}

// Take counts a job against the room, and reports whether there was any.
func (r *Room) Take(c Class) bool {
	if r.All <= 0 || c.Retried && r.Retried <= 0 {
		return false
	}
	r.All--
	if c.Retried {
		r.Retried--
	}
	return true
}
