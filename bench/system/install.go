package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
)

// Env is where and with what systems are run.
type Env struct {
	// Reprise is the program whose serve command is measured.
	Reprise string
	// Tools is a directory for servers that are built from source.
	Tools string
	// Log is told of installs.
	Log func(format string, args ...any)

	updated bool // apt-get knows what there is
}

const installPatience = 10 * time.Minute

// apt installs Debian packages unless the program they bring is there.
func (e *Env) apt(ctx context.Context, program string, packages ...string) error {
	if _, err := exec.LookPath(program); err == nil {
		return nil
	}
	if os.Getuid() != 0 {
		return fmt.Errorf("%s is missing, and only root can install %s", program, strings.Join(packages, " "))
	}
	if !e.updated {
		if _, err := e.output(ctx, "", "apt-get", "update", "-q"); err != nil {
			return err
		}
		e.updated = true
	}
	e.Log("installing %s with apt-get", strings.Join(packages, " "))
	args := append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...)
	if _, err := e.output(ctx, "", "apt-get", args...); err != nil {
		return err
	}
	_, err := exec.LookPath(program)
	return err
}

// build compiles a server that is a tool of this module, once.
func (e *Env) build(ctx context.Context, pkg, program string) (string, error) {
	path := filepath.Join(e.Tools, program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	e.Log("building %s", pkg)
	_, err := e.output(ctx, "", "go", "build", "-buildvcs=false", "-o", path, pkg)
	return path, err
}

// output runs a command to its end. Installing must not start services of its
// own, and asks nobody anything.
func (e *Env) output(ctx context.Context, dir, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, installPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(wrong.String() + out.String())
		return "", fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, lastLines(text, 2))
	}
	return strings.TrimSpace(out.String()), nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], " ")
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			if m.Version == "" {
				return "of this checkout"
			}
			return m.Version
		}
	}
	return "unknown"
}

// firstVersion picks the first word that looks like a version.
func firstVersion(text string) (string, error) {
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, "v=,()\"'")
		if word != "" && word[0] >= '0' && word[0] <= '9' && strings.Contains(word, ".") {
			return word, nil
		}
	}
	return "", errors.New("no version in " + text)
}
