package httpapi

import (
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// unknowns are the members of bodies that no call knows, each logged once.
type unknowns struct {
	mu     sync.Mutex
	logged map[string]bool // by call and path; at most unknownsMax
}

const unknownsMax = 256

// tell answers a member that a call does not know: the header says so, and with
// strict the body is refused. Zizq ignores such members, so that is no default.
func (h *core) tell(w http.ResponseWriter, r *http.Request, path, why string) error {
	text := path + " " + why
	if h.live.now.Load().Strict || prefersStrict(r.Header["Prefer"]) {
		return &job.Error{Kind: job.Invalid, Field: path, Text: text}
	}
	w.Header().Add(wire.WarningHeader, asciiOnly(text)+" (ignored)")
	if h.misspelt.first(r.Method + " " + path) {
		h.log.WarnContext(r.Context(), "a request has a member that no call knows; it is logged once",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.String("member", path), slog.String("why", why))
	}
	return nil
}

// first reports whether a member was not seen before. Numbers of list entries
// make no difference.
func (u *unknowns) first(name string) bool {
	name = strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, name)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.logged[name] || len(u.logged) == unknownsMax {
		return false
	}
	if u.logged == nil {
		u.logged = map[string]bool{}
	}
	u.logged[name] = true
	return true
}

// prefersStrict reads Prefer: handling=strict (RFC 7240 section 4.4).
func prefersStrict(lines []string) bool {
	for _, line := range lines {
		for part := range strings.SplitSeq(line, ",") {
			part, _, _ = strings.Cut(part, ";")
			if strings.EqualFold(strings.ReplaceAll(strings.TrimSpace(part), `"`, ""), "handling=strict") {
				return true
			}
		}
	}
	return false
}

// asciiOnly makes a text fit for a header.
func asciiOnly(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '?'
		}
		return c
	}, s)
}
