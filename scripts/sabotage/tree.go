package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is the files of a checkout, by their path in it. What is tried is
// always a tree written elsewhere, never the checkout: it cannot be left
// broken, and who works in it meanwhile does no harm.
type tree map[string][]byte

// snapshot reads the files of the checkout that dir is in: those that git knows
// and those that it would take.
func snapshot(dir string) (tree, error) {
	out, err := exec.Command("git", "-C", dir, "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for the checkout: %w", err)
	}
	top := strings.TrimSpace(string(out))
	out, err = exec.Command("git", "-C", top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the checkout: %w", err)
	}
	t := tree{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(top, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return nil, err
		}
		t[filepath.ToSlash(name)] = text
	}
	return t, nil
}

// holds reports whether there is a Go file of the package.
func (t tree) holds(pkg string) bool {
	for name := range t {
		if dir, file, _ := cutLast(name); dir == pkg && strings.HasSuffix(file, ".go") {
			return true
		}
	}
	return false
}

func cutLast(name string) (dir, file string, found bool) {
	at := strings.LastIndexByte(name, '/')
	return name[:max(at, 0)], name[at+1:], at >= 0
}

// write makes dir hold this tree and nothing else: a failed test may have
// left files (a seed, a corpus) that would weigh on the next one.
func (t tree) write(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, text := range t {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
