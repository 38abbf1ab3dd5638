package jobs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

type successBody struct {
	IDs []string `json:"ids"`
}

// Success reads the body of POST /jobs/success. Texts that cannot be an id
// come back as strange: they are not found, like any id nobody holds.
func (r *Reader) Success() (list []engine.Settle, strange []string, err error) {
	found := false
	r.whole(reflect.TypeFor[successBody](), func(name []byte) {
		if string(name) != "ids" {
			unknown[successBody](r, name)
			return
		}
		found = r.entries("ids", func() {
			text, ok := r.text("id")
			r.must("id", ok)
			if id, bad := job.ParseID(text); bad == nil {
				r.settles = append(r.settles, engine.Settle{ID: id, Outcome: job.OK})
			} else {
				strange = append(strange, string(text))
			}
		})
	})
	r.must("ids", found)
	if len(r.settles)+len(strange) == 0 {
		r.fail("ids", "must not be empty")
	}
	return r.settles, strange, r.end()
}

// Missing returns, each once, the ids whose OK changed nothing. That an id is
// listed twice is no fault of the second. why is the first reason that is more
// than "nobody holds it".
func Missing(list []engine.Settle, verdicts []engine.Verdict, strange []string) (missing []string, why error) {
	var settled map[job.ID]bool // or told
	for i, v := range verdicts {
		if v.Err == nil {
			continue
		}
		if settled == nil {
			settled = make(map[job.ID]bool, len(list))
			for k := range list {
				settled[list[k].ID] = settled[list[k].ID] || verdicts[k].Err == nil
			}
		}
		if settled[list[i].ID] {
			continue
		}
		settled[list[i].ID] = true
		missing = append(missing, list[i].ID.String())
		if why == nil && job.KindOf(v.Err) != job.NotFound {
			why = v.Err
		}
	}
	slices.Sort(strange)
	return append(missing, slices.Compact(strange)...), why
}

// failureBody names the members of a failure report.
type failureBody struct {
	wire.Failure
	wire.Settle
	Kill bool `json:"kill"`
}

// Failure reads the body of POST /jobs/{id}/failure.
func (r *Reader) Failure(id job.ID) (engine.Settle, error) {
	s, said := engine.Settle{ID: id, Outcome: job.Retried}, false
	r.whole(reflect.TypeFor[failureBody](), func(name []byte) {
		switch {
		case r.failure(&s.Failure, &said, "", name) || r.when(&s, name):
		case string(name) != "kill":
			unknown[failureBody](r, name)
		case r.bool("kill"):
			s.Outcome = job.Died
		}
	})
	r.must("message", said)
	return s, r.end()
}

// Release reads the body of POST /jobs/{id}/release, which may be left out.
func (r *Reader) Release(id job.ID) (engine.Settle, error) {
	s := engine.Settle{ID: id, Outcome: job.Released}
	if r.Body.Len() == 0 {
		return s, nil
	}
	r.whole(reflect.TypeFor[wire.Settle](), func(name []byte) { r.settle(&s, name) })
	r.onlyOfOK(&s)
	return s, r.end()
}

// failure reads a member of a failure, if it is one; said is whether it has a
// message.
func (r *Reader) failure(f *job.Failure, said *bool, path string, name []byte) bool {
	switch string(name) {
	case "message":
		text, ok := r.text(path + "message")
		f.Message, *said = string(text), ok
	case "error_type":
		f.Type = r.blank(f, path+"error_type", job.BlankType)
	case "backtrace":
		f.Backtrace = r.blank(f, path+"backtrace", job.BlankBacktrace)
	case "status":
		f.Status = int(r.number(path+"status", 0, 999, 0))
	case "exit_code":
		f.ExitCode = int(r.number(path+"exit_code", 0, 255, 0))
	case "timeout":
		f.Timeout = r.bool(path + "timeout")
	default:
		return false
	}
	return true
}

// blank reads a text of a failure, and notes that it was given and is empty.
func (r *values) blank(f *job.Failure, path string, which job.Blank) string {
	text, given := r.text(path)
	if given && len(text) == 0 {
		f.Blank |= which
	}
	return string(text)
}

// when reads a member that says when and where the job goes on, if it is one.
func (r *Reader) when(s *engine.Settle, name []byte) bool {
	switch string(name) {
	case "retry_at":
		s.RetryAt = r.soon("retry_at")
	case "retry_in_ms", "retry_in": // the specification's name has no unit
		s.RetryIn = r.soon("retry_in_ms")
	case "retry_after_ms":
		s.RetryAfter = r.millis("retry_after_ms", 0, 0)
	case "retry_after":
		s.RetryAfter, s.NotBefore = r.retryAfter()
	case "started":
		s.Started = r.millis("started", 0, 0)
	case "place":
		s.Place, _ = oneOf(r, "place", places...)
	case "hold":
		s.Hold = r.span("hold")
	default:
		return false
	}
	return true
}

// span reads how long something lasts: a whole number of milliseconds, or a
// text as in a retry policy.
func (r *values) span(field string) job.Millis {
	raw := r.given()
	if raw == nil {
		return 0
	}
	text := string(raw)
	if raw[0] == '"' {
		own, _ := jsontext.AppendUnquote(nil, raw)
		text = string(own)
	} else if n, err := strconv.ParseUint(text, 10, 64); err != nil || n > uint64(job.MaxMillis) {
		text = "" // which is no span
	}
	m, err := job.ParseDuration(text)
	if err != nil {
		r.fail(field, "must be a span: a whole number of milliseconds, or a text such as 30s, 1m30s or PT6S")
	}
	return m
}

// retryAfter reads what a target said in its Retry-After, as it said it: whole
// seconds, as a number or a text, or a date.
func (r *values) retryAfter() (span, date job.Millis) {
	raw := r.given()
	if raw == nil {
		return 0, 0
	}
	text := string(raw)
	if raw[0] == '"' {
		own, _ := jsontext.AppendUnquote(nil, raw)
		text = strings.TrimSpace(string(own))
	}
	if n, err := strconv.ParseUint(text, 10, 53); err == nil {
		return min(job.Millis(n), job.MaxMillis/job.Second) * job.Second, 0
	}
	for _, form := range []string{time.RFC1123, time.RFC850, time.ANSIC} { // RFC 9110 section 5.6.7
		if at, err := time.Parse(form, text); err == nil {
			return 0, max(job.Millis(at.UnixMilli()), 1)
		}
	}
	r.fail("retry_after", "must be a whole number of seconds or a date such as Tue, 15 Nov 1994 08:12:31 GMT")
	return 0, 0
}

// soon reads a retry time: 0 means at once here, and "not said" to the engine.
func (r *values) soon(field string) job.Millis {
	if m := r.millis(field, 0, job.Unset); m != job.Unset {
		return max(m, 1)
	}
	return 0
}

// Settles reads the body of POST /jobs/settle: an array of ends of attempts.
func (r *Reader) Settles() ([]engine.Settle, error) {
	r.start("a JSON array of objects", reflect.TypeFor[wire.Settle]())
	r.must("settles", r.entries("settles", func() {
		s, hasID, hasOutcome := engine.Settle{}, false, false
		r.must("the entry", r.object("the entry", func(name []byte) {
			switch string(name) {
			case "id":
				s.ID, hasID = r.id()
			case "outcome":
				s.Outcome, hasOutcome = oneOf(r, "outcome", job.OK, job.Retried, job.Died, job.Released)
			default:
				r.settle(&s, name)
			}
		}))
		r.must("id", hasID)
		r.must("outcome", hasOutcome)
		r.onlyOfOK(&s)
		r.settles = append(r.settles, s)
	}))
	return r.settles, r.end()
}

// settle reads what may be left out of the end of an attempt.
func (r *Reader) settle(s *engine.Settle, name []byte) {
	switch string(name) {
	case "lease":
		s.Token = r.token()
	case "delay_ms":
		s.Delay = r.millis("delay_ms", 0, 0)
	case "error":
		said := false
		there := r.object("error", func(name []byte) {
			if !r.failure(&s.Failure, &said, "error.", name) {
				unknown[wire.Failure](r, name)
			}
		})
		r.must("error.message", said || !there)
	case "result":
		if raw := r.given(); raw != nil {
			s.Result = r.payload("result", raw)
		}
	default:
		if !r.when(s, name) {
			unknown[wire.Settle](r, name)
		}
	}
}

// onlyOfOK refuses a result of what has made none.
func (r *Reader) onlyOfOK(s *engine.Settle) {
	if s.Result != nil && s.Outcome != job.OK {
		r.fail("result", "goes with the outcome ok only; what the next attempt shall find is a checkpoint")
	}
}

func (r *values) id() (id job.ID, ok bool) {
	text, ok := r.text("id")
	if id, err := job.ParseID(text); err == nil || !ok {
		return id, ok
	}
	r.fail("id", "is no id: "+job.ErrID.Error())
	return id, true
}

func (r *values) token() job.Token {
	text, ok := r.text("lease")
	t, err := job.ParseToken(string(text))
	if err != nil && ok {
		r.fail("lease", "is no token: "+err.Error())
	}
	return t
}
