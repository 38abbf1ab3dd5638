package result

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where runs took place. Fields that the system does not tell are
// empty.
type Machine struct {
	System      string  `json:"system"` // of Debian's os-release, or the like
	Kernel      string  `json:"kernel"`
	CPU         string  `json:"cpu"`
	Cores       int     `json:"cores"`
	MemoryBytes int64   `json:"memory_bytes"`
	FileSystem  string  `json:"file_system"`
	SyncP50     float64 `json:"sync_p50_ms"` // of appending 4 KiB with fsync
	SyncP99     float64 `json:"sync_p99_ms"`
}

// name is what tells one machine from another.
func (m Machine) name() string {
	return fmt.Sprintf("%s, %d cores, kernel %s, %s", m.CPU, m.Cores, m.Kernel, m.FileSystem)
}

// ReadMachine describes this machine; dir is where servers will keep their
// data.
func ReadMachine(dir string) Machine {
	m := Machine{System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	if value := field("/etc/os-release", "PRETTY_NAME", "="); value != "" {
		m.System = strings.Trim(value, `"`) + ", " + m.System
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(text))
	}
	m.CPU = field("/proc/cpuinfo", "model name", ":")
	if kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal", ":"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kib << 10
	}
	if text, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		m.FileSystem = fileSystemOf(dir, string(text))
	}
	if took, err := timeSyncs(dir); err == nil {
		m.SyncP50, m.SyncP99 = Percentile(took, 50), Percentile(took, 99)
	}
	return m
}

// field reads the first "name<separator>value" line of a file.
func field(path, name, separator string) string {
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
func timeSyncs(dir string) (took []time.Duration, err error) {
	const writes, writeBytes = 500, 4 << 10
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
	for begin := time.Now(); len(took) < writes && time.Since(begin) < patience; {
		start := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(start))
	}
	return took, nil
}
