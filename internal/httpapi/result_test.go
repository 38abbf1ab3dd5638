package httpapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

const keeps = `,"retention":{"completed_ms":60000}`

// leased enqueues a job and leases it.
func (a *api) leased(members string) (id, lease string) {
	a.t.Helper()
	id = a.put(members)
	j := object(a.t, a.want(200, "*", "POST", "/jobs/lease", `{"queues":["q"]}`))["jobs"].([]any)[0].(map[string]any)
	if j["id"] != id {
		a.t.Fatalf("leased %v", j)
	}
	return id, j["lease"].(string)
}

func (a *api) settle(id, lease, outcome, members string) string {
	a.t.Helper()
	return a.want(200, "*", "POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":%q%s}]`, id, lease, outcome, members))
}

func TestAResultIsReadWithItsJobInBothFormats(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		for result, want := range map[string]string{
			`{"n":9007199254740993,"s":"é\u0000"}`: "", `[]`: "", `""`: "", `0`: "", `false`: "",
			"{\"a\":\n1}": `{"a":1}`, `-9223372036854775808`: "", `18446744073709551615`: "",
		} {
			if want == "" {
				want = result
			}
			id, lease := a.leased(keeps)
			if got := a.settle(id, lease, "ok", `,"result":`+result); !strings.Contains(got, `"status":"completed"`) {
				t.Fatal(got)
			}
			whole := a.want(200, "*", "GET", "/jobs/"+id, "")
			if !strings.HasSuffix(whole, fmt.Sprintf(`,"result_bytes":%d,"result":%s}`, len(want), want)) {
				t.Errorf("%s: read as %s", result, whole)
			}
			inPack := unpacked(t, a.want(200, "*", "GET", "/jobs/"+id, "", "Accept", msgpackType))
			if canonical(t, inPack) != canonical(t, whole) {
				t.Errorf("%s: in MessagePack it is %s", result, inPack)
			}
			list := a.want(200, "*", "GET", "/jobs?id="+id, "")
			if strings.Contains(list, `"result":`) || !strings.Contains(list, fmt.Sprintf(`"result_bytes":%d`, len(want))) {
				t.Errorf("%s: listed as %s", result, list)
			}

			id, lease = a.leased(keeps)
			body := packed(t, fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":"ok","result":%s}]`, id, lease, result))
			a.want(200, "*", "POST", "/jobs/settle", body, "Content-Type", msgpackType)
			if got := a.want(200, "*", "GET", "/jobs/"+id, ""); canonical(t, field(t, got, "result")) != canonical(t, want) {
				t.Errorf("%s: sent as MessagePack it is read as %s", result, got)
			}
		}
	})
}

// canonical is JSON without white space, numbers as they are.
func canonical(t *testing.T, text string) string {
	t.Helper()
	v := object(t, `{"v":`+text+`}`)["v"]
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func field(t *testing.T, text, name string) string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return string(v[name])
}

func TestAResultIsLeftOutWhereThereIsNone(t *testing.T) {
	a := start(t, httpapi.Options{})
	for _, members := range []string{"", `,"result":null`} {
		id, lease := a.leased(keeps)
		a.settle(id, lease, "ok", members)
		if got := a.want(200, "*", "GET", "/jobs/"+id, ""); strings.Contains(got, "result") {
			t.Error(got)
		}
	}
	id, lease := a.leased("") // no retention: it leaves at once, and takes it along
	a.settle(id, lease, "ok", `,"result":1`)
	a.want(404, "*", "GET", "/jobs/"+id, "")
}

func TestAResultThatCannotBeIsRefusedAndChangesNothing(t *testing.T) {
	a := start(t, httpapi.Options{BodyMax: 20_000})
	id, lease := a.leased(keeps)
	for body, want := range map[string]string{
		`,"result":{"a":}`:                                `invalid JSON`,
		`,"result":` + strings.Repeat("[", 10_001):        `invalid JSON`,
		`,"result":1,"result":2`:                          `has the field \"result\" twice`,
		`,"result":"` + strings.Repeat("x", 20_000) + `"`: `body`,
	} {
		got := a.call("POST", "/jobs/settle", fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":"ok"%s}]`, id, lease, body))
		if got.status != 400 && got.status != 413 || !strings.Contains(got.body, want) {
			t.Errorf("%.40s: %d %s, want %q", body, got.status, got.body, want)
		}
	}
	for _, outcome := range []string{"retry", "dead", "release"} {
		body := fmt.Sprintf(`[{"id":%q,"lease":%q,"outcome":"ok"},{"id":%q,"lease":%q,"outcome":%q,"result":1}]`, id, lease, id, lease, outcome)
		a.want(400, `{"error":"settles[1]: result goes with the outcome ok only; what the next attempt shall find is a checkpoint","code":"invalid"}`,
			"POST", "/jobs/settle", body)
	}
	a.want(400, "*", "POST", "/jobs/"+id+"/release", fmt.Sprintf(`{"lease":%q,"result":1}`, lease))
	if got := a.status(id); got != "in_flight" {
		t.Errorf("after refusals the job is %s", got)
	}
}
