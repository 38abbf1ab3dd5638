package compat

import (
	"fmt"
	"strings"
	"time"
)

// noID has the shape of an id and was never given.
const noID = "0000000000000000000000000"

// negotiation: absent, each type, several, none that is known; 406 and 415 are
// always JSON and come before anything else.
func negotiation(c *client) {
	supported := `["application/json","application/msgpack"]`
	for accept, want := range map[string]string{
		absent: mediaJSON, "*/*": mediaJSON, mediaJSON: mediaJSON, mediaMsgpack: mediaMsgpack,
		"text/html, application/json": mediaJSON, "application/json, application/msgpack": mediaMsgpack,
		"application/msgpack;q=0.5, application/json;q=0.9": mediaMsgpack,
	} {
		for path, status := range map[string]int{"/health": 200, "/jobs/" + noID: 404, "/jobs?limit=0": 400, "/jobs?nonsense=1": 400} {
			if got := c.call("GET", path, nil, "Accept", accept); got.status != status || got.header.Get("Content-Type") != want {
				c.t.Errorf("GET %s, Accept %q: got %d %s, want %d %s", path, accept, got.status, got.header.Get("Content-Type"), status, want)
			}
		}
	}
	for _, accept := range []string{"text/html", "application/xml", "bogus", mediaFrames} {
		for _, path := range []string{"/health", "/jobs/" + noID, "/jobs?limit=0"} {
			got := c.call("GET", path, nil, "Accept", accept).want(406, "not acceptable")
			if got.header.Get("Content-Type") != mediaJSON {
				c.t.Errorf("a 406 is %s", got.header.Get("Content-Type"))
			}
			same(c.t, "supported", got.at("supported"), supported)
		}
		c.call("POST", "/jobs", raw("nonsense"), "Accept", accept, "Content-Type", "text/html").want(406)
	}
	for _, typ := range []string{"text/plain", "application/x-www-form-urlencoded", "bogus"} {
		got := c.call("POST", "/jobs", raw("nonsense"), "Content-Type", typ).want(415, "unsupported media type")
		if got.header.Get("Content-Type") != mediaJSON {
			c.t.Errorf("a 415 is %s", got.header.Get("Content-Type"))
		}
		same(c.t, "supported", got.at("supported"), supported)
	}
	c.call("POST", "/jobs", raw("{"), "Content-Type", absent).want(400, "invalid JSON: ")
	c.call("POST", "/jobs", raw("{"), "Content-Type", "application/json; charset=utf-8").want(400, "invalid JSON: ")
	c.call("POST", "/jobs", raw("\x81"), "Content-Type", mediaMsgpack).want(400, "invalid MessagePack: ")
	got := c.call("GET", "/jobs/"+noID, nil).want(404, "job not found")
	if got.header.Get("Content-Type") != c.format {
		c.t.Errorf("an error is %s, not %s", got.header.Get("Content-Type"), c.format)
	}
	c.call("PUT", "/jobs", nil).want(405)
	c.call("GET", "/nowhere", nil).want(404, "not found")
	c.call("GET", "/jobs/", nil).want(404)
	for _, accept := range []string{"bogus", "text/html"} {
		got := c.call("GET", "/jobs/take", nil, "Accept", accept).want(406, "not acceptable")
		same(c.t, "supported streams", got.at("supported"), `["text/event-stream","application/x-ndjson","application/vnd.zizq.msgpack-stream"]`)
	}
}

// enqueueing: minimal, all fields, times past and future, unknown fields.
func enqueueing(c *client) {
	before := time.Now().UnixMilli()
	a := c.enqueue("")
	for name := range a.value.(map[string]any) {
		if !strings.Contains(" id type queue priority status ready_at attempts duplicate folded ", " "+name+" ") {
			c.t.Errorf("a minimal job has a %s", name)
		}
	}
	same(c.t, "the rest", []any{a.at("type"), a.at("priority"), a.at("status"), a.at("attempts"), a.at("duplicate"), a.at("folded")},
		`["t",32768,"ready",0,false,false]`)
	if at := number(c.t, a.at("ready_at")); at < before-1000 || at > time.Now().UnixMilli()+1000 {
		c.t.Errorf("ready at %d, enqueued at %d", at, before)
	}
	whole := c.enqueue(`,"priority":0,"ready_at":4102444800000,"retry_limit":0,"backoff":{"exponent":2.0,"base_ms":100,"jitter_ms":0},
		"retention":{"completed_ms":60000,"dead_ms":0},"some":"thing else"`)
	same(c.t, "priority, status, ready_at, retry_limit", []any{whole.at("priority"), whole.at("status"), whole.at("ready_at"), whole.at("retry_limit")},
		`[0,"scheduled",4102444800000,0]`)
	same(c.t, "retention", whole.at("retention"), `{"completed_ms":60000,"dead_ms":0}`)
	if base := whole.at("backoff", "base_ms"); fmt.Sprint(base) != "100" || strings.TrimSuffix(fmt.Sprint(whole.at("backoff", "exponent")), ".0") != "2" {
		c.t.Errorf("backoff is %v", whole.at("backoff"))
	}
	c.enqueue(`,"backoff":{"exponent":2,"base_ms":100,"jitter_ms":0}`)
	c.enqueue(`,"backoff":{"exponent":-1.5,"base_ms":0,"jitter_ms":4294967295}`)
	past := c.enqueue(`,"ready_at":1000,"priority":65535`)
	same(c.t, "a job of the past", []any{past.at("status"), past.at("ready_at"), past.at("priority")}, `["ready",1000,65535]`)
	shown := c.call("GET", "/jobs/"+a.id(), nil).want(200)
	if payload, there := shown.value.(map[string]any)["payload"]; !there || payload != nil {
		c.t.Errorf("the payload null is %v, %v", payload, there)
	}
}

func enqueueRefuses(c *client) {
	for body, says := range map[string]string{
		`{"queue":"q","payload":1}`:                                                                 "type",
		`{"type":"t","payload":1}`:                                                                  "queue",
		`{"type":"t","queue":"q"}`:                                                                  "payload",
		`{"type":"","queue":"q","payload":1}`:                                                       "type must not be empty",
		`{"type":"t","queue":"","payload":1}`:                                                       "queue must not be empty",
		`{"type":"t","queue":"a,b","payload":1}`:                                                    "queue must not contain ','",
		`{"type":"t","queue":"a\u0000b","payload":1}`:                                               "queue must not contain null bytes",
		`{"type":"a*","queue":"q","payload":1}`:                                                     "type must not contain '*' (reserved)",
		`{"type":"t","queue":"q","payload":1,"priority":65536}`:                                     "priority",
		`{"type":"t","queue":"q","payload":1,"priority":-1}`:                                        "priority",
		`{"type":"t","queue":"q","payload":1,"priority":1.5}`:                                       "priority",
		`{"type":"t","queue":"q","payload":1,"retry_limit":4294967296}`:                             "retry_limit",
		`{"type":"t","queue":"q","payload":1,"ready_at":"soon"}`:                                    "ready_at",
		`{"type":"t","queue":"q","payload":1,"backoff":{"exponent":2,"base_ms":1}}`:                 "jitter_ms",
		`{"type":"t","queue":"q","payload":1,"backoff":{"exponent":"x","base_ms":1,"jitter_ms":1}}`: "exponent",
		`[]`: "object",
		`1`:  "object",
	} {
		c.call("POST", "/jobs", body).want(400, says)
	}
	if c.format == mediaMsgpack { // bin in a payload
		c.call("POST", "/jobs", raw("\x83\xa4type\xa1t\xa5queue\xa1q\xa7payload\xc4\x01x")).want(400, "invalid MessagePack: payload")
	}
}

// numbers: what is sent in one format is read in both, with all digits.
func numbers(c *client) {
	deep := strings.Repeat(`[{"a":`, 60) + "1" + strings.Repeat("}]", 60) // clients read 127 levels
	for _, payload := range []string{
		"9007199254740993", "-9007199254740993", "-9223372036854775808", "9223372036854775807", "18446744073709551615",
		"0", "1", "1.0", "-0.5", "1e300", "5e-324", "0.1", "1.7976931348623157e308",
		`"ünïcödé 日本 🎈"`, `"a\u0000b"`, `"\u001f\"\\\/<>&\u2028"`, "true", "null", "[]", "{}",
		`{"b":1,"a":[1,2.0,{"c":null}]}`, deep,
	} {
		id := c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":`+payload+`}`).want(201).id()
		for _, accept := range []string{mediaJSON, mediaMsgpack} {
			same(c.t, "the payload as "+accept, c.call("GET", "/jobs/"+id, nil, "Accept", accept).want(200).at("payload"), payload)
		}
		same(c.t, "the payload in a list", c.call("GET", "/jobs?id="+id, nil).want(200).at("jobs", 0, "payload"), payload)
		for _, accept := range []string{mediaLines, mediaFrames, mediaEvents} {
			s := c.take("&prefetch=1", "Accept", accept)
			same(c.t, "the payload taken as "+accept, s.next().at("payload"), payload)
			s.close()
			c.until("the job is back", func() bool { return c.count("&status=ready") == 1 })
		}
		c.call("DELETE", "/jobs/"+id, nil).want(204)
	}
}

// bulk: order, atomicity, what an entry is refused with, 201 for none.
func bulk(c *client) {
	job := func(more string) string { return `{"type":"t","queue":"` + c.queue + `","payload":1` + more + `}` }
	a := c.call("POST", "/jobs/bulk", `{"jobs":[`+job(`,"priority":1`)+","+job(`,"priority":2`)+","+job(`,"priority":3`)+`]}`).want(201)
	last := ""
	for i := range 3 {
		one := answer{t: c.t, value: a.at("jobs", i)}
		if id := one.id(); id <= last || number(c.t, one.at("priority")) != int64(i+1) {
			c.t.Errorf("job %d is %v", i, one.value)
		} else {
			last = id
		}
	}
	c.call("POST", "/jobs/bulk", `{"jobs":[`+job("")+","+job(`,"priority":65536`)+`]}`).want(400, "jobs[1]: priority")
	if n := c.count(""); n != 3 {
		c.t.Errorf("after a refused bulk there are %d jobs", n)
	}
	same(c.t, "an empty bulk", c.call("POST", "/jobs/bulk", `{"jobs":[]}`).want(201).value, `{"jobs":[]}`)
	c.call("POST", "/jobs/bulk", `{}`).want(400, "jobs")
}

// listing: pages whose links are followed as they are.
func listing(c *client) {
	var ids []string
	for range 5 {
		ids = append(ids, c.enqueue("").id())
	}
	var seen []string
	path := "/jobs?queue=" + c.queue + "&limit=2"
	for path != "" {
		page := c.call("GET", path, nil).want(200)
		list, _ := page.at("jobs").([]any)
		for i := range list {
			seen = append(seen, at(list, i, "id").(string))
		}
		if _, there := page.at("pages").(map[string]any)["prev"]; !there {
			c.t.Error("pages.prev is left out")
		}
		path, _ = page.at("pages", "next").(string)
	}
	if strings.Join(seen, " ") != strings.Join(ids, " ") {
		c.t.Errorf("listed %v, want %v", seen, ids)
	}
	c.call("GET", "/jobs?queue="+c.queue+"&limit=0", nil).want(400, "limit must be between 1 and 2000")
	c.call("GET", "/jobs?nonsense=1", nil).want(400)
	c.call("GET", "/jobs/count?nonsense=1", nil).want(400)
	for query, want := range map[string]int{ // the ends of all ids, and beyond
		"from=0000000000000000000000000": 5, "from=0000000000000000000000000&order=desc": 0,
		"from=f5lxx1zz5pnorynqglhzmsp33": 0, "from=f5lxx1zz5pnorynqglhzmsp33&order=desc": 5,
		"from=zzzzzzzzzzzzzzzzzzzzzzzzz": 0, "from=zzzzzzzzzzzzzzzzzzzzzzzzz&order=desc": 5, "id=zzzzzzzzzzzzzzzzzzzzzzzzz": 0,
	} {
		if list, _ := c.call("GET", "/jobs?queue="+c.queue+"&"+query, nil).want(200).at("jobs").([]any); len(list) != want {
			c.t.Errorf("%s lists %d, want %d", query, len(list), want)
		}
	}
	late := c.call("POST", "/jobs", `{"type":"t","queue":"late-`+c.queue+`","payload":null,"ready_at":18446744073709551615,"retention":{"dead_ms":18446744073709551615}}`).want(201)
	same(c.t, "the last date of all", late.at("status"), `"scheduled"`)
	same(c.t, "an empty list", c.call("GET", "/jobs?queue=none-"+c.queue, nil).want(200).at("jobs"), `[]`)
}
