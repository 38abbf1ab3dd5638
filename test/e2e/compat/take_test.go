package compat

import (
	"fmt"
	"strings"
	"time"
)

// takeOrder: priority, then age, over all queues of the stream; a queue that
// is not asked for stays.
func takeOrder(c *client) {
	late := c.enqueue(`,"priority":9`).id()
	first := c.enqueue(`,"priority":0`).id()
	second := c.enqueue(`,"priority":0`).id()
	other := c.call("POST", "/jobs", `{"type":"t","queue":"other-`+c.queue+`","payload":null,"priority":1}`).want(201).id()
	c.call("POST", "/jobs", `{"type":"t","queue":"third-`+c.queue+`","payload":null,"priority":0}`).want(201)
	s := c.takeOver(c.takes, "/jobs/take?prefetch=0&queue=other-"+c.queue+",,"+c.queue, "Worker-Id", "somebody")
	s.wantIDs(first, second, other, late)
	if n := number(c.t, c.call("GET", "/jobs/count?queue=third-"+c.queue+"&status=ready", nil).at("count")); n != 1 {
		c.t.Errorf("%d jobs of another queue are ready", n)
	}
}

// takeFormats: the three formats, and which Accept chooses them.
func takeFormats(c *client) {
	for accept, want := range map[string]string{
		absent: mediaLines, "*/*": mediaLines, mediaLines: mediaLines, mediaJSON: mediaLines,
		mediaFrames: mediaFrames, mediaMsgpack: mediaFrames, mediaJSON + ", " + mediaMsgpack: mediaFrames,
		mediaEvents: mediaEvents, mediaFrames + ", " + mediaEvents: mediaEvents,
	} {
		s := c.take("&prefetch=2", "Accept", accept)
		if s.media != want {
			c.t.Errorf("Accept %q is answered with %s, want %s", accept, s.media, want)
		}
		id := c.enqueue("").id()
		j := s.next()
		same(c.t, "status, attempts, payload", []any{j.at("status"), j.at("attempts"), j.at("payload")}, `["in_flight",0,null]`)
		if j.id() != id || number(c.t, j.at("dequeued_at")) < number(c.t, j.at("ready_at")) {
			c.t.Errorf("took %v, want %s", j.value, id)
		}
		c.call("POST", "/jobs/"+id+"/success", nil).want(204)
		s.close()
	}
}

// takePrefetch: never more than so many, one more for each that is settled or
// deleted, over whatever connection.
func takePrefetch(c *client) {
	var ids []string
	for range 6 {
		ids = append(ids, c.enqueue("").id())
	}
	s := c.take("&prefetch=2")
	s.wantIDs(ids[0], ids[1])
	if n := c.count("&status=in_flight"); n != 2 {
		c.t.Errorf("%d are in flight", n)
	}
	c.call("POST", "/jobs/"+ids[1]+"/success", nil).want(204)
	s.wantIDs(ids[2])
	c.call("POST", "/jobs/"+ids[0]+"/failure", `{"message":"m","retry_at":4102444800000}`).want(200)
	s.wantIDs(ids[3])
	c.call("DELETE", "/jobs/"+ids[2], nil).want(204)
	s.wantIDs(ids[4])
	c.call("POST", "/jobs/"+ids[2]+"/success", nil).want(404)
	if n := c.count("&status=in_flight"); n != 2 {
		c.t.Errorf("%d are in flight", n)
	}
	one := c.take("") // one by default
	one.wantIDs(ids[5])
	one.close()
	s.close()
	c.until("all are back", func() bool { return c.count("&status=in_flight") == 0 })
	c.take("&prefetch=0").wantIDs(ids[3], ids[4], ids[5])
	c.call("GET", "/jobs/take?prefetch=-1", nil, "Accept", mediaLines).want(400)
	c.call("GET", "/jobs/take?nonsense=1", nil, "Accept", mediaLines).want(400)
}

// takeSharesNothing: two streams never have the same job.
func takeSharesNothing(c *client) {
	const jobs = 40
	a, b := c.take(fmt.Sprint("&prefetch=", jobs/2)), c.take(fmt.Sprint("&prefetch=", jobs/2))
	seen := map[string]bool{}
	for range jobs {
		c.enqueue("")
	}
	for range jobs / 2 {
		seen[a.next().id()], seen[b.next().id()] = true, true
	}
	if len(seen) != jobs {
		c.t.Errorf("%d of %d jobs were given out, the others twice", len(seen), jobs)
	}
}

// takeDisconnect: what a connection holds when it ends is ready again at once,
// uncharged, and whoever waits gets it, in order.
func takeDisconnect(c *client) {
	ids := []string{c.enqueue("").id(), c.enqueue("").id(), c.enqueue("").id()}
	s := c.take("&prefetch=3")
	s.wantIDs(ids[0]) // the others are on their way
	other := c.take("&prefetch=0")
	s.close()
	for _, id := range ids {
		if j := other.next(); j.id() != id || number(c.t, j.at("attempts")) != 0 {
			c.t.Errorf("taken over as %v, want %s", j.value, id)
		}
	}
	c.call("POST", "/jobs/success", `{"ids":`+quoted(ids...)+`}`).want(204)
}

// takeHeartbeats: the headers come before there is work, a heartbeat about
// every 3 s, on every kind of connection.
func takeHeartbeats(c *client) {
	for _, over := range []struct {
		name   string
		stream *stream
	}{{"h1", c.take("")}, {"the calls' transport", c.takeOver(c.calls, "/jobs/take?queue="+c.queue)}} {
		began := time.Now()
		if v, err := over.stream.frame(); v != nil || err != nil {
			c.t.Errorf("over %s the first frame is %v, %v", over.name, v, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			c.t.Errorf("over %s the first heartbeat took %s", over.name, took)
		}
	}
	if cache := c.take("").header.Get("Content-Length"); cache != "" {
		c.t.Errorf("a stream has the length %s", cache)
	}
	if !strings.HasPrefix(c.take("", "Accept", mediaEvents).media, mediaEvents) {
		c.t.Error("no events")
	}
}
