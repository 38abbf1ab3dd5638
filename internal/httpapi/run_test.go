package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestAWorkerOfANamedStreamHearsOfACancel(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		s := a.take("?prefetch=2&lease=token", "Worker-Id", "w")
		id := a.put("")
		lease := s.next()["lease"]
		a.want(200, "*", "POST", "/jobs/"+id+"/cancel", "")
		if news := s.next(); len(news) != 3 || news["id"] != id || news["lease"] != lease || news["voided"] != "cancel" {
			t.Errorf("heard %v", news)
		}
		a.want(422, "*", "POST", "/jobs/"+id+"/cancel", "")
		a.want(409, "*", "POST", "/jobs/"+id+"/progress", fmt.Sprintf(`{"lease":%q,"fraction":1}`, lease))
	})
}

func TestACheckpointReachesTheNextAttempt(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		s := a.take("?prefetch=1&lease=token", "Worker-Id", "w")
		id := a.put("")
		lease := s.next()["lease"]
		a.want(204, "", "POST", "/jobs/"+id+"/progress", fmt.Sprintf(`{"lease":%q,"checkpoint":{"row": 7,
			"at":[1]},"text":"x"}`, lease))
		a.want(200, "*", "POST", "/jobs/"+id+"/release", fmt.Sprintf(`{"lease":%q}`, lease))
		j := s.next()
		progress, _ := j["progress"].(map[string]any)
		if got := fmt.Sprint(progress["checkpoint"]); j["id"] != id || got != "map[at:[1] row:7]" || progress["text"] != nil {
			t.Errorf("delivered %v", j)
		}
	})
}

func TestRunCallsRefuseByName(t *testing.T) {
	a := start(t, httpapi.Options{})
	id := a.put("")
	big := fmt.Sprintf("%070000d", 0)
	token := fmt.Sprintf("%040d", 0)
	for _, c := range []struct {
		status           int
		path, body, text string
	}{
		{400, "progress", `{}`, `lease is no token: a lease token has exactly 40 hexadecimal characters`},
		{400, "progress", `{"lease":"` + token + `","fraction":-0.5}`, `progress.fraction must be a number from 0 to 1`},
		{400, "progress", `{"lease":"` + token + `","checkpoint":"` + big + `"}`, `progress.checkpoint must not be larger than 65536 bytes: keep what is large elsewhere, and its address here`},
		{400, "progress", `{"lease":"` + token + `","text":"` + big + `"}`, `progress.text must not be longer than 1024 bytes`},
		{400, "progress", `{"lease":"` + token + `","ms":-1}`, `ms must be a whole number from 0 to 86400000`},
		{400, "cancel", `{"why":"x"}`, `why is not known here`},
		{400, "release", `{"delay_ms":"1s"}`, `delay_ms must be a whole number from 0 to 18446744073709551615`},
		{404, "release", ``, `job not found in in-flight set`},
	} {
		body := a.want(c.status, "*", "POST", "/jobs/"+id+"/"+c.path, c.body)
		if !strings.Contains(body, `{"error":"`+c.text+`"`) {
			t.Errorf("%s %.60s: %s, want %q", c.path, c.body, body, c.text)
		}
	}
}
