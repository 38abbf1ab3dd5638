package bench

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of processor time in /proc, the same on every Linux
// that Go runs on.
const clockTick = 10 * time.Millisecond

// usage is what a process has used since it began.
type usage struct {
	cpu     time.Duration
	written int64 // bytes it caused to be sent to storage
}

// processUsage reads /proc; an error means that this system has none.
func processUsage(pid int) (usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	// The second field is a name in brackets that may contain blanks.
	_, after, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	const utime, stime = 11, 12 // fields 14 and 15 of the whole line
	if !ok || len(fields) <= stime {
		return usage{}, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		return usage{}, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	u := usage{cpu: time.Duration(user+system) * clockTick}
	u.written, err = procField(fmt.Sprintf("/proc/%d/io", pid), "write_bytes")
	return u, err
}

// machineCPU is the time that the processors have not been idle, for whomever.
func machineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return parseMachineCPU(string(text))
}

// parseMachineCPU adds up the first line of /proc/stat without its two fields
// of idle time, and without those after the eighth, which repeat earlier ones.
func parseMachineCPU(text string) (total time.Duration, err error) {
	const idle, waiting, used = 4, 5, 8
	line, _, _ := strings.Cut(text, "\n")
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

// processRSS is the memory that a process has in RAM, in bytes.
func processRSS(pid int) (int64, error) {
	kib, err := procField(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	return kib << 10, err
}

// procField reads a number from a file of "name: number" lines.
func procField(path, name string) (int64, error) {
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
