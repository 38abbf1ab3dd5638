package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/reprisehq/reprise/wire"
)

// call is a request as a checker sees it; answer is what came back. A request
// without an answer is unknown: it happened or it did not. Tokens and members
// are numbers; 0 is none.
type call struct {
	verb  string // take, ok, retry, dead, release, extend, delete, get; crash
	token int    // of settles and extend
	start int    // of the server, when that token was given out
}

type answer struct {
	unknown  bool
	status   string // of the job afterwards
	code     string // of a refusal
	attempts int    // get
	token    int    // take; also of one without an answer, which may have given it
	member   int    // take in a group
}

// jobState is one job between two requests.
type jobState struct {
	status   string // "" = deleted
	attempts int
	token    int // the live one
	start    int // of the server
	ended    [4]ended
}

// ended is a token that was settled, and how.
type ended struct {
	token int
	verb  string
}

var statusAfter = map[string]string{"ok": wire.Completed, "retry": wire.Ready, "dead": wire.Dead, "release": wire.Ready}

// after is the state after a request and its right answer; given is the token
// that a take would give out.
func (s jobState) after(c call, given int) (jobState, answer) {
	i := slices.IndexFunc(s.ended[:], func(e ended) bool { return e.token == c.token })
	open := s.status == wire.Ready || s.status == wire.InFlight
	switch {
	case c.verb == "take" && s.status != wire.Ready:
		return s, answer{code: "none"}
	case c.verb == "take":
		s.status, s.token = wire.InFlight, given
		return s, answer{status: wire.InFlight, token: given}
	case s.status == "":
		return s, answer{code: wire.CodeNotFound}
	case c.verb == "get":
		return s, answer{status: s.status, attempts: s.attempts}
	case c.verb == "delete":
		return jobState{start: s.start}, answer{}
	case c.verb == "extend" && s.status == wire.InFlight && s.token == c.token:
		return s, answer{status: s.status}
	case c.verb == "extend":
		return s, answer{code: wire.CodeSuperseded}
	case s.token == c.token:
		return s.settled(c)
	case i >= 0 && s.ended[i].verb == c.verb: // the same again
		return s, answer{status: s.status}
	case i < 0 && c.verb == "ok" && open && c.start < s.start: // a late OK of an earlier start
		if s.status == wire.InFlight { // whoever has it now is superseded, and that is remembered too
			s.end(s.token, "supersede")
		}
		return s.settled(c)
	}
	return s, answer{code: wire.CodeSuperseded}
}

func (s *jobState) end(token int, verb string) {
	copy(s.ended[1:], s.ended[:])
	s.ended[0] = ended{token, verb}
}

func (s jobState) settled(c call) (jobState, answer) {
	s.end(c.token, c.verb)
	s.status, s.token = statusAfter[c.verb], 0
	if c.verb == "retry" || c.verb == "dead" {
		s.attempts++
	}
	return s, answer{status: s.status}
}

// jobModel is one job of an unordered queue whose failures are retried at once.
var jobModel = model(jobState{status: wire.Ready}, func(s jobState, c call, a answer) []jobState {
	if c.verb == "crash" { // may forget that a job was given out, which is not synced
		s.start++
		if s.status != wire.InFlight {
			return []jobState{s}
		}
		forgot := s
		forgot.status, forgot.token = wire.Ready, 0
		return []jobState{s, forgot}
	}
	next, want := s.after(c, a.token)
	return possible(s, next, want, a)
})

// groupState is a strictly ordered group: the head, and the token of its turn.
type groupState struct{ head, size, token int }

// groupModel is a strictly ordered group of a number of members, which are
// numbered from 1 in the order in which they were enqueued.
func groupModel(size int) porcupine.Model {
	return model(groupState{head: 1, size: size}, func(s groupState, c call, a answer) []groupState {
		next, want := s, answer{}
		switch {
		case c.verb == "crash": // takes are synced here, so nothing is forgotten
			return []groupState{s}
		case c.verb == "take" && (s.token != 0 || s.head > s.size):
			want.code = "none"
		case c.verb == "take":
			next.token = a.token
			want = answer{status: wire.InFlight, token: a.token, member: s.head}
		case s.token != c.token: // not asked: only live tokens are settled, and once
			want.code = wire.CodeSuperseded
		default:
			if next.token = 0; c.verb == "ok" || c.verb == "dead" {
				next.head++
			}
			want.status = statusAfter[c.verb]
		}
		return possible(s, next, want, a)
	})
}

// possible are the states after an answer: none if it is wrong, two if there
// was none.
func possible[S any](s, next S, want, got answer) []S {
	switch {
	case got.unknown:
		return []S{s, next}
	case got == want:
		return []S{next}
	}
	return nil
}

func model[S comparable](first S, step func(S, call, answer) []S) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{first} },
		Step: func(s, in, out any) (states []any) {
			for _, next := range step(s.(S), in.(call), out.(answer)) {
				states = append(states, next)
			}
			return states
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
		DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
	}
	return m.ToModel()
}

// linearizable checks the history of one job or group. One that no order of
// its requests explains is drawn into a file.
func linearizable(t *testing.T, name string, m porcupine.Model, history []porcupine.Operation) {
	t.Helper()
	result, info := porcupine.CheckOperationsVerbose(m, history, patience)
	if result == porcupine.Ok {
		return
	}
	path := filepath.Join(os.TempDir(), "reprise-"+strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()+"-"+name)+".html")
	err := porcupine.VisualizePath(m, info, path)
	t.Errorf("%s: %d requests are %s; drawn in %s (%v)", name, len(history), result, path, err)
}

// TestCheckerBites gives the checkers hand-made histories, most of them wrong.
func TestCheckerBites(t *testing.T) {
	type step struct {
		c    call
		a    answer
		last bool // overlaps with all that follows
	}
	take := func(token int) step {
		return step{c: call{verb: "take"}, a: answer{status: wire.InFlight, token: token}}
	}
	give := func(token, member int) step {
		return step{c: call{verb: "take"}, a: answer{status: wire.InFlight, token: token, member: member}}
	}
	none := step{c: call{verb: "take"}, a: answer{code: "none"}}
	ends := func(verb string, token int) step {
		return step{c: call{verb: verb, token: token}, a: answer{status: statusAfter[verb]}}
	}
	refused := func(verb string, token int, code string) step {
		return step{c: call{verb: verb, token: token}, a: answer{code: code}}
	}
	lost := func(s step) step { s.a, s.last = answer{unknown: true, token: s.a.token}, true; return s }
	get := func(status string, attempts int) step {
		return step{c: call{verb: "get"}, a: answer{status: status, attempts: attempts}}
	}
	crash := step{c: call{verb: "crash"}}
	group := groupModel(2)
	for _, test := range []struct {
		name  string
		model porcupine.Model
		steps []step
		want  bool
	}{
		{"a whole life", jobModel, []step{take(1), ends("retry", 1), take(2), none, ends("ok", 2), get(wire.Completed, 1)}, true},
		{"the same settle twice", jobModel, []step{take(1), ends("ok", 1), ends("ok", 1)}, true},
		{"given out to two", jobModel, []step{take(1), take(2)}, false},
		{"given out after its end", jobModel, []step{take(1), ends("ok", 1), take(2)}, false},
		{"ready, and not given out", jobModel, []step{none}, false},
		{"settled by an old token", jobModel, []step{take(1), ends("release", 1), take(2), ends("ok", 1)}, false},
		{"a live token refused", jobModel, []step{take(1), refused("ok", 1, wire.CodeSuperseded)}, false},
		{"a failure not charged", jobModel, []step{take(1), ends("retry", 1), get(wire.Ready, 0)}, false},
		{"extended after its end", jobModel, []step{take(1), ends("release", 1), {c: call{verb: "extend", token: 1}, a: answer{status: wire.InFlight}}}, false},
		{"there after it was deleted", jobModel, []step{{c: call{verb: "delete"}}, get(wire.Ready, 0)}, false},
		{"an unknown settle that happened", jobModel, []step{take(1), lost(ends("ok", 1)), get(wire.Completed, 0)}, true},
		{"an unknown settle that did not", jobModel, []step{take(1), lost(ends("ok", 1)), crash, get(wire.InFlight, 0)}, true},
		{"an unknown settle that came and went", jobModel, []step{take(1), lost(ends("ok", 1)), get(wire.Completed, 0), get(wire.InFlight, 0)}, false},
		{"an unsynced take forgotten", jobModel, []step{take(1), crash, take(2), ends("ok", 1)}, true},
		{"an acknowledged settle forgotten", jobModel, []step{take(1), ends("ok", 1), crash, get(wire.Ready, 0)}, false},
		{"in sequence", group, []step{give(1, 1), ends("retry", 1), give(2, 1), none, ends("ok", 2), give(3, 2)}, true},
		{"past its head", group, []step{give(1, 2)}, false},
		{"past a failed head", group, []step{give(1, 1), ends("retry", 1), give(2, 2)}, false},
		{"two turns at once", group, []step{give(1, 1), give(2, 1)}, false},
		{"the same member again", group, []step{give(1, 1), ends("ok", 1), give(2, 1)}, false},
		{"a turn forgotten in a crash", group, []step{give(1, 1), crash, give(2, 1)}, false},
		{"an unknown take", group, []step{lost(give(1, 0)), crash, none}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var history []porcupine.Operation
			for i, s := range test.steps {
				op := porcupine.Operation{ClientId: i, Input: s.c, Output: s.a, Call: int64(2 * i), Return: int64(2*i + 1)}
				if s.last {
					op.Return = int64(2 * len(test.steps))
				}
				history = append(history, op)
			}
			result, info := porcupine.CheckOperationsVerbose(test.model, history, time.Minute)
			if (result == porcupine.Ok) != test.want {
				t.Errorf("found %s", result)
			}
			if err := porcupine.Visualize(test.model, info, &strings.Builder{}); err != nil {
				t.Errorf("cannot be drawn: %v", err)
			}
		})
	}
}
