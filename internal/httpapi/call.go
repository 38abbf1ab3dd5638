package httpapi

import (
	"cmp"
	"net/http"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/wire"
)

// call is one request as a function of a room sees it. What the function
// returns is the answer: an error, nil for a 204, an appended, or a value that is
// written as JSON by its shape. Calls that are made often, and streams, have a
// handle of their own instead.
type call struct {
	*http.Request
	w       http.ResponseWriter // for headers; what the function returns is written later
	s       *scratch            // holds the body; nil = none is read
	id, sub string              // the variable segments of the path
	by      job.Actor           // who asks; zero where nothing is changed
	status  int                 // of the answer; 0 = 200, or 204 without a body
	room    *room               // what the answer may hold in memory, until it is sent
}

// appended is an answer that is written without reflection.
type appended func(b []byte) []byte

type served func(c *call) (any, error)

// bare serves a call whose body, if it has one, nobody reads.
func (h *core) bare(serve served) endpoint {
	return endpoint{serve: func(w http.ResponseWriter, r *http.Request, id, sub string) {
		if err := h.do(&call{Request: r, w: w, id: id, sub: sub}, serve); err != nil {
			h.problem(w, r, err)
		}
	}}
}

// ofJob serves a call on the job of its path.
func ofJob(serve func(c *call, id job.ID) (any, error)) served {
	return func(c *call) (any, error) {
		id, err := jobID(c.id)
		if err != nil {
			return nil, err
		}
		return serve(c, id)
	}
}

// raw serves a call that reads its body by itself, from c.s.
func (h *core) raw(serve served) endpoint {
	return endpoint{serve: func(w http.ResponseWriter, r *http.Request, id, sub string) {
		h.withBody(w, r, func(s *scratch) error {
			return h.do(&call{Request: r, w: w, s: s, id: id, sub: sub}, serve)
		})
	}}
}

// wrong joins what is wrong with the content of a body, one *job.Error for each
// problem. It is asked when the form of some member is wrong, so that all is told
// at once; by itself a call refuses such content when it is served.
type wrong[B any] func(c *call, body *B) error

// strictly serves a call whose body has the shape B, and no other members.
func strictly[B any](h *core, serve func(c *call, body *B) (any, error), content ...wrong[B]) endpoint {
	return shaped(h, serve, plain, content...)
}

// leniently serves one that Zizq has, too, where members that are not known
// are told of and refused only if that is asked for.
func leniently[B any](h *core, serve func(c *call, body *B) (any, error), content ...wrong[B]) endpoint {
	return shaped(h, serve, lenient, content...)
}

// optionally serves one whose body may be left out.
func optionally[B any](h *core, serve func(c *call, body *B) (any, error), content ...wrong[B]) endpoint {
	return optional(shaped(h, serve, ifGiven, content...))
}

// optional passes over the Content-Type of a body that is not there.
func optional(e endpoint) endpoint {
	serve := e.serve
	e.serve = func(w http.ResponseWriter, r *http.Request, id, sub string) {
		if r.ContentLength == 0 {
			r.Header.Del("Content-Type")
		}
		serve(w, r, id, sub)
	}
	return e
}

// fromBody makes the ask of asking of what needs only the body.
func fromBody[B, A any](ask func(body *B) (A, error)) func(*call, *B) (A, error) {
	return func(_ *call, body *B) (A, error) { return ask(body) }
}

// asking serves a call by what its body asks for. The error of ask joins one for each
// problem.
func asking[B, A any](h *core, read reader, ask func(c *call, body *B) (A, error), serve func(c *call, ask A) (any, error)) endpoint {
	return shaped(h, func(c *call, body *B) (any, error) {
		a, err := ask(c, body)
		if err != nil {
			return nil, jobs.Refusal(body, err)
		}
		return serve(c, a)
	}, read, func(c *call, body *B) error { _, err := ask(c, body); return err })
}

func shaped[B any](h *core, serve func(c *call, body *B) (any, error), read reader, content ...wrong[B]) endpoint {
	e := h.raw(func(c *call) (any, error) {
		body := new(B)
		err := read(c.s, body, func() (err error) {
			for _, is := range content {
				err = is(c, body)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return serve(c, body)
	})
	e.body = reflect.TypeFor[B]()
	return e
}

// do runs a call and answers it, unless it returns why not.
func (h *core) do(c *call, serve served) (err error) {
	c.room = h.room(c.Request)
	defer c.room.leave()
	if c.Method != http.MethodGet && c.Method != http.MethodHead {
		c.by = actorOf(c.Request)
	}
	answer, err := serve(c)
	if err != nil {
		return err
	}
	return c.answer(answer)
}

func (c *call) answer(v any) error {
	if v == nil {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	c.status = cmp.Or(c.status, http.StatusOK)
	write, ok := v.(appended)
	if !ok {
		body, err := encode(v)
		if err == nil {
			send(c.w, c.status, body)
		}
		return err
	}
	s := c.s
	if s == nil {
		s = scratches.Get().(*scratch)
		defer s.release(false)
	}
	s.out = write(s.out)
	send(c.w, c.status, s.out)
	return nil
}

// encode writes a value by its shape, and JSON that is kept, such as a payload, as it
// is: also an object with a member twice, which was accepted. Text of a header may be no
// UTF-8; what is not is written as U+FFFD.
func encode(v any) ([]byte, error) {
	return json.Marshal(v, json.Deterministic(true), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true), jsontext.PreserveRawStrings(true))
}

// shown is the answer that tells what an engine returned, unless that is an error.
func shown[T, W any](tell func(T) W) func(T, error) (any, error) {
	return func(v T, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return tell(v), nil
	}
}

// made makes the answer one to something new.
func (c *call) made(v any, err error) (any, error) {
	c.status = http.StatusCreated
	return v, err
}

// plainMax bounds the bodies that are read by reflection, which nobody sends
// often (docs/protocol/conventions.md, body).
const plainMax = 1 << 20

// reader reads a body into v, over what v holds; content says what is wrong with it.
type reader func(s *scratch, v any, content ...func() error) error

// plain refuses a member that is not known. Its errors are *job.Error and name the
// field.
func plain(s *scratch, v any, content ...func() error) error {
	if s.Body.Len() > plainMax {
		return errPlainMax
	}
	return jobs.ReadPlain(s.Body.Bytes(), v, content...)
}

// lenient does so, but tells of an unknown member instead of refusing it.
func lenient(s *scratch, v any, content ...func() error) error {
	if s.Body.Len() > plainMax {
		return errPlainMax
	}
	return jobs.ReadLenient(s.Body.Bytes(), v, s.Unknown, content...)
}

// ifGiven is plain for a body that may be left out.
func ifGiven(s *scratch, v any, content ...func() error) error {
	if s.Body.Len() == 0 {
		return nil
	}
	return plain(s, v, content...)
}

var errPlainMax = &refusal{http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the body of this call is larger than " + itoa(plainMax) + " bytes"}
