package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reprisehq/reprise/internal/bench/gauge"
	"github.com/reprisehq/reprise/internal/child"
)

// PipelineOptions are a run of a pipeline, from a file to an HTTP server.
type PipelineOptions struct {
	Program string // the binary; "" = this one
	Dir     string // for the file and the store; "" = that of the system
	Records int
	Bytes   int // of a line, with its end; at least 20
}

// PipelineResult is what a run came to. The processor time is that of the pipeline alone.
type PipelineResult struct {
	Records   int64   `json:"records"`
	Delivered int64   `json:"delivered"`
	Seconds   float64 `json:"seconds"` // from the start of the server to the last record
	PerSecond float64 `json:"records_per_second"`
	CPU       float64 `json:"cpu_seconds_per_million"`
	Peak      int64   `json:"peak_bytes"` // in memory; 0 = the system does not tell
}

// Pipeline measures tail to http: a server reads a file of lines, keeps chunks on disk and
// sends them as json_lines to a server in this process, which counts them.
func Pipeline(ctx context.Context, o PipelineOptions) (r PipelineResult, err error) {
	dir, err := os.MkdirTemp(o.Dir, "reprise-bench-pipeline-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	got := &lineCounter{want: int64(o.Records), all: make(chan struct{})}
	s := &http.Server{Handler: got, ReadHeaderTimeout: time.Minute}
	defer func() { err = errors.Join(err, s.Close()) }()
	go func() { _ = s.Serve(listener) }() // it ends with Close
	if err := pipelineFiles(dir, listener.Addr().(*net.TCPAddr).Port, o); err != nil {
		return r, err
	}
	program := o.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return r, err
		}
	}
	began := gauge.Now()
	process, err := child.Start(ctx, program, nil, serverAttributes(),
		"serve", "-c", filepath.Join(dir, "reprise.yaml"), "--port", "0", "--no-admin", "--root-dir", filepath.Join(dir, "root"))
	if err != nil {
		return r, err
	}
	defer process.Kill()
	select {
	case <-got.all:
	case <-process.Exited:
		return r, process.Ended()
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
	took := gauge.Now() - began
	if err := process.Stop(); err != nil {
		return r, err
	}
	cpu, peak := process.Used()
	r = PipelineResult{Records: int64(o.Records), Delivered: got.lines.Load(), Seconds: took.Seconds(), Peak: peak}
	r.PerSecond = float64(o.Records) / r.Seconds
	r.CPU = cpu.Seconds() / float64(o.Records) * 1e6
	return r, nil
}

// pipelineFiles writes the lines and the configurations.
func pipelineFiles(dir string, port int, o PipelineOptions) error {
	lines := filepath.Join(dir, "lines.log")
	file, err := os.Create(lines)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	rest := strings.Repeat("x", o.Bytes-11)
	for n := range o.Records {
		_, _ = fmt.Fprintf(w, "%09d %s\n", n, rest) // Flush tells
	}
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		return err
	}
	conf := fmt.Sprintf(`[SERVICE]
    Flush 1
[INPUT]
    Name tail
    Path %s
    Read_from_Head on
[OUTPUT]
    Name http
    Match *
    Host 127.0.0.1
    Port %d
    Format json_lines
    Retry_Limit no_limits
`, lines, port)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "fluent-bit.conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(dir, "reprise.yaml"), []byte("pipelines:\n- file: fluent-bit.conf\n"), 0o600),
	)
}

// lineCounter takes lines and counts them.
type lineCounter struct {
	want  int64
	lines atomic.Int64
	all   chan struct{} // closed when as many came as are wanted
}

// ServeHTTP implements http.Handler.
func (c *lineCounter) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	buffer, n := make([]byte, 64<<10), int64(0)
	for {
		k, err := r.Body.Read(buffer)
		n += int64(bytes.Count(buffer[:k], []byte{'\n'}))
		if err != nil && !errors.Is(err, io.EOF) {
			return // a request that was not whole comes again
		}
		if err != nil {
			break
		}
	}
	if now := c.lines.Add(n); now >= c.want && now-n < c.want {
		close(c.all)
	}
}
