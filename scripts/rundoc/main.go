// Command rundoc runs the examples of a document and writes into it what they
// print, so that what is shown is what runs.
//
//	go run ./scripts/rundoc docs/retries.md          writes it, and its pictures
//	go run ./scripts/rundoc -check docs/retries.md   fails if any of it is stale
//
// An example is a block marked console: a line that begins with "$ " is a
// command, lines after it that begin with "> " go on with it, and the rest,
// which is replaced, is what it prints. All commands of a document run in one
// shell each, in the same directory, empty but for the directory of the
// document's pictures; "reprise" is this checkout's. Files that commands write
// beside the document, such as docs/retries/default.svg, belong to it. A document
// with the line "<!-- examples with a server -->" has a server of its own, which
// "reprise" talks to.
//
// It is run from the root of the repository.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "compare only; exit 1 if anything is stale")
	flag.Parse()
	if err := run(*check, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "rundoc:", err)
		os.Exit(1)
	}
}

func run(check bool, documents []string) error {
	if len(documents) == 0 {
		return errors.New("which document?")
	}
	bin, err := os.MkdirTemp("", "rundoc-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "reprise"), "./cmd/reprise")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building reprise: %w", err)
	}
	for _, document := range documents {
		made, err := generate(document, bin)
		if err != nil {
			return fmt.Errorf("%s: %w", document, err)
		}
		if check {
			err = made.compare()
		} else {
			err = made.write()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// files are what a document consists of, by path from the root: itself and its
// pictures.
type files map[string][]byte

// generate runs the examples of a document. path comes first in $PATH.
func generate(document, path string) (files, error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rundoc-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	pictures := strings.TrimSuffix(document, filepath.Ext(document))
	if err := os.MkdirAll(filepath.Join(dir, pictures), 0o755); err != nil {
		return nil, err
	}
	url, stop, err := serve(text, path)
	if err != nil {
		return nil, err
	}
	defer stop()
	fresh, err := replay(string(text), func(command string) (string, error) { return shell(command, dir, path, "REPRISE_URL="+url) })
	if err != nil {
		return nil, err
	}
	made := files{document: []byte(fresh)}
	err = fs.WalkDir(os.DirFS(dir), filepath.ToSlash(pictures), func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		made[filepath.FromSlash(name)], err = os.ReadFile(filepath.Join(dir, name))
		return err
	})
	return made, err
}

func shell(command, dir, path string, env ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH")), env...)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() >= 0 && exit.ExitCode() < 126 {
		err = nil // a refusal that is shown; what could not run at all is above
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, out)
	}
	return string(out), nil
}

// replay returns the text with what its commands print now.
func replay(text string, run func(command string) (string, error)) (string, error) {
	const fence = "```"
	var b strings.Builder
	inside, skipping := false, false
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case !inside:
			inside = strings.TrimSpace(line) == fence+"console"
		case strings.TrimSpace(line) == fence:
			inside, skipping = false, false
		case strings.HasPrefix(line, "$ "):
			command := strings.TrimPrefix(line, "$ ")
			b.WriteString(line)
			for ; i+1 < len(lines) && strings.HasPrefix(lines[i+1], "> "); i++ {
				command += strings.TrimPrefix(lines[i+1], "> ")
				b.WriteString(lines[i+1])
			}
			out, err := run(command)
			if err != nil {
				return "", err
			}
			if out != "" && !strings.HasSuffix(out, "\n") {
				out += "\n"
			}
			b.WriteString(out)
			skipping = true
			continue
		case skipping:
			continue
		}
		b.WriteString(line)
	}
	if inside {
		return "", errors.New("a console block does not end")
	}
	return b.String(), nil
}

func (f files) write() error {
	for name, content := range f {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compare tells every file that is not as it should be.
func (f files) compare() error {
	var err error
	for name, want := range f {
		have, missing := os.ReadFile(name)
		if missing != nil || !bytes.Equal(have, want) {
			err = errors.Join(err, fmt.Errorf("%s is not what its examples print%s; run: go run ./scripts/rundoc", name, firstDifference(have, want)))
		}
	}
	return err
}

func firstDifference(have, want []byte) string {
	old, fresh := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(old), len(fresh)) {
		if old[i] != fresh[i] {
			return fmt.Sprintf(" (line %d is %.120q, not %.120q)", i+1, old[i], fresh[i])
		}
	}
	return ""
}
