package compat

import (
	"fmt"
	"slices"
)

// unique: the scope of the newcomer against the state of the owner, over queues.
func unique(c *client) {
	c.fresh()
	put := func(queue, key, more string) answer {
		c.t.Helper()
		return c.call("POST", "/jobs", fmt.Sprintf(`{"type":"t","queue":%q,"payload":null,"unique_key":%q%s}`, queue, c.queue+key, more))
	}
	s := c.takeOver(c.takes, "/jobs/take?prefetch=0&queue=held-"+c.queue)
	const exists = `,"unique_while":"exists","retention":{"completed_ms":600000}`
	owners := map[string]func(key string) string{
		"scheduled": func(key string) string {
			return put(c.queue, key, exists+`,"ready_at":4102444800000`).want(201).id()
		},
		"ready": func(key string) string { return put(c.queue, key, exists).want(201).id() },
		"in_flight": func(key string) string {
			id := put("held-"+c.queue, key, exists).want(201).id()
			s.wantIDs(id)
			return id
		},
	}
	owners["completed"] = func(key string) string {
		id := owners["in_flight"](key)
		c.call("POST", "/jobs/"+id+"/success", nil).want(204)
		return id
	}
	owners["dead"] = func(key string) string {
		id := owners["in_flight"](key)
		c.call("POST", "/jobs/"+id+"/failure", `{"message":"m","kill":true}`).want(200)
		return id
	}
	for scope, inTheWay := range map[string][]string{
		"queued": {"scheduled", "ready"},
		"active": {"scheduled", "ready", "in_flight"},
		"exists": {"scheduled", "ready", "in_flight", "completed", "dead"},
	} {
		for status, make := range owners {
			key := scope + status
			owner := make(key)
			a := put("other-"+c.queue, key, `,"unique_while":"`+scope+`"`) // another queue, the same key
			if slices.Contains(inTheWay, status) {
				same(c.t, key, []any{a.want(200).at("id"), a.at("duplicate"), a.at("status")}, fmt.Sprintf(`[%q,true,%q]`, owner, status))
			} else if a.want(201).at("duplicate") != false || a.id() == owner {
				c.t.Errorf("%s: %v", key, a.value)
			}
		}
	}

	bulk := c.call("POST", "/jobs/bulk", fmt.Sprintf(`{"jobs":[{"type":"t","queue":%q,"payload":1,"unique_key":%[2]q},{"type":"t","queue":%[1]q,"payload":2,"unique_key":%[2]q}]}`,
		c.queue, c.queue+"bulk")).want(201)
	same(c.t, "in one call", []any{bulk.at("jobs", 0, "duplicate"), bulk.at("jobs", 1, "duplicate"), bulk.at("jobs", 1, "id") == bulk.at("jobs", 0, "id")}, `[false,true,true]`)

	// When a key is let go, and had again.
	held := "held-" + c.queue
	for scope, free := range map[string]struct{ taken, back, done int }{
		"queued": {201, 200, 201}, "active": {200, 200, 201}, "exists": {200, 200, 200},
	} {
		key := "life of " + scope
		first := put(held, key, `,"unique_while":"`+scope+`","retention":{"completed_ms":600000}`).want(201).id()
		s.wantIDs(first)
		while := `,"unique_while":"` + scope + `","ready_at":4102444800000`
		second := put(c.queue, key, while).want(free.taken)
		if free.taken == 201 {
			c.call("DELETE", "/jobs/"+second.id(), nil).want(204)
		}
		c.call("POST", "/jobs/"+first+"/failure", `{"message":"m","retry_at":4102444800000}`).want(200)
		put(c.queue, key, while).want(free.back) // it waits again, and has its key
		c.call("PATCH", "/jobs/"+first, `{"ready_at":null}`).want(200)
		s.wantIDs(first)
		c.call("POST", "/jobs/"+first+"/success", nil).want(204)
		put(c.queue, key, while).want(free.done)
	}
	gone := put(c.queue, "gone", exists).want(201).id()
	c.call("DELETE", "/jobs/"+gone, nil).want(204)
	put(c.queue, "gone", exists).want(201)
	put(c.queue, "x", `,"unique_while":"never"`).want(400)
	c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":null,"unique_while":"active"}`).want(400)
}

// batching: who takes whom in, and what is refused.
func batching(c *client) {
	c.fresh()
	put := func(payload, when, fold, more string) answer {
		c.t.Helper()
		return c.call("POST", "/jobs", fmt.Sprintf(`{"type":"t","queue":%q,"payload":%s,"batch":{"key":%q,"when":%q,"fold":%q}%s}`,
			c.queue, payload, c.queue+"k", when, fold, more))
	}
	const when, fold = `$existing | length < 3`, `$existing + $new`
	plain := c.enqueue("").id()
	first := put(`[1]`, when, fold, "").want(201)
	behind := c.enqueue("").id()
	second := put(`[2]`, `true`, `$new`, "").want(200) // the first one's expressions count
	if second.id() != first.id() || second.at("folded") != true || second.at("duplicate") != false {
		c.t.Errorf("folded as %v", second.value)
	}
	if later := put(`[9]`, when, fold, `,"ready_at":4102444800000`).want(201); later.at("folded") != false { // opts out
		c.t.Errorf("a scheduled job: %v", later.value)
	}
	put(`[3]`, when, fold, "").want(200)
	same(c.t, "the payload", c.call("GET", "/jobs/"+first.id(), nil).want(200).at("payload"), `[1,2,3]`)
	sealed := put(`[4]`, when, fold, "").want(201) // when is false: the batch is closed
	put(`[5]`, when, fold, "").want(200)
	same(c.t, "the next batch", c.call("GET", "/jobs/"+sealed.id(), nil).want(200).at("payload"), `[4,5]`)
	s := c.take("&prefetch=4")
	s.wantIDs(plain, first.id(), behind, sealed.id()) // each in its place
	fresh := put(`[6]`, when, fold, "").want(201)     // taking closes
	if fresh.id() == sealed.id() {
		c.t.Error("a job that runs took one in")
	}
	s.close()
	c.until("all are back", func() bool { return c.count("&status=in_flight") == 0 })
	if a := put(`[7]`, when, fold, "").want(200); a.id() != fresh.id() { // a return does not open it again
		c.t.Errorf("folded into %s, want %s", a.id(), fresh.id())
	}
	for body, says := range map[[2]string]string{
		{`$existing |`, fold}:         "batch expression: when: ",
		{when, `$nosuch`}:             "batch expression: fold: ",
		{when, `$existing, $new`}:     "batch dry-run: ",
		{when, `empty`}:               "batch dry-run: ",
		{`error("no")`, fold}:         "batch dry-run: ",
		{when, `$existing + {"a":1}`}: "batch dry-run: ",
	} {
		put(`[1]`, body[0], body[1], "").want(422, says)
	}
	put(`"text"`, `true`, `$new`, "").want(422) // a fold that fails refuses this one request
	same(c.t, "what it had", c.call("GET", "/jobs/"+fresh.id(), nil).want(200).at("payload"), `[6,7]`)
	put(`[1]`, when, fold, `,"unique_key":"u"`).want(400)
}
