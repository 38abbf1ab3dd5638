package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/reprisehq/reprise/wire"
)

// runPipeline starts a pipeline with its store in a directory, and waits until it listens.
func runPipeline(t testing.TB, dir, conf string) *server {
	t.Helper()
	s := launchWith(t, []string{
		"REPRISE_PORT=0", "REPRISE_ROOT_DIR=" + dir, "REPRISE_LOG_FORMAT=json",
	}, []string{"pipeline", "-c", conf})
	s.waitListening()
	return s
}

// target is a server outside that counts the lines it was given by their numbers.
type target struct {
	*httptest.Server
	mu     sync.Mutex
	got    map[int]int // deliveries of each line
	calls  int
	refuse func(call int) int // the status of a call; 0 = it takes what comes
}

func newTarget(t testing.TB) *target {
	x := &target{got: map[int]int{}}
	x.Server = httptest.NewServer(x)
	t.Cleanup(x.Close)
	return x
}

func (x *target) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls++
	if err != nil {
		return // whoever sends was killed: it did not come
	}
	if x.refuse != nil {
		if status := x.refuse(x.calls); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	for line := range bytes.Lines(body) {
		var e struct{ Log string }
		if json.Unmarshal(line, &e) == nil {
			n, _ := strconv.Atoi(strings.TrimPrefix(e.Log, "line "))
			x.got[n]++
		}
	}
}

func (x *target) counts() (lines, more, calls int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.got {
		more += n - 1
	}
	return len(x.got), more, x.calls
}

func (x *target) port() string {
	_, port, _ := net.SplitHostPort(x.Listener.Addr().String())
	return port
}

// output is a section for the target.
func (x *target) output(more string) string {
	return "[OUTPUT]\n    Name http\n    Host 127.0.0.1\n    Port " + x.port() + "\n    Format json_lines\n" + more
}

// TestAPipelineLosesNoLineToKillNine: a file is written, the pipeline is killed again and
// again, and the target is down every other call. Every line comes; again comes only what
// was on its way at a kill.
func TestAPipelineLosesNoLineToKillNine(t *testing.T) {
	told(t)
	t.Parallel()
	const lines, kills = 6000, 4
	dir := t.TempDir()
	x := newTarget(t)
	x.refuse = func(call int) int {
		if call%2 == 0 {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	log := filepath.Join(dir, "app.log")
	conf := write(t, filepath.Join(dir, "fluent-bit.conf"), `[SERVICE]
    Flush 0.2
    scheduler.base 1
    scheduler.cap 2
[INPUT]
    Name tail
    Path `+log+`
    Read_from_Head on
`+x.output("    Retry_Limit no_limits\n"))
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	written := 0
	more := func(n int) {
		w := bufio.NewWriter(file)
		for range n {
			_, _ = fmt.Fprintf(w, "line %d\n", written)
			written++
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	s := runPipeline(t, filepath.Join(dir, "root"), conf)
	for k := 1; k <= kills; k++ {
		more(lines / (kills + 1))
		until(t, fmt.Sprintf("delivery before kill %d", k), func() (bool, string) {
			n, _, _ := x.counts()
			return n > (k-1)*lines/(kills+1), fmt.Sprint(n, " lines came")
		})
		s.kill()
		s = runPipeline(t, filepath.Join(dir, "root"), conf)
	}
	more(lines - written)
	until(t, "all lines", func() (bool, string) {
		n, _, _ := x.counts()
		return n == lines, fmt.Sprint(n, " of ", lines, " lines came")
	})
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.output())
	}
	_, again, _ := x.counts()
	t.Logf("%d lines, %d kills, %d came again", lines, kills, again)
	if again > kills*lines/(kills+1) {
		t.Errorf("%d lines came again, more than was on its way at %d kills", again, kills)
	}
}

// TestTheSeedsRetriesEndToEnd: the second example of the seed with an input added and its
// hosts changed. The first output is retried without end, the second one stops after five
// retries, its chunk is among the dead jobs, and comes back from there.
func TestTheSeedsRetriesEndToEnd(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	endless, five := newTarget(t), newTarget(t)
	down := func(int) int { return http.StatusServiceUnavailable }
	endless.refuse, five.refuse = down, down
	conf := write(t, filepath.Join(dir, "fluent-bit.conf"), `[SERVICE]
scheduler.base 1
scheduler.cap 1
[INPUT]
Name dummy
Samples 1
[OUTPUT]
Name http
Host 127.0.0.1
Port `+endless.port()+`
Retry_Limit False
[OUTPUT]
Name es
Host 127.0.0.1
Port `+five.port()+`
Logstash_Format On
Retry_Limit 5
`)
	s := runPipeline(t, filepath.Join(dir, "root"), conf)
	until(t, "the end of the retries of es", func() (bool, string) {
		_, _, http := endless.counts()
		_, _, es := five.counts()
		return http >= 8 && es >= 6, fmt.Sprint(http, " calls by http, ", es, " by es")
	})
	if _, _, es := five.counts(); es != 6 {
		t.Errorf("es was called %d times, want 6", es)
	}
	c := dial(s.url)
	var dead wire.Page
	c.must(t, 200, &dead, "GET", "/jobs?status=dead", nil)
	if len(dead.Jobs) != 1 || !strings.HasSuffix(dead.Jobs[0].Queue, "/es.0") || !strings.Contains(string(dead.Jobs[0].Payload), `"message":"dummy"`) {
		t.Errorf("dead: %+v", dead.Jobs)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("a stop with a dead output ended with %d:\n%s", code, s.output())
	}
}

// TestADryRunTellsAllAtOnce, and both examples of the seed pass it as they stand.
func TestADryRunTellsAllAtOnce(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		text, says string
		code       int
	}{
		"scheduler": {"[SERVICE]\nFlush 5\nDaemon off\nLog_Level debug\nscheduler.base 3\nscheduler.cap 30\n", "configuration test is successful", 0},
		"retries": {
			"[OUTPUT]\nName http\nHost 192.168.5.6\nPort 8080\nRetry_Limit False\n[OUTPUT]\nName es\nHost 192.168.5.20\nPort 9200\nLogstash_Format On\nRetry_Limit 5\n",
			"configuration test is successful", 0,
		},
		"wrong": {"[INPUT]\n    Name tial\n[OUTPUT]\n    Name http\n    Retry_Limit 0\n", "did you mean tail?", 1},
	} {
		conf := write(t, filepath.Join(dir, name+".conf"), c.text)
		cmd := exec.Command(binary, "pipeline", "-c", conf, "--dry-run")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if c.code > 0 && !strings.Contains(string(out), "wrong.conf:5: retry_limit") {
			t.Errorf("not all is told:\n%s", out)
		}
	}
	if _, err := os.Stat("reprise-root"); err == nil {
		t.Error("a dry run made a directory")
	}
}

// TestThePipelineBenchCountsEveryRecord with the binary as it is.
func TestThePipelineBenchCountsEveryRecord(t *testing.T) {
	out, err := exec.Command(binary, "bench", "pipeline", "--records", "5000", "--dir", t.TempDir(), "--json").Output()
	var r struct {
		Records, Delivered int64
		Seconds            float64
	}
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil || r.Records != 5000 || r.Delivered != 5000 || r.Seconds <= 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAPipelineIsReloaded on SIGHUP: what waits goes on with its attempts, a configuration
// that cannot run changes nothing, and the file is not read again.
func TestAPipelineIsReloaded(t *testing.T) {
	told(t)
	t.Parallel()
	dir := t.TempDir()
	first, second := newTarget(t), newTarget(t)
	log := filepath.Join(dir, "app.log")
	conf := filepath.Join(dir, "fluent-bit.conf")
	to := func(x *target, more string) {
		write(t, conf, "[SERVICE]\n    Flush 0.2\n    Hot_Reload On\n"+more+"[INPUT]\n    Name tail\n    Path "+log+"\n    Read_from_Head on\n"+x.output("    Retry_Limit no_limits\n"))
	}
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	line := func(n int) {
		if _, err := fmt.Fprintf(file, "line %d\n", n); err != nil {
			t.Fatal(err)
		}
	}
	has := func(x *target, want int) func() (bool, string) {
		return func() (bool, string) { n, _, _ := x.counts(); return n == want, fmt.Sprint(n, " lines came") }
	}
	said := func(s *server, text string) func() (bool, string) {
		return func() (bool, string) { return strings.Contains(s.output(), text), s.output() }
	}
	to(first, "")
	s := runPipeline(t, filepath.Join(dir, "root"), conf)
	line(1)
	until(t, "the first line", has(first, 1))
	to(second, "")
	s.signal(syscall.SIGHUP)
	until(t, "the reload", said(s, "the configuration was reloaded"))
	line(2)
	until(t, "the second line", has(second, 1))
	to(first, "    Flush never\n")
	s.signal(syscall.SIGHUP)
	until(t, "the refusal", said(s, "the configuration was not reloaded; nothing has changed"))
	line(3)
	until(t, "the third line", has(second, 2))
	if n, again, _ := first.counts(); n != 1 || again != 0 {
		t.Errorf("the first target got %d lines, %d again", n, again)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.output())
	}
}

// TestChunksThatWaitAreNotWrittenOver: small chunks come one after the other while the
// target is down. Each keeps its own records, and all of them come once.
func TestChunksThatWaitAreNotWrittenOver(t *testing.T) {
	told(t)
	t.Parallel()
	const chunks, each = 6, 10
	dir := t.TempDir()
	x := newTarget(t)
	var well atomic.Bool
	x.refuse = func(int) int {
		if well.Load() {
			return 0
		}
		return http.StatusServiceUnavailable
	}
	log := filepath.Join(dir, "app.log")
	conf := write(t, filepath.Join(dir, "fluent-bit.conf"), `[SERVICE]
    Flush 0.1
    scheduler.base 1
    scheduler.cap 1
[INPUT]
    Name tail
    Path `+log+`
    Read_from_Head on
`+x.output("    Retry_Limit no_limits\n"))
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	s := runPipeline(t, filepath.Join(dir, "root"), conf)
	for c := range chunks {
		for i := range each {
			_, err = fmt.Fprintf(file, "line %d\n", c*each+i)
		}
		until(t, "a call of one more chunk", func() (bool, string) {
			_, _, calls := x.counts()
			return err == nil && calls > c*(c+1)/2, fmt.Sprint(calls, " calls, ", err)
		})
	}
	well.Store(true)
	until(t, "all lines", func() (bool, string) {
		n, _, _ := x.counts()
		return n == chunks*each, fmt.Sprint(n, " of ", chunks*each, " lines came")
	})
	if _, again, _ := x.counts(); again != 0 {
		t.Errorf("%d lines came again", again)
	}
	if code := s.terminate(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, s.output())
	}
}
