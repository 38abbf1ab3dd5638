package compat

import "net/url"

// budgeting: the calls of budgets, what they bound, and how jobs are bound anew.
func budgeting(c *client) {
	c.fresh()
	key := c.queue + "/a b"
	at := "/budgets/" + url.PathEscape(key)
	body := `{"key":"` + key + `","allocation":2,"strategy":{"type":"while_in_flight"}}`
	made := c.call("POST", at, `{"allocation":2,"strategy":{"type":"while_in_flight"}}`).want(201)
	same(c.t, "a budget", []any{made.at("key"), made.at("allocation"), made.at("strategy")}, `["`+key+`",2,{"type":"while_in_flight"}]`)
	if number(c.t, made.at("created_at")) == 0 || number(c.t, made.at("updated_at")) == 0 {
		c.t.Errorf("made as %v", made.value)
	}
	c.call("POST", at, `{"allocation":2,"strategy":{"type":"while_in_flight"}}`).want(409, "budget '"+key+"' already exists")
	c.call("POST", "/budgets", body).want(409, "budget '"+key+"' already exists")
	c.call("GET", at+"x", nil).want(404)
	for _, bad := range []string{
		`{"allocation":0,"strategy":{"type":"while_in_flight"}}`, `{"allocation":1000001,"strategy":{"type":"while_in_flight"}}`,
		`{"allocation":1,"strategy":{"type":"time_based","duration_ms":0}}`, `{"allocation":1,"strategy":{"type":"time_based","duration_ms":1,"burst":1000001}}`,
	} {
		c.call("POST", at+"x", bad).want(422)
		c.call("PUT", at, bad).want(422)
	}
	c.call("POST", "/budgets/a,b", `{"allocation":1,"strategy":{"type":"while_in_flight"}}`).want(422)
	c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":null,"budgets":[{"key":"`+key+`x"}]}`).want(422)
	c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":null,"budgets":[{"key":"`+key+`","cost":3}]}`).want(422)

	bound := `,"budgets":[{"key":"` + key + `"}]`
	var ids []string
	for range 3 {
		ids = append(ids, c.enqueue(bound).id())
	}
	same(c.t, "bound", c.call("GET", "/jobs/"+ids[0], nil).want(200).at("budgets"), `[{"key":"`+key+`","cost":1}]`)
	s := c.take("&prefetch=9")
	s.wantIDs(ids[0], ids[1])
	free := c.enqueue("").id()
	s.wantIDs(free) // the next candidate
	c.call("DELETE", at, nil).want(409)
	c.call("POST", "/jobs/"+ids[0]+"/success", nil).want(204)
	s.wantIDs(ids[2])

	each := "/jobs/" + ids[2] + "/budgets/" + url.PathEscape(key)
	c.call("DELETE", each, nil).want(422)
	ids = append(ids, c.enqueue("").id())
	s.wantIDs(ids[3])
	waits := c.enqueue(bound).id()
	each = "/jobs/" + waits + "/budgets/" + url.PathEscape(key)
	c.call("POST", each, `{"cost":1}`).want(409)
	same(c.t, "another cost", c.call("PATCH", each, `{"cost":2}`).want(200).at("budgets"), `[{"key":"`+key+`","cost":2}]`)
	c.call("PATCH", at, `{"allocation":1}`).want(422, "budget '"+key+"' cannot have a capacity of 1: job "+waits+" costs 2")
	c.call("PUT", at, `{"allocation":1,"strategy":{"type":"while_in_flight"}}`).want(422)
	if n := c.count("&budgets.key=" + url.QueryEscape(key)); n != 3 {
		c.t.Errorf("%d jobs are bound", n)
	}
	many := c.call("DELETE", "/jobs/budgets/"+url.PathEscape(key)+"?queue="+c.queue, nil).want(200)
	same(c.t, "unbound", []any{many.at("changed"), many.at("blocked")}, `[1,["`+ids[1]+`","`+ids[2]+`"]]`)
	s.wantIDs(waits)

	timed := c.call("PUT", at, `{"allocation":5,"strategy":{"type":"time_based","duration_ms":60000,"burst":7}}`).want(200)
	same(c.t, "replaced", timed.at("strategy"), `{"type":"time_based","duration_ms":60000,"burst":7}`)
	cleared := c.call("PATCH", at, `{"strategy":{"burst":null}}`).want(200)
	same(c.t, "patched", []any{cleared.at("allocation"), cleared.at("strategy")}, `[5,{"type":"time_based","duration_ms":60000}]`)
	s.close()
	c.call("DELETE", "/jobs?queue="+c.queue, nil).want(200)

	// An entry of cron needs its budgets, makes them, and holds them.
	group := "/crons/" + url.PathEscape(c.queue) + "-budgets"
	entry := func(budgets string) string {
		return `{"name":"e","expression":"0 0 1 1 *","job":{"type":"t","queue":"` + c.queue + `","payload":null,"budgets":` + budgets + `}}`
	}
	c.call("POST", group+"/entries", entry(`[{"key":"`+key+`x"}]`)).want(422)
	c.call("POST", group+"/entries", entry(`[{"key":"`+key+`","cost":6}]`)).want(422)
	c.call("PUT", group, `{"entries":[`+entry(`[{"key":"`+key+`","cost":6}]`)+`]}`).want(422)
	c.call("GET", group, nil).want(404)
	made = c.call("POST", group+"/entries", entry(`[{"key":"`+key+`","cost":4},{"key":"`+key+`x","create_with":{"allocation":3,"strategy":{"type":"while_in_flight"}}}]`)).want(201)
	same(c.t, "the budgets of an entry", made.at("job", "budgets"), `[{"key":"`+key+`","cost":4},{"key":"`+key+`x","cost":1}]`)
	same(c.t, "made with an entry", c.call("GET", at+"x", nil).want(200).at("allocation"), `3`)
	c.call("DELETE", at, nil).want(409)
	c.call("DELETE", at+"x", nil).want(409)
	c.call("PATCH", at, `{"allocation":3}`).want(422)
	c.call("PUT", at, `{"allocation":3,"strategy":{"type":"while_in_flight"}}`).want(422)
	c.call("PATCH", at, `{"allocation":4}`).want(200)
	c.call("DELETE", group, nil).want(204)
	c.call("DELETE", at+"x", nil).want(204)

	// A dead job does not keep a budget.
	dies := c.enqueue(`,"budgets":[{"key":"` + key + `"}]`).id()
	s = c.take("&prefetch=1")
	s.wantIDs(dies)
	c.call("DELETE", at, nil).want(409)
	c.call("POST", "/jobs/"+dies+"/failure", `{"message":"m","kill":true}`).want(200)
	s.close()
	if a := c.call("DELETE", at, nil).want(204); a.body != "" {
		c.t.Errorf("a 204 has a body: %q", a.body)
	}
}
