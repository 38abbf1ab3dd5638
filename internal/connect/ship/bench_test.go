//go:build unix

package ship

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

const lineServer = "REPRISE_TEST_LINE_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(lineServer) != "" {
		serveLines()
	}
	os.Exit(m.Run())
}

// serveLines counts the lines that it is sent, in a process of its own, whose
// time is not the sink's. To a path with _bulk it answers that each second line was created.
func serveLines() {
	one := []byte(`{"create":{"_index":"fluent-bit","_id":"kVZ1YpABz0pXWmT3sQ2h","_version":1,"result":"created","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":1,"_primary_term":1,"status":201}}`)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines, buf := 0, make([]byte, 64<<10)
		for {
			n, err := r.Body.Read(buf)
			lines += bytes.Count(buf[:n], []byte{'\n'})
			if err != nil {
				break
			}
		}
		if strings.HasSuffix(r.URL.Path, "_bulk") {
			out := bufio.NewWriter(w)
			_, _ = out.WriteString(`{"took":30,"errors":false,"items":[`)
			for i := range lines / 2 {
				if i > 0 {
					_ = out.WriteByte(',')
				}
				_, _ = out.Write(one)
			}
			_, _ = out.WriteString("]}")
			_ = out.Flush()
			return
		}
		w.Header().Set("X-Lines", fmt.Sprint(lines))
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(l.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
		os.Exit(0)
	}()
	_ = server.Serve(l)
	os.Exit(1)
}

func lineServerAddress(b *testing.B) string {
	b.Helper()
	c := exec.CommandContext(b.Context(), os.Args[0])
	c.Env = append(os.Environ(), lineServer+"=1")
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err1 != nil || err2 != nil || c.Start() != nil {
		b.Fatal(err1, err2)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

const benchRecords = 10_000

// benchChunk has records of 150 bytes.
func benchChunk() (events []byte) {
	for i := range benchRecords {
		line := fmt.Appendf(nil, `10.1.2.3 - frank [24/Nov/2015:22:15:40 +0000] "GET /shop/%06d HTTP/1.1" 200 2326 "http://www.example.com/start" "Mozilla/5.0 (X11; Linux)"`, i)
		line = append(line, bytes.Repeat([]byte{'.'}, 150-len(line))...)
		events = record.AppendText(events, record.Time{Sec: 1448403340 + int64(i/1000), Nsec: uint32(i%1000) * 1e6}, "log", line)
	}
	return events
}

func benchSink(b *testing.B, s connect.Sink, events []byte) {
	b.Helper()
	spent := func() int64 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			b.Fatal(err)
		}
		return used.Utime.Nano() + used.Stime.Nano()
	}
	batch := &connect.Batch{Messages: []connect.Message{{Type: "app", Body: events}}}
	b.ReportAllocs()
	begin := spent()
	for b.Loop() {
		if r := s.Deliver(context.Background(), batch)[0]; r.Outcome != job.OK || r.Parts != nil {
			b.Fatalf("%+v", r)
		}
	}
	b.ReportMetric(float64(spent()-begin)/float64(b.N)/benchRecords, "cpu-ns/record")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRecords, "ns/record")
}

func BenchmarkHTTP(b *testing.B) {
	address, events := lineServerAddress(b), benchChunk()
	for _, compress := range []string{"none", "gzip", "snappy", "zstd"} {
		b.Run("json_lines/"+compress, func(b *testing.B) {
			o := DefaultHTTP()
			o.Format, o.Compress = "json_lines", compress
			at(b, &o.Target, address)
			s, err := NewHTTP(o)
			if err != nil {
				b.Fatal(err)
			}
			benchSink(b, s, events)
		})
	}
}

func BenchmarkES(b *testing.B) {
	o := DefaultES()
	o.Now = time.Now
	at(b, &o.Target, lineServerAddress(b))
	s, err := NewES(o)
	if err != nil {
		b.Fatal(err)
	}
	benchSink(b, s, benchChunk())
}
