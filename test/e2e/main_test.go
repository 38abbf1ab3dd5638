// Package e2e tests the built binary the way its users meet it: a process,
// its sockets, its log, its directory. Nothing of the server runs inside the
// test, and nothing waits by the clock: a test waits for the log line
// "listening", for an answer, for the end of a process, or, with a deadline,
// for a condition that only asking can show (until).
package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

var (
	rounds = flag.Int("rounds", 50, "rounds of kill -9 (nightly: 200)")
	seed   = flag.Uint64("seed", 0, "seed of everything random; 0 = a new one")
)

// binary is what is tested: REPRISE_BIN, or what TestMain built.
var binary = os.Getenv("REPRISE_BIN")

// patience is how long a test waits for what should come at once. It is long
// because machines are shared; whoever runs into it has found a fault.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	if url := os.Getenv(engineURL); url != "" {
		os.Exit(runAsEngine(url))
	}
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if binary != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "reprise-e2e-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		binary = filepath.Join(dir, "reprise")
		build := exec.Command("go", "build", "-o", binary, "../../cmd/reprise")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the binary:", err)
		return 1
	}
	return m.Run()
}

// dice returns randomness that only depends on the seed and a number.
func dice(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(*seed, stream)) }

// told says how to run a test with the same dice again, if it failed.
func told(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the dice were those of -seed %d", *seed)
		}
	})
}

// until asks again and again whether a condition holds, which says what it saw
// last. It and its like below are all that waits by the clock.
func until(t testing.TB, what string, holds func() (bool, string)) {
	t.Helper()
	untilWithin(t, patience, what, holds)
}

// untilWithin is until for what takes its time by design.
func untilWithin(t testing.TB, most time.Duration, what string, holds func() (bool, string)) {
	t.Helper()
	deadline := time.After(most)
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		ok, saw := holds()
		if ok {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatalf("%s: not within %s; last seen: %s", what, most, saw)
		}
	}
}
