package ship

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
	"github.com/reprisehq/reprise/internal/reply"
)

// ESOptions describe a sink for the bulk interface of Elasticsearch, OpenSearch
// and what is like them. The comments name the properties.
type ESOptions struct {
	Target

	Path     string // path, before /_bulk
	Pipeline string // pipeline: the ingest pipeline; "" = none
	Compress string // compress: none or gzip
	APIKey   string // http_api_key
	CloudID  string // cloud_id: NAME:BASE64, instead of host and port; TLS is on
	// CloudAuth is USER:PASSWORD, instead of http_user and http_passwd (cloud_auth).
	CloudAuth string
	// BufferSize (buffer_size) bounds what is read of an answer, besides 1 KiB for each record.
	BufferSize int64

	Index        string // index; by strftime of the time now
	Type         string // type
	SuppressType bool   // suppress_type_name: no type is sent, as Elasticsearch 8 wants it

	LogstashFormat     bool   // logstash_format: the index is a prefix and the date of the record
	LogstashPrefix     string // logstash_prefix
	LogstashSeparator  string // logstash_prefix_separator
	LogstashPrefixKey  string // logstash_prefix_key: where a record has its own prefix; a key or $a['b'], also with $TAG
	LogstashDateFormat string // logstash_dateformat
	CurrentTimeIndex   bool   // current_time_index: the date of now, not of the record

	TimeKey        string // time_key
	TimeKeyFormat  string // time_key_format; what is less than a second, and Z, follow
	TimeKeyNanos   bool   // time_key_nanos: nine digits, else three
	IncludeTag     bool   // include_tag_key
	TagKey         string // tag_key
	ReplaceDots    bool   // replace_dots in keys, by _
	EscapeUnicode  bool   // json.escape_unicode
	IDKey          string // id_key: where the id of a document is
	GenerateID     bool   // generate_id: of the document, so that equal ones are one
	WriteOperation string // write_operation: create, index, update or upsert

	Now func() time.Time // the clock, of names of indexes
}

// DefaultES has the defaults of Fluent Bit, and no clock.
func DefaultES() ESOptions {
	o := ESOptions{
		Target: DefaultTarget(), BufferSize: 512 << 10, Index: "fluent-bit", Type: "_doc",
		LogstashPrefix: "logstash", LogstashSeparator: "-", LogstashDateFormat: "%Y.%m.%d",
		TimeKey: "@timestamp", TimeKeyFormat: "%Y-%m-%dT%H:%M:%S", TagKey: "flb-key", EscapeUnicode: true, WriteOperation: opCreate,
	}
	o.Port = 9200
	return o
}

// The write operations.
const (
	opCreate = "create"
	opIndex  = "index"
	opUpdate = "update"
	opUpsert = "upsert"
)

// answerBytesPerRecord is what an item of an answer may be long, on average.
const answerBytesPerRecord = 1 << 10

// ES sends chunks to a bulk interface. It implements connect.Sink.
type ES struct {
	*client
	o        ESOptions
	uri      string
	open     string // of an action: {"create":{"_index":
	kind     string // ,"_type":"_doc" or nothing
	document [2]string
	prefix   record.Template // of Options.LogstashPrefixKey
	id       record.Path
	work     sync.Pool // of *esWork
}

var _ connect.Sink = (*ES)(nil)

// NewES makes a sink, or tells all that is wrong with the options. Nothing is called yet.
func NewES(o ESOptions) (*ES, error) {
	var faults connect.Faults
	s := &ES{}
	header := http.Header{"User-Agent": {"Fluent-Bit"}, "Content-Type": {"application/x-ndjson"}}
	o.Compress = compression(o.Compress, header, &faults, compressGzip)
	if o.CloudID != "" {
		o.TLS.On = true
		var ok bool
		if o.Host, o.Port, ok = cloudHost(o.CloudID); !ok {
			faults.Add("cloud_id", "must be NAME:TEXT as the console of Elastic Cloud shows it")
			o.Host, o.Port = "cloud", 443
		}
	}
	if o.CloudAuth != "" && o.User == "" {
		var ok bool
		if o.User, o.Password, ok = strings.Cut(o.CloudAuth, ":"); !ok {
			faults.Add("cloud_auth", "must be USER:PASSWORD")
		}
	}
	if o.APIKey != reply.HeaderText(o.APIKey) {
		faults.Add("http_api_key", "must have one line")
	}
	if o.APIKey != "" && o.User == "" {
		header.Set("Authorization", "ApiKey "+o.APIKey)
	}
	if o.BufferSize < 0 {
		faults.Add("buffer_size", "is %d; it must be 0 or more", o.BufferSize)
	}
	if s.uri = "/_bulk"; strings.Trim(o.Path, "/") != "" {
		s.uri = "/" + strings.Trim(o.Path, "/") + s.uri
	}
	if _, err := http.NewRequest(http.MethodPost, "http://host"+s.uri, http.NoBody); err != nil || strings.ContainsAny(o.Path, "?#") {
		faults.Add("path", "is %q, which is no path of a web address", o.Path)
	}
	if o.Pipeline != "" {
		s.uri += "?pipeline=" + url.QueryEscape(o.Pipeline)
	}
	s.o = o
	s.prepare(&faults)
	s.client = newClient(&o.Target, header, &faults)
	s.work.New = func() any { return &esWork{} }
	return s, faults.Err()
}

// prepare checks and keeps what the documents are made by.
func (s *ES) prepare(faults *connect.Faults) {
	o := &s.o
	action := o.WriteOperation
	switch action {
	case opUpdate:
		s.document = [2]string{`{"doc":`, `}`}
	case opUpsert:
		action, s.document = opUpdate, [2]string{`{"doc_as_upsert":true,"doc":`, `}`}
	case opCreate, opIndex:
	default:
		faults.Add("write_operation", "is %q; it must be create, index, update or upsert", action)
	}
	if action == opUpdate && o.IDKey == "" && !o.GenerateID {
		faults.Add("write_operation", "%s needs id_key or generate_id", o.WriteOperation)
	}
	s.open = `{"` + action + `":{"_index":`
	if !o.SuppressType {
		s.kind = `,"_type":` + string(appendJSONText(nil, o.Type))
	}
	for property, value := range map[string]string{"index": o.Index, "time_key": o.TimeKey, "logstash_prefix": o.LogstashPrefix} {
		if value == "" {
			faults.Add(property, "must not be empty")
		}
	}
	if o.IncludeTag && o.TagKey == "" {
		faults.Add("tag_key", "must not be empty")
	}
	var err error
	if o.LogstashPrefixKey != "" {
		text := o.LogstashPrefixKey
		if !strings.HasPrefix(text, "$") {
			text = "$" + text
		}
		if s.prefix, err = record.ParseTemplate(text); err != nil {
			faults.Add("logstash_prefix_key", "%v", err)
		}
	}
	if o.IDKey != "" {
		if s.id, err = record.ParsePath(o.IDKey); err != nil {
			faults.Add("id_key", "%v", err)
		}
	}
	slices.SortFunc(*faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
}

// cloudHost reads what follows the name: BASE64 of HOST[:PORT]$ID, and more that is not wanted.
func cloudHost(id string) (host string, port int, ok bool) {
	_, text, _ := strings.Cut(id, ":")
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		decoded, err = base64.RawStdEncoding.DecodeString(text)
	}
	region, rest, _ := strings.Cut(string(decoded), "$")
	name, _, _ := strings.Cut(rest, "$")
	port = 443
	if domain, given, err := net.SplitHostPort(region); err == nil {
		region = domain
		port, _ = strconv.Atoi(given)
	}
	return name + "." + region, port, err == nil && name != "" && region != "" && port > 0
}

// Close implements connect.Sink.
func (s *ES) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// Deliver implements connect.Sink, of a batch of one chunk. A failure of the request
// as a whole is never the records' fault.
func (s *ES) Deliver(ctx context.Context, b *connect.Batch) []connect.Result {
	m := b.Chunk()
	w := s.work.Get().(*esWork)
	defer func() {
		if w.reusable() {
			clear(w.sent)
			s.work.Put(w)
		}
	}()
	var t tally
	whole, err := s.write(w, &t, m.Type, m.Body)
	switch {
	case err != nil:
		return []connect.Result{connect.Broken(m.Body, whole, err)}
	case len(w.sent) == 0:
		return []connect.Result{t.result()}
	}
	w.pack(s.o.Compress, w.text)
	return []connect.Result{s.send(ctx, w, &t, m.Body)}
}

// send sends what is packed, and counts what became of each record.
func (s *ES) send(ctx context.Context, w *esWork, t *tally, chunk []byte) connect.Result {
	var refused *connect.Result
	var items []item
	failed := s.do(ctx, http.MethodPost, s.uri, s.header.Clone(), &w.body, func(resp *http.Response) (err error) {
		if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated {
			most := s.o.BufferSize + int64(len(w.sent))*answerBytesPerRecord
			items, err = readBulk(resp.Body, most, len(w.sent), s.o.WriteOperation == opCreate)
			return err
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, reply.ReadBytesMax))
		r := s.refused(job.Retried, resp, text)
		if bytes.Contains(text, []byte("_type")) && !s.o.SuppressType {
			r.Failure.Message += "; set suppress_type_name to on for Elasticsearch 8 and later"
		}
		if resp.StatusCode == http.StatusRequestEntityTooLarge {
			r = halve(chunk, r)
		}
		refused = &r
		return err
	})
	switch {
	case failed != nil:
		return *failed
	case refused != nil:
		return *refused
	}
	for i := range items {
		items[i].mask(s.mask)
		if event := w.sent[items[i].place]; items[i].again() {
			t.leave(event, connect.Result{Outcome: job.Retried, Failure: items[i].failure()})
		} else {
			t.die(event, items[i].failure())
		}
	}
	t.done += len(w.sent) - len(items)
	return t.result()
}
