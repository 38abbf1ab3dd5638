package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/httpapi"
)

func TestAWorkerExtendsAllItsLeasesInOneCall(t *testing.T) {
	bothProtocols(t, httpapi.Options{}, func(t *testing.T, a *api) {
		a.put("")
		a.put("")
		got := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"worker":"w","register":true,"max":1,"lease_ms":3600000}`))
		secret, _ := got["secret"].(string)
		if len(secret) != 48 || len(got["jobs"].([]any)) != 1 {
			t.Fatalf("registered with %v", got)
		}
		more := object(t, a.want(200, "*", "POST", "/jobs/lease", fmt.Sprintf(`{"worker":"w","secret":%q}`, secret)))
		if len(more["jobs"].([]any)) != 1 || more["secret"] != nil {
			t.Errorf("leased %v", more)
		}
		want := fmt.Sprintf(`{"verdicts":[{"id":%q,"status":"in_flight"},{"id":%q,"status":"in_flight"}]}`, a.ids[0], a.ids[1])
		beat := fmt.Sprintf(`{"worker":"w","secret":%q,"ms":60000}`, secret)
		a.want(200, want, "POST", "/jobs/extend", beat)
		a.want(200, want, "POST", "/jobs/extend", packed(t, beat), "Content-Type", msgpackType)
		a.want(200, "*", "POST", "/jobs/"+a.ids[0]+"/cancel", "")
		a.want(200, fmt.Sprintf(`{"verdicts":[{"id":%q,"status":"in_flight"}]}`, a.ids[1]), "POST", "/jobs/extend", beat)
		empty := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"worker":"v","register":true}`))
		if s, _ := empty["secret"].(string); len(s) != 48 || len(empty["jobs"].([]any)) != 0 {
			t.Errorf("who finds nothing is registered with %v", empty)
		}
	})
}

func TestAHeartbeatWithoutItsSecretIsRefusedByName(t *testing.T) { // operations.md, Security
	a := start(t, httpapi.Options{})
	a.put("")
	got := object(t, a.want(200, "*", "POST", "/jobs/lease", `{"worker":"w","register":true}`))
	secret := got["secret"].(string)
	token := got["jobs"].([]any)[0].(map[string]any)["lease"].(string)
	for body, want := range map[string]struct {
		status int
		text   string
	}{
		`{"worker":"w"}`: {403, "this is not the secret of this worker"},
		`{"worker":"w","secret":"` + strings.Repeat("0", 48) + `"}`: {403, "this is not the secret of this worker"},
		`{"worker":"w","secret":"x"}`:                               {403, "this is not the secret of this worker"},
		`{"worker":"w","secret":""}`:                                {403, "this is not the secret of this worker"},
		`{"worker":"v","secret":"` + secret + `"}`:                  {403, "this is not the secret of this worker"},
		`{"worker":"w","secret":"` + token + `"}`:                   {403, "this is not the secret of this worker"},
		`{"secret":"` + secret + `"}`:                               {400, "worker is missing"},
		`{"worker":"","secret":"` + secret + `"}`:                   {400, "worker is missing"},
		`{"worker":"a,b","secret":"` + secret + `"}`:                {400, "worker must not contain ','"},
		`{"worker":"w","secret":"` + secret + `","ms":-1}`:          {400, "ms must be a whole number"},
		`{"worker":"w","secret":"` + secret + `","leases":[]}`:      {400, "leases and worker exclude each other"},
		`{}`: {400, "leases is missing; for all leases of a worker send worker and secret"},
	} {
		got := a.call("POST", "/jobs/extend", body)
		if got.status != want.status || !strings.Contains(got.body, `"error":"`+want.text) {
			t.Errorf("%s: %d %s, want %d %s", body, got.status, got.body, want.status, want.text)
		}
		if strings.Contains(got.body, secret) {
			t.Errorf("%s tells the secret: %s", body, got.body)
		}
	}
	for body, want := range map[string]string{
		`{"register":true}`:          "worker is missing: a secret is that of a worker with a name",
		`{"secret":"x"}`:             "worker is missing: a secret is that of a worker with a name",
		`{"worker":"w","secret":""}`: "secret must not be empty",
		`{"worker":"w","secret":"` + secret + `","register":true}`: "register and secret exclude each other: a worker that has a secret is registered",
	} {
		a.want(400, fmt.Sprintf(`{"error":%q,"code":"invalid"}`, want), "POST", "/jobs/lease", body)
	}
	if got := a.call("POST", "/jobs/lease", `{"worker":"w","secret":"x"}`); got.status != 403 || !strings.Contains(got.body, `"code":"forbidden"`) {
		t.Errorf("leased with a wrong secret: %d %s", got.status, got.body)
	}
	if after := a.want(200, "*", "GET", "/jobs/"+a.ids[0]+"/explain", ""); strings.Contains(after, secret[:16]) {
		t.Errorf("explain tells of the secret: %s", after)
	}
}
