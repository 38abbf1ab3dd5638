package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/reprisehq/reprise/internal/auth"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/strict"
	"github.com/reprisehq/reprise/wire"
)

type grantKey struct{}

// admit lets a request in, with its grant, or answers why not and returns nil.
// While there is no token it costs one look, and a stream a little memory.
func (h *core) admit(w http.ResponseWriter, r *http.Request, to *route, id string) *http.Request {
	if !h.tokens.Closed() {
		if !to.stream && !to.waits {
			return r
		}
		g, err := h.tokens.Who(nil)
		if err == nil { // the first token ends it
			return r.WithContext(g.Bound(r.Context()))
		}
	}
	if to.oneOf == public {
		return r
	}
	g, err := h.tokens.Who(r.Header["Authorization"])
	if err != nil {
		h.unknown(w, r, err)
		return nil
	}
	if want := cmp.Or(to.oneOf, admins); !g.Scopes.Allows(want) {
		h.problem(w, r, forbidden("the token %q lacks the scope %s; it has %s", g.Name, strings.Join(want.Names(), " or "), g.Scopes))
		return nil
	}
	if err := h.reaches(g, to.reach, r, id); err != nil {
		h.problem(w, r, err)
		return nil
	}
	ctx := context.WithValue(r.Context(), grantKey{}, g)
	if to.stream || to.waits {
		ctx = g.Bound(ctx)
	}
	return r.WithContext(ctx)
}

// actorMax bounds the name in the header that says who asks.
const actorMax = 128

// actorOf is who asks, as far as the request tells.
func actorOf(r *http.Request) job.Actor {
	if g, ok := r.Context().Value(grantKey{}).(*auth.Grant); ok {
		return job.Actor{Name: g.Name, From: remote(r), Admin: g.Scopes&job.ScopeAdmin != 0} // what else the request says, nobody vouches for
	}
	return job.Actor{Name: strings.Join(r.Header[wire.HeaderActor], ""), From: remote(r)}
}

// actorFits reports whether the name that a request says, if it says one, can be kept.
func actorFits(r *http.Request) bool {
	names := r.Header[wire.HeaderActor]
	return len(names) == 0 || len(names) == 1 && len(names[0]) <= actorMax && !strings.ContainsFunc(names[0], func(c rune) bool { return !unicode.IsPrint(c) })
}

var errActor = &refusal{http.StatusBadRequest, wire.CodeInvalid, "the header " + wire.HeaderActor + " must be a name of at most " + itoa(actorMax) + " printable bytes"}

// unknown answers 401.
func (h *core) unknown(w http.ResponseWriter, r *http.Request, err error) {
	challenge := `Bearer realm="reprise"`
	if err == auth.ErrUnknown { //nolint:errorlint // never wrapped
		challenge += `, error="invalid_token"`
		if n, tell := h.strangers.more(time.Now()); tell {
			h.log.WarnContext(r.Context(), "calls with a token that is not known", "calls", n, "latest_from", remote(r))
		}
	}
	w.Header()["Www-Authenticate"] = []string{challenge}
	refuse(w, http.StatusUnauthorized, wire.CodeUnauthorized, err.Error())
}

func forbidden(format string, args ...any) error {
	return &refusal{http.StatusForbidden, wire.CodeForbidden, job.Errorf(job.Invalid, format, args...).Text}
}

// grantOf is who sends the request; nil while nobody needs a token.
func (h *core) grantOf(r *http.Request) *auth.Grant {
	if !h.tokens.Closed() {
		return nil
	}
	g, _ := r.Context().Value(grantKey{}).(*auth.Grant)
	return g
}

// limited is the grant of a request whose token is for some queues only, else
// nil.
func (h *core) limited(r *http.Request) *auth.Grant {
	if g := h.grantOf(r); g != nil && len(g.Queues) > 0 {
		return g
	}
	return nil
}

// worker is the name under which a worker holds its jobs. Whoever comes under
// it again is given them, so that of a token for some queues is its own: the
// pair of both names. Neither of them holds a backslash by itself.
func (h *core) worker(r *http.Request, name string) string {
	if g := h.limited(r); g != nil && name != "" {
		return g.Name + `\` + name
	}
	return name
}

// reaches holds a token to its queues, as far as path and query say it.
func (h *core) reaches(g *auth.Grant, how reach, r *http.Request, id string) error {
	if len(g.Queues) == 0 {
		return nil
	}
	switch how {
	case queryQueues:
		if r.URL.Path == "/events" && upgrades(r) {
			return forbidden("the token %q is for the queues %s, and a WebSocket shows all; GET /events without a WebSocket has ?queue=", g.Name, strings.Join(g.Queues, ", "))
		}
		var named []string
		for _, list := range r.URL.Query()["queue"] {
			named = append(named, strict.Names(list)...)
		}
		return onlyFor(g, "", named)
	case pathQueue:
		return onlyFor(g, "", []string{id})
	case pathJob:
		known, err := job.ParseID(id)
		if err != nil {
			return nil // the handler says that there is none
		}
		return h.reachJobs(r.Context(), g, 1, func(int) job.ID { return known })
	case handlerAsks, ownOnly, ownNames, noQueue:
		return nil
	case wholeServer:
	}
	return forbidden("the token %q is for the queues %s, and this call is not about single queues", g.Name, strings.Join(g.Queues, ", "))
}

// onlyFor refuses what a token is not for. where is the list that names them.
func onlyFor(g *auth.Grant, where string, named []string) error {
	if len(named) == 0 {
		return forbidden("the token %q is for the queues %s; name the queues: without names this call is about all", g.Name, strings.Join(g.Queues, ", "))
	}
	for i, q := range named {
		if !g.Reaches(q) {
			if where != "" {
				where += "[" + itoa(int64(i)) + "]: "
			}
			return forbidden("%sthe token %q is not for the queue %q, only for %s", where, g.Name, q, strings.Join(g.Queues, ", "))
		}
	}
	return nil
}

// reachQueues does so for a call with n queues in its body.
func (h *core) reachQueues(r *http.Request, where string, n int, queue func(i int) string) error {
	g := h.limited(r)
	if g == nil {
		return nil
	}
	named := make([]string, n)
	for i := range named {
		named[i] = queue(i)
	}
	return onlyFor(g, where, named)
}

// reachIDs does so for a call with n jobs in its body. Jobs that are not there
// are left to the call.
func (h *core) reachIDs(r *http.Request, n int, id func(i int) job.ID) error {
	if g := h.limited(r); g != nil && n > 0 {
		return h.reachJobs(r.Context(), g, n, id)
	}
	return nil
}

func (h *core) reachJobs(ctx context.Context, g *auth.Grant, n int, id func(i int) job.ID) error {
	ids := make([]job.ID, n)
	for i := range ids {
		ids[i] = id(i)
	}
	queues, err := h.engine.Tokens.Queues(ctx, ids)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(queues, func(q string) bool { return q != "" && !g.Reaches(q) }); i >= 0 {
		return forbidden("job %s is in a queue that the token %q is not for; it is for %s", ids[i], g.Name, strings.Join(g.Queues, ", "))
	}
	return nil
}
