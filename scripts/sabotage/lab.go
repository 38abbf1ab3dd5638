package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// lab is a copy of the tree, and tests compiled in it.
type lab struct {
	dir   string
	whole tree
	built map[string]error // by package, the tests that were compiled
}

func newLab(whole tree) (*lab, error) {
	dir, err := os.MkdirTemp("", "sabotage-")
	l := &lab{dir: dir, whole: whole, built: map[string]error{}}
	return l, errors.Join(err, os.Mkdir(filepath.Join(dir, "tmp"), 0o755), whole.write(l.tree()))
}

func (l *lab) close() error { return os.RemoveAll(l.dir) }
func (l *lab) tree() string { return filepath.Join(l.dir, "t") }
func (l *lab) forget()      { l.built = map[string]error{} }
func (l *lab) exe(pkg string) string {
	return filepath.Join(l.dir, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// put writes files over those of the copy.
func (l *lab) put(t tree) error {
	for name, text := range t {
		if err := os.WriteFile(filepath.Join(l.tree(), name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = filepath.Join(l.tree(), dir), 5*time.Second
	cmd.Env = append(os.Environ(),
		"TMPDIR="+filepath.Join(l.dir, "tmp"), // what tests leave there goes with the lab
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"),
		"REPRISE_BIN=", // test/e2e builds the binary from this tree
	)
	return cmd
}

// build compiles the tests of a package, once.
func (l *lab) build(ctx context.Context, pkg string) error {
	err, done := l.built[pkg]
	if !done {
		var said []byte
		if said, err = l.command(ctx, "", "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", l.exe(pkg), "./"+pkg).CombinedOutput(); err != nil {
			err = fmt.Errorf("%s does not compile: %s", pkg, said)
		} else if _, no := os.Stat(l.exe(pkg)); no != nil {
			err = fmt.Errorf("%s has no tests", pkg)
		}
		l.built[pkg] = err
	}
	return err
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// run asks tests about the change of a number, 0 for none, and returns which
// failed. Not to end in time is to fail.
func (l *lab) run(ctx context.Context, s suite, id int, limit time.Duration, env ...string) (string, error) {
	if err := l.build(ctx, s.pkg); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second)
	defer cancel()
	// What fills the memory must not take that of others.
	args := []string{"-c", `ulimit -v 16000000; exec "$0" "$@"`, l.exe(s.pkg), "-test.v", "-test.failfast", "-test.timeout", limit.String()}
	if len(s.tests) > 0 {
		args = append(args, "-test.run", "^("+strings.Join(s.tests, "|")+")$")
	}
	cmd := l.command(ctx, s.pkg, "sh", args...)
	cmd.Env = append(append(cmd.Env, "MUTANT="+strconv.Itoa(id)), env...)
	out, err := cmd.CombinedOutput()
	text := string(out)
	running := "(outside of its tests)"
	if at := strings.LastIndex(text, "=== RUN   "); at >= 0 {
		running, _, _ = strings.Cut(text[at+len("=== RUN   "):], "\n")
	}
	all := failed.FindAllStringSubmatch(text, -1)
	switch {
	case err == nil && !strings.Contains(text, "=== RUN"):
		return "", fmt.Errorf("no test ran of %s", s)
	case err == nil:
		return "", nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded) || strings.Contains(text, "panic: test timed out after"):
		return running + " (hang)", nil
	case len(all) > 0:
		return all[len(all)-1][1], nil // the innermost
	}
	return running, nil
}
