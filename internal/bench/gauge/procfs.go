package gauge

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ClockTick is the unit of processor time in /proc, the same on every Linux
// that Go runs on.
const ClockTick = 10 * time.Millisecond

// Usage is what a process has used since it began.
type Usage struct {
	CPU          time.Duration
	WrittenBytes int64 // it caused to be sent to storage
}

// ProcessUsage reads /proc; an error means that this system has none.
func ProcessUsage(pid int) (Usage, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, err
	}
	// The second field is a name in brackets that may contain blanks.
	_, after, ok := strings.Cut(string(text), ") ")
	fields := strings.Fields(after)
	const utime, stime = 11, 12 // fields 14 and 15 of the whole line
	if !ok || len(fields) <= stime {
		return Usage{}, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		return Usage{}, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	u := Usage{CPU: time.Duration(user+system) * ClockTick}
	u.WrittenBytes, err = Number(fmt.Sprintf("/proc/%d/io", pid), "write_bytes")
	return u, err
}

// Sub is what was used since an earlier reading.
func (u Usage) Sub(before Usage) Usage {
	return Usage{u.CPU - before.CPU, u.WrittenBytes - before.WrittenBytes}
}

// MachineCPU is the time that the processors have not been idle, for whomever.
func MachineCPU() (time.Duration, error) {
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
			total += time.Duration(ticks) * ClockTick
		}
	}
	return total, nil
}

// ProcessRSS is the memory that a process has in RAM, in bytes.
func ProcessRSS(pid int) (int64, error) {
	kib, err := Number(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	return kib << 10, err
}

// Number reads a number from a file of "name: number" lines.
func Number(path, name string) (int64, error) {
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

// Field reads the first "name<separator>value" line of a file; "" = it has none.
func Field(path, name, separator string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, separator); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
