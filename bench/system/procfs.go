package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

// TreeUsage adds up processes and all their descendants. A child that has
// ended counts with its parent: the kernel adds the processor time (cutime,
// cstime) and the written bytes of a child that was waited for to its parent.
func TreeUsage(roots []int) (gauge.Usage, error) {
	var sum gauge.Usage
	err := eachInTree(roots, func(pid int, stat []string) error {
		const utime, cstime = 11, 14 // fields 14 to 17 of the whole line
		for _, field := range stat[utime : cstime+1] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return fmt.Errorf("/proc/%d/stat: %w", pid, err)
			}
			sum.CPU += time.Duration(ticks) * gauge.ClockTick
		}
		written, err := gauge.Number(fmt.Sprintf("/proc/%d/io", pid), "write_bytes")
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
		kib, err := gauge.Number(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
		sum += kib << 10
		return err
	})
	return sum, err
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
