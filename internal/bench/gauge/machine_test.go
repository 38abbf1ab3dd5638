package gauge

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheFileSystemIsThatOfTheNearestMount(t *testing.T) {
	t.Parallel()
	const mounts = "21 1 254:0 / / rw shared:1 - ext4 /dev/root rw\n" +
		"22 21 0:5 / /tmp rw - tmpfs none rw\n" +
		"23 21 0:6 / /data rw - xfs /dev/old rw\n" +
		"24 21 0:7 / /data rw master:2 - btrfs /dev/new rw\n"
	for dir, expected := range map[string]string{
		"/home/a": "ext4", "/tmp": "tmpfs", "/tmp/x/y": "tmpfs", "/tmpfoo": "ext4", "/data/q": "btrfs",
	} {
		if got := fileSystemOf(dir, mounts); got != expected {
			t.Errorf("%s: %q, expected %q", dir, got, expected)
		}
	}
}

func TestTheProcessorHasAName(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cpuinfo")
	if err := os.WriteFile(file, []byte("processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nflags : a b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Field(file, "model name", ":"); got != "Some CPU @ 3 GHz" {
		t.Error(got)
	}
	if got := Field(file, "model", ":") + Field(file+"x", "flags", ":"); got != "" {
		t.Error(got)
	}
}

func TestTheMachineIsBusyWhenItIsNotIdle(t *testing.T) {
	t.Parallel()
	const text = "cpu  100 20 30 9999 8888 4 5 6 70 70\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
	if got, err := parseMachineCPU(text); err != nil || got != 1650*time.Millisecond {
		t.Error(got, err)
	}
	for _, text := range []string{"", "cpu 1 2", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8 9"} {
		if _, err := parseMachineCPU(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestAProcessKnowsItsOwnUse(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc")
	}
	if u, err := ProcessUsage(os.Getpid()); err != nil || u.CPU < 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if rss, err := ProcessRSS(os.Getpid()); err != nil || rss < 1<<20 {
		t.Errorf("%d bytes, %v", rss, err)
	}
}

func TestAPercentileIsAValueThatWasSeen(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	for i := 200; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Millisecond)
	}
	for p, want := range map[float64]float64{0: 1, 50: 100, 99: 198, 99.9: 200, 100: 200} {
		if got := Percentile(took, p); got != want {
			t.Errorf("p%v: %v, expected %v", p, got, want)
		}
	}
	if Percentile(nil, 50) != 0 {
		t.Error("no durations have a percentile")
	}
}

func TestNothingHasNoMedian(t *testing.T) {
	t.Parallel()
	if got := Median(nil); !math.IsNaN(got) {
		t.Error(got)
	}
}
