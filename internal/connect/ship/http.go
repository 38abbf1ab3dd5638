package ship

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
	"github.com/reprisehq/reprise/internal/reply"
)

// HTTPOptions describe a sink for any HTTP server. The comments name the properties.
type HTTPOptions struct {
	Target

	Method             string          // http_method: POST or PUT
	URI                string          // uri; a leading / is added
	Format             string          // format: json, json_lines, json_stream, gelf or msgpack
	DateKey            string          // json_date_key; "" and false = no date
	DateForm           record.DateForm // json_date_format
	EscapeUnicode      bool            // json.escape_unicode
	Compress           string          // compress: none, gzip, snappy or zstd
	Header             [][2]string     // header; names and values in their order
	DuplicatedHeaders  bool            // allow_duplicated_headers; else the last of a name counts
	HeaderTag          string          // header_tag: the header that has the tag; "" = none
	LogResponsePayload bool            // log_response_payload: failures have the beginning of the answer

	// One request for each record: BodyKey is where its body is, and HeadersKey where
	// its headers are (body_key, headers_key); both, or neither.
	BodyKey, HeadersKey string

	GELF GELF

	// Codes are outcomes of statuses that differ from those of the table: 200 to 205 are
	// OK; 408, 425, 429, 500 to 599 and all below 400 Retried; others Died, but 413, for
	// which the chunk is halved.
	Codes Codes
}

// DefaultHTTP has the defaults of Fluent Bit.
func DefaultHTTP() HTTPOptions {
	o := HTTPOptions{
		Target: DefaultTarget(), Method: http.MethodPost, URI: "/", Format: string(record.Array),
		DateKey: "date", DateForm: record.Double, EscapeUnicode: true, DuplicatedHeaders: true, LogResponsePayload: true, GELF: DefaultGELF(),
	}
	o.Port = 80
	return o
}

// The formats that are no layouts of JSON.
const (
	formatGELF    = "gelf"
	formatMsgpack = "msgpack"
)

// Codes are outcomes of statuses: OK, Retried or Died.
type Codes map[int]job.Outcome

// ParseCodes reads statuses and ranges of them with the words ok, retry and
// error, as in `404=retry 500-503=error`.
func ParseCodes(text string) (Codes, error) {
	codes := Codes{}
	words := map[string]job.Outcome{"ok": job.OK, "retry": job.Retried, "error": job.Died, "dead": job.Died}
	for _, entry := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		span, word, _ := strings.Cut(entry, "=")
		low, high, isSpan := strings.Cut(span, "-")
		if !isSpan {
			high = low
		}
		from, err1 := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		outcome, known := words[strings.ToLower(word)]
		if err1 != nil || err2 != nil || !known || from < 100 || to > 599 || from > to {
			return nil, job.Errorf(job.Invalid, "%q is no status with an outcome; write 404=retry, 409=ok or 500-503=error", entry)
		}
		for code := from; code <= to; code++ {
			codes[code] = outcome
		}
	}
	return codes, nil
}

// of is the outcome of a status.
func (c Codes) of(status int) job.Outcome {
	if outcome, ok := c[status]; ok {
		return outcome
	}
	switch {
	case status >= 200 && status <= 205:
		return job.OK
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status < 400, status >= 500:
		return job.Retried
	}
	return job.Died
}

// tooLarge reports whether a status asks for less at once.
func (c Codes) tooLarge(status int) bool {
	_, other := c[status]
	return status == http.StatusRequestEntityTooLarge && !other
}

// HTTP sends chunks to a server. It implements connect.Sink.
type HTTP struct {
	*client
	o             HTTPOptions
	body, headers record.Path // of Options.BodyKey
	work          sync.Pool   // of *httpWork
}

var _ connect.Sink = (*HTTP)(nil)

// httpWork is what a delivery needs and the next one uses again.
type httpWork struct {
	body
	json *record.JSONWriter
	gelf gelfWriter
}

var contentTypes = map[string]string{
	string(record.Array): "application/json", string(record.Stream): "application/json", string(record.Lines): "application/x-ndjson",
	formatGELF: "application/json", formatMsgpack: "application/msgpack",
}

// NewHTTP makes a sink, or tells all that is wrong with the options. Nothing is called yet.
func NewHTTP(o HTTPOptions) (*HTTP, error) {
	var faults connect.Faults
	s := &HTTP{}
	if o.Method = strings.ToUpper(o.Method); o.Method != http.MethodPost && o.Method != http.MethodPut {
		faults.Add("http_method", "is %q; it must be POST or PUT", o.Method)
	}
	if !strings.HasPrefix(o.URI, "/") {
		o.URI = "/" + o.URI
	}
	if _, err := http.NewRequest(http.MethodPost, "http://host"+o.URI, http.NoBody); err != nil {
		faults.Add("uri", "is %q, which is no path of a web address", o.URI)
	}
	if contentTypes[o.Format] == "" {
		faults.Add("format", "is %q; it must be json, json_lines, json_stream, gelf or msgpack", o.Format)
	}
	if !slices.Contains([]record.DateForm{record.Double, record.Epoch, record.EpochMillis, record.ISO8601, record.JavaSQL}, o.DateForm) {
		faults.Add("json_date_format", "is %q; it must be double, epoch, epoch_ms, iso8601 or java_sql_timestamp", o.DateForm)
	}
	switch strings.ToLower(o.DateKey) {
	case "false", "off", "no":
		o.DateKey = ""
	}
	header := http.Header{"User-Agent": {"Fluent-Bit"}, "Content-Type": {contentTypes[o.Format]}}
	o.Compress = compression(o.Compress, header, &faults, compressGzip, compressSnappy, compressZstd)
	o.addHeaders(header, &faults)
	for code, outcome := range o.Codes {
		if outcome != job.OK && outcome != job.Retried && outcome != job.Died {
			faults.Add("codes", "has %s for %d; it must be ok, retry or error", outcome, code)
		}
	}
	if (o.BodyKey == "") != (o.HeadersKey == "") {
		faults.Add("body_key", "and headers_key must be given together")
	} else if o.BodyKey != "" {
		var err1, err2 error
		s.body, err1 = record.ParsePath(o.BodyKey)
		s.headers, err2 = record.ParsePath(o.HeadersKey)
		if err1 != nil {
			faults.Add("body_key", "%v", err1)
		}
		if err2 != nil {
			faults.Add("headers_key", "%v", err2)
		}
	}
	s.client = newClient(&o.Target, header, &faults)
	s.o = o
	s.work.New = func() any {
		return &httpWork{json: record.NewJSONWriter(record.Layout(o.Format), o.DateKey, o.DateForm, o.EscapeUnicode), gelf: gelfWriter{keys: o.GELF}}
	}
	return s, faults.Err()
}

// addHeaders adds those of the options. The first of a name takes the place of
// one that is sent anyway.
func (o *HTTPOptions) addHeaders(header http.Header, faults *connect.Faults) {
	given := map[string]bool{}
	for _, h := range o.Header {
		name := http.CanonicalHeaderKey(h[0])
		switch {
		case !mayBeSet(name) || h[1] != reply.HeaderText(h[1]):
			faults.Add("header", "%q is no header, or one that belongs to the connection", h[0])
		case given[name] && o.DuplicatedHeaders:
			header.Add(name, h[1])
		default:
			header.Set(name, h[1])
		}
		given[name] = true
		if name == "Authorization" || name == "Proxy-Authorization" || name == "Cookie" || strings.Contains(name, "Key") || strings.Contains(name, "Token") {
			o.Mask = append(o.Mask, h[1])
		}
	}
	if o.HeaderTag != "" && !mayBeSet(http.CanonicalHeaderKey(o.HeaderTag)) {
		faults.Add("header_tag", "%q is no header, or one that belongs to the connection", o.HeaderTag)
	}
}

// mayBeSet reports whether a header in canonical form is for the user to set.
func mayBeSet(name string) bool {
	switch name {
	case "Connection", "Content-Length", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect":
		return false
	}
	return reply.IsToken(name)
}

// Close implements connect.Sink.
func (s *HTTP) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Deliver implements connect.Sink, of a batch of one chunk.
func (s *HTTP) Deliver(ctx context.Context, b *connect.Batch) []connect.Result {
	m := b.Chunk()
	w := s.work.Get().(*httpWork)
	defer func() {
		if w.reusable() {
			s.work.Put(w)
		}
	}()
	if s.o.BodyKey != "" {
		return []connect.Result{s.each(ctx, m.Type, m.Body)}
	}
	text, records, whole, err := w.write(s.o.Format, m.Body)
	switch {
	case err != nil:
		return []connect.Result{connect.Broken(m.Body, whole, err)}
	case records == 0:
		return []connect.Result{{Outcome: job.OK}}
	}
	w.pack(s.o.Compress, text)
	r, tooLarge := s.send(ctx, &w.body, s.headerFor(m.Type))
	if tooLarge {
		r = halve(m.Body, r)
	}
	return []connect.Result{r}
}

// write makes the body of a chunk. Of one that is broken, whole is the length
// up to which it is not.
func (w *httpWork) write(format string, chunk []byte) (text []byte, records, whole int, err error) {
	switch format {
	case formatMsgpack:
		records, whole, err = record.Count(chunk)
		return chunk, records, whole, err
	case formatGELF:
		w.text, records, err = w.gelf.appendChunk(w.text[:0], chunk)
	default:
		w.text, records, err = w.json.AppendChunk(w.text[:0], chunk)
	}
	if err != nil {
		_, whole, _ = record.Count(chunk)
	}
	return w.text, records, whole, err
}

// headerFor are the headers of a request for a tag.
func (s *HTTP) headerFor(tag string) http.Header {
	h := s.header.Clone()
	if s.o.HeaderTag != "" {
		h.Set(s.o.HeaderTag, reply.HeaderText(tag))
	}
	return h
}

// send sends what is packed and judges the answer. One that breaks off is none,
// whatever its status.
func (s *HTTP) send(ctx context.Context, b *body, header http.Header) (r connect.Result, tooLarge bool) {
	failed := s.do(ctx, s.o.Method, s.o.URI, header, b, func(resp *http.Response) error {
		text, err := io.ReadAll(io.LimitReader(resp.Body, reply.ReadBytesMax))
		if !s.o.LogResponsePayload {
			text = nil
		}
		if r.Outcome = s.o.Codes.of(resp.StatusCode); r.Outcome != job.OK {
			r = s.refused(r.Outcome, resp, text)
			tooLarge = s.o.Codes.tooLarge(resp.StatusCode)
		}
		return err
	})
	if failed != nil {
		return *failed, false
	}
	return r, tooLarge
}

// each sends each record by itself. A failure that is the server's rather than
// the record's ends the delivery; what was not sent is left.
func (s *HTTP) each(ctx context.Context, tag string, chunk []byte) connect.Result {
	var t tally
	r := record.NewReader(chunk)
	for stopped := false; r.Next(); {
		if stopped {
			t.leave(r.Raw, connect.Result{})
			continue
		}
		header := s.headerFor(tag)
		text, ok := record.Text(s.body.Find(r.Body))
		if !ok || !addRecordHeaders(header, s.headers.Find(r.Body)) {
			t.die(r.Raw, job.Failure{Type: connect.TypeRecord, Message: "the record has no text in " + s.o.BodyKey + ", or no map of texts in " + s.o.HeadersKey})
			continue
		}
		b := &body{}
		b.pack(s.o.Compress, text)
		switch result, _ := s.send(ctx, b, header); result.Outcome {
		case job.OK:
			t.done++
		case job.Died:
			t.die(r.Raw, result.Failure)
		default:
			t.leave(r.Raw, result)
			status := result.Failure.Status
			stopped = status == 0 || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
		}
	}
	if r.Err() != nil {
		t.die(chunk[r.Offset():], job.Failure{Type: connect.TypeRecord, Message: "the chunk is broken: " + r.Err().Error()})
	}
	return t.result()
}

// addRecordHeaders sets the headers of a record, and reports whether it has a map of them.
func addRecordHeaders(header http.Header, raw []byte) bool {
	fields, err := record.ParseBody(nil, raw)
	if err != nil {
		return false
	}
	for _, f := range fields {
		value, ok := record.Text(f.Value)
		if name := http.CanonicalHeaderKey(string(f.Key)); ok && mayBeSet(name) {
			header.Set(name, reply.HeaderText(string(value)))
		}
	}
	return true
}
