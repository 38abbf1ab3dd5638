package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var peaks = flag.Bool("peaks", false, "measure the peak memory of the worst legal requests (make peaks), some GiB in all")

// hungry is a kind of legal request that needs much memory. It runs until the
// server has all it wants of it.
type hungry struct {
	name  string
	bound string // the setting that bounds it
	most  int64  // MiB above what the server had before; more is a fault
	fill  func(p *peak)
	run   func(p *peak)
}

// peak is a server under such requests.
type peak struct {
	*testing.T
	*server
	conns []net.Conn
}

// TestPeakMemory measures what the server needs at most under the requests that need
// the most, each on a server of its own, as the table in docs/operations.md shows it.
func TestPeakMemory(t *testing.T) {
	if !*peaks {
		t.Skip("needs -peaks")
	}
	for _, c := range hungriest {
		t.Run(c.name, func(t *testing.T) {
			p := &peak{T: t, server: start(t, t.TempDir())}
			if c.fill != nil {
				c.fill(p)
			}
			p.again()
			before := p.memory("VmRSS")
			c.run(p)
			peak := p.memory("VmHWM")
			closeAll(p.conns)
			t.Logf("peak: %-60s %5d MiB, before %4d MiB (%s)", c.name, peak, before, c.bound)
			if c.most > 0 && peak-before > c.most {
				t.Errorf("%d MiB above the %d MiB before; want at most %d", peak-before, before, c.most)
			}
			p.kill()
		})
	}
}

// again forgets the peak so far.
func (p *peak) again() {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.cmd.Process.Pid), []byte("5"), 0); err != nil {
		p.Fatal(err)
	}
}

// memory is a line of the status of the process, in MiB.
func (p *peak) memory(what string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), what+":")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return kib >> 10
}

// calls sends the same request n times at once and counts the answers by status.
func (p *peak) calls(n int, method, path, body string) map[int]int {
	var mu sync.Mutex
	var all sync.WaitGroup
	got := map[int]int{}
	for range n {
		all.Go(func() {
			req, _ := http.NewRequest(method, p.url+path, strings.NewReader(body))
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			status := 0
			if err == nil {
				status = resp.StatusCode
				if status >= 300 {
					text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
					p.Logf("%d %s", status, text)
				}
				_ = resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	all.Wait()
	p.Logf("%d %s %.40s, %d bytes each: %v", n, method, path, len(body), got)
	return got
}

// stall sends n requests and reads nothing of their answers. It waits until the
// server has done for them what it will.
func (p *peak) stall(n int, request string) {
	for range n {
		c, err := (&net.Dialer{}).DialContext(p.Context(), "tcp", p.addr)
		if err != nil {
			p.Fatal(err)
		}
		p.conns = append(p.conns, c)
		_ = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		go func() { _, _ = c.Write([]byte(request)) }()
	}
	p.settled()
}

// settled waits until the memory of the server does not grow any more.
func (p *peak) settled() {
	for last, quiet := int64(0), 0; quiet < 8; {
		<-time.After(250 * time.Millisecond)
		if now := p.memory("VmHWM"); now > last {
			last, quiet = now, 0
		} else {
			quiet++
		}
	}
}

// jobs fills a queue with payloads of a size.
func (p *peak) jobs(queue string, n, size int) {
	body := fmt.Sprintf(`{"queue":%q,"type":"t","payload":"%s"}`, queue, strings.Repeat("x", size))
	for range n {
		if got := p.calls(1, "POST", "/jobs", body); got[201] != 1 {
			p.Fatal(got)
		}
	}
}

// bulk is a batch enqueue of about a size, of jobs with these members.
func bulk(size, n int, member func(i int) string) string {
	var b bytes.Buffer
	b.WriteString(`{"jobs":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"queue":"q","type":"t",%s}`, member(i))
		if b.Len() > size {
			break
		}
	}
	b.WriteString(`]}`)
	return b.String()
}

func names(n int, quote, name string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quote + name + strconv.FormatInt(int64(i), 36) + quote)
	}
	return b.String()
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

const sixty = 60 << 20

var hungriest = []hungry{
	{name: "batch of 100,000 jobs in 60 MiB", bound: "body_max", most: 900, run: func(p *peak) {
		p.calls(1, "POST", "/jobs/bulk", bulk(sixty, 100_000, func(int) string { return `"payload":"` + strings.Repeat("x", 580) + `"` }))
	}},
	{name: "batch of 100,000 empty jobs", bound: "100,000 jobs a batch", most: 600, run: func(p *peak) {
		p.calls(1, "POST", "/jobs/bulk", bulk(sixty, 100_000, func(int) string { return `"payload":0` }))
	}},
	{name: "batch of 100,000 jobs, all members", bound: "body_max", most: 1200, run: func(p *peak) {
		p.calls(1, "POST", "/jobs/bulk", bulk(sixty, 100_000, func(i int) string {
			return fmt.Sprintf(`"payload":{"n":%d},"group":"g%d","unique_key":"u%d","idempotency_key":"i%d","labels":{"a":"%d","b":"b","c":"c","d":"d","e":"e","f":"f"},"backoff":{"exponent":2,"base_ms":%d,"jitter_ms":1},"retry_limit":%d,"requires":["a=1","b=1","c=1","d=1","e=1","f=%d"],"run_timeout_ms":5`, i, i, i, i, i, i, i%9, i%7)
		}))
	}},
	{name: "batch of one job of 60 MiB", bound: "body_max", most: 600, run: func(p *peak) {
		p.calls(1, "POST", "/jobs/bulk", bulk(sixty, 1, func(int) string { return `"payload":"` + strings.Repeat("x", sixty) + `"` }))
	}},
	{name: "eight batches of 100,000 jobs, all members, at once", bound: "max_inflight_bytes", most: 2400, run: func(p *peak) {
		p.calls(8, "POST", "/jobs/bulk", bulk(sixty, 100_000, func(i int) string {
			return fmt.Sprintf(`"payload":{"n":%d},"group":"g%d","labels":{"a":"%d","b":"b","c":"c","d":"d","e":"e","f":"f"},"backoff":{"exponent":2,"base_ms":%d,"jitter_ms":1},"retry_limit":%d,"requires":["a=1","b=1","c=1","d=1","e=1","f=%d"],"run_timeout_ms":5,"start_timeout_ms":%d`, i, i, i, i, i%9, i%7, i%5+1)
		}))
	}},
	{name: "200 leases that name 1,000 queues", bound: "1,000 names in 64 KiB; max_streams, max_inflight_bytes", most: 500, run: func(p *peak) {
		p.stall(200, post("/jobs/lease", `{"wait_ms":300000,"queues":[`+names(1000, `"`, strings.Repeat("q", 60))+`]}`+strings.Repeat(" ", 900_000)))
	}},
	{name: "200 takes that name 1,000 queues", bound: "1,000 names in 64 KiB; max_streams", most: 200, run: func(p *peak) {
		p.stall(200, get("/jobs/take?queue="+names(1000, "", strings.Repeat("q", 60))))
	}},
	{name: "200 takes of payloads of 1 MiB, nobody reads", bound: "1 MiB a stream; max_streams", most: 900, fill: func(p *peak) { p.jobs("q", 400, 1<<20) }, run: func(p *peak) {
		p.stall(200, get("/jobs/take?prefetch=2"))
	}},
	{name: "200 takes of payloads of 16 MiB, nobody reads", bound: "max_inflight_bytes", most: 500, fill: func(p *peak) { p.jobs("q", 200, 16<<20) }, run: func(p *peak) {
		p.stall(200, get("/jobs/take?prefetch=1"))
	}},
	{name: "200 leases of 16 MiB, nobody reads", bound: "max_inflight_bytes", most: 500, fill: func(p *peak) { p.jobs("q", 200, 16<<20) }, run: func(p *peak) {
		p.stall(200, post("/jobs/lease", `{"max":1}`))
	}},
	{name: "20 leases of 100 jobs of 1 MiB, nobody reads", bound: "max_inflight_bytes", most: 500, fill: func(p *peak) { p.jobs("q", 2000, 1<<20) }, run: func(p *peak) {
		p.stall(20, post("/jobs/lease", `{"max":100}`))
	}},
	{name: "64 event streams, nobody reads", bound: "64 streams of 4,096 events", most: 600, run: func(p *peak) {
		p.stall(80, get("/events")) // 16 are refused
		for range 5 {
			p.calls(1, "POST", "/jobs/bulk", bulk(sixty, 20_000, func(int) string { return `"payload":0` }))
		}
		p.settled()
	}},
}
