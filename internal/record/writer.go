package record

import "strconv"

// Layout is how records follow each other in JSON.
type Layout string

// The layouts, by the names that configurations use.
const (
	Array  Layout = "json"        // [{...},{...}]
	Lines  Layout = "json_lines"  // {...}\n{...}\n
	Stream Layout = "json_stream" // {...}{...}
)

// DateForm is how a time is written in JSON.
type DateForm string

// The forms of times, by the names that configurations use.
const (
	Double      DateForm = "double" // 1448403340.123457
	Epoch       DateForm = "epoch"
	EpochMillis DateForm = "epoch_ms"
	ISO8601     DateForm = "iso8601"            // "2015-11-24T22:15:40.123456Z"
	JavaSQL     DateForm = "java_sql_timestamp" // "2015-11-24 22:15:40.123456"
)

// JSONWriter writes records as JSON objects with their time in front. One is
// used by one goroutine at a time.
type JSONWriter struct {
	layout Layout
	date   DateForm
	open   []byte // {"date":
	dated  bool
	escape bool

	sec    int64 // of which second is the text
	second []byte
}

// NewJSONWriter makes a writer. Without a dateKey no time is written; with
// escapeUnicode all beyond ASCII is \uXXXX.
func NewJSONWriter(layout Layout, dateKey string, date DateForm, escapeUnicode bool) *JSONWriter {
	w := &JSONWriter{layout: layout, date: date, dated: dateKey != "", escape: escapeUnicode, open: []byte{'{'}}
	if w.dated {
		w.open = append(appendQuoted(w.open, []byte(dateKey), escapeUnicode), ':')
	}
	return w
}

// AppendChunk appends the events of a chunk and says how many they are. What is
// appended is whole also if an event is broken, which is the error.
func (w *JSONWriter) AppendChunk(dst, chunk []byte) (out []byte, records int, err error) {
	if w.layout == Array {
		dst = append(dst, '[')
	}
	r := NewReader(chunk)
	for ; r.Next(); records++ {
		if records > 0 && w.layout == Array {
			dst = append(dst, ',')
		}
		if dst = w.AppendRecord(dst, &r.Event); w.layout == Lines {
			dst = append(dst, '\n')
		}
	}
	if w.layout == Array {
		dst = append(dst, ']')
	}
	return dst, records, r.Err()
}

// AppendRecord appends one event as an object. Its metadata, if there is any,
// stands in __internal__, as the original writes it.
func (w *JSONWriter) AppendRecord(dst []byte, e *Event) []byte {
	dst = append(dst, w.open...)
	more := w.dated
	if w.dated {
		dst = w.appendDate(dst, e.Time)
	}
	if _, size, n := head(e.Meta, 0); n > 0 {
		if more {
			dst = append(dst, ',')
		}
		dst, _ = appendMembers(append(dst, `"__internal__":{"log_metadata":{`...), e.Meta, size, n, 1, w.escape)
		dst, more = append(dst, "}}"...), true
	}
	if k, size, n := head(e.Body, 0); k == kindMap && n > 0 {
		if more {
			dst = append(dst, ',')
		}
		dst, _ = appendMembers(dst, e.Body, size, n, 1, w.escape)
	}
	return append(dst, '}')
}

func (w *JSONWriter) appendDate(dst []byte, t Time) []byte {
	switch w.date {
	case Epoch:
		return w.appendSecond(dst, t, "")
	case EpochMillis:
		return strconv.AppendInt(dst, t.Sec*1000+int64(t.Nsec/1e6), 10)
	case ISO8601:
		dst = append(w.appendSecond(append(dst, '"'), t, "2006-01-02T15:04:05"), '.')
		return append(appendPadded(dst, t.Nsec/1000), 'Z', '"')
	case JavaSQL:
		dst = append(w.appendSecond(append(dst, '"'), t, "2006-01-02 15:04:05"), '.')
		return append(appendPadded(dst, t.Nsec/1000), '"')
	default:
		return w.appendSeconds(dst, t)
	}
}

// appendSecond appends the second of a time, most often that of the record
// before; without a layout as a number.
func (w *JSONWriter) appendSecond(dst []byte, t Time, layout string) []byte {
	if w.second == nil || w.sec != t.Sec {
		w.sec = t.Sec
		if layout == "" {
			w.second = strconv.AppendInt(w.second[:0], t.Sec, 10)
		} else {
			w.second = t.Go().AppendFormat(w.second[:0], layout)
		}
	}
	return append(dst, w.second...)
}

// appendPadded appends six digits.
func appendPadded(dst []byte, n uint32) []byte {
	return append(dst, byte('0'+n/100000%10), byte('0'+n/10000%10), byte('0'+n/1000%10),
		byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}

// appendSeconds appends a time as a float of 16 digits. Today's seconds have
// ten of them, so that six are left: millionths.
func (w *JSONWriter) appendSeconds(dst []byte, t Time) []byte {
	if t.Sec < 1e9 || t.Sec >= 1e10-1 {
		return appendFloat(dst, t.seconds())
	}
	micros := (t.Nsec + 500) / 1000
	if micros == 1e6 {
		t.Sec, micros = t.Sec+1, 0
	}
	dst = append(w.appendSecond(dst, t, ""), '.')
	if micros == 0 {
		return append(dst, '0')
	}
	dst = appendPadded(dst, micros)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}
