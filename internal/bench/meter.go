package bench

import (
	"context"
	"os"
	"runtime"
	"time"
)

// Cost is what a number of jobs took from the machine.
type Cost struct {
	Phase         string  `json:"phase"`
	Of            string  `json:"of"`
	Jobs          int64   `json:"jobs"`
	Seconds       float64 `json:"seconds"`
	ServerSeconds float64 `json:"server_cpu_seconds"`
	BenchSeconds  float64 `json:"bench_cpu_seconds"`
	WrittenBytes  int64   `json:"server_written_bytes"`
	// Known is false when the server is not on this machine, or the machine
	// does not say.
	Known bool `json:"known"`
}

// ServerMillisPer1000 is processor time of the server per 1,000 jobs.
func (c Cost) ServerMillisPer1000() float64 { return c.per1000(c.ServerSeconds * 1000) }

// WrittenPer1000 is bytes sent to storage per 1,000 jobs.
func (c Cost) WrittenPer1000() float64 { return c.per1000(float64(c.WrittenBytes)) }

// BenchShare is the part of all cores that the generator used.
func (c Cost) BenchShare() float64 { return c.share(c.BenchSeconds) }

// ServerShare is the part of all cores that the server used.
func (c Cost) ServerShare() float64 { return c.share(c.ServerSeconds) }

func (c Cost) per1000(v float64) float64 {
	if c.Jobs == 0 {
		return 0
	}
	return v / float64(c.Jobs) * 1000
}

func (c Cost) share(cpu float64) float64 {
	if c.Seconds == 0 {
		return 0
	}
	return cpu / c.Seconds / float64(runtime.NumCPU())
}

func (c *Cost) add(other Cost) {
	c.Jobs += other.Jobs
	c.Seconds += other.Seconds
	c.ServerSeconds += other.ServerSeconds
	c.BenchSeconds += other.BenchSeconds
	c.WrittenBytes += other.WrittenBytes
	c.Known = c.Known && other.Known
}

// meter measures the cost of what happens between start and read.
type meter struct {
	server *server
	since  time.Duration
	theirs usage
	ours   usage
	err    error
}

func startMeter(s *server) *meter {
	m := &meter{server: s, since: now()}
	m.theirs, m.ours, m.err = m.use()
	return m
}

func (m *meter) use() (theirs, ours usage, err error) {
	if ours, err = processUsage(os.Getpid()); err != nil || m.server.pid == 0 {
		return usage{}, ours, err
	}
	theirs, err = processUsage(m.server.pid)
	return theirs, ours, err
}

func (m *meter) read(jobs int64) Cost {
	c := Cost{Jobs: jobs, Seconds: (now() - m.since).Seconds()}
	theirs, ours, err := m.use()
	if m.err != nil || err != nil {
		return c
	}
	c.BenchSeconds = (ours.cpu - m.ours.cpu).Seconds()
	c.ServerSeconds = (theirs.cpu - m.theirs.cpu).Seconds()
	c.WrittenBytes = theirs.written - m.theirs.written
	c.Known = m.server.pid != 0
	return c
}

// quiet waits until the servers have stopped working off what an earlier
// measurement left (compaction, garbage), so that none pays for another: a
// tenth of a second with at most one tick of processor time, or quietMax.
func quiet(ctx context.Context, servers ...*server) error {
	const quietMax = 10 * time.Second
	const step = 100 * time.Millisecond
	for end := now() + quietMax; now() < end; {
		before := totalCPU(servers)
		if err := wait(ctx, step); err != nil {
			return err
		}
		if totalCPU(servers)-before <= clockTick {
			return nil
		}
	}
	return nil
}

func totalCPU(servers []*server) (total time.Duration) {
	for _, s := range servers {
		if s.pid == 0 {
			continue
		}
		if u, err := processUsage(s.pid); err == nil {
			total += u.cpu
		}
	}
	return total
}
