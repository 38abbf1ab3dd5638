package httpapi

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/job"
)

// calls are those of a server.
func calls() *handler { return New(Options{Null: true}).(*handler) }

func TestEveryCallHasAScope(t *testing.T) {
	list := calls().list
	if len(list) < 100 {
		t.Errorf("there are only %d calls", len(list))
	}
	for _, to := range list {
		if to.oneOf == 0 {
			t.Errorf("%s %s has no scope: it is for the scope admin only", to.method, to.path)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if to := profiles(http.NotFoundHandler()).method(method); to == nil || to.oneOf != admins || to.reach != wholeServer {
			t.Errorf("%s of profiles is %+v", method, to)
		}
	}
}

// A path finds the call that its route declares, whatever other paths look like it.
func TestEveryRouteIsFoundByItsPath(t *testing.T) {
	h := calls()
	for i := range h.list {
		to := &h.list[i]
		path, want := "", []string{}
		for _, seg := range strings.Split(to.path, "/")[1:] {
			if strings.HasPrefix(seg, "{") {
				seg = "a value of " + seg
				want = append(want, seg)
			}
			path += "/" + seg
		}
		r := httptest.NewRequest(to.method, "http://localhost/", nil)
		r.URL.Path = path
		res, id, sub := h.paths.find(r.URL)
		if res == nil || res.method(to.method) != to {
			t.Errorf("%s %s finds %v", to.method, path, res)
			continue
		}
		if got := []string{id, sub}[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("%s has the variable segments %q, found were %q", to.path, want, got)
		}
	}
	for _, path := range []string{"", "/jobs/", "/jobs//errors", "//jobs", "/jobs/a/b", "/queues/q/hold/x", "/inboxes/a/messages/b/c", "/news", "jobs"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL.Path = path
		if res, _, _ := h.paths.find(r.URL); res != nil {
			t.Errorf("%q finds a call", path)
		}
	}
}

func TestTwoCallsOfOnePathAndMethodAreRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("they were not")
		}
	}()
	newPaths([]route{get("/a/{b}", anybody, noQueue, endpoint{}), get("/a/{c}", anybody, noQueue, endpoint{})})
}

func TestACallThatNobodyDeclaredIsForTheAdmin(t *testing.T) {
	now := func() job.Millis { return 0 }
	for _, scope := range job.ScopesAll.Names() {
		text := job.NewSecret(rand.Uint64)
		c := job.Credential{Name: "n"}
		c.ID, c.Hash, _ = job.ParseSecret(text)
		c.Scopes, _ = job.ParseScopes([]string{scope})
		h := New(Options{Null: true, Tokens: auth.New([]job.Credential{c}, now)}).(*handler)
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "http://localhost/x", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		if in := h.admit(w, r, &route{method: http.MethodGet}, "") != nil; in != (scope == "admin") {
			t.Errorf("the scope %s is let in: %t", scope, in)
		}
	}
}

// Whoever reaches a call without a token must be meant to.
func TestOnlyTheProbesAreOpen(t *testing.T) {
	var open []string
	for _, to := range calls().list {
		if to.oneOf == public {
			open = append(open, to.method+" "+to.path)
		}
	}
	slices.Sort(open)
	if strings.Join(open, ", ") != "GET /health, GET /ready" {
		t.Errorf("without a token one may call %q", open)
	}
}
