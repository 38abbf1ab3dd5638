// Command testcount reads the output of `go test -json` on its standard input
// and prints what a person needs of it: one line per package, every skipped
// test with its reason, and the whole output of whatever failed.
//
// It counts tests that check something. A test that only holds subtests is not
// counted beside them; a package that failed without any test failing (it did
// not build, it panicked, it ran out of time) counts as one failure. So the sum
// is never zero failures when the run went wrong.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build event, which has no Package
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// counts is what the last line of a run is made of.
type counts struct{ passed, failed, skipped int }

// test is one test or subtest of a package while it runs.
type test struct {
	paused   bool // it waits for its turn among parallel tests
	output   strings.Builder
	result   string // pass, fail or skip; empty while it runs
	elapsed  float64
	children bool
}

// pkg is one package while its tests run.
type pkg struct {
	tests  map[string]*test
	output strings.Builder // what belongs to no test
}

// reader turns events into lines for a person. It prints a package when the
// package ends, so two packages that run at once never mix.
type reader struct {
	out      io.Writer
	prefix   string
	show     string // lines of passed tests with this text are printed; empty: none
	pkgs     map[string]*pkg
	builds   map[string]*strings.Builder
	shown    map[string]bool // builds whose errors were already printed
	total    counts
	failures []string // what total.failed counts, by name
	printed  bool     // a package was printed since the last tick
}

func main() {
	countsFile := flag.String("counts", "", "write \"passed failed skipped\" to this `file`, and a line for each failure")
	prefix := flag.String("trim", "", "`prefix` to cut off package names")
	show := flag.String("show", "", "print lines of passed tests that contain this `text`")
	every := flag.Duration("progress", 30*time.Second, "say what runs when nothing was printed for this `time`")
	flag.Parse()

	r := &reader{
		out: os.Stdout, prefix: *prefix, show: *show,
		pkgs: map[string]*pkg{}, builds: map[string]*strings.Builder{}, shown: map[string]bool{},
	}
	lines, failed := linesOf(os.Stdin)
	r.read(lines, time.Tick(*every))
	err := <-failed
	if err == nil && *countsFile != "" {
		text := fmt.Sprintf("%d %d %d\n", r.total.passed, r.total.failed, r.total.skipped)
		for _, name := range r.failures {
			text += name + "\n"
		}
		err = os.WriteFile(*countsFile, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testcount:", err)
		os.Exit(2)
	}
	if r.total.failed > 0 {
		os.Exit(1)
	}
}

// linesOf sends each line of in, and the error that ended it other than its end.
func linesOf(in io.Reader) (lines <-chan string, failed <-chan error) {
	sent, errs := make(chan string), make(chan error, 1)
	go func() {
		defer close(sent)
		defer close(errs)
		buffered := bufio.NewReader(in)
		for {
			line, err := buffered.ReadString('\n')
			if line != "" {
				sent <- line
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					errs <- fmt.Errorf("reading events: %w", err)
				}
				return
			}
		}
	}()
	return sent, errs
}

// read takes every line. One that is no event (a message of the go command
// itself) is passed on as it is, never swallowed. At a tick it says what runs,
// unless something was printed since the last one.
func (r *reader) read(lines <-chan string, ticks <-chan time.Time) {
	for {
		select {
		case line, open := <-lines:
			if !open {
				// A package without an end means that the go command itself was stopped.
				for _, name := range sortedKeys(r.pkgs) {
					r.finish(event{Action: "fail", Package: name})
				}
				return
			}
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
				r.take(e)
			} else {
				fmt.Fprint(r.out, line)
			}
		case <-ticks:
			if !r.printed {
				fmt.Fprintf(r.out, "...  %s\n", r.progress())
			}
			r.printed = false
		}
	}
}

// progress is how many tests have passed, and which ones run.
func (r *reader) progress() string {
	passed, failed := r.total.passed, r.total.failed
	var running []string
	for _, name := range sortedKeys(r.pkgs) {
		p := r.pkgs[name]
		for _, testName := range sortedKeys(p.tests) {
			switch t := p.tests[testName]; {
			case t.children:
			case t.result == "pass":
				passed++
			case t.result == "fail":
				failed++
			case t.result == "" && !t.paused:
				running = append(running, r.short(name)+" "+testName)
			}
		}
	}
	text := fmt.Sprintf("%d passed, %d failed so far", passed, failed)
	if len(running) == 0 {
		return text + "; building"
	}
	if more := len(running) - 3; more > 0 {
		running = append(running[:3], fmt.Sprintf("%d more", more))
	}
	return text + "; running: " + strings.Join(running, ", ")
}

// short is the name of a package without what all names begin with.
func (r *reader) short(pkg string) string {
	return strings.TrimPrefix(strings.TrimPrefix(pkg, r.prefix), "/")
}

func (r *reader) take(e event) {
	switch {
	case e.Action == "build-output":
		if r.builds[e.ImportPath] == nil {
			r.builds[e.ImportPath] = &strings.Builder{}
		}
		r.builds[e.ImportPath].WriteString(e.Output)
	case e.Package == "":
	case e.Test != "":
		r.takeTest(e)
	case e.Action == "output":
		r.pkg(e.Package).output.WriteString(e.Output)
	case e.Action == "start":
		r.pkg(e.Package)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.finish(e)
	}
}

func (r *reader) pkg(name string) *pkg {
	if r.pkgs[name] == nil {
		r.pkgs[name] = &pkg{tests: map[string]*test{}}
	}
	return r.pkgs[name]
}

func (r *reader) takeTest(e event) {
	p := r.pkg(e.Package)
	t := p.tests[e.Test]
	if t == nil {
		t = &test{}
		p.tests[e.Test] = t
	}
	t.paused = e.Action == "pause"
	switch e.Action {
	case "run":
		if i := strings.LastIndex(e.Test, "/"); i >= 0 && p.tests[e.Test[:i]] != nil {
			p.tests[e.Test[:i]].children = true
		}
	case "output":
		t.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		t.result, t.elapsed = e.Action, e.Elapsed
	}
}

// finish counts a package, prints it and forgets it.
func (r *reader) finish(e event) {
	p := r.pkg(e.Package)
	delete(r.pkgs, e.Package)
	name := r.short(e.Package)
	r.printed = true

	var c counts
	var failures, skips, shown strings.Builder
	blamed := false
	for _, testName := range sortedKeys(p.tests) {
		t := p.tests[testName]
		switch {
		case t.result == "fail" || t.result == "":
			blamed = true
			if t.children && p.childFailed(testName) {
				// Counted below its children, printed for what it said itself.
				if said := testOutput(t); said != "" {
					fmt.Fprintf(&failures, "  in   %s\n%s", testName, said)
				}
				continue
			}
			c.failed++
			r.failures = append(r.failures, name+" "+testName)
			how := fmt.Sprintf("(%.2fs)", t.elapsed)
			if t.result == "" {
				how = "(did not finish)"
			}
			fmt.Fprintf(&failures, "  FAIL %s %s\n%s", testName, how, testOutput(t))
		case t.children:
		case t.result == "skip":
			c.skipped++
			fmt.Fprintf(&skips, "  skip %s: %s\n", testName, reason(t))
		default:
			c.passed++
		}
		if r.show != "" && t.result == "pass" {
			for line := range strings.Lines(t.output.String()) {
				if strings.Contains(line, r.show) {
					fmt.Fprintf(&shown, "  %s", strings.TrimLeft(line, " "))
				}
			}
		}
	}
	if e.Action == "fail" && !blamed {
		c.failed++
		r.failures = append(r.failures, name+" (the package, not a test)")
	}
	if e.Action == "fail" {
		failures.WriteString(r.buildErrors(e.FailedBuild))
		failures.WriteString(indent(p.output.String()))
	}
	r.total.passed += c.passed
	r.total.failed += c.failed
	r.total.skipped += c.skipped

	switch {
	case e.Action == "fail":
		fmt.Fprintf(r.out, "FAIL %-36s %7.2fs  %d passed, %d failed, %d skipped\n", name, e.Elapsed, c.passed, c.failed, c.skipped)
	case c == counts{}:
		fmt.Fprintf(r.out, "-    %-36s          no tests\n", name)
	default:
		line := fmt.Sprintf("ok   %-36s %7.2fs  %d passed", name, e.Elapsed, c.passed)
		if c.skipped > 0 {
			line += fmt.Sprintf(", %d skipped", c.skipped)
		}
		if strings.Contains(p.output.String(), "\t(cached)") {
			line += " (nothing changed since the last run)"
		}
		fmt.Fprintln(r.out, line)
	}
	fmt.Fprint(r.out, shown.String(), skips.String(), failures.String())
}

// childFailed reports whether a subtest explains the failure of the test.
func (p *pkg) childFailed(parent string) bool {
	for name, t := range p.tests {
		if strings.HasPrefix(name, parent+"/") && t.result != "pass" && t.result != "skip" {
			return true
		}
	}
	return false
}

// buildErrors is the compiler's output, the first time a build is blamed.
func (r *reader) buildErrors(build string) string {
	if build == "" || r.builds[build] == nil {
		return ""
	}
	if r.shown[build] {
		return fmt.Sprintf("  (the build errors of %s are printed above)\n", build)
	}
	r.shown[build] = true
	return indent(r.builds[build].String())
}

// testOutput is what a test printed, without the frame lines of the testing
// package.
func testOutput(t *test) string {
	var b strings.Builder
	for line := range strings.Lines(t.output.String()) {
		if !frame(line) {
			b.WriteString(line)
		}
	}
	return indent(b.String())
}

// reason is what a skipped test said, in one line.
func reason(t *test) string {
	said := strings.Join(strings.Fields(testOutput(t)), " ")
	if said == "" {
		return "it gives no reason"
	}
	return said
}

func frame(line string) bool {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- PASS", "--- FAIL", "--- SKIP"} {
		if strings.HasPrefix(line, mark) {
			return true
		}
	}
	return false
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("       " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
