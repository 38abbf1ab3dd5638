package system

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
)

func TestAKilledServerLeavesNoChildBehind(t *testing.T) {
	t.Parallel()
	d := daemon{signal: syscall.SIGTERM}
	size := 0
	var tree []int
	err := d.run(t.Context(), command{program: "sh", args: []string{"-c", "sleep 1000 & wait"}}, func(context.Context) error {
		tree = nil
		if err := eachInTree(d.PIDs(), func(pid int, _ []string) error { tree = append(tree, pid); return nil }); err != nil {
			return err
		}
		if size = len(tree); size < 2 {
			return errors.New("the child is not there yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Alive(); err != nil {
		t.Error(err)
	}
	if bytes, err := TreeMemory(d.PIDs()); err != nil || bytes <= 0 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
	if err := d.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range tree {
		if !gone(pid) {
			t.Errorf("process %d of %d is still there", pid, size)
		}
	}
	if d.PIDs() != nil || d.Alive() == nil {
		t.Error("a killed server is said to run")
	}
}

func TestAServerThatEndsAtOnceIsReportedWithItsLastWords(t *testing.T) {
	t.Parallel()
	d := daemon{signal: syscall.SIGTERM}
	err := d.run(t.Context(), command{program: "sh", args: []string{"-c", "echo no such flag; exit 3"}},
		func(context.Context) error { return errors.New("refused") })
	if err == nil || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("error %v", err)
	}
}

func TestTheUseOfAChildThatEndedIsThatOfItsParent(t *testing.T) {
	t.Parallel()
	p, err := execute(command{program: "sh", args: []string{"-c", "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo done; exec sleep 1000"}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.kill()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.output.String() != "done" {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the child did not end")
		}
	}
	if u, err := TreeUsage([]int{p.pid()}); err != nil || u.CPU < gauge.ClockTick {
		t.Errorf("%+v, %v", u, err)
	}
	if u, err := gauge.ProcessUsage(os.Getpid()); err != nil || u.CPU < 0 {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestStatIsReadWhateverTheNameOfTheProgram(t *testing.T) {
	t.Parallel()
	stat, err := readStat(os.Getpid())
	if err != nil || !slices.Contains([]string{"R", "S", "D"}, stat[0]) {
		t.Errorf("%v, %v", stat, err)
	}
}

func TestVersionsAreFoundInWhatServersSay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Redis server v=7.0.15 sha=00000000:0":             "7.0.15",
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb)": "15.18",
	} {
		if got, err := firstVersion(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := firstVersion("none here"); err == nil {
		t.Error("a version where none is")
	}
}

func TestSystemsSayAllThatTheReportNeeds(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range All() {
		if names[s.Name] {
			t.Errorf("%s is there twice", s.Name)
		}
		names[s.Name] = true
		if !slices.Contains(Classes(), s.Class) || s.Durability == "" || s.Install == nil || s.Class.About() == "unknown" {
			t.Errorf("%s is incomplete", s.Name)
		}
		if s.New != nil && s.Workers == "" || !slices.Contains([]string{"", "API", "pipelined"}, s.Bulk) {
			t.Errorf("%s does not say how it is driven", s.Name)
		}
	}
}
