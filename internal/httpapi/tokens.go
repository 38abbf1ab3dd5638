package httpapi

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

var oneToken = &resource{del: (*handler).revokeToken}

// listTokens is GET /tokens.
func (h *handler) listTokens(w http.ResponseWriter, r *http.Request, _, _ string) {
	out := wire.Tokens{Tokens: []wire.Token{}}
	now := h.engine.Now()
	for _, g := range h.tokens.Grants() {
		t := tokenOf(&g.Credential, now)
		t.LastUsedAt, t.Configured = int64(g.Used()), g.Configured
		out.Tokens = append(out.Tokens, t)
	}
	slices.SortFunc(out.Tokens, func(a, b wire.Token) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	h.sendPlain(w, r, out, nil)
}

func tokenOf(c *job.Credential, now job.Millis) wire.Token {
	return wire.Token{
		ID: c.ID, Name: c.Name, Scopes: c.Scopes.Names(), Queues: c.Queues, CreatedAt: int64(c.Created),
		ExpiresAt: int64(c.Expires), Expired: c.Expired(now), By: c.By.Name, From: c.By.From,
	}
}

// makeToken is POST /tokens. Its answer is the only place that ever holds the
// text of the token.
func (h *handler) makeToken(w http.ResponseWriter, r *http.Request, _, _ string) {
	h.operation(w, r, func(s *scratch, by job.Actor) error {
		if !h.tokens.Closed() && !fromHere(r) {
			return forbidden("the first token is made on the machine of the server: on its loopback address or its unix socket, and not through a proxy")
		}
		var body wire.NewToken
		if err := optional(s, &body); err != nil {
			return err
		}
		c, err := credentialAsked(&body, h.engine.Now())
		if err != nil {
			return err
		}
		if slices.ContainsFunc(h.tokens.Grants(), func(g *auth.Grant) bool { return g.Configured && g.Name == c.Name }) {
			return job.Errorf(job.Exists, "the configuration has a token %q; use another name", c.Name)
		}
		text, made, err := h.engine.AddCredential(r.Context(), c, by)
		if err != nil {
			return err
		}
		h.tokens.Add(made)
		w.Header()["Cache-Control"] = []string{"no-store"}
		h.sendPlainAs(w, r, http.StatusCreated, wire.MadeToken{Token: tokenOf(&made, made.Created), Secret: text})
		return nil
	})
}

func credentialAsked(body *wire.NewToken, now job.Millis) (c job.Credential, err error) {
	err = cmp.Or(within("expires_at", body.ExpiresAt, 0, int64(job.MaxMillis)), within("expires_in_ms", body.ExpiresIn, 0, int64(job.MaxMillis)))
	if err == nil && body.ExpiresAt != 0 && body.ExpiresIn != 0 {
		err = &job.Error{Kind: job.Invalid, Field: "expires_at", Text: "expires_at cannot be given together with expires_in_ms"}
	}
	if err != nil {
		return c, err
	}
	c = job.Credential{Name: body.Name, Queues: body.Queues, Expires: job.Millis(body.ExpiresAt)}
	if body.ExpiresIn != 0 {
		c.Expires = now.Add(job.Millis(body.ExpiresIn))
	}
	if c.Scopes, err = job.ParseScopes(body.Scopes); err != nil {
		return c, err
	}
	return c, c.Check()
}

// revokeToken is DELETE /tokens/{id}. What the token has open ends.
func (h *handler) revokeToken(w http.ResponseWriter, r *http.Request, id, _ string) {
	by, err := actorOf(r)
	if err == nil && slices.ContainsFunc(h.tokens.Grants(), func(g *auth.Grant) bool { return g.Configured && g.ID == id }) {
		err = job.Errorf(job.WrongState, "the token %q stands in the configuration: take it out there, and start the server again", id)
	}
	if err == nil {
		err = h.engine.DropCredential(r.Context(), id, by)
		// Also if it is not known whether it is gone, but for the last one that can make others.
		others := func(g *auth.Grant) bool { return g.ID != id && g.Lasting() }
		if kind := job.KindOf(err); err == nil || kind == job.NotFound || kind == job.Unavailable && slices.ContainsFunc(h.tokens.Grants(), others) {
			h.tokens.Remove(id)
		}
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// fromHere reports whether a request comes from this machine, and by itself: a
// proxy on it would speak for everybody.
func fromHere(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if _, unix := local.(*net.UnixAddr); unix {
		return true
	}
	addr, err := netip.ParseAddr(remote(r))
	return err == nil && addr.Unmap().IsLoopback() && loopbackName(r.Host)
}

// loopbackName reports whether a Host header names this machine to itself.
func loopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// remote is the address of the other side, "" if it has none.
func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return "" // a socket without an address
	}
	return host
}
