package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTheExamplesOfPipelinesPrintWhatIsShown runs every command of docs/pipeline.md in a
// shell, with the files that the page shows, and compares what it prints with the page.
func TestTheExamplesOfPipelinesPrintWhatIsShown(t *testing.T) {
	text, err := os.ReadFile("../../docs/pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		err = free.Close()
	}
	if err == nil {
		err = os.Symlink(os.Args[0], filepath.Join(dir, "reprise"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("REPRISE_LOG_LEVEL", "error")
	t.Setenv("REPRISE_PORT", fmt.Sprint(free.Addr().(*net.TCPAddr).Port))
	t.Setenv("REPRISE_URL", "http://"+free.Addr().String())
	p := &pipelinePage{T: t, dir: dir, page: page{ids: map[string]string{}}}
	for _, block := range regexp.MustCompile("(?ms)(?:`([a-z-]+\\.conf)`:\n\n)?^```(console|ini)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		name, kind, body := block[1], block[2], block[3]
		if kind == "ini" {
			if p.write(name, body); name == "" {
				p.meet("reprise pipeline -c shown.conf --dry-run 2>&1 | tail -n 1", "configuration test is successful\n")
			}
			continue
		}
		for _, example := range strings.Split("\n"+body, "\n$ ")[1:] {
			line, shown, _ := strings.Cut(example+"\n", "\n")
			p.meet(line, shown)
		}
	}
	if p.commands < 15 {
		t.Errorf("the page has only %d commands", p.commands)
	}
}

var stamp = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT[0-9:.]+Z`)

type pipelinePage struct {
	*testing.T
	page
	dir      string
	behind   *exec.Cmd // what runs in the background
	commands int
}

func (p *pipelinePage) write(name, text string) {
	if name == "" {
		name = "shown.conf"
	}
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// meet runs a command that must print what is shown. While something runs in the
// background it may take a moment until it does.
func (p *pipelinePage) meet(line, shown string) {
	p.Helper()
	p.commands++
	line = idShape.ReplaceAllStringFunc(line, func(id string) string { return p.ids[id] })
	cmd := exec.CommandContext(p.Context(), "sh", "-c", line)
	if there, is := strings.CutSuffix(line, " &"); is {
		cmd = exec.CommandContext(p.Context(), "sh", "-c", "exec "+there)
	}
	cmd.Dir = p.dir
	switch {
	case strings.HasSuffix(line, " &"):
		p.behind = cmd
		if err := cmd.Start(); err != nil {
			p.Fatal(err)
		}
		return
	case line == "kill %1":
		if err := p.behind.Process.Signal(syscall.SIGTERM); err != nil {
			p.Fatal(err)
		}
		if err := p.behind.Wait(); err != nil {
			p.Fatal(err)
		}
		p.behind = nil
		return
	}
	for end := time.Now().Add(10 * time.Second); ; {
		out, _ := cmd.CombinedOutput() // refusals are shown too
		seq := len(p.seq)
		got, want := p.plain(stamp.ReplaceAllString(string(out), "a time"), false), p.plain(stamp.ReplaceAllString(shown, "a time"), true)
		if got == want {
			return
		}
		if p.behind == nil || time.Now().After(end) {
			p.Fatalf("%s\nprints\n%s\nand not\n%s", line, got, want)
		}
		p.seq = p.seq[:seq]
		again := exec.CommandContext(p.Context(), "sh", "-c", line)
		again.Dir, cmd = p.dir, again
	}
}
