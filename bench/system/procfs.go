package system

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, the same on every Linux
// that Go runs on.
const clockTick = 10 * time.Millisecond

// Usage is what processes have used since they began.
type Usage struct {
	CPU          time.Duration
	WrittenBytes int64 // caused to be sent to storage
}

// Sub is what was used since an earlier reading.
func (u Usage) Sub(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.WrittenBytes - before.WrittenBytes}
}

// TreeUsage adds up processes and all their descendants. A child that has
// ended counts with its parent: the kernel adds the processor time (cutime,
// cstime) and the written bytes of a child that was waited for to its parent.
func TreeUsage(roots []int) (Usage, error) {
	var sum Usage
	err := eachInTree(roots, func(pid int, stat []string) error {
		const utime, cstime = 11, 14 // fields 14 to 17 of the whole line
		for _, field := range stat[utime : cstime+1] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return fmt.Errorf("/proc/%d/stat: %w", pid, err)
			}
			sum.CPU += time.Duration(ticks) * clockTick
		}
		written, err := procField(pid, "io", "write_bytes")
		sum.WrittenBytes += written
		return err
	})
	return sum, err
}

// TreeMemory is the memory that processes and their descendants have in RAM,
// in bytes; a page that several share counts once (Pss).
func TreeMemory(roots []int) (int64, error) {
	var sum int64
	err := eachInTree(roots, func(pid int, _ []string) error {
		kib, err := procField(pid, "smaps_rollup", "Pss")
		sum += kib << 10
		return err
	})
	return sum, err
}

// SelfUsage is that of this process alone, not of the servers it started.
func SelfUsage() (Usage, error) {
	pid := os.Getpid()
	stat, err := readStat(pid)
	if err != nil {
		return Usage{}, err
	}
	user, err1 := strconv.ParseInt(stat[11], 10, 64)
	system, err2 := strconv.ParseInt(stat[12], 10, 64)
	written, err3 := procField(pid, "io", "write_bytes")
	return Usage{time.Duration(user+system) * clockTick, written}, errors.Join(err1, err2, err3)
}

// eachInTree calls f for each process of the trees. One that ends meanwhile is
// left out.
func eachInTree(roots []int, f func(pid int, stat []string) error) error {
	children := map[int][]int{}
	stats := map[int][]string{}
	paths, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		stat, err := readStat(pid)
		if err != nil {
			continue
		}
		parent, err := strconv.Atoi(stat[1])
		if err != nil {
			return fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		stats[pid] = stat
		children[parent] = append(children[parent], pid)
	}
	for pending := append([]int(nil), roots...); len(pending) > 0; {
		pid := pending[0]
		pending = append(pending[1:], children[pid]...)
		if stats[pid] == nil {
			continue
		}
		if err := f(pid, stats[pid]); err != nil && !gone(pid) {
			return err
		}
	}
	return nil
}

func gone(pid int) bool {
	stat, err := readStat(pid)
	return err != nil || stat[0] == "Z"
}

// readStat returns the fields of /proc/PID/stat behind the name, which is in
// brackets and may contain blanks: the state is number 0, the parent 1.
func readStat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	const fieldsMin = 20
	end := strings.LastIndex(string(text), ") ")
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) < fieldsMin {
		return nil, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	return fields, nil
}

// procField reads a number from a file of "name: number" lines.
func procField(pid int, file, name string) (int64, error) {
	path := fmt.Sprintf("/proc/%d/%s", pid, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			return strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no line %s", path, name)
}
