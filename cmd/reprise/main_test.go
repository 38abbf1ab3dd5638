package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// asProgram makes the test binary stand in for reprise.
const asProgram = "TEST_AS_REPRISE"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(newRootCommand(), os.Args[1:]))
	}
	must(os.Setenv(asProgram, "1")) // for the processes that tests start
	code := m.Run()
	if shared.stop != nil {
		code = max(code, shared.stop())
	}
	os.Exit(code)
}

// program is a reprise process of a test.
type program struct {
	*exec.Cmd
	t      testing.TB
	errors *bufio.Scanner // lines of standard error
	out    bytes.Buffer
	heard  []string
}

// start runs reprise in a process of its own.
func start(t testing.TB, args ...string) *program {
	t.Helper()
	p := &program{Cmd: exec.Command(os.Args[0], args...), t: t}
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.errors, p.Stdout = bufio.NewScanner(stderr), &p.out
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	return p
}

// hear waits for a line of standard error that holds text.
func (p *program) hear(text string) {
	p.t.Helper()
	for p.errors.Scan() {
		p.heard = append(p.heard, p.errors.Text())
		if strings.Contains(p.errors.Text(), text) {
			return
		}
	}
	p.t.Fatalf("%q was never said, only:\n%s", text, strings.Join(p.heard, "\n"))
}

// end waits for the process and returns its exit code.
func (p *program) end() int {
	for p.errors.Scan() {
		p.heard = append(p.heard, p.errors.Text())
	}
	err := p.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		p.t.Error(err)
	}
	return p.ProcessState.ExitCode()
}

func (p *program) signal(s os.Signal) {
	if err := p.Process.Signal(s); err != nil {
		p.t.Error(err)
	}
}

// shared is one server for all tests of this package; each uses queues of its
// own.
var shared struct {
	once sync.Once
	url  string
	err  error
	stop func() int
}

// serverURL is the address of a real server.
func serverURL(t testing.TB) string {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "reprise-test-") //nolint:usetesting // the server outlives the test that starts it
		if err != nil {
			shared.err = err
			return
		}
		var stop func() error
		shared.url, stop, shared.err = startServer(dir)
		shared.stop = func() int {
			if err := errors.Join(stop(), os.RemoveAll(dir)); err != nil {
				fmt.Fprintln(os.Stderr, "stopping the server of the tests:", err)
				return 1
			}
			return 0
		}
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.url
}

// startServer starts a server on a directory.
func startServer(dir string) (url string, stop func() error, err error) {
	cmd := exec.Command(os.Args[0], "serve", "--port", "0", "--no-admin", "--log-format", "json", "--root-dir", filepath.Join(dir, "data"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", func() error { return nil }, err
	}
	var rest sync.WaitGroup
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		rest.Wait()
		return cmd.Wait()
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var entry struct{ Fields struct{ API, Addr string } }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Fields.API == "primary" {
			rest.Go(func() { _, _ = io.Copy(io.Discard, out) })
			return "http://" + entry.Fields.Addr, stop, nil
		}
	}
	return "", stop, errors.New("the server of the tests ended without listening")
}

// cli runs one command line in this process.
func cli(t testing.TB, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := newRootCommand()
	var out, err bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&err)
	root.SetIn(strings.NewReader(stdin))
	code = run(root, args)
	return out.String(), err.String(), code
}

// well runs a command line that must succeed.
func well(t testing.TB, args ...string) string {
	t.Helper()
	out, stderr, code := cli(t, "", args...)
	if code != 0 {
		t.Fatalf("reprise %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return out
}

// field reads a field of a line of JSON.
func field(t testing.TB, line, name string) string {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(line), &object); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return fmt.Sprint(object[name])
}

func TestCommandLinesThatCannotBeUnderstoodEndWith2AndSayWhatToDo(t *testing.T) {
	t.Setenv("REPRISE_URL", "http://127.0.0.1:1")
	for _, tt := range []struct{ line, says string }{
		{"bogus", `no command "bogus"`},
		{"enq", "did you mean enqueue?"},
		{"queues", `no command "queues"; did you mean queue?`},
		{"jobs lst", `no command "lst"; did you mean list?`},
		{"jobs list --stauts dead", "unknown flag: --stauts; did you mean --status?"},
		{"jobs list --status deadd", "completed, dead; did you mean dead?"},
		{"serve --default-backof-base 3", "did you mean --default-backoff-base?"},
		{"work -q q --exce cat", "did you mean --exec?"},
		{"grid submit --task-max-time 50", "here it is task_max_time (a bare number there counts seconds"},
		{"jobs --bogus", "unknown flag"},
		{"jobs list x", "takes no argument"},
		{"jobs list --status broken", "the states are scheduled, ready"},
		{"jobs list --limit -1", "use 0 for all"},
		{"jobs show", "id of one job"},
		{"jobs show a b", "id of one job"},
		{"jobs delete", "either their ids, or a filter"},
		{"jobs delete a --queue q", "either their ids, or a filter"},
		{"enqueue", "--queue is missing"},
		{"enqueue --queue q", "--type is missing"},
		{"enqueue --queue q --type t --payload hello", `--payload '"hello"'`},
		{"enqueue --queue q --type t --payload {", "not JSON"},
		{"enqueue --queue q --type t --payload -", "it is empty"},
		{"enqueue --queue q --type t --payload 1 --ndjson f", "exclude each other"},
		{"enqueue --queue q --type t --delay -1s", "write a span of time as 90s, 1h30m, 2d or 1d12h"},
		{"enqueue --queue q --type t --label x", "write it as NAME=VALUE"},
		{"enqueue --queue q --type t --place middle", "the front or the back"},
		{"enqueue --queue q --type t --retry {\"limt\":3}", "limt"},
		{"enqueue --queue q --type t --expires soon", "or a span such as 2d"},
		{"enqueue --queue q --type t --copies 300", "1 to 255"},
		{"enqueue --queue q --type t --delay 1s --at 2026-01-01T00:00:00Z", "exclude each other"},
		{"enqueue --queue q --type t --delay 1s --idempotency-key k", "use --at"},
		{"enqueue --queue q --type t --at tomorrow", "is no time"},
		{"enqueue --queue q --type t --retry-limit many", "is no limit"},
		{"enqueue --queue q --type t --retry-limit -1", "is no limit"},
		{"enqueue --queue q --type t --priority 65536", "it takes 0 to 65535"},
		{"enqueue --queue q --type t --url localhost", "is no server address"},
		{"work", "--queue is missing"},
		{"work --queue q", "say what to do"},
		{"work --queue q --exec a --http b", "exclude each other"},
		{"work --queue q --http example.com", "is no web address"},
		{"work --queue q --http ftp://example.com/", "is no web address"},
		{"work --queue q --exec a --concurrency 0", "at least one job"},
		{"work --queue q --exec a --timeout -1s", "write a span of time"},
		{"work --queue q --exec a --quiet --verbose", "exclude each other"},
		{"backup", "--out"},
		{"restore", "takes one file"},
		{"tls client-cert", "--name is missing"},
		{"inbox set q", "--file is missing"},
		{"version x", "takes no argument"},
		{"demo x", "takes no argument"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			out, stderr, code := cli(t, "", strings.Fields(tt.line)...)
			if code != 2 || !strings.Contains(stderr, tt.says) || !strings.Contains(stderr, "--help") || out != "" {
				t.Errorf("exit code %d\nstdout: %s\nstderr: %s", code, out, stderr)
			}
		})
	}
}

func TestWithoutAServerEachCommandSaysHowToStartOne(t *testing.T) {
	t.Setenv("REPRISE_URL", "http://127.0.0.1:1")
	for _, line := range []string{
		"enqueue --queue q --type t", "jobs list", "jobs show x", "jobs delete x", "jobs delete --queue q --yes", "version --server",
		"grid status s",
	} {
		_, stderr, code := cli(t, "", strings.Fields(line)...)
		if code != 1 || !strings.Contains(stderr, "reprise serve") || !strings.Contains(stderr, "http://127.0.0.1:1") {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
}

func TestEveryCommandHasAnExampleAndEndsItsHelpWell(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if sub.Name() == "completion" || sub.Name() == "help" {
				continue
			}
			if sub.Example == "" || sub.Short == "" || strings.HasSuffix(sub.Short, ".") {
				t.Errorf("%s: example %q, short %q", sub.CommandPath(), sub.Example, sub.Short)
			}
			for line := range strings.Lines(sub.Example) {
				if text := strings.TrimSpace(line); text != "" && !strings.Contains(text, "reprise ") && !strings.HasPrefix(text, "#") {
					t.Errorf("%s: this line of its example runs nothing: %s", sub.CommandPath(), text)
				}
			}
			walk(sub)
		}
	}
	walk(newRootCommand())
	if out := well(t); !strings.Contains(out, "enqueue") || !strings.Contains(out, "demo") {
		t.Errorf("no arguments: %s", out)
	}
}

func TestVersionTellsAboutTheProgramAndTheServer(t *testing.T) {
	if out := well(t, "version"); !strings.HasPrefix(out, "reprise ") {
		t.Errorf("%s", out)
	}
	out := well(t, "version", "--server", "--json", "--url", serverURL(t))
	if field(t, out, "version") != field(t, out, "server") || field(t, out, "go") == "" {
		t.Errorf("%s", out)
	}
}

func TestTextsForPeople(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "2ms", 2340 * time.Millisecond: "2.3s", 61 * time.Second: "1m1s",
		5 * time.Minute: "5m", 3 * time.Hour: "3h", 3*time.Hour + 20*time.Minute: "3h20m", 10 * 24 * time.Hour: "10d", -2 * time.Minute: "2m",
		20 * time.Second: "20s", 10 * time.Minute: "10m",
	} {
		if got := span(d); got != want {
			t.Errorf("span(%s) = %s, want %s", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s", n, got)
		}
	}
	if got := plural(1, "job") + plural(2, "job"); got != "1 job2 jobs" {
		t.Error(got)
	}
	for in, want := range map[string]string{
		"plain ü 名": "plain ü 名", "\x1b[31mred": `\x1b[31mred`, "a\nb\tc": `a\nb\tc`, "\u202eabc": `\u202eabc`, "\xff": `�`,
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
	if got := printableLines("a\n\tb\x07\n", "> "); got != "> a\n>     b\\a" {
		t.Errorf("%q", got)
	}
	if got := indented([]byte("not json")); got != "not json" {
		t.Error(got)
	}
}
