// Package compat holds what Zizq's official clients rely on, against the real
// binary: started as their test harnesses start it, spoken to over each of
// their transports and in each of their formats. Nothing of the product runs
// inside the test, and no code of theirs either: what they do is written down
// here call by call.
//
// A subject is a function of a client (subjects in matrix_test.go). Each runs
// for every pair of transport and format; to add one, write the function and
// put it into the table.
package compat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program is what is tested: REPRISE_BIN, or what TestMain built.
var program = os.Getenv("REPRISE_BIN")

// patience is how long a test waits for what should come at once.
const patience = 2 * time.Minute

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if program != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "reprise-compat-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		program = filepath.Join(dir, "reprise")
		build := exec.Command("go", "build", "-o", program, "../../../cmd/reprise")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "building the binary:", err)
		return 1
	}
	return m.Run()
}
