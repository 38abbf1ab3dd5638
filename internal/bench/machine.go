package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Machine is where a run took place. Fields that the system does not tell are
// empty.
type Machine struct {
	OS          string  `json:"os"`
	Kernel      string  `json:"kernel"`
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	FileSystem  string  `json:"file_system"`
	SyncP50     float64 `json:"sync_p50_ms"`
	SyncP99     float64 `json:"sync_p99_ms"`
}

func readMachine(dir string) Machine {
	m := Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = processorName(string(text))
	}
	if kib, err := procField("/proc/meminfo", "MemTotal"); err == nil {
		m.MemoryBytes = kib << 10
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		m.FileSystem = fileSystemOf(dir, string(text))
	}
	if h, err := timeSyncs(dir); err == nil {
		m.SyncP50, m.SyncP99 = milliseconds(h.percentile(50)), milliseconds(h.percentile(99))
	}
	return m
}

func processorName(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
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
func timeSyncs(dir string) (*histogram, error) {
	const writes, writeBytes = 200, 4 << 10
	const patience = 2 * time.Second
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return nil, err
	}
	defer func() { // the directory is removed with the run in any case
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	h, block := &histogram{}, make([]byte, writeBytes)
	for end := now() + patience; h.total < writes && now() < end; {
		start := now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		h.add(now() - start)
	}
	return h, nil
}
