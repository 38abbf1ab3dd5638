package httpapi

import (
	"cmp"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// tokenRoom serves the tokens of the API.
type tokenRoom struct{ *core }

func (h *tokenRoom) routes() []route {
	return []route{
		get("/tokens", admins, wholeServer, h.bare(h.list)),
		post("/tokens", admins, wholeServer, optional(asking(h.core, ifGiven, h.asked, h.make))),
		del("/tokens/{id}", admins, wholeServer, h.bare(h.revoke)),
	}
}

// list is GET /tokens.
func (h *tokenRoom) list(*call) (any, error) {
	out := wire.Tokens{Tokens: []wire.Token{}}
	now := h.engine.Now()
	for _, g := range h.tokens.Grants() {
		t := tokenOf(&g.Credential, now)
		t.LastUsedAt, t.Configured = int64(g.Used()), g.Configured
		out.Tokens = append(out.Tokens, t)
	}
	slices.SortFunc(out.Tokens, func(a, b wire.Token) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

func tokenOf(c *job.Credential, now job.Millis) wire.Token {
	return wire.Token{
		ID: c.ID, Name: c.Name, Scopes: c.Scopes.Names(), Queues: c.Queues, CreatedAt: int64(c.Created),
		ExpiresAt: int64(c.Expires), Expired: c.Expired(now), By: c.By.Name, From: c.By.From,
	}
}

// make is POST /tokens. Its answer is the only place that ever holds the
// text of the token.
func (h *tokenRoom) make(c *call, credential job.Credential) (any, error) {
	if !h.tokens.Closed() && !fromHere(c.Request) {
		return nil, forbidden("the first token is made on the machine of the server: on its loopback address or its unix socket, and not through a proxy")
	}
	if slices.ContainsFunc(h.tokens.Grants(), func(g *auth.Grant) bool { return g.Configured && g.Name == credential.Name }) {
		return nil, job.Errorf(job.Exists, "the configuration has a token %q; use another name", credential.Name)
	}
	text, made, err := h.engine.Tokens.Add(c.Context(), credential, c.by)
	if err != nil {
		return nil, err
	}
	h.tokens.Add(made)
	c.w.Header()["Cache-Control"] = noStore
	return c.made(wire.MadeToken{Token: tokenOf(&made, made.Created), Secret: text}, nil)
}

// asked is the credential that a body asks for. Its error joins one for each problem.
func (h *tokenRoom) asked(_ *call, body *wire.NewToken) (job.Credential, error) {
	bad := errors.Join(jobs.Within("expires_at", body.ExpiresAt, 0, int64(job.MaxMillis)), jobs.Within("expires_in_ms", body.ExpiresIn, 0, int64(job.MaxMillis)))
	if bad == nil && body.ExpiresAt != 0 && body.ExpiresIn != 0 {
		bad = bodyFault("expires_at", "cannot be given together with expires_in_ms")
	}
	c := job.Credential{Name: body.Name, Queues: body.Queues, Expires: job.Millis(body.ExpiresAt)}
	if body.ExpiresIn != 0 {
		c.Expires = h.engine.Now().Add(job.Millis(body.ExpiresIn))
	}
	var err error
	if c.Scopes, err = job.ParseScopes(body.Scopes); err != nil {
		c.Scopes = job.ScopeRead // so that only the rest is told
	}
	return c, errors.Join(bad, err, c.Check())
}

// revoke is DELETE /tokens/{id}. What the token has open ends.
func (h *tokenRoom) revoke(c *call) (any, error) {
	if slices.ContainsFunc(h.tokens.Grants(), func(g *auth.Grant) bool { return g.Configured && g.ID == c.id }) {
		return nil, job.Errorf(job.WrongState, "the token %q stands in the configuration: take it out there, and start the server again", c.id)
	}
	err := h.engine.Tokens.Drop(c.Context(), c.id, c.by)
	// Also if it is not known whether it is gone, but for the last one that can make others.
	others := func(g *auth.Grant) bool { return g.ID != c.id && g.Lasting() }
	if kind := job.KindOf(err); err == nil || kind == job.NotFound || kind == job.Unavailable && slices.ContainsFunc(h.tokens.Grants(), others) {
		h.tokens.Remove(c.id)
	}
	return nil, err
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
