package httpapi

import (
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/reprisehq/reprise/internal/door/jobs"
	"github.com/reprisehq/reprise/wire"
)

// plainMax bounds the bodies that are read by reflection, which nobody sends
// often.
const plainMax = 1 << 20

// plain reads a body into v, over what v holds. With strict, an unknown member
// is refused. Its errors are *job.Error and name the field.
func plain(body []byte, v any, strict bool) error {
	if len(body) > plainMax {
		return errPlainMax
	}
	return jobs.ReadPlain(body, v, strict)
}

// lenient does so, but tells of an unknown member instead of refusing it.
func lenient(s *scratch, v any) error {
	if s.Body.Len() > plainMax {
		return errPlainMax
	}
	return jobs.ReadLenient(s.Body.Bytes(), v, s.Unknown)
}

var errPlainMax = &refusal{http.StatusRequestEntityTooLarge, wire.CodeTooLarge, "the body of this call is larger than " + itoa(plainMax) + " bytes"}

// sendPlain answers with a value that is written by reflection.
func (h *handler) sendPlain(w http.ResponseWriter, r *http.Request, v any, err error) {
	var body []byte
	if err == nil {
		body, err = json.Marshal(v)
	}
	if err != nil {
		h.problem(w, r, err)
		return
	}
	send(w, http.StatusOK, body)
}

// sendPlainAs does so with another status; the value can be written.
func (h *handler) sendPlainAs(w http.ResponseWriter, r *http.Request, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		h.problem(w, r, err)
		return
	}
	send(w, status, body)
}
