package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/bench/result"
	"github.com/reprisehq/reprise/bench/system"
)

// meter measures the cost of what happens between start and read.
type meter struct {
	server system.Server
	since  time.Duration
	before reading
}

type reading struct {
	server, generator system.Usage
	machine           time.Duration // processor time of everything
}

func startMeter(s system.Server) (*meter, error) {
	before, err := readUsage(s)
	return &meter{server: s, since: now(), before: before}, err
}

func readUsage(s system.Server) (r reading, err error) {
	var wrong [3]error
	r.server, wrong[0] = system.TreeUsage(s.PIDs())
	r.generator, wrong[1] = system.SelfUsage()
	r.machine, wrong[2] = machineCPU()
	return r, errors.Join(wrong[:]...)
}

func (m *meter) read(jobs int64) (*result.Cost, error) {
	took := (now() - m.since).Seconds()
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

// machineCPU is the time that the processors have not been idle, for whomever:
// the first line of /proc/stat without its two fields of idle time, and without
// those after the eighth, which repeat earlier ones.
func machineCPU() (total time.Duration, err error) {
	const idle, waiting, used = 4, 5, 8
	const clockTick = 10 * time.Millisecond
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) <= used || fields[0] != "cpu" {
		return 0, errors.New("/proc/stat is not as expected")
	}
	for i := 1; i <= used; i++ {
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		if i != idle && i != waiting {
			total += time.Duration(ticks) * clockTick
		}
	}
	return total, nil
}

// quiet waits until a server has worked off what an earlier measurement left:
// a tenth of a second with at most a tick of processor time, or quietMax.
func quiet(ctx context.Context, s system.Server) error {
	const quietMax = 3 * time.Second
	const step, tick = 100 * time.Millisecond, 10 * time.Millisecond
	for end := now() + quietMax; now() < end; {
		before, err := system.TreeUsage(s.PIDs())
		if err != nil {
			return err
		}
		if err := wait(ctx, step); err != nil {
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
