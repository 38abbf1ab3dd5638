package listen

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/record"
	"github.com/reprisehq/reprise/internal/trust"
)

// HTTPOptions are what an input for requests accepts, and what it answers. Their names are
// those of the original.
type HTTPOptions struct {
	Address
	Tag    string // of records that come to the path /
	TagKey string // whose text is the tag of a record; "" = none

	SuccessfulResponseCode int      // 200, 201 or 204; 0 = 201
	SuccessHeader          []string // "Name value"
	AddRemoteAddr          bool
	RemoteAddrKey          string // "" = REMOTE_ADDR
	EnableHealthEndpoint   bool   // GET /health
	BufferMaxSize          int    // bytes of a body, also after it was inflated; 0 = 4M
	MaxConnections         int    // 0 = 4096
	QueueByteLimit         int    // bytes of all bodies at once (http_server.ingress_queue_byte_limit); 0 = 256M
	IdleTimeout            time.Duration

	// AllowHosts are names of this server, in Host and Origin, beside those of loopback and
	// the address itself.
	AllowHosts []string
	// AnswerWithin is how long a request waits to be taken; 0 = 5 s.
	AnswerWithin time.Duration
}

const (
	inflationMost  = 100 // times what came
	inflationLeast = 64 << 10
)

// HTTP takes records that come in requests.
type HTTP struct {
	o       HTTPOptions
	headers http.Header
	waiting atomic.Int64 // bytes of bodies that are read or wait to be taken
}

// NewHTTP makes a source. The error names all options that are wrong.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	var f faults
	o.faults(f.add)
	f.size("buffer_max_size", &o.BufferMaxSize, 4_000_000, 1<<30)
	f.size("http_server.ingress_queue_byte_limit", &o.QueueByteLimit, 256_000_000, 1<<40)
	if o.MaxConnections == 0 {
		o.MaxConnections = connectionsMost
	}
	if o.MaxConnections < 0 {
		f.add("http_server.max_connections: %d is less than none", o.MaxConnections)
	}
	if o.SuccessfulResponseCode == 0 {
		o.SuccessfulResponseCode = http.StatusCreated
	}
	if !slices.Contains([]int{200, 201, 204}, o.SuccessfulResponseCode) {
		f.add("successful_response_code: %d is not 200, 201 or 204", o.SuccessfulResponseCode)
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		zero  time.Duration
	}{{"http_server.idle_timeout", &o.IdleTimeout, 10 * time.Second}, {"answer_within", &o.AnswerWithin, 5 * time.Second}} {
		if *d.value == 0 {
			*d.value = d.zero
		} else if *d.value < 0 {
			f.add("%s: %v is less than nothing", d.name, *d.value)
		}
	}
	if o.RemoteAddrKey == "" {
		o.RemoteAddrKey = "REMOTE_ADDR"
	}
	h := &HTTP{headers: http.Header{}}
	for _, text := range o.SuccessHeader {
		name, value, ok := strings.Cut(strings.TrimSpace(text), " ")
		if !ok || strings.ContainsAny(name, ":\r\n") || strings.ContainsAny(value, "\r\n") {
			f.add("success_header: %q is not a name and a value with a space between", text)
			continue
		}
		h.headers.Add(name, strings.TrimSpace(value))
	}
	h.o = o
	return h, f.err()
}

// Run answers requests until ctx ends.
func (h *HTTP) Run(ctx context.Context, into connect.Intake) error {
	l, err := h.o.open(ctx, h.o.MaxConnections)
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.answer(w, r, into) }),
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute + h.o.AnswerWithin,
		IdleTimeout: h.o.IdleTimeout, MaxHeaderBytes: 64 << 10, Protocols: protocols,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }() // Shutdown ends it
	select {
	case err := <-done:
		return fmt.Errorf("listen: %w", err)
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if s.Shutdown(late) != nil {
		_ = s.Close() // whoever sends too slowly has no answer
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("listen: %w", err)
	}
	return nil
}

// refusal is an answer to a request of which nothing was taken.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

var errBusy = refuse(http.StatusServiceUnavailable, "the pipeline takes nothing just now; send this again later")

func (h *HTTP) answer(w http.ResponseWriter, r *http.Request, into connect.Intake) {
	if h.o.EnableHealthEndpoint && r.Method == http.MethodGet && r.URL.Path == "/health" {
		_, _ = io.WriteString(w, "ok\n") // whoever asked is gone then
		return
	}
	err := h.take(w, r, into)
	var no *refusal
	switch {
	case err == nil:
		for name, values := range h.headers {
			w.Header()[name] = values
		}
		w.WriteHeader(h.o.SuccessfulResponseCode)
		return
	case !errors.As(err, &no):
		h.o.Log.Warn("a request was not taken", "remote", r.RemoteAddr, "error", err)
		no = &refusal{http.StatusServiceUnavailable, "the records could not be kept; send this again later"}
	}
	if no.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(int(max(h.o.AnswerWithin/time.Second, 1))))
	}
	http.Error(w, no.text, no.status)
}

// take takes the records of a request.
func (h *HTTP) take(w http.ResponseWriter, r *http.Request, into connect.Intake) error {
	if !trust.Trusted(r, h.allowed) {
		return refuse(http.StatusForbidden, "this request names a host that is not this server, or comes from another site's page (see --allow-host)")
	}
	if r.Method != http.MethodPost {
		return refuse(http.StatusBadRequest, "the method is %s; POST is expected", r.Method)
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{"application/json", "application/x-ndjson", formType}, kind) {
		return refuse(http.StatusBadRequest, "the content type is %q; application/json or application/x-www-form-urlencoded is expected", r.Header.Get("Content-Type"))
	}
	reserved := int64(h.o.BufferMaxSize)
	if n := r.ContentLength; n >= 0 && n < reserved && r.Header.Get("Content-Encoding") == "" {
		reserved = n
	}
	defer h.waiting.Add(-reserved)
	if h.waiting.Add(reserved) > int64(h.o.QueueByteLimit) && h.waiting.Load() > reserved {
		return errBusy
	}
	body, err := h.body(w, r)
	if err != nil {
		return err
	}
	var extra []byte
	if h.o.AddRemoteAddr {
		extra = field(h.o.RemoteAddrKey, sender(r))
	}
	c := &collector{tag: h.tagOf(r.URL.Path), key: h.o.TagKey, extra: extra, now: record.At(h.o.Now())}
	if kind == formType {
		err = c.form(body)
	} else {
		err = c.json(body)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.o.AnswerWithin)
	defer cancel()
	if err = into.Take(ctx, c.list...); err != nil && ctx.Err() != nil {
		return errBusy
	}
	return err
}

const formType = "application/x-www-form-urlencoded"

// body reads a body, and inflates it within its bounds.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	most := int64(h.o.BufferMaxSize)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body is longer than buffer_max_size, %d bytes", most)
	} else if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body ends early")
	}
	switch coding := r.Header.Get("Content-Encoding"); coding {
	case "", "identity":
	case "gzip":
		if body, err = inflate(body, most); err != nil {
			return nil, err
		}
	default:
		return nil, refuse(http.StatusUnsupportedMediaType, "the content encoding is %q; gzip is expected", coding)
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, refuse(http.StatusBadRequest, "the body is empty")
	}
	return body, nil
}

// inflate undoes gzip, at most to 100 times what there is.
func inflate(body []byte, most int64) ([]byte, error) {
	bound := min(most, max(int64(len(body))*inflationMost, inflationLeast))
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not gzip: %v", err)
	}
	out, err := io.ReadAll(io.LimitReader(z, bound+1))
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "the body is not gzip: %v", err)
	} else if int64(len(out)) > bound {
		return nil, refuse(http.StatusRequestEntityTooLarge, "the body inflates to more than %d bytes", bound)
	}
	return out, nil
}

// collector gathers the events of a request by their tags, in their order.
type collector struct {
	tag, key string
	extra    []byte // a field of all
	now      record.Time
	list     []connect.Records
}

// json takes one value or several: objects, and arrays of them.
func (c *collector) json(body []byte) error {
	texts := record.NewTexts(bytes.NewReader(body), len(body)+1)
	for n := 1; ; n++ {
		text, err := texts.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		raw, err2 := []byte(nil), err
		if err == nil {
			raw, err2 = record.AppendFromJSON(nil, text)
		}
		if err2 != nil {
			return refuse(http.StatusBadRequest, "value %d of the body is not JSON", n)
		}
		if record.IsMap(raw) {
			c.add(raw)
			continue
		}
		members, rest, err := msgp.ReadArrayHeaderBytes(raw)
		if err != nil {
			return refuse(http.StatusBadRequest, "value %d of the body is neither an object nor an array of objects", n)
		}
		for i := range members {
			next, err := record.Skip(rest)
			if err != nil || !record.IsMap(rest) {
				return refuse(http.StatusBadRequest, "element %d of value %d of the body is no object", i+1, n)
			}
			c.add(rest[:len(rest)-len(next)])
			rest = next
		}
	}
}

// form takes one record, the fields of a form.
func (c *collector) form(body []byte) error {
	fields, n := []byte(nil), uint32(0)
	for pair := range strings.SplitSeq(string(bytes.TrimSpace(body)), "&") {
		name, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(name)
		text, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil {
			return refuse(http.StatusBadRequest, "the form has an escape that is none, after %d fields", n)
		} else if key == "" && text == "" {
			continue
		}
		fields = msgp.AppendString(msgp.AppendString(fields, key), text)
		n++
	}
	c.add(append(msgp.AppendMapHeader(nil, n), fields...))
	return nil
}

// add adds an event of a raw map.
func (c *collector) add(body []byte) {
	tag := c.tag
	if c.key != "" {
		if b, err := record.ParseBody(nil, body); err == nil {
			if i := b.Index(c.key); i >= 0 {
				if text, ok := record.Text(b[i].Value); ok && len(text) > 0 {
					tag = string(text)
				}
			}
		}
	}
	if n := len(c.list); n == 0 || c.list[n-1].Tag != tag {
		c.list = append(c.list, connect.Records{Tag: tag})
	}
	l := &c.list[len(c.list)-1]
	if l.Count++; c.extra == nil {
		l.Events = record.AppendEvent(l.Events, c.now, nil, body)
		return
	}
	l.Events, _ = record.AppendFields(l.Events, record.AppendEvent(nil, c.now, nil, body), c.extra, 1) // it was written here
}

// tagOf is the tag that a path says.
func (h *HTTP) tagOf(path string) string {
	name := []byte(strings.TrimPrefix(path, "/"))
	if len(name) == 0 {
		return h.o.Tag
	}
	for i, b := range name {
		if b != '_' && b != '.' && (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			name[i] = '_'
		}
	}
	return string(name)
}

// sender is the address that a proxy tells, or the one that the request comes from.
func sender(r *http.Request) string {
	first, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	if first = strings.TrimSpace(first); first != "" {
		return first
	}
	if name, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return name
	}
	return r.RemoteAddr
}

func (h *HTTP) allowed(name string) bool {
	return strings.EqualFold(name, h.o.Listen) || slices.ContainsFunc(h.o.AllowHosts, func(a string) bool { return strings.EqualFold(a, name) })
}
