package ship

import (
	"bytes"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/connect"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/record"
)

// esWork is what a delivery needs and the next one uses again.
type esWork struct {
	body
	sent     [][]byte // the events that stand in the body, in their order
	document []byte   // the one that is written, in MessagePack
	fields   record.Body
	short    []byte // a name or an id
	index    []byte // quoted

	time, date stamp
}

// stamp is the text of a second, most often that of the record before.
type stamp struct {
	sec  int64
	text []byte
}

func (s *stamp) of(t record.Time, format string) []byte {
	if s.text == nil || s.sec != t.Sec {
		s.sec, s.text = t.Sec, t.AppendFormat(s.text[:0], format)
		if s.text == nil {
			s.text = []byte{}
		}
	}
	return s.text
}

// write makes the body of a chunk. A record that cannot be sent dies at once.
func (s *ES) write(w *esWork, t *tally, tag string, chunk []byte) (whole int, err error) {
	w.text, w.sent = w.text[:0], w.sent[:0]
	now := record.At(s.o.Now())
	if !s.o.LogstashFormat {
		w.index = appendJSONText(w.index[:0], string(now.AppendFormat(nil, s.o.Index)))
	}
	r := record.NewReader(chunk)
	for r.Next() {
		s.makeDocument(w, tag, &r.Event)
		id := s.idOf(w, r.Body)
		if s.document[0] != "" && id == nil {
			t.die(r.Raw, job.Failure{Type: connect.TypeRecord, Message: "the record has no id in " + s.o.IDKey + " that can be used, and " + s.o.WriteOperation + " needs one"})
			continue
		}
		w.text = append(w.text, s.open...)
		w.text = append(append(w.text, s.indexOf(w, tag, &r.Event, now)...), s.kind...)
		if id != nil {
			w.text = append(append(append(w.text, `,"_id":"`...), id...), '"')
		}
		w.text = append(append(w.text, "}}\n"...), s.document[0]...)
		w.text = record.AppendJSON(w.text, w.document, s.o.EscapeUnicode)
		w.text = append(append(w.text, s.document[1]...), '\n')
		w.sent = append(w.sent, r.Raw)
	}
	return r.Offset(), r.Err()
}

// makeDocument writes the time, the tag and the fields of a record. What a
// record has under the names of the first two gives way.
func (s *ES) makeDocument(w *esWork, tag string, e *record.Event) {
	w.fields, _ = record.ParseBody(w.fields, e.Body) // the reader has checked it
	if s.o.ReplaceDots {
		for i := range w.fields {
			w.fields[i].Key = undotted(w.fields[i].Key)
		}
	}
	w.fields = w.fields.Remove(s.o.TimeKey)
	more := 1
	if s.o.IncludeTag {
		w.fields, more = w.fields.Remove(s.o.TagKey), 2
	}
	w.short = append(append(w.short[:0], w.time.of(e.Time, s.o.TimeKeyFormat)...), '.')
	w.short = appendDigits(w.short, e.Time.Nsec, s.o.TimeKeyNanos)
	d := msgp.AppendMapHeader(w.document[:0], uint32(len(w.fields)+more))
	d = msgp.AppendStringFromBytes(msgp.AppendString(d, s.o.TimeKey), append(w.short, 'Z'))
	if s.o.IncludeTag {
		d = msgp.AppendString(msgp.AppendString(d, s.o.TagKey), tag)
	}
	for i := range w.fields {
		f := &w.fields[i]
		if d = f.AppendKey(d); s.o.ReplaceDots {
			d = appendUndotted(d, f.Value, 0)
		} else {
			d = append(d, f.Value...)
		}
	}
	w.document = d
}

// appendDigits appends the part of a second, in nine digits or in three.
func appendDigits(dst []byte, nsec uint32, nanos bool) []byte {
	least := uint32(1e6)
	if nanos {
		least = 1
	}
	for unit := uint32(1e8); unit >= least; unit /= 10 {
		dst = append(dst, byte('0'+nsec/unit%10))
	}
	return dst
}

// undotted is a key with _ for each dot.
func undotted(key []byte) []byte {
	if bytes.IndexByte(key, '.') < 0 {
		return key
	}
	return bytes.ReplaceAll(key, []byte{'.'}, []byte{'_'})
}

// appendUndotted appends a value whose keys have _ for each dot.
func appendUndotted(dst, value []byte, depth int) []byte {
	const depthMax = 100
	if depth == depthMax {
		return append(dst, value...)
	}
	switch msgp.NextType(value) { //nolint:exhaustive // all others have no keys
	case msgp.MapType:
		fields, _ := record.ParseBody(nil, value) // the reader has checked it
		dst = msgp.AppendMapHeader(dst, uint32(len(fields)))
		for i := range fields {
			fields[i].Key = undotted(fields[i].Key)
			dst = appendUndotted(fields[i].AppendKey(dst), fields[i].Value, depth+1)
		}
		return dst
	case msgp.ArrayType:
		n, rest, _ := msgp.ReadArrayHeaderBytes(value)
		dst = msgp.AppendArrayHeader(dst, n)
		for range n {
			element := rest
			rest, _ = record.Skip(element)
			dst = appendUndotted(dst, element[:len(element)-len(rest)], depth+1)
		}
		return dst
	}
	return append(dst, value...)
}

// indexOf is the name of the index of a record, quoted.
func (s *ES) indexOf(w *esWork, tag string, e *record.Event, now record.Time) []byte {
	if !s.o.LogstashFormat {
		return w.index
	}
	const prefixBytesMax = 128
	if w.short = w.short[:0]; s.o.LogstashPrefixKey != "" {
		w.short, _ = s.prefix.Append(w.short, tag, e.Body, nil)
	}
	if w.short = w.short[:min(len(w.short), prefixBytesMax)]; len(w.short) == 0 {
		w.short = append(w.short, s.o.LogstashPrefix...)
	}
	at := e.Time
	if s.o.CurrentTimeIndex {
		at = now
	}
	w.short = append(append(w.short, s.o.LogstashSeparator...), w.date.of(at, s.o.LogstashDateFormat)...)
	w.index = appendJSONText(w.index[:0], string(w.short))
	return w.index
}

// idOf is the id of a document, or nil. One that would have to be quoted is none.
func (s *ES) idOf(w *esWork, body []byte) []byte {
	w.short = w.short[:0]
	switch {
	case s.o.IDKey != "":
		text, ok := record.Text(s.id.Find(body))
		if !ok || len(text) == 0 || !utf8.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) {
			return nil
		}
		w.short = append(w.short, text...)
	case s.o.GenerateID:
		w.short = appendUUID(w.short, w.document)
	default:
		return nil
	}
	return w.short
}

// appendJSONText appends a text in quotes.
func appendJSONText(dst []byte, text string) []byte {
	return record.AppendJSON(dst, msgp.AppendString(nil, text), true)
}
