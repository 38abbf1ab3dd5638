package httpapi

import (
	"net/http"
	"net/url"

	"github.com/reprisehq/reprise/internal/job"
)

// Access is what the table of scopes says of a call.
type Access struct {
	Public bool       // it needs no token
	OneOf  job.Scopes // admin, which may do everything, is among them where nothing else is
	Reach  string     // in words, what a token for some queues may do with it
	Inside bool       // such a token may, for its own queues
	Beyond bool       // and what it says of another one's is no reason to refuse
}

// AccessOf finds a call in the table of scopes; false = there is no such call.
func AccessOf(method, path string) (a Access, ok bool) {
	res, _, _ := calls().paths.find(&url.URL{Path: path})
	if res == nil || res.method(method) == nil {
		return a, false
	}
	need := res.method(method)
	if need.oneOf == public {
		return Access{Public: true, Reach: "all", Inside: true, Beyond: true}, true
	}
	a = Access{OneOf: need.oneOf, Inside: need.reach != wholeServer, Beyond: need.reach >= ownOnly}
	if a.OneOf == 0 {
		a.OneOf = job.ScopeAdmin
	}
	a.Reach = [...]string{
		wholeServer: "refused", queryQueues: "names its queues: `queue=`", pathQueue: "of its queues", pathJob: "of jobs in its queues",
		handlerAsks: "of its queues, named in the body", ownOnly: "shows its own", ownNames: "engines of its own", noQueue: "all",
	}[need.reach]
	return a, true
}

// BytesOfBodies is what the requests at work have in memory.
func BytesOfBodies(h http.Handler) int64 { return h.(*handler).bodies.bytes() }

// BytesOfAnswers is what answers have there.
func BytesOfAnswers(h http.Handler) int64 { return h.(*handler).answers.bytes() }

// RoomIsAwaited reports whether an answer waits for room there.
func RoomIsAwaited(h http.Handler) bool {
	s := &h.(*handler).answers
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.freed != nil
}

// PlacesTaken is how many listen to events or watch the lists.
func PlacesTaken(h http.Handler) int64 {
	return h.(*handler).listeners.bytes() + h.(*handler).watchers.bytes()
}

func (s *space) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
