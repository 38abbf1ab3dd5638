package gauge

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Machine is where a run took place. Fields that the system does not tell are
// empty.
type Machine struct {
	Kernel      string  `json:"kernel"`
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	FileSystem  string  `json:"file_system"`
	SyncP50     float64 `json:"sync_p50_ms"` // of appending 4 KiB with fsync
	SyncP99     float64 `json:"sync_p99_ms"`
}

// ReadMachine describes this machine; dir is where servers will keep their data, and is
// written to so many times.
func ReadMachine(dir string, writes int) Machine {
	m := Machine{CPU: Field("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if kib, err := Number("/proc/meminfo", "MemTotal"); err == nil {
		m.MemoryBytes = kib << 10
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		m.FileSystem = fileSystemOf(dir, string(text))
	}
	if took, err := timeSyncs(dir, writes); err == nil {
		m.SyncP50, m.SyncP99 = Percentile(took, 50), Percentile(took, 99)
	}
	return m
}

// fileSystemOf finds the type of the file system that holds dir: of all mount
// points above it, the longest, and of those the last mounted.
func fileSystemOf(dir, mountinfo string) string {
	best, kind := "", ""
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(line, " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(rest) == 0 {
			continue
		}
		mount := fields[4]
		within, err := filepath.Rel(mount, dir)
		if err != nil || within == ".." || strings.HasPrefix(within, "../") || len(mount) < len(best) {
			continue
		}
		best, kind = mount, rest[0]
	}
	return kind
}

// timeSyncs measures what a synced write costs here, without which no durable
// figure can be compared with one from elsewhere.
func timeSyncs(dir string, writes int) (took []time.Duration, err error) {
	const writeBytes = 4 << 10
	const patience = 2 * time.Second
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return nil, err
	}
	defer func() { // the directory is removed with the run in any case
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	block := make([]byte, writeBytes)
	for end := Now() + patience; len(took) < writes && Now() < end; {
		start := Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, Now()-start)
	}
	return took, nil
}

// Percentile returns a value that p percent of the durations do not exceed, in
// milliseconds: 0 when there are none. It sorts them.
func Percentile(durations []time.Duration, p float64) float64 {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	rank := max(int(math.Ceil(p/100*float64(len(durations)))), 1)
	return float64(durations[rank-1]) / float64(time.Millisecond)
}

// Median of an even number of samples is the mean of the middle two, of none
// not a number.
func Median(samples []float64) float64 {
	if len(samples) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(samples))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
