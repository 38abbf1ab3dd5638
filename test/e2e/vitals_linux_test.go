package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// vitals is what a server costs its machine. The server runs with --pprof.
type vitals struct {
	files, goroutines int
	resident          int64 // bytes of memory
}

func (v vitals) String() string {
	return fmt.Sprintf("%d files, %d goroutines, %d MiB", v.files, v.goroutines, v.resident/mib)
}

func (s *server) vitals(t testing.TB) (v vitals) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(s.url)
	defer c.close()
	var n int
	profile := c.must(t, 200, nil, "GET", "/debug/pprof/goroutine?debug=1", nil, "Accept", "*/*")
	if _, err := fmt.Sscanf(string(profile.body), "goroutine profile: total %d", &n); err != nil {
		t.Fatalf("%v in %.100q", err, profile.body)
	}
	return vitals{files: s.files(t), goroutines: n, resident: kib << 10}
}

func (s *server) files(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// calm waits until a server has no more files and goroutines than before, but
// for a few that come and go.
func (s *server) calm(t testing.TB, before vitals) {
	t.Helper()
	until(t, "the server costs what it did before", func() (bool, string) {
		now := s.vitals(t)
		return now.files <= before.files+8 && now.goroutines <= before.goroutines+16, fmt.Sprintf("%s; before: %s", now, before)
	})
}

// filesMax is how many files and connections a process may have open here.
func filesMax(t testing.TB) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return int(min(limit.Max, 1<<20)) // Go raises the limit to the most allowed, here and in the server
}
