package compat

import (
	"fmt"
	"strings"
)

// given enqueues jobs and takes them with one stream, which stays open. The
// queue is a new one, of which no earlier stream takes.
func (c *client) given(n int, more string) (ids []string) {
	c.t.Helper()
	c.fresh()
	for range n {
		ids = append(ids, c.enqueue(more).id())
	}
	c.take(fmt.Sprint("&prefetch=", n)).wantIDs(ids...)
	return ids
}

// success: 204 without a body, once; a job that is not held is 404.
func success(c *client) {
	ids := c.given(2, "")
	for _, body := range []any{nil, `{}`} {
		a := c.call("POST", "/jobs/"+ids[0]+"/success", body).want(204)
		if a.body != "" || a.header.Get("Content-Type") != "" {
			c.t.Errorf("a 204 has a body: %q, %v", a.body, a.header)
		}
		c.call("POST", "/jobs/"+ids[0]+"/success", body).want(404, "job not found in in-flight set")
		ids = ids[1:]
	}
	c.call("POST", "/jobs/"+noID+"/success", nil).want(404, "job not found in in-flight set")
	c.fresh()
	ready := c.enqueue("").id()
	c.call("POST", "/jobs/"+ready+"/failure", `{"message":"m"}`).want(404)
	c.call("POST", "/jobs/"+ready+"/success", nil).want(404)
	c.call("DELETE", "/jobs/"+ready, nil).want(204)
	c.call("DELETE", "/jobs/"+ready, nil).want(404, "job not found")
}

// bulkSuccess: all or some, and what was not there is named.
func bulkSuccess(c *client) {
	ids := c.given(4, "")
	if a := c.call("POST", "/jobs/success", `{"ids":`+quoted(ids[0], ids[1], ids[0])+`}`).want(204); a.body != "" {
		c.t.Errorf("a 204 has a body: %q", a.body)
	}
	a := c.call("POST", "/jobs/success", `{"ids":`+quoted(ids[0], noID, ids[2])+`}`).want(422)
	same(c.t, "not_found", a.at("not_found"), quoted(ids[0], noID))
	c.call("GET", "/jobs/"+ids[2], nil).want(404)
	c.call("POST", "/jobs/success", `{"ids":[]}`).want(400, "ids must not be empty")
	c.call("POST", "/jobs/success", `{}`).want(400, "ids")
	c.call("POST", "/jobs/"+ids[3]+"/success", nil).want(204)
	kept := c.given(1, `,"retention":{"completed_ms":60000}`)
	c.call("POST", "/jobs/success", `{"ids":`+quoted(kept...)+`}`).want(204)
	done := c.call("GET", "/jobs/"+kept[0], nil).want(200)
	if done.at("status") != "completed" || number(c.t, done.at("purge_at"))-number(c.t, done.at("completed_at")) != 60000 {
		c.t.Errorf("completed as %v", done.value)
	}
}

// failing: kill, retry_at in the past and in the future and past the limit,
// the limit, retention of the dead.
func failing(c *client) {
	fail := func(more, job string) answer {
		id := c.given(1, job)[0]
		return c.call("POST", "/jobs/"+id+"/failure", `{"message":"it broke"`+more+`}`).want(200)
	}
	a := fail("", "")
	if a.at("status") != "scheduled" || number(c.t, a.at("attempts")) != 1 || number(c.t, a.at("ready_at")) < number(c.t, a.at("failed_at")) {
		c.t.Errorf("failed as %v", a.value)
	}
	if _, there := a.value.(map[string]any)["payload"]; there {
		c.t.Error("the answer to a failure has the payload")
	}
	a = fail(`,"kill":true`, "")
	if a.at("status") != "dead" || number(c.t, a.at("purge_at"))-number(c.t, a.at("failed_at")) != 7*24*3600*1000 {
		c.t.Errorf("killed as %v", a.value)
	}
	if a = fail(`,"retry_at":4102444800000`, `,"retry_limit":0`); a.at("status") != "scheduled" || number(c.t, a.at("ready_at")) != 4102444800000 {
		c.t.Errorf("with retry_at past the limit: %v", a.value)
	}
	if a = fail(`,"kill":true,"retry_at":4102444800000`, ""); a.at("status") != "dead" {
		c.t.Errorf("kill and retry_at: %v", a.value)
	}
	if a = fail("", `,"retry_limit":0`); a.at("status") != "dead" {
		c.t.Errorf("at the limit: %v", a.value)
	}
	if a = fail("", `,"retry_limit":0,"retention":{"dead_ms":0}`); a.at("status") != "dead" {
		c.t.Errorf("without retention: %v", a.value)
	}
	c.call("GET", "/jobs/"+a.id(), nil).want(404)
	c.call("POST", "/jobs/"+noID+"/failure", `{"message":"m"}`).want(404, "job not found in in-flight set")
	c.call("POST", "/jobs/"+c.given(1, "")[0]+"/failure", `{}`).want(400, "message")
}

// failTimes fails a job that comes back at once, and leaves it held.
func (c *client) failTimes(n int, more string) (id string) {
	c.t.Helper()
	c.fresh()
	id = c.enqueue(more).id()
	s := c.take("&prefetch=1")
	s.wantIDs(id)
	for i := range n {
		c.call("POST", "/jobs/"+id+"/failure", fmt.Sprintf(`{"message":"m%d","error_type":"E","backtrace":"at %d","retry_at":1}`, i+1, i)).want(200)
		if j := s.next(); j.id() != id || number(c.t, j.at("attempts")) != int64(i+1) {
			c.t.Fatalf("after failure %d it comes as %v", i+1, j.value)
		}
	}
	return id
}

// failureRecords: each failure is kept under its number, in pages.
func failureRecords(c *client) {
	id := c.failTimes(5, "")
	var seen []string
	path := "/jobs/" + id + "/errors?limit=2"
	for path != "" {
		page := c.call("GET", path, nil).want(200)
		list, _ := page.at("errors").([]any)
		for i := range list {
			seen = append(seen, fmt.Sprint(at(list, i, "attempt"), at(list, i, "message"), at(list, i, "error_type"), at(list, i, "backtrace")))
			if number(c.t, at(list, i, "failed_at")) < number(c.t, at(list, i, "dequeued_at")) {
				c.t.Errorf("a record is %v", at(list, i))
			}
		}
		path, _ = page.at("pages", "next").(string)
	}
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint(any(i+1), fmt.Sprint("m", i+1), "E", fmt.Sprint("at ", i)))
	}
	if strings.Join(seen, ";") != strings.Join(want, ";") {
		c.t.Errorf("records are %q, want %q", seen, want)
	}
	for text, want := range map[string]string{`,"error_type":"","backtrace":""`: `["",""]`, `,"error_type":null`: `[null,null]`, "": `[null,null]`} {
		failed := c.given(1, "")[0]
		c.call("POST", "/jobs/"+failed+"/failure", `{"message":""`+text+`}`).want(200)
		one := c.call("GET", "/jobs/"+failed+"/errors/1", nil).want(200)
		same(c.t, "texts of a failure with "+text, []any{one.at("error_type"), one.at("backtrace")}, want)
	}
	same(c.t, "from 0", c.call("GET", "/jobs/"+id+"/errors?from=0&limit=1", nil).want(200).at("errors", 0, "attempt"), `1`)
	same(c.t, "before 0", c.call("GET", "/jobs/"+id+"/errors?from=0&order=desc", nil).want(200).at("errors"), `[]`)
	last := c.call("GET", "/jobs/"+id+"/errors?order=desc&limit=1", nil).want(200)
	if number(c.t, last.at("errors", 0, "attempt")) != 5 {
		c.t.Errorf("the last record is %v", last.value)
	}
	if one := c.call("GET", "/jobs/"+id+"/errors/2", nil).want(200); one.at("message") != "m2" {
		c.t.Errorf("record 2 is %v", one.value)
	}
	c.call("GET", "/jobs/"+id+"/errors/6", nil).want(404, "error record not found")
	c.call("GET", "/jobs/"+noID+"/errors", nil).want(404)
}

// backoffVectors: the wait in the seed's reading, a = failures before this one.
func backoffVectors(c *client) {
	c.vectors([]vector{
		{`{"exponent":2,"base_ms":100,"jitter_ms":0}`, 1, 100, 101},
		{`{"exponent":2,"base_ms":100,"jitter_ms":0}`, 2, 1100, 1101},
		{`{"exponent":2.0,"base_ms":100,"jitter_ms":0}`, 3, 4100, 4101},
		{`{"exponent":1.5,"base_ms":1000,"jitter_ms":10000}`, 3, 3828, 23829},
	})
}

// vector is a wait after a number of failures: least <= wait < most, in ms.
type vector struct {
	backoff     string
	failures    int
	least, most int64
}

func (c *client) vectors(list []vector) {
	c.t.Helper()
	for _, v := range list {
		id := c.failTimes(v.failures-1, `,"backoff":`+v.backoff)
		a := c.call("POST", "/jobs/"+id+"/failure", `{"message":"m"}`).want(200)
		if wait := number(c.t, a.at("ready_at")) - number(c.t, a.at("failed_at")); wait < v.least || wait >= v.most {
			c.t.Errorf("%s after %d failures waits %d ms, want %d to %d", v.backoff, v.failures, wait, v.least, v.most)
		}
		c.call("DELETE", "/jobs/"+id, nil).want(204)
	}
}
