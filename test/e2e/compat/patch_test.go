package compat

import "fmt"

// patching: each field, null, moves between states, and who cannot be patched.
func patching(c *client) {
	c.fresh()
	id := c.enqueue("").id()
	patch := func(body string) answer { c.t.Helper(); return c.call("PATCH", "/jobs/"+id, body) }
	if j := patch(`{"priority":3}`).want(200); number(c.t, j.at("priority")) != 3 || j.at("payload") != nil {
		c.t.Errorf("patched as %v", j.value)
	}
	same(c.t, "in the future", patch(`{"ready_at":4102444800000}`).want(200).at("status"), `"scheduled"`)
	same(c.t, "in the past", patch(`{"ready_at":1}`).want(200).at("status"), `"ready"`)
	patch(`{"ready_at":4102444800000}`).want(200)
	same(c.t, "null is now", patch(`{"ready_at":null}`).want(200).at("status"), `"ready"`)

	limit := patch(`{"retry_limit":4,"backoff":{"exponent":1.5,"base_ms":10,"jitter_ms":0}}`).want(200)
	same(c.t, "limit and curve", []any{limit.at("retry_limit"), limit.at("backoff", "exponent"), limit.at("backoff", "base_ms")}, `[4,1.5,10]`)
	cleared := patch(`{"retry_limit":null,"backoff":null}`).want(200)
	if cleared.at("retry_limit") != nil || cleared.at("backoff") != nil {
		c.t.Errorf("cleared as %v", cleared.value)
	}
	same(c.t, "retention", patch(`{"retention":{"completed_ms":5,"dead_ms":6}}`).want(200).at("retention"), `{"completed_ms":5,"dead_ms":6}`)
	bare := c.enqueue(`,"retention":{}`)
	same(c.t, "retention without a member", bare.at("retention"), `{}`)
	same(c.t, "and read", c.call("GET", "/jobs/"+bare.id(), nil).want(200).at("retention"), `{}`)
	if j := c.call("PATCH", "/jobs/"+bare.id(), `{"retention":{"dead_ms":null}}`).want(200); j.at("retention") != nil {
		c.t.Errorf("retention left empty as %v", j.value)
	}
	c.call("DELETE", "/jobs/"+bare.id(), nil).want(204)
	same(c.t, "a part of it", patch(`{"retention":{"dead_ms":null}}`).want(200).at("retention"), `{"completed_ms":5}`)
	if j := patch(`{"retention":null}`).want(200); j.at("retention") != nil {
		c.t.Errorf("retention cleared as %v", j.value)
	}
	before := patch(`{"nobody knows":1}`).want(200)
	for body, status := range map[string]int{
		`{"priority":null}`: 422, `{"queue":null}`: 422, `{"priority":65536}`: 422, `{"queue":"a,b"}`: 422,
		`{"backoff":{"exponent":1}}`: 422, `{"retry_limit":-1}`: 422, `{"ready_at":"soon"}`: 422,
	} {
		if a := patch(body); a.status != status {
			c.t.Errorf("%s: %d %s, want %d", body, a.status, a.body, status)
		}
		c.call("PATCH", "/jobs?queue="+c.queue, body).want(status)
	}
	for _, name := range []string{"payload", "type", "unique_key", "batch"} {
		if a := patch(`{"` + name + `":"x","priority":9}`); a.status/100 != 4 {
			c.t.Errorf("%s cannot be changed, and was answered %d %s", name, a.status, a.body)
		}
	}
	if after := c.call("GET", "/jobs/"+id, nil).want(200); text(after.at("priority")) != text(before.at("priority")) || text(after.at("type")) != `"t"` {
		c.t.Errorf("a refused patch made it %v", after.value)
	}
	c.call("PATCH", "/jobs/0000000000000000000000001", `{"priority":1}`).want(404, "job not found")

	// Re-ordered and moved at once.
	second := c.enqueue("").id()
	c.call("PATCH", "/jobs/"+second, `{"priority":0}`).want(200)
	moved := c.call("POST", "/jobs", `{"type":"t","queue":"from-`+c.queue+`","payload":null}`).want(201).id()
	c.call("PATCH", "/jobs/"+moved, `{"queue":"`+c.queue+`","priority":1}`).want(200)
	s := c.take("&prefetch=3")
	s.wantIDs(second, moved, id)
	same(c.t, "in flight it is only stored", c.call("PATCH", "/jobs/"+id, `{"ready_at":4102444800000}`).want(200).at("status"), `"in_flight"`)
	c.call("POST", "/jobs/"+id+"/failure", `{"message":"m","kill":true}`).want(200)
	patch(`{"priority":1}`).want(422, fmt.Sprintf("cannot patch job %s in dead status", id))
	s.close()
	c.until("the others are back", func() bool { return c.count("&status=ready") == 2 })

	many := c.call("PATCH", "/jobs?queue="+c.queue, `{"priority":77}`).want(200)
	if n := c.count("&priority=77"); number(c.t, many.at("patched")) != 2 || n != 2 {
		c.t.Errorf("%v, and %d have the priority: the dead one is passed over", many.value, n)
	}
	for _, status := range []string{"dead", "completed", "ready,dead"} {
		c.call("PATCH", "/jobs?queue="+c.queue+"&status="+status, `{"priority":1}`).want(422, "cannot patch jobs in ")
	}
	c.call("PATCH", "/jobs?queue=", `{"priority":1}`).want(400) // not "all"
	c.call("DELETE", "/jobs?queue=", nil).want(400)
}
