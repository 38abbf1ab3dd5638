package measure

import (
	"context"
	"errors"
	"os"
	"runtime"
	"time"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// meter measures the cost of what happens between start and read.
type meter struct {
	server system.Server
	since  time.Duration
	before reading
}

type reading struct {
	server, generator gauge.Usage
	machine           time.Duration // processor time of everything
}

func startMeter(s system.Server) (*meter, error) {
	before, err := readUsage(s)
	return &meter{server: s, since: gauge.Now(), before: before}, err
}

func readUsage(s system.Server) (r reading, err error) {
	var wrong [3]error
	r.server, wrong[0] = system.TreeUsage(s.PIDs())
	r.generator, wrong[1] = gauge.ProcessUsage(os.Getpid())
	r.machine, wrong[2] = gauge.MachineCPU()
	return r, errors.Join(wrong[:]...)
}

func (m *meter) read(jobs int64) (*result.Cost, error) {
	took := (gauge.Now() - m.since).Seconds()
	after, err := readUsage(m.server)
	if err != nil || jobs == 0 {
		return nil, err
	}
	server, generator := after.server.Sub(m.before.server), after.generator.Sub(m.before.generator)
	other := max(after.machine-m.before.machine-server.CPU-generator.CPU, 0)
	per1000 := 1000 / float64(jobs)
	return &result.Cost{
		ServerCPU:    server.CPU.Seconds() * per1000,
		WrittenBytes: float64(server.WrittenBytes) * per1000,
		GeneratorCPU: generator.CPU.Seconds() * per1000,
		OtherShare:   other.Seconds() / took / float64(runtime.NumCPU()),
	}, nil
}

// quiet waits until a server has worked off what an earlier measurement left:
// a tenth of a second with at most a tick of processor time, or quietMax.
func quiet(ctx context.Context, s system.Server) error {
	const quietMax = 3 * time.Second
	const step, tick = 100 * time.Millisecond, 10 * time.Millisecond
	for end := gauge.Now() + quietMax; gauge.Now() < end; {
		before, err := system.TreeUsage(s.PIDs())
		if err != nil {
			return err
		}
		if err := gauge.Wait(ctx, step); err != nil {
			return err
		}
		after, err := system.TreeUsage(s.PIDs())
		if err != nil {
			return err
		}
		if after.CPU-before.CPU <= tick {
			return nil
		}
	}
	return nil
}
