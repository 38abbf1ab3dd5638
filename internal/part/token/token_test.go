package token_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/engine/enginetest"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/audit"
	"github.com/reprisehq/reprise/internal/part/token"
)

var ann = job.Actor{Name: "ann", From: "::1"}

// rig is an engine with tokens and an audit log, new in each life.
type rig struct {
	*enginetest.Rig
	all   *token.Tokens
	audit *audit.Log
}

func scenario(t *testing.T, f func(*rig), edits ...func(*token.Tokens)) {
	t.Helper()
	r := &rig{}
	enginetest.Scenario(t, func(*enginetest.Rig) { f(r) }, func(in *enginetest.Rig) {
		r.Rig = in
		in.Parts = func() []engine.Part {
			r.all, r.audit = &token.Tokens{}, &audit.Log{}
			for _, edit := range edits {
				edit(r.all)
			}
			return []engine.Part{r.audit, r.all}
		}
	})
}

// token makes a token that must be accepted, and returns its id.
func (r *rig) token(name string, scopes job.Scopes, queues ...string) (id string) {
	r.Helper()
	text, c, err := r.all.Add(r.Context(), job.Credential{Name: name, Scopes: scopes, Queues: queues}, ann)
	if err != nil {
		r.Fatal(err)
	}
	id, hash, ok := job.ParseSecret(text)
	if !ok || id != c.ID || hash != c.Hash || c.By != ann || c.Created == 0 {
		r.Fatalf("%q is not the text of %+v", text, c)
	}
	return id
}

func (r *rig) tokens(want ...string) {
	r.Helper()
	list, err := r.all.List(r.Context())
	var names []string
	for _, c := range list {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(names, want) {
		r.Errorf("there are the tokens %q, want %q (%v)", names, want, err)
	}
}

func (r *rig) noToken(kind job.Kind, c job.Credential) {
	r.Helper()
	text, made, err := r.all.Add(r.Context(), c, ann)
	if job.KindOf(err) != kind || text != "" || made.ID != "" {
		r.Errorf("%+v: got %+v, %v", c, made, err)
	}
}

func (r *rig) kept(kind job.Kind, id string) {
	r.Helper()
	if err := r.all.Drop(r.Context(), id, ann); job.KindOf(err) != kind {
		r.Errorf("revoking %s: %v", id, err)
	}
}

func (r *rig) revoke(id string) {
	r.Helper()
	if err := r.all.Drop(r.Context(), id, ann); err != nil {
		r.Error(err)
	}
}

func TestTokensAreKeptAndRevokedForGood(t *testing.T) {
	scenario(t, func(r *rig) {
		r.token("root", job.ScopeAdmin)
		ci := r.token("ci", job.ScopeEnqueue, "mail-*")
		r.PowerCut()
		r.tokens("ci", "root")
		r.revoke(ci)
		r.PowerCut()
		r.tokens("root")
		r.kept(job.NotFound, ci)
		log, err := r.audit.List(r.Context(), job.ID{}, 9)
		var said []string
		for _, a := range log {
			said = append(said, a.By.Name+" "+a.Action+" "+a.Subject)
		}
		if want := []string{"ann revoke ci", "ann token ci: enqueue", "ann token root: admin"}; err != nil || !slices.Equal(said, want) {
			t.Errorf("the audit log says %q, %v", said, err)
		}
	})
}

func TestSomebodyMayAlwaysMakeTokens(t *testing.T) {
	scenario(t, func(r *rig) {
		r.noToken(job.Invalid, job.Credential{Name: "ci", Scopes: job.ScopeEnqueue})
		r.noToken(job.Invalid, job.Credential{Name: "root", Scopes: job.ScopeAdmin, Expires: r.Now() + 1000})
		r.tokens()
		root := r.token("root", job.ScopeAdmin)
		r.noToken(job.Exists, job.Credential{Name: "root", Scopes: job.ScopeRead})
		r.noToken(job.Invalid, job.Credential{Name: "late", Scopes: job.ScopeRead, Expires: r.Now()})
		r.noToken(job.Invalid, job.Credential{Name: "", Scopes: job.ScopeRead})
		_, short, err := r.all.Add(r.Context(), job.Credential{Name: "short", Scopes: job.ScopeAdmin, Expires: r.Now() + 1000}, ann)
		if err != nil {
			t.Fatal(err)
		}
		r.kept(job.WrongState, root)
		r.revoke(short.ID)
		other := r.token("other", job.ScopeAdmin|job.ScopeRead)
		r.revoke(root)
		r.kept(job.WrongState, other)
		r.tokens("other")
	})
}

func TestWithATokenInTheConfigurationTheOthersAreFree(t *testing.T) {
	scenario(t, func(r *rig) {
		ci := r.token("ci", job.ScopeEnqueue)
		root := r.token("root", job.ScopeAdmin)
		r.revoke(root)
		r.revoke(ci)
		r.tokens()
		root = r.token("root", job.ScopeAdmin)
		r.all.Admin.Store(false)
		r.kept(job.WrongState, root) // the configuration has lost its own
	}, func(t *token.Tokens) { t.Admin.Store(true) })
}

func TestTheQueuesOfJobsAreTold(t *testing.T) {
	scenario(t, func(r *rig) {
		put := func(queue string) job.ID {
			added, err := r.Put(r.Context(), []engine.NewJob{{Job: job.Job{Queue: queue, Type: "t"}}})
			if err != nil {
				t.Fatal(err)
			}
			return added[0].ID
		}
		a, b := put("a"), put("b")
		got, err := r.all.Queues(r.Context(), []job.ID{b, {1}, a, b})
		if err != nil || !slices.Equal(got, []string{"b", "", "a", "b"}) {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestThereAreNoMoreTokensThanAllowed(t *testing.T) {
	scenario(t, func(r *rig) {
		r.token("root", job.ScopeAdmin)
		err := r.Do(r.Context(), 0, func(tx *engine.Tx) error {
			for i := range 9_998 {
				if err := tx.Store().Set(&job.Credential{ID: fmt.Sprintf("%016d", i), Name: fmt.Sprint("t", i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			r.Fatal(err)
		}
		last := r.token("the-last", job.ScopeEnqueue)
		r.noToken(job.OverLimit, job.Credential{Name: "one-too-many", Scopes: job.ScopeEnqueue})
		if err := r.all.Drop(r.Context(), last, ann); err != nil {
			r.Fatal(err)
		}
		r.token("in-its-place", job.ScopeEnqueue)
	})
}
