package ship

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/reply"
)

// item is what an answer says of a record that was not delivered.
type item struct {
	place  int // among those that were sent
	status int // 0 = nothing that can be understood
	kind   string
	reason string
}

// again reports whether the record may be taken at another time.
func (i *item) again() bool {
	return i.status < 400 || i.status == http.StatusTooManyRequests || i.status >= 500
}

func (i *item) mask(m *strings.Replacer) {
	const typeBytesMax, reasonBytesMax = 256, 1 << 10
	i.kind, i.reason = reply.Clip(m.Replace(i.kind), typeBytesMax), reply.Clip(m.Replace(i.reason), reasonBytesMax)
}

func (i *item) failure() job.Failure {
	f := job.Failure{Type: i.kind, Message: i.reason, Status: i.status}
	if f.Type == "" {
		f.Type = fmt.Sprintf("http %d", i.status)
	}
	switch {
	case f.Message != "":
	case i.status == 0:
		f.Message = "the answer says nothing of this record that can be understood"
	default:
		f.Message = fmt.Sprintf("answered %d %s", i.status, http.StatusText(i.status))
	}
	return f
}

var (
	errItems = errors.New("it lists no results of records")
	errCount = errors.New("it lists another number of results than records were sent")
	errMore  = errors.New("there is more behind its end")
)

// readBulk reads the answer to a bulk request as it comes, at most so many bytes of
// it, and returns the records that were not delivered. An answer that is not whole, or has not one
// item for each record that was sent, says nothing of any.
func readBulk(r io.Reader, bytesMax int64, sent int, created bool) (items []item, err error) {
	bounded := &io.LimitedReader{R: r, N: bytesMax + 1}
	d := jsontext.NewDecoder(bounded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	seen, lists := 0, 0
	err = members(d, func(name string) error {
		if name != "items" {
			return d.SkipValue()
		}
		lists++
		return elements(d, func() error {
			text, err := d.ReadValue()
			if err != nil {
				return err
			} else if seen == sent {
				return errCount
			}
			i := readItem(text)
			if i.place = seen; i.status/100 != 2 && (!created || i.status != http.StatusConflict) {
				items = append(items, i)
			}
			seen++
			return nil
		})
	})
	if err == nil {
		if _, err = d.ReadToken(); err == nil {
			err = errMore
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	switch {
	case bounded.N == 0:
		err = fmt.Errorf("it is longer than %d bytes", bytesMax)
	case err != nil:
	case lists == 0:
		err = errItems
	case lists > 1 || seen != sent:
		err = errCount
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	return items, nil
}

// members calls each for every member of an object, with the value to be read.
func members(d *jsontext.Decoder, each func(name string) error) error {
	if err := begin(d, jsontext.KindBeginObject); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := each(name.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// elements calls each for every element of an array, with the value to be read.
func elements(d *jsontext.Decoder, each func() error) error {
	if err := begin(d, jsontext.KindBeginArray); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndArray {
		if err := each(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func begin(d *jsontext.Decoder, kind jsontext.Kind) error {
	t, err := d.ReadToken()
	if err == nil && t.Kind() != kind {
		return errItems
	}
	return err
}

// readItem reads {"create":{"status":201}} and its likes.
func readItem(text []byte) item {
	if status := plainStatus(text); status > 0 {
		return item{status: status}
	}
	return readFailed(text)
}

func readFailed(text []byte) (i item) {
	var actions map[string]struct {
		Status int             `json:"status"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(text, &actions) != nil || len(actions) != 1 {
		return item{}
	}
	for _, a := range actions {
		if i.status = a.Status; i.status < 100 || i.status > 999 {
			return item{}
		}
		var e, cause failedItem
		if json.Unmarshal(a.Error, &e) != nil {
			_ = json.Unmarshal(a.Error, &i.reason) // very old servers write a text
			return i
		}
		if i.kind, i.reason = e.Type, e.Reason; json.Unmarshal(e.Cause, &cause) == nil && cause.Reason != "" {
			i.reason += ": " + cause.Reason
		}
	}
	return i
}

type failedItem struct {
	Type   string          `json:"type"`
	Reason string          `json:"reason"`
	Cause  json.RawMessage `json:"caused_by"`
}

var nameStatus, nameError = []byte(`"status":`), []byte(`"error"`)

// plainStatus is the status of an item that has one without doubt and no error. Within
// a text of JSON a quote has a backslash before it, so that what is found is a name.
func plainStatus(text []byte) (status int) {
	at := bytes.Index(text, nameStatus)
	if at < 0 || bytes.Contains(text, nameError) {
		return 0
	}
	rest := text[at+len(nameStatus):]
	if bytes.Contains(rest, nameStatus) || len(rest) < 4 || rest[3] != ',' && rest[3] != '}' {
		return 0
	}
	for _, c := range rest[:3] {
		if c < '0' || c > '9' {
			return 0
		}
		status = status*10 + int(c-'0')
	}
	return status
}
