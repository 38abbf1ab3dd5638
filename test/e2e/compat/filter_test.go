package compat

import (
	"fmt"
	"net/url"
)

// filters: what of a jq expression keeps a job, and what is refused.
func filters(c *client) {
	c.fresh()
	payloads := []string{
		`null`, `false`, `0`, `""`, `[]`, `{}`, `{"a":1}`, `{"a":"x y","b":null}`, `[1,2,3]`, `9007199254740993`, `[1,{"c":true}]`,
	}
	for _, p := range payloads {
		c.call("POST", "/jobs", `{"type":"t","queue":"`+c.queue+`","payload":`+p+`}`).want(201)
	}
	for filter, want := range map[string]string{
		`.`:           `[0,"",[],{},{"a":1},{"a":"x y","b":null},[1,2,3],9007199254740993,[1,{"c":true}]]`, // 0 and "" are true
		`.a`:          `[{"a":1},{"a":"x y","b":null}]`,                                                    // an error keeps nothing
		`.[]`:         `[{"a":1},{"a":"x y","b":null},[1,2,3],[1,{"c":true}]]`,                             // any output
		`.[] | .c`:    `[[1,{"c":true}]]`,                                                                  // behind an error it goes on
		`.[].c`:       `[[1,{"c":true}]]`,
		`empty`:       `[]`,
		`false, 1`:    `[null,false,0,"",[],{},{"a":1},{"a":"x y","b":null},[1,2,3],9007199254740993,[1,{"c":true}]]`,
		`error("no")`: `[]`,
		`select(type == "object") | keys_unsorted | length == 2`: `[{"a":"x y","b":null}]`,
		`debug | debug(.a?) | .[1:] == [2,3]`:                    `[[1,2,3]]`,
		`. == {"a":1}`:                                           `[{"a":1}]`,
		`. == 9007199254740993`:                                  `[9007199254740993]`,
		`. == 9007199254740992`:                                  `[]`,
		`. | contains({"a":1})`:                                  `[{"a":1}]`,
		`.[0:2] == [1,2]`:                                        `[[1,2,3]]`,
		`(.a == "x y") and (. | contains({"b":null}))`:           `[{"a":"x y","b":null}]`,
		`select(type == "object") | .a | tostring | test("^x ")`: `[{"a":"x y","b":null}]`,
	} {
		query := "queue=" + c.queue + "&filter=" + url.QueryEscape(filter)
		var got []any
		list := c.call("GET", "/jobs?"+query, nil).want(200)
		for i := 0; list.at("jobs", i) != nil; i++ {
			got = append(got, list.at("jobs", i, "payload"))
		}
		if got == nil {
			got = []any{}
		}
		same(c.t, filter, got, want)
		if n := c.count("&filter=" + url.QueryEscape(filter)); int(n) != len(got) {
			c.t.Errorf("%s: %d are counted and %d listed", filter, n, len(got))
		}
	}
	for _, bad := range []string{`.[`, `nosuch(1)`, `$x`} {
		for _, path := range []string{"/jobs?", "/jobs/count?"} {
			c.call("GET", path+"filter="+url.QueryEscape(bad), nil).want(400, "invalid filter: ")
		}
		c.call("DELETE", "/jobs?filter="+url.QueryEscape(bad), nil).want(400, "invalid filter: ")
	}
	first := c.call("GET", "/jobs?limit=1&queue="+c.queue+"&filter="+url.QueryEscape(".a"), nil).want(200)
	next, _ := first.at("pages", "next").(string)
	same(c.t, "the next page of a filter, by its link", c.call("GET", next, nil).want(200).at("jobs", 0, "payload"), `{"a":"x y","b":null}`)
	gone := c.call("DELETE", "/jobs?queue="+c.queue+"&filter="+url.QueryEscape(".a"), nil).want(200)
	if n := c.count(""); number(c.t, gone.at("deleted")) != 2 || n != int64(len(payloads)-2) {
		c.t.Errorf("%v deleted, %d are left", gone.value, n)
	}
	changed := c.call("PATCH", fmt.Sprintf("/jobs?queue=%s&filter=%s", c.queue, url.QueryEscape(`type == "array"`)), `{"priority":7}`).want(200)
	if n := c.count("&priority=7"); number(c.t, changed.at("patched")) != 3 || n != 3 {
		c.t.Errorf("%v patched, %d have the priority", changed.value, n)
	}
}
