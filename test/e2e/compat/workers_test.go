package compat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
)

// The loops of the official workers, each over its transports and in its
// format, on a server of its own.

// worker is what the official workers have in common: a stream over HTTP/1.1,
// bulk acks of which one is under way, one failure call a job.
type worker struct {
	*client
	stream *stream
	acks   chan string
	flush  sync.WaitGroup
}

// work opens the stream, over an HTTP/1.1 connection of its own.
func (c *client) work(path string, header ...string) *worker {
	c.t.Helper()
	w := &worker{client: c, stream: c.takeOver(c.takes, path, header...), acks: make(chan string, 100)}
	w.flush.Go(func() {
		for id := range w.acks { // what waits by now goes along
			ids := []string{id}
			for len(w.acks) > 0 {
				ids = append(ids, <-w.acks)
			}
			a := c.call("POST", "/jobs/success", `{"ids":`+quoted(ids...)+`}`)
			if a.status != 204 && a.status != 422 { // both are the end of it
				c.t.Errorf("a bulk ack is answered %d %s", a.status, a.body)
			}
		}
	})
	return w
}

// drain waits until all acks are answered.
func (w *worker) drain() {
	close(w.acks)
	w.flush.Wait()
}

func (c *client) enqueueMany(n int) {
	c.t.Helper()
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`{"type":"t","queue":%q,"payload":{"n":%d}}`, c.queue, i)
	}
	c.call("POST", "/jobs/bulk", `{"jobs":[`+strings.Join(list, ",")+`]}`).want(201)
}

func TestTheNodeWorker(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]string{"json": mediaJSON, "msgpack": mediaMsgpack} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, start(t), true, format, nil) // undici: h2c for calls
			w := c.work("/jobs/take?prefetch=4&queue=" + c.queue + ",other")
			const jobs = 10
			c.enqueueMany(jobs)
			for range jobs {
				j := w.stream.next()
				if fmt.Sprint(j.at("payload", "n")) == "3" { // the handler rejects
					a := c.call("POST", "/jobs/"+j.id()+"/failure", `{"message":"boom","error_type":"TypeError","backtrace":"at x"}`).want(200)
					if a.at("status") != "scheduled" {
						t.Errorf("a rejected job is %v", a.value)
					}
					c.call("POST", "/jobs/"+j.id()+"/failure", `{"message":"boom"}`).want(404) // final, not retried
					continue
				}
				w.acks <- j.id()
			}
			w.drain()
			c.until("one is left", func() bool { return c.count("") == 1 && c.count("&status=scheduled") == 1 })

			// stop() aborts the stream, waits for handlers and flushes their acks:
			// by then the job has gone back, and was perhaps given out again.
			c.fresh()
			id := c.enqueue("").id()
			stopping := c.work("/jobs/take?prefetch=1&queue=" + c.queue)
			stopping.stream.wantIDs(id)
			again := c.take("&prefetch=1")
			stopping.stream.close()
			again.wantIDs(id)
			stopping.acks <- id
			stopping.drain()
			if n := c.count(""); n != 0 {
				t.Errorf("an ack during the drain left %d jobs", n)
			}
		})
	}
}

func TestManyCallsShareOneH2Connection(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t), true, mediaJSON, nil)
	c.call("GET", "/health", nil).want(200) // the connection is there, its settings are known
	// As many takes as undici opens streams; they stay open, so a limit below
	// would leave the last ones waiting.
	const streams = 1024
	var opened sync.WaitGroup
	for range streams {
		opened.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			t.Cleanup(cancel)
			resp, err := c.calls.Do(c.request(ctx, "GET", "/jobs/take?queue="+c.queue, nil, "Accept", mediaLines))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
		})
	}
	opened.Wait()
	c.call("GET", "/health", nil).want(200)
}

func TestTheElixirClient(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t), true, mediaMsgpack, nil) // Finch for calls, Mint for the stream
	c.call("GET", "/jobs/take", nil, "Accept", "application/bogus").want(406)
	c.call("GET", "/jobs?", nil).want(200)
	c.call("GET", "/jobs/count?", nil).want(200)
	if reset := c.call("POST", "/reset", `{}`); reset.status != 204 && reset.status != 404 {
		t.Errorf("a reset with a body is answered %d %s", reset.status, reset.body)
	}
	w := c.work("/jobs/take?prefetch=20&queue="+c.queue, "Worker-Id", "elixir@host")
	const jobs = 200
	c.enqueueMany(jobs)
	for range jobs {
		w.acks <- w.stream.next().id()
	}
	w.drain()
	c.until("all are done", func() bool { return c.count("") == 0 })
}

func TestTheRubyClient(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t), true, mediaMsgpack, nil) // async-http: h2 by prior knowledge
	c.enqueueMany(6)
	w := c.work(fmt.Sprintf("/jobs/take?prefetch=%d&queue=%s", 5*2, c.queue))
	var ids []string
	for range 6 {
		ids = append(ids, w.stream.next().id())
	}
	c.call("DELETE", "/jobs/"+ids[0], nil).want(204)
	for _, id := range ids { // the first is gone: 422, which is fine
		w.acks <- id
	}
	w.drain()
	if n := c.count(""); n != 0 {
		t.Errorf("%d are left", n)
	}
}

// The Rust worker goes on reading while it drains, and settles over h2.
func TestTheRustWorker(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t), true, mediaMsgpack, nil)
	w := c.work("/jobs/take?prefetch=3&queue=" + c.queue)
	c.enqueueMany(3)
	held := []string{w.stream.next().id(), w.stream.next().id(), w.stream.next().id()}
	c.call("POST", "/jobs/"+held[0]+"/success", nil).want(204)
	if n := c.count("&status=in_flight"); n != 2 { // the stream is open: nothing went back
		t.Errorf("%d are in flight", n)
	}
	for _, id := range held[1:] {
		w.acks <- id
	}
	w.drain()
	w.stream.close()
	if n := c.count(""); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestTheGlobalLimit(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t, "-l", "2", "--license-key", "none"), true, mediaJSON, nil)
	ids := []string{c.enqueue("").id(), c.enqueue("").id(), c.enqueue("").id()}
	s := c.take("&prefetch=0")
	s.wantIDs(ids[0], ids[1])
	if n := c.count("&status=in_flight"); n != 2 {
		t.Errorf("%d are in flight", n)
	}
	c.call("POST", "/jobs/"+ids[0]+"/success", nil).want(204)
	s.wantIDs(ids[2])
}

// What Zizq 0.6.1 and later count is an option, for those who come from there.
func TestBackoffAsZizqCounts(t *testing.T) {
	t.Parallel()
	c := newClient(t, start(t, "--backoff-count", "including"), false, mediaJSON, nil)
	c.vectors([]vector{
		{`{"exponent":2,"base_ms":100,"jitter_ms":0}`, 1, 1100, 1101},
		{`{"exponent":2,"base_ms":100,"jitter_ms":0}`, 2, 4100, 4101},
		{`{"exponent":2,"base_ms":100,"jitter_ms":0}`, 3, 9100, 9101},
		{`{"exponent":0,"base_ms":0,"jitter_ms":0}`, 2, 1000, 1001},
		{`{"exponent":-1,"base_ms":0,"jitter_ms":0}`, 2, 500, 501},
		{`{"exponent":1.5,"base_ms":1000,"jitter_ms":10000}`, 2, 3828, 23829},
	})
}

// Every stream ends with the server, and what it held is ready after a start.
func TestAStopGivesBack(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newClient(t, s, true, mediaMsgpack, nil)
	id := c.enqueue("").id()
	taken := c.take("")
	taken.wantIDs(id)
	s.stop()
	for {
		if v, err := taken.frame(); err != nil {
			if err == io.EOF || strings.Contains(err.Error(), "EOF") {
				return
			}
			t.Fatalf("the stream ended with %v", err)
		} else if v != nil {
			t.Fatalf("the stream went on with %v", v)
		}
	}
}
