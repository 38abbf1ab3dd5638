package jobs

import (
	"bytes"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/spell"
	"github.com/reprisehq/reprise/internal/strict"
)

// Limits of one request. Nesting is bounded by the tokenizer, at 10,000.
const (
	bulkMax      = 100_000 // jobs of a bulk, entries of a settle
	nameBytesMax = 1024    // queue, type, group, worker, idempotency key
	requiresMax  = 32      // requirements of a job
	membersMax   = 256     // members of an object that we read ourselves
)

// How much memory an entry of a list needs until its call is answered, and how many
// are counted together.
const (
	entryBytes   = 1 << 10
	entriesCount = 64
)

const (
	uint32Max = math.MaxUint32
	none      = math.MaxUint64 // a number that was not given
)

// Reader reads request bodies: fill Body, call one method, use what it
// returned, Reset. It reuses its memory, so what it returns lives until then.
type Reader struct {
	values
	// Count is how the wire's `backoff` counts attempts (--backoff-count).
	Count job.Count
	// FoldMax bounds payloads that an expression sees or makes; 0 = 64 MiB.
	FoldMax int64

	inTemplate bool // the job being read is that of a cron entry

	queue, kind string // the latest names: a repeated one costs no memory
	jobs        []engine.NewJob
	settles     []engine.Settle
}

// source is what the functions for any type of value read from.
type source interface {
	skip(name []byte, known []string)
	text(field string) (content []byte, ok bool)
	refused(err error)
}

// values reads a body value by value.
type values struct {
	Body bytes.Buffer
	// Unknown is called with the path of each member that a call does not know,
	// as retry_limt or backoff.bas_ms, and why; it is most often misspelt. What
	// it returns refuses the body. nil: such members are passed over.
	Unknown func(path, why string) error
	// Memory is told of what is made of the entries of a list, which may be many
	// times what they are on the wire, and may refuse the body. nil: nobody is.
	Memory interface{ Grow(bytes int) error }

	dec   jsontext.Decoder
	body  []byte   // what Body held
	names [][]byte // members seen in the objects being read, outermost first
	inner string   // the object being read
	told  int      // how often Unknown was called
	list  string   // the list being read,
	entry int      // and where in it; -1 = in none
	err   error    // the first problem; nothing is read after it
}

// Reset makes the reader ready for the next body. With lent, what it returned
// may still be in use (a call with it was broken off) and is left alone.
func (r *Reader) Reset(lent bool) {
	const bytesMax, entriesMax = 1 << 20, 2048 // above, memory goes back
	if lent || cap(r.jobs) > entriesMax {
		r.jobs = nil
	}
	if lent || cap(r.settles) > entriesMax {
		r.settles = nil
	}
	clear(r.jobs) // payloads must not live as long as the reader
	clear(r.settles)
	r.jobs, r.settles, r.body = r.jobs[:0], r.settles[:0], nil
	if r.Body.Reset(); r.Body.Cap() > bytesMax { // what points into it as well
		r.Body, r.dec, r.names = bytes.Buffer{}, jsontext.Decoder{}, nil
	}
}

// decoding leaves repeated names to member, which spares payloads the search.
var decoding = []jsontext.Options{jsontext.AllowDuplicateNames(true)}

// start begins a body: what is wanted, with members of a type.
func (r *values) start(wanted string, of reflect.Type) {
	r.body, r.names, r.entry, r.err = r.Body.Bytes(), r.names[:0], -1, nil
	r.inner, r.told = "", 0
	if len(bytes.TrimSpace(r.body)) == 0 {
		r.err = strict.Empty(wanted, of)
	}
	r.dec.Reset(&r.Body, decoding...)
}

// end makes sure that nothing follows the one value.
func (r *values) end() error {
	if r.err == nil {
		if _, err := r.dec.ReadToken(); !errors.Is(err, io.EOF) {
			r.err = refuse("", "invalid JSON: there is more after the first value")
		}
	}
	return r.err
}

// whole reads a body that is one object, with members of a type.
func (r *values) whole(of reflect.Type, set func(name []byte)) {
	r.start("a JSON object", of)
	r.must("the body", r.object("the body", set))
}

func refuse(field, text string) error { return &job.Error{Kind: job.Invalid, Field: field, Text: text} }

// fail notes what is wrong with a field.
func (r *values) fail(field, why string) {
	if r.err != nil {
		return
	}
	r.refused(refuse(field, field+" "+why))
}

// refused notes what somebody else found wrong.
func (r *values) refused(err error) {
	if r.err != nil || err == nil {
		return
	}
	r.err = err
	if own, ok := errors.AsType[*job.Error](err); ok && r.entry >= 0 {
		own.Text = r.list + "[" + strconv.Itoa(r.entry) + "]: " + own.Text
	}
}

// must refuses what is missing or null.
func (r *values) must(field string, there bool) {
	if !there {
		r.fail(field, "is missing")
	}
}

func (r *values) syntax(err error) {
	r.err = refuse("", "invalid JSON: "+strict.Shorten(strings.TrimPrefix(err.Error(), "jsontext: "), 300))
}

// value reads the next value as it is written; nil after a problem. The bytes
// live until the next read.
func (r *values) value() []byte {
	if r.err != nil {
		return nil
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		r.syntax(err)
		return nil
	}
	return raw
}

// given reads a value that may be left out: nil for null and after a problem.
func (r *values) given() []byte {
	if raw := r.value(); raw != nil && raw[0] != 'n' {
		return raw
	}
	return nil
}

// object reads an object: set reads the value of each member. It reports
// whether there was one; null is none.
func (r *values) object(field string, set func(name []byte)) bool {
	if !r.open(field, jsontext.KindBeginObject, "an object") {
		return false
	}
	outer, around := len(r.names), r.inner
	r.inner = field
	for r.err == nil && r.dec.PeekKind() != jsontext.KindEndObject {
		if name := r.member(field, outer); r.err == nil {
			set(name)
		}
	}
	r.names, r.inner = r.names[:outer], around
	return r.close()
}

// array reads an array of at most so many values, each with one call of next.
func (r *values) array(field string, most int, next func()) bool {
	if !r.open(field, jsontext.KindBeginArray, "an array") {
		return false
	}
	for n := 0; r.err == nil && r.dec.PeekKind() != jsontext.KindEndArray; n++ {
		if n == most {
			r.entry = -1
			r.fail(field, "must not have more than "+strconv.Itoa(most)+" entries")
			return false
		}
		next()
	}
	return r.close()
}

// entries reads an array whose entries are named in what is refused.
func (r *values) entries(field string, next func()) bool {
	r.list = field
	there := r.array(field, bulkMax, func() {
		if r.entry++; r.entry%entriesCount == entriesCount-1 && r.Memory != nil && r.err == nil {
			r.err = r.Memory.Grow(entriesCount * entryBytes)
		}
		next()
	})
	r.entry = -1
	return there
}

func (r *values) open(field string, kind jsontext.Kind, want string) bool {
	if r.err != nil {
		return false
	}
	switch r.dec.PeekKind() {
	case kind:
		_, err := r.dec.ReadToken()
		return err == nil
	case jsontext.KindNull, jsontext.KindInvalid:
		r.value() // which may be the problem
	default:
		r.fail(field, "must be "+want)
	}
	return false
}

func (r *values) close() bool {
	if r.err != nil {
		return false
	}
	if _, err := r.dec.ReadToken(); err != nil {
		r.syntax(err)
	}
	return r.err == nil
}

// unknown passes over a member that this call does not read. It tells of one
// that no T has.
func unknown[T any](r source, name []byte) {
	r.skip(name, strict.Members(reflect.TypeFor[T]()))
}

func (r *values) skip(name []byte, known []string) {
	r.value()
	if r.err != nil || r.Unknown == nil || r.told == unknownMost || slices.Contains(known, string(name)) {
		return // what an answer says of it, sent back; or enough was told, and a hint costs
	}
	path := strict.Shorten(string(name), 64)
	if inner := strings.TrimPrefix(r.inner, "the "); inner == r.inner && inner != "" {
		path = inner + "." + path
	}
	r.err = r.tell(path, strict.NotKnown+spell.Hint(string(name), known))
}

// tell tells of a member that is not known; what it returns refuses the body.
func (r *values) tell(path, why string) error {
	if r.Unknown == nil || r.told == unknownMost {
		return nil
	}
	r.told++
	if r.entry >= 0 {
		path = r.list + "[" + strconv.Itoa(r.entry) + "]." + path
	}
	return r.Unknown(path, why)
}

// member reads a name and refuses one that was there already.
func (r *values) member(field string, outer int) []byte {
	raw := r.value()
	if raw == nil {
		return nil
	}
	at := int(r.dec.InputOffset())
	name := r.body[at-len(raw)+1 : at-1] // as raw, but ours
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = jsontext.AppendUnquote(nil, raw)
	}
	for _, seen := range r.names[outer:] {
		if bytes.Equal(seen, name) {
			r.fail(field, "has the field "+strconv.Quote(strict.Shorten(string(name), 64))+" twice")
		}
	}
	if r.names = append(r.names, name); len(r.names)-outer > membersMax {
		r.fail(field, "must not have more than "+strconv.Itoa(membersMax)+" fields")
	}
	return name
}

// text reads a string; ok is false for null.
func (r *values) text(field string) (content []byte, ok bool) {
	raw := r.given()
	if raw == nil {
		return nil, false
	}
	if raw[0] != '"' {
		r.fail(field, "must be a string")
		return nil, false
	}
	if content = raw[1 : len(raw)-1]; bytes.IndexByte(content, '\\') >= 0 {
		content, _ = jsontext.AppendUnquote(nil, raw)
	}
	return content, true
}

func (r *values) string(field string) string {
	content, _ := r.text(field)
	return string(content)
}

// number reads a whole number; otherwise is for null.
func (r *values) number(field string, least, most, otherwise uint64) uint64 {
	raw := r.given()
	if raw == nil {
		return otherwise
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n < least || n > most {
		r.fail(field, "must be a whole number from "+strconv.FormatUint(least, 10)+" to "+strconv.FormatUint(most, 10))
	}
	return n
}

// millis reads a time or a span. Zizq's have 64 bits; what is above ours is for
// ever.
func (r *values) millis(field string, least, otherwise job.Millis) job.Millis {
	raw := r.given()
	if raw == nil {
		return otherwise
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n < uint64(least) {
		r.fail(field, "must be a whole number from "+strconv.FormatUint(uint64(least), 10)+" to "+strconv.FormatUint(math.MaxUint64, 10))
	}
	return job.Millis(min(n, uint64(job.MaxMillis)))
}

func (r *values) float32(field string) float64 {
	f, err := strconv.ParseFloat(string(r.value()), 64)
	if err != nil || math.Abs(f) > math.MaxFloat32 {
		r.fail(field, "must be a number that fits 32 bits")
	}
	return f
}

func (r *values) bool(field string) bool {
	raw := r.given()
	if raw != nil && raw[0] != 't' && raw[0] != 'f' {
		r.fail(field, "must be true or false")
	}
	return raw != nil && raw[0] == 't'
}

// oneOf reads a word; ok is false for null.
func oneOf[T interface{ String() string }](r source, field string, words ...T) (zero T, ok bool) {
	word, ok := r.text(field)
	if !ok {
		return zero, false
	}
	v, err := WordOf(field, string(word), words...)
	r.refused(err)
	return v, err == nil
}
