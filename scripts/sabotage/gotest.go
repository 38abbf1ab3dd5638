package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdict is what tests said of a tree.
type verdict struct {
	failed bool
	hang   bool   // it was a test that did not end
	test   string // the first that failed
}

// run asks the tests of a suite about the tree on the bench.
func (b *bench) run(ctx context.Context, s suite) (verdict, error) {
	args := []string{
		"test", "-json", "-count=1", "-vet=off", "-failfast", "-timeout", b.stage(s.pkg).timeout.String(), "./" + s.pkg,
	}
	if len(s.tests) > 0 {
		args = append(args, "-run", "^("+strings.Join(s.tests, "|")+")$")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.tree()
	tmp := filepath.Join(b.dir, "tmp") // whatever tests leave there goes with the bench
	cmd.Env = append(os.Environ(),
		"TMPDIR="+tmp,
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"), // what did not change is compiled once for all benches
		"REPRISE_BIN=", // test/e2e builds the binary from this tree
	)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	v, told := read(out.Bytes())
	if told == nil && err != nil && !v.failed {
		told = fmt.Errorf("%w: %s", err, firstLine(problems.String()))
	}
	if told != nil {
		return verdict{}, fmt.Errorf("asking %s: %w", s.pkg, told)
	}
	return v, nil
}

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// read finds what a run of one package says. What does not compile, or runs no
// test, says nothing about the product, and is an error.
func read(out []byte) (v verdict, err error) {
	var build strings.Builder
	var open []string // tests that run, the latest last
	ran := false
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // a word of the go command itself
		}
		switch e.Action {
		case "build-output":
			build.WriteString(e.Output)
		case "run", "cont":
			open, ran = append(open, e.Test), true
		case "pass", "skip", "pause":
			open = slices.DeleteFunc(open, func(name string) bool { return name == e.Test })
		case "output":
			v.hang = v.hang || strings.HasPrefix(e.Output, "panic: test timed out after")
		case "fail":
			if e.FailedBuild != "" {
				return verdict{}, fmt.Errorf("it does not compile: %s", compilerSays(build.String()))
			}
			if v.failed = true; v.test != "" {
				break
			}
			if v.test = e.Test; v.test == "" && len(open) > 0 { // a hang, or a panic beside the test
				v.test = open[len(open)-1]
			}
		}
	}
	switch {
	case !ran && !v.failed:
		return verdict{}, fmt.Errorf("no test ran")
	case v.failed && v.test == "":
		v.test = "(outside of its tests)"
	}
	return v, nil
}

// compilerSays is the first complaint in a compiler's output.
func compilerSays(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return line
		}
	}
	return "(no reason given)"
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
