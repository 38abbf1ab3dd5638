package compat

import (
	"fmt"
	"net/url"
)

// crons: groups and entries, what keeps a next time and what computes it anew,
// pauses, and ticks. That each tick has one job, also after kill -9, is shown by
// TestEachTickOfCronHasOneJobWheneverTheServerIsKilled.
func crons(c *client) {
	c.fresh()
	at := "/crons/" + url.PathEscape(c.queue)
	entry := func(name, expression, more string) string {
		return fmt.Sprintf(`{"name":%q,"expression":%q,"job":{"type":"t","queue":%q,"payload":{"n":9007199254740993}}%s}`, name, expression, c.queue, more)
	}
	c.call("GET", at, nil).want(404, "cron group '"+c.queue+"' not found")
	group := c.call("PUT", at, `{"entries":[`+entry("daily", "0 3 * * *", "")+`,`+entry("berlin", "30 2 15 1,7 *", `,"timezone":"Europe/Berlin"`)+`]}`).want(200)
	same(c.t, "a group", []any{group.at("name"), group.at("paused"), group.at("entries", 0, "paused"), group.at("entries", 0, "job", "priority"), group.at("entries", 0, "job", "payload")},
		fmt.Sprintf(`[%q,false,false,32768,{"n":9007199254740993}]`, c.queue))
	listed := c.call("GET", "/crons", nil).want(200)
	found := false
	for i := 0; listed.at("crons", i) != nil; i++ {
		found = found || listed.at("crons", i) == c.queue
	}
	if !found {
		c.t.Errorf("the groups are %v", listed.value)
	}
	next := func(name string) int64 {
		c.t.Helper()
		return number(c.t, c.call("GET", at+"/entries/"+name, nil).want(200).at("next_enqueue_at"))
	}
	daily, berlin := next("daily"), next("berlin")
	if berlin%86_400_000 != 90*60_000 && berlin%86_400_000 != 30*60_000 { // 02:30 there is 01:30 UTC in winter, 00:30 in summer
		c.t.Errorf("02:30 in Berlin is %d", berlin)
	}
	c.call("PUT", at+"/entries/daily", entry("another name", "0 3 * * *", "")).want(200) // the path's name counts
	if next("daily") != daily {
		c.t.Error("an entry that is as before has another next time")
	}
	c.call("PUT", at+"/entries/daily", entry("daily", "0 4 * * *", "")).want(200)
	if next("daily") == daily {
		c.t.Error("another expression has the same next time")
	}
	zoned := c.call("PUT", at, `{"timezone":"Asia/Tokyo","entries":[`+entry("daily", "0 4 * * *", "")+`]}`).want(200)
	if tokyo := next("daily"); tokyo%86_400_000 != 19*3_600_000 || zoned.at("timezone") != "Asia/Tokyo" {
		c.t.Errorf("04:00 in Tokyo is %d: the zone of a group computes it anew", tokyo)
	}
	c.call("GET", at+"/entries/berlin", nil).want(404, "cron entry 'berlin' not found in group '"+c.queue+"'") // it was not in the list
	if g := c.call("PUT", at, `{"entries":[`+entry("daily", "0 4 * * *", "")+`]}`).want(200); g.at("timezone") != nil {
		c.t.Errorf("a zone that is left out stays: %v", g.value)
	}
	if g := c.call("PATCH", at, `{"timezone":"Asia/Tokyo"}`).want(200); g.at("timezone") != "Asia/Tokyo" || next("daily")%86_400_000 != 19*3_600_000 {
		c.t.Errorf("the zone is changed to %v", g.value)
	}
	if g := c.call("PATCH", at, `{"paused":true}`).want(200); g.at("timezone") != "Asia/Tokyo" || g.at("paused") != true {
		c.t.Errorf("a pause changes the zone: %v", g.value)
	}
	if g := c.call("PATCH", at, `{"timezone":null,"paused":false}`).want(200); g.at("timezone") != nil || g.at("paused") != false {
		c.t.Errorf("the zone is cleared to %v", g.value)
	}
	c.call("PATCH", at, `{"timezone":"Mars/Base"}`).want(400)
	c.call("POST", at+"/entries", entry("daily", "0 4 * * *", "")).want(409, "cron entry 'daily' already exists in group '"+c.queue+"'")
	c.call("POST", at+"/entries", entry("once", "0 0 29 2 *", "")).want(201)
	c.call("DELETE", at+"/entries/once", nil).want(204)
	c.call("DELETE", at+"/entries/once", nil).want(404)
	paused := c.call("PATCH", at+"/entries/daily", `{"paused":true}`).want(200)
	if paused.at("paused") != true || paused.at("paused_at") == nil || paused.at("next_enqueue_at") == nil {
		c.t.Errorf("paused as %v", paused.value)
	}
	if kept := c.call("PUT", at+"/entries/daily", entry("daily", "0 4 * * *", "")).want(200); kept.at("paused") != true { // left out, it stays
		c.t.Errorf("a pause that is left out ends: %v", kept.value)
	}
	if on := c.call("PATCH", at+"/entries/daily", `{"paused":false}`).want(200); on.at("resumed_at") == nil {
		c.t.Errorf("resumed as %v", on.value)
	}
	for body, status := range map[string]int{
		entry("x", "61 * * * *", ""):                       400,
		entry("x", "* * * * *", `,"timezone":"Mars/Base"`): 400,
		entry("a,b", "* * * * *", ""):                      400,
		`{"name":"x","expression":"* * * * *","job":{"type":"t","queue":"q","payload":null,"ready_at":1}}`: 400,
		`{"name":"x","expression":"* * * * *"}`: 400,
	} {
		c.call("POST", at+"/entries", body).want(status)
	}
	c.call("PUT", at, `{"entries":[`+entry("x", "* * * * *", "")+`,`+entry("x", "* * * * *", "")+`]}`).want(400)
	for _, expression := range []string{"@daily", "*/5 8-18 * JAN-MAR mon,FRI", "0 0 L * *", "0 0 * * 5#2", "30 0 0 1 1 *", "*/60 0 */2 * 1", "0 0 0 * * FRI#L 2030", "0 0 13 * +FRI", "0 0 ? * L"} {
		c.call("PUT", at+"/entries/shape", entry("shape", expression, "")).want(200)
	}
	c.call("DELETE", at+"/entries/shape", nil).want(204)

	// With seconds: the first tick comes within two of them.
	c.call("POST", at+"/entries", entry("tick", "* * * * * *", "")).want(201)
	c.until("a tick", func() bool { return c.count("") > 0 })
	c.call("PATCH", at, `{"paused":true}`).want(200)
	n := c.count("")
	tick := c.call("GET", at+"/entries/tick", nil).want(200)
	if last := number(c.t, tick.at("last_enqueue_at")); last%1000 != 0 || number(c.t, tick.at("next_enqueue_at")) <= last {
		c.t.Errorf("after a tick: %v", tick.value)
	}
	jobs := c.call("GET", "/jobs?queue="+c.queue, nil).want(200)
	same(c.t, "what a tick enqueued", jobs.at("jobs", 0, "payload"), `{"n":9007199254740993}`)
	before := number(c.t, tick.at("next_enqueue_at"))
	c.until("a paused entry goes on", func() bool { return next("tick") > before })
	if after := c.count(""); after != n {
		c.t.Errorf("a paused group enqueued %d", after-n)
	}
	c.call("PUT", at, `{"entries":[]}`).want(200)
	same(c.t, "an empty group", c.call("GET", at, nil).want(200).at("entries"), `[]`)
	if a := c.call("DELETE", at, nil).want(204); a.body != "" {
		c.t.Errorf("a 204 has a body: %q", a.body)
	}
	c.call("DELETE", at, nil).want(404)
}
