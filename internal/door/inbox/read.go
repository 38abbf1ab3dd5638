package inbox

import (
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
)

// document is Settings as they are written: what is not there is the default.
type document struct {
	Group struct {
		Header string `json:"header,omitzero"`
		JSON   string `json:"json,omitzero"`
		JQ     string `json:"jq,omitzero"`
	} `json:"group"`
	Sort    *string  `json:"sort,omitzero"`
	Deliver *deliver `json:"deliver,omitzero"`
	Batch   struct {
		Mode    *string `json:"mode,omitzero"`
		Query   *poll   `json:"query,omitzero"`
		Cleanup *poll   `json:"cleanup,omitzero"`
	} `json:"batch,omitzero"`
	Persistence struct {
		MessageMaxRetries    *int `json:"messageMaxRetries,omitzero"`
		MessageFetchPageSize *int `json:"messageFetchPageSize,omitzero"`
		MessageBatchSize     *int `json:"messageBatchSize,omitzero"`
		backoff                   // where the example of the seed has it
	} `json:"persistence,omitzero"`
	Retry struct {
		backoff
		CapApplies *string `json:"capApplies,omitzero"`
	} `json:"retry,omitzero"`
	Message struct {
		TimeToLive *span `json:"timeToLive,omitzero"`
	} `json:"message,omitzero"`
	OnExhausted *string `json:"onExhausted,omitzero"`
}

type backoff struct {
	RetryMaxBackoffMinutes *int     `json:"retryMaxBackoffMinutes,omitzero"`
	RetryBackoffBase       *float64 `json:"retryBackoffBase,omitzero"`
}

// span is a span of time as people write it.
type span job.Millis

// UnmarshalJSON reads PT10S or 10s.
func (s *span) UnmarshalJSON(b []byte) error {
	text := string(b)
	if b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	m, err := job.ParseSpan(text)
	*s = span(m)
	return err
}

// MarshalJSON writes it as the seed does.
func (s span) MarshalJSON() ([]byte, error) { return json.Marshal(iso(job.Millis(s))) }

// iso writes a span as ISO 8601.
func iso(m job.Millis) string {
	b := []byte("PT")
	for _, u := range []struct {
		size job.Millis
		name byte
	}{{job.Hour, 'H'}, {job.Minute, 'M'}} {
		if n := m / u.size; n > 0 {
			b = append(strconv.AppendInt(b, int64(n), 10), u.name)
		}
		m %= u.size
	}
	if m > 0 || len(b) == len("PT") {
		b = append(strconv.AppendFloat(b, float64(m)/1000, 'f', -1, 64), 'S')
	}
	return string(b)
}

// poll is a schedule, or the word none.
type poll struct {
	none           bool
	Initial, Every *span
}

type pollFields struct {
	PollInitialDelay *span `json:"pollInitialDelay,omitzero"`
	PollInterval     *span `json:"pollInterval,omitzero"`
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *poll) UnmarshalJSONFrom(d *jsontext.Decoder) (err error) {
	const use = "use none, or an object with pollInitialDelay and pollInterval"
	if p.none, err = wordOrObject(d, "none", use); err != nil || p.none {
		return err
	}
	var f pollFields
	err = json.UnmarshalDecode(d, &f)
	p.Initial, p.Every = f.PollInitialDelay, f.PollInterval
	return err
}

// wordOrObject reads the word, if that is what comes; else an object comes.
func wordOrObject(d *jsontext.Decoder, word, use string) (is bool, err error) {
	if d.PeekKind() == jsontext.KindBeginObject {
		return false, nil
	}
	value, err := d.ReadValue()
	if err == nil && string(value) != `"`+word+`"` {
		err = errors.New(use)
	}
	return true, err
}

// MarshalJSON implements json.Marshaler.
func (p poll) MarshalJSON() ([]byte, error) {
	if p.none {
		return []byte(`"none"`), nil
	}
	return json.Marshal(pollFields{p.Initial, p.Every})
}

// deliver is an endpoint, or the word workers.
type deliver struct{ HTTP *httpFields }

type httpFields struct {
	URL        string            `json:"url"`
	Send       *string           `json:"send,omitzero"`
	Headers    map[string]string `json:"headers,omitempty"`
	Timeout    *span             `json:"timeout,omitzero"`
	Concurrent *int              `json:"concurrent,omitzero"`
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (d *deliver) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	const use = "use workers, or {http: {url: ...}}"
	if workers, err := wordOrObject(from, "workers", use); err != nil || workers {
		return err
	}
	var f struct {
		HTTP *httpFields `json:"http"`
	}
	err := json.UnmarshalDecode(from, &f)
	if err == nil && f.HTTP == nil {
		err = errors.New(use)
	}
	d.HTTP = f.HTTP
	return err
}

// MarshalJSON implements json.Marshaler.
func (d deliver) MarshalJSON() ([]byte, error) {
	if d.HTTP == nil {
		return []byte(`"workers"`), nil
	}
	return json.Marshal(struct {
		HTTP *httpFields `json:"http"`
	}{d.HTTP})
}

// ReadSettings reads the settings of an inbox, JSON. The error names every
// problem, each a *job.Error with its field.
func ReadSettings(body []byte) (*Settings, error) { return readSettings(body, false) }

// readSettings reads settings; kept ones may hold a mask in the place of a
// secret that the configuration had.
func readSettings(body []byte, kept bool) (*Settings, error) {
	r := reader{s: defaults(), kept: kept}
	d, err := r.document(body)
	if err != nil {
		return nil, err
	}
	r.group(d)
	if d.Sort != nil {
		s, err := parseSort(*d.Sort)
		r.s.Sort = s
		r.note(err)
	}
	if d.Deliver != nil && d.Deliver.HTTP != nil {
		r.http(d.Deliver.HTTP)
	}
	r.s.Mode = word(&r, "batch.mode", d.Batch.Mode, modeNames[:], ModeAll)
	r.schedule("batch.query", &r.s.Query, d.Batch.Query)
	r.schedule("batch.cleanup", &r.s.Cleanup, d.Batch.Cleanup)
	p := &d.Persistence
	r.whole("persistence.messageMaxRetries", &r.s.MaxRetries, p.MessageMaxRetries, 1, retriesMax)
	r.whole("persistence.messageFetchPageSize", &r.s.PageSize, p.MessageFetchPageSize, 1, pageMax)
	if n := p.MessageBatchSize; n != nil && *n != -1 {
		if *n < 1 || *n > batchMax {
			r.bad("persistence.messageBatchSize", "must be -1 (all messages of the group), or from 1 to "+strconv.Itoa(batchMax)+": "+strconv.Itoa(*n)+" would deliver "+map[bool]string{true: "more at a time than is given out", false: "nothing"}[*n > 0])
		}
		r.s.BatchSize = *n
	}
	r.backoff(d)
	r.s.CapApplies = word(&r, "retry.capApplies", d.Retry.CapApplies, capNames[:], CapInterval)
	if t := d.Message.TimeToLive; t != nil {
		r.span("message.timeToLive", &r.s.TTL, t, 0, ttlMost)
	}
	r.s.OnExhausted = [...]job.OnDead{job.DeadBlock, job.DeadSkip, job.DeadPark}[word(&r, "onExhausted", d.OnExhausted, []string{"block", "skip", "park"}, 0)]
	if err := errors.Join(r.problems...); err != nil {
		return nil, err
	}
	return &r.s, nil
}

func (r *reader) group(d *document) {
	g := &d.Group
	var err error
	switch [...]bool{g.Header != "", g.JSON != "", g.JQ != ""} {
	case [...]bool{true, false, false}:
		if why := wrongHeader(g.Header); why != "" {
			err = refuse("group.header", "group.header "+why)
		}
		r.s.Group = &Key{header: canonical(g.Header)}
	case [...]bool{false, true, false}:
		r.s.Group, err = pathKey(g.JSON)
	case [...]bool{false, false, true}:
		r.s.Group, err = jqKey(g.JQ)
	default:
		err = refuse("group", "group must say where the key of a message stands, with exactly one of header, json and jq")
	}
	r.note(err)
}

func (r *reader) http(f *httpFields) {
	h := &HTTP{URL: f.URL, Headers: f.Headers, Timeout: 30 * job.Second, Concurrent: 16}
	u, err := url.Parse(f.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.bad("deliver.http.url", "must be an address of the form http://host/path")
	}
	h.Batch = word(r, "deliver.http.send", f.Send, []string{"message", "batch"}, 0) == 1
	r.span("deliver.http.timeout", &h.Timeout, f.Timeout, 1, timeoutMost)
	r.whole("deliver.http.concurrent", &h.Concurrent, f.Concurrent, 1, concurrentMax)
	for _, name := range slices.Sorted(maps.Keys(f.Headers)) {
		value := f.Headers[name]
		if why := wrongHeader(name); why != "" {
			r.bad("deliver.http.headers", "has the name "+strconv.Quote(shorten(name))+", which "+why)
		} else if strings.ContainsAny(value, "\r\n\x00") {
			r.bad("deliver.http.headers."+name, "must not contain line breaks")
		} else if value == mask && !r.kept {
			r.bad("deliver.http.headers."+name, "is masked where it is shown; give the value itself")
		}
	}
	r.s.HTTP = h
}

// backoff takes the two numbers from where they are given, but not from both.
func (r *reader) backoff(d *document) {
	in, also := &d.Retry.backoff, &d.Persistence.backoff
	if in.RetryMaxBackoffMinutes != nil && also.RetryMaxBackoffMinutes != nil ||
		in.RetryBackoffBase != nil && also.RetryBackoffBase != nil {
		r.bad("retry", "and persistence both tell of the backoff; leave it to one of them")
	}
	path := "retry."
	if in.RetryMaxBackoffMinutes == nil && in.RetryBackoffBase == nil {
		path = "persistence."
	}
	minutes := cmp.Or(in.RetryMaxBackoffMinutes, also.RetryMaxBackoffMinutes)
	r.whole(path+"retryMaxBackoffMinutes", &r.s.MaxBackoffMinutes, minutes, 1, backoffMax)
	if base := cmp.Or(in.RetryBackoffBase, also.RetryBackoffBase); base != nil {
		if !(*base >= 1 && *base <= baseMax) {
			r.bad(path+"retryBackoffBase", "must be a number from 1 to "+strconv.Itoa(baseMax))
		}
		r.s.BackoffBase = *base
	}
}

func (r *reader) whole(field string, into *int, n *int, least, most int) {
	if n == nil {
		return
	}
	if *n < least || *n > most {
		r.bad(field, "must be a whole number from "+strconv.Itoa(least)+" to "+strconv.Itoa(most)+", not "+strconv.Itoa(*n))
	}
	*into = *n
}

func (r *reader) span(field string, into *job.Millis, given *span, least, most job.Millis) {
	if given == nil {
		return
	}
	m := job.Millis(*given)
	if m < least || m > most {
		r.bad(field, "must be from "+iso(least)+" to "+iso(most)+", not "+iso(m))
	}
	*into = m
}

func (r *reader) schedule(field string, into *Schedule, p *poll) {
	switch {
	case p == nil:
	case p.none:
		*into = Schedule{}
	default:
		r.span(field+".pollInitialDelay", &into.InitialDelay, p.Initial, 0, intervalMost)
		r.span(field+".pollInterval", &into.Interval, p.Every, intervalLeast, intervalMost)
	}
}

// word reads one of a few words.
func word[T ~uint8 | ~int](r *reader, field string, given *string, words []string, none T) T {
	if given == nil {
		return none
	}
	at := slices.Index(words, *given)
	if at < 0 {
		r.bad(field, "must be one of "+strings.Join(words, ", ")+", not "+strconv.Quote(shorten(*given))+spell.Hint(*given, words))
		return none
	}
	return T(at)
}

// Append writes the settings, complete: what ReadSettings reads.
func (s *Settings) Append(b []byte) []byte {
	d := document{
		Sort: new(s.Sort.String()), Deliver: &deliver{}, OnExhausted: new(s.OnExhausted.String()),
	}
	d.Group.Header, d.Group.JSON, d.Group.JQ = s.Group.header, s.Group.json, s.Group.jq
	if h := s.HTTP; h != nil {
		d.Deliver.HTTP = &httpFields{URL: h.URL, Send: new("message"), Headers: h.Headers, Timeout: new(span(h.Timeout)), Concurrent: &h.Concurrent}
		if h.Batch {
			d.Deliver.HTTP.Send = new("batch")
		}
	}
	d.Batch.Mode, d.Batch.Query, d.Batch.Cleanup = new(s.Mode.String()), pollOf(s.Query), pollOf(s.Cleanup)
	d.Persistence.MessageMaxRetries, d.Persistence.MessageFetchPageSize, d.Persistence.MessageBatchSize = &s.MaxRetries, &s.PageSize, &s.BatchSize
	d.Retry.RetryMaxBackoffMinutes, d.Retry.RetryBackoffBase, d.Retry.CapApplies = &s.MaxBackoffMinutes, &s.BackoffBase, new(s.CapApplies.String())
	if s.TTL != job.Unset {
		d.Message.TimeToLive = new(span(s.TTL))
	}
	text, err := json.Marshal(&d, json.Deterministic(true))
	if err != nil {
		panic("inbox: settings cannot be written: " + err.Error())
	}
	return append(b, text...)
}

func pollOf(s Schedule) *poll {
	if s.Interval == 0 {
		return &poll{none: true}
	}
	return &poll{Initial: new(span(s.InitialDelay)), Every: new(span(s.Interval))}
}
