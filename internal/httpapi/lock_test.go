package httpapi_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

// takes asks for a lock and gets it.
func (a *api) takes(name, body string) map[string]any {
	a.t.Helper()
	return object(a.t, a.want(200, "*", "POST", "/locks/"+name, body))
}

// number is a whole number of an answer.
func number(m map[string]any, name string) int64 {
	n, _ := m[name].(json.Number)
	i, _ := n.Int64()
	return i
}

const askLock = `{"owner":"node-1","lock_at_most_ms":300000}`

func TestALockIsTakenShownExtendedAndGivenBack(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.want(200, `{"locks":[]}`, "GET", "/locks", "")
		first := a.takes("nightly%2Frun", askLock)
		token, _ := first["token"].(string)
		if len(token) != 40 || first["name"] != "nightly/run" || first["status"] != "held" || first["locked_by"] != "node-1" ||
			number(first, "lock_until")-number(first, "locked_at") != 300000 || number(first, "fencing") < 1 {
			t.Fatalf("got %v", first)
		}
		held := a.call("POST", "/locks/nightly%2Frun", `{"owner":"node-2","lock_at_most_ms":1000}`)
		refusal := object(t, held.body)
		lock, _ := refusal["lock"].(map[string]any)
		if held.status != 423 || refusal["code"] != "locked" || lock["locked_by"] != "node-1" || lock["token"] != nil ||
			!slices.Contains([]string{"300", "299", "298"}, held.header.Get("Retry-After")) || !strings.Contains(refusal["error"].(string), `is with "node-1"`) {
			t.Errorf("%d %v %s", held.status, held.header, held.body)
		}
		for _, path := range []string{"/locks/nightly%2Frun", "/locks"} {
			if got := a.want(200, "*", "GET", path, ""); strings.Contains(got, token) || !strings.Contains(got, `"status":"held"`) {
				t.Errorf("GET %s answers %s", path, got)
			}
		}
		longer := object(t, a.want(200, "*", "POST", "/locks/nightly%2Frun/extend", `{"token":"`+token+`","lock_at_most_ms":600000}`))
		if number(longer, "lock_until") < number(first, "lock_until")+300000 || longer["fencing"] != first["fencing"] || longer["token"] != nil {
			t.Errorf("extended: %v", longer)
		}
		for range 2 {
			if given := object(t, a.call("DELETE", "/locks/nightly%2Frun", "", "Lock-Token", token).body); given["status"] != "free" {
				t.Errorf("given back: %v", given)
			}
		}
		second := a.takes("nightly%2Frun", `{"owner":"node-2","lock_at_most_ms":1000,"lock_at_least_ms":1000}`)
		if number(second, "fencing") <= number(first, "fencing") {
			t.Errorf("the fencing number went from %v to %v", first["fencing"], second["fencing"])
		}
		a.want(409, "*", "POST", "/locks/nightly%2Frun/extend", `{"token":"`+token+`","lock_at_most_ms":1}`)
		if got := a.call("DELETE", "/locks/nightly%2Frun", "", "Lock-Token", second["token"].(string)); got.status != 200 || object(t, got.body)["status"] != "kept" {
			t.Errorf("given back before its lock-at-least: %d %s", got.status, got.body)
		}
		if got := a.want(423, "*", "POST", "/locks/nightly%2Frun", askLock); !strings.Contains(got, "kept for its lock-at-least") {
			t.Errorf("kept: %s", got)
		}
		a.want(200, "*", "POST", "/locks/nightly%2Frun/break", "", "Reprise-Actor", "ann")
		a.takes("nightly%2Frun", askLock)
	})
}

func TestWhatIsNoLockIsRefusedByItsField(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for _, c := range []struct {
			status                   int
			method, path, body, want string
		}{
			{400, "POST", "/locks/a%00b", askLock, "name must not contain"},
			{400, "POST", "/locks/a%2Cb", askLock, "name must not contain"},
			{400, "POST", "/locks/" + strings.Repeat("n", 256), askLock, "name must not be longer"},
			{400, "POST", "/locks/n", `{}`, "lock_at_most_ms is missing"},
			{400, "POST", "/locks/n", ``, "the body is empty; send a JSON object with owner, request, lock_at_most_ms, lock_at_least_ms"},
			{400, "POST", "/locks/n", `[]`, "must be an object"},
			{400, "POST", "/locks/n", `{"lock_at_most_ms":5}`, "owner is missing"},
			{400, "POST", "/locks/n", `{"owner":"","lock_at_most_ms":5}`, "owner is missing"},
			{400, "POST", "/locks/n", `{"owner":7,"lock_at_most_ms":5}`, "owner must be a string"},
			{400, "POST", "/locks/n", `{"owner":"a\u0000b","lock_at_most_ms":5}`, "owner must not contain control"},
			{400, "POST", "/locks/n", `{"owner":"` + strings.Repeat("o", 256) + `","lock_at_most_ms":5}`, "owner must not be longer"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":0}`, "lock_at_most_ms must be a whole number from 1 to 2592000000"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":-5}`, "lock_at_most_ms must be"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":1.5}`, "lock_at_most_ms must be"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":"PT5M"}`, "lock_at_most_ms must be"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":99999999999999999999}`, "lock_at_most_ms must be"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":5,"lock_at_least_ms":6}`, "lock_at_least_ms must be between"},
			{400, "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":5} x`, "invalid JSON"},
			{400, "POST", "/locks/n/extend", `{"lock_at_most_ms":5}`, "token is missing"},
			{400, "POST", "/locks/n/extend", `{"token":"xyz","lock_at_most_ms":5}`, "token must be"},
			{400, "POST", "/locks/n/extend", `{"token":"` + strings.Repeat("a", 40) + `"}`, "lock_at_most_ms is missing"},
			{404, "POST", "/locks/n/extend", `{"token":"` + strings.Repeat("a", 40) + `","lock_at_most_ms":5}`, "no such lock"},
			{400, "DELETE", "/locks/n", "", "Lock-Token is missing"},
			{404, "GET", "/locks/n", "", "there is no lock"},
			{404, "GET", "/locks/a%00b", "", "there is no lock"},
			{404, "POST", "/locks/n/break", "", "there is no lock"},
			{404, "POST", "/locks/n/other", "", "not found"},
			{405, "PUT", "/locks/n", "", ""},
		} {
			if got := a.want(c.status, "*", c.method, c.path, c.body); !strings.Contains(got, c.want) {
				t.Errorf("%s %s %s answers %s, want %q", c.method, c.path, c.body, got, c.want)
			}
		}
		if got := a.call("DELETE", "/locks/n", "", "Lock-Token", strings.Repeat("z", 40)); got.status != 400 || !strings.Contains(got.body, "Lock-Token must be") {
			t.Errorf("%d %s", got.status, got.body)
		}
		a.want(200, `{"locks":[]}`, "GET", "/locks", "")

		token := a.takes("n", askLock)["token"].(string)
		wrong := strings.Repeat("0", 40)
		if got := a.call("DELETE", "/locks/n", "", "Lock-Token", wrong); got.status != 409 || !strings.Contains(got.body, `"code":"superseded"`) || strings.Contains(got.body, token) {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := a.want(409, "*", "POST", "/locks/n/extend", `{"token":"`+wrong+`","lock_at_most_ms":5}`); strings.Contains(got, token) {
			t.Error(got)
		}
	})
}

// Whose answer was lost says the same request again, and gets the same lock.
func TestALockIsGivenOnceToARequest(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		const ask = `{"owner":"node-1","lock_at_most_ms":300000,"request":"b7a1c3d2-0001-4000"}`
		first, again := a.takes("n", ask), a.takes("n", ask)
		if again["token"] != first["token"] || again["fencing"] != first["fencing"] || again["locked_at"] != first["locked_at"] || again["status"] != "held" {
			t.Errorf("again: %v, first %v", again, first)
		}
		for _, other := range []string{
			`{"owner":"node-2","lock_at_most_ms":300000,"request":"b7a1c3d2-0001-4000"}`,
			`{"owner":"node-1","lock_at_most_ms":300000,"request":"b7a1c3d2-0002-4000"}`,
			`{"owner":"node-1","lock_at_most_ms":300000}`,
		} {
			if got := a.want(423, "*", "POST", "/locks/n", other); strings.Contains(got, `"token"`) {
				t.Error(got)
			}
		}
		a.call("DELETE", "/locks/n", "", "Lock-Token", first["token"].(string))
		if got := a.want(409, "*", "POST", "/locks/n", ask); !strings.Contains(got, `"code":"superseded"`) || !strings.Contains(got, "is over") {
			t.Error(got)
		}
		for _, bad := range []string{"short", strings.Repeat("x", 256), "tab\\tin the middle of it"} {
			if got := a.want(400, "*", "POST", "/locks/n", `{"owner":"a","lock_at_most_ms":1,"request":"`+bad+`"}`); !strings.Contains(got, "request must have 16 to 255 bytes") {
				t.Error(got)
			}
		}
		a.takes("n", `{"owner":"node-1","lock_at_most_ms":300000,"request":"b7a1c3d2-0003-4000"}`)
	})
}

func TestATokenForSomeQueuesIsForLocksOfThosePatterns(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		root := a.token("", adminToken)
		mail := a.token(root, `{"name":"mail","scopes":["work"],"queues":["mail-*"]}`)
		viewer := a.token(root, `{"name":"viewer","scopes":["read"]}`)
		operator := a.token(root, `{"name":"operator","scopes":["operate"]}`)
		for _, c := range []struct {
			status              int
			token, method, path string
		}{
			{200, mail, "POST", "/locks/mail-run"},
			{403, mail, "POST", "/locks/other"},
			{403, mail, "GET", "/locks/mail-run"},
			{403, viewer, "POST", "/locks/n"},
			{200, viewer, "GET", "/locks/mail-run"},
			{200, viewer, "GET", "/locks"},
			{403, mail, "POST", "/locks/mail-run/break"},
			{200, operator, "POST", "/locks/mail-run/break"},
			{403, operator, "POST", "/locks/mail-run"},
			{401, "", "POST", "/locks/mail-run"},
		} {
			body := ""
			if c.method == "POST" && !strings.HasSuffix(c.path, "break") {
				body = askLock
			}
			if got := a.call(c.method, c.path, body, "Authorization", "Bearer "+c.token); got.status != c.status {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.status, got.body, c.status)
			}
		}
		log := a.call("GET", "/audit", "", "Authorization", "Bearer "+root).body
		if want := fmt.Sprintf(`"action":"break lock","subject":%q`, "mail-run of node-1"); !strings.Contains(log, want) {
			t.Errorf("the audit log has no %s: %s", want, log)
		}
	})
}
