package bench

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// Cost is what a number of jobs took from the machine.
type Cost struct {
	Phase         string  `json:"phase"`
	Of            string  `json:"of"`
	Jobs          int64   `json:"jobs"`
	Seconds       float64 `json:"seconds"`
	ServerSeconds float64 `json:"server_cpu_seconds"`
	BenchSeconds  float64 `json:"bench_cpu_seconds"`
	OtherSeconds  float64 `json:"other_cpu_seconds"` // all else on the machine
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

// OtherShare is the part of all cores that went to neither: a figure from a
// busy machine is worth less.
func (c Cost) OtherShare() float64 { return c.share(c.OtherSeconds) }

// cpuPerJob is the processor seconds of server and generator together.
func (c Cost) cpuPerJob() float64 { return c.per1000(c.ServerSeconds+c.BenchSeconds) / 1000 }

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
	c.OtherSeconds += other.OtherSeconds
	c.WrittenBytes += other.WrittenBytes
	c.Known = c.Known && other.Known
}

// meter measures the cost of what happens between start and read.
type meter struct {
	server *server
	since  time.Duration
	before meterReading
	err    error
}

type meterReading struct {
	server, bench gauge.Usage
	machine       time.Duration // processor time of everything
}

func startMeter(s *server) *meter {
	m := &meter{server: s, since: gauge.Now()}
	m.before, m.err = m.reading()
	return m
}

func (m *meter) reading() (r meterReading, err error) {
	if m.server.pid == 0 {
		return r, errors.New("the server is not a child of the bench")
	}
	var wrong [3]error
	r.server, wrong[0] = gauge.ProcessUsage(m.server.pid)
	r.bench, wrong[1] = gauge.ProcessUsage(os.Getpid())
	r.machine, wrong[2] = gauge.MachineCPU()
	return r, errors.Join(wrong[:]...)
}

func (m *meter) read(jobs int64) Cost {
	c := Cost{Jobs: jobs, Seconds: (gauge.Now() - m.since).Seconds()}
	after, err := m.reading()
	if m.err != nil || err != nil {
		return c
	}
	c.Known = true
	c.BenchSeconds = after.bench.Sub(m.before.bench).CPU.Seconds()
	server := after.server.Sub(m.before.server)
	c.ServerSeconds = server.CPU.Seconds()
	c.OtherSeconds = max((after.machine-m.before.machine).Seconds()-c.BenchSeconds-c.ServerSeconds, 0)
	c.WrittenBytes = server.WrittenBytes
	return c
}

// quiet waits until the servers have stopped working off what an earlier
// measurement left (compaction, garbage), so that none pays for another: a
// tenth of a second with at most one tick of processor time, or quietMax.
func quiet(ctx context.Context, servers ...*server) error {
	const quietMax = 10 * time.Second
	const step = 100 * time.Millisecond
	for end := gauge.Now() + quietMax; gauge.Now() < end; {
		before := totalCPU(servers)
		if err := gauge.Wait(ctx, step); err != nil {
			return err
		}
		if totalCPU(servers)-before <= gauge.ClockTick {
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
		if u, err := gauge.ProcessUsage(s.pid); err == nil {
			total += u.CPU
		}
	}
	return total
}
