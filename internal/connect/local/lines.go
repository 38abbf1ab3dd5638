package local

import (
	"bytes"
	"strings"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// The formats of files.
const (
	formatOut      = "out_file" // tag: [1448403340.000000000, {"k":"v"}]
	formatPlain    = "plain"    // {"k":"v"}
	formatCSV      = "csv"      // 1448403340.000000000,"v"
	formatLTSV     = "ltsv"     // "time":1448403340.000000<TAB>"k":"v"
	formatTemplate = "template" // {time} {message}
	formatMsgpack  = "msgpack"  // the events themselves
)

// lines writes records in the format of a file.
type lines struct {
	o      *FileOptions
	json   *record.JSONWriter
	fields record.Body
}

// append appends a record.
func (l *lines) append(dst []byte, tag string, e *record.Event) []byte {
	switch l.o.Format {
	case formatMsgpack:
		return append(dst, e.Raw...)
	case formatPlain:
		dst = l.json.AppendRecord(dst, e)
	case formatCSV:
		dst = nanoseconds(dst, e.Time)
		for i := range l.parse(e) {
			dst = appendCSV(append(dst, l.o.Delimiter...), l.fields[i].Value)
		}
	case formatLTSV:
		dst = append(append(dst, `"time"`...), l.o.LabelDelimiter...)
		dst = seconds(dst, e.Time)
		for i := range l.parse(e) {
			dst = append(l.appendKey(append(dst, l.o.Delimiter...), i), l.o.LabelDelimiter...)
			dst = record.AppendJSON(dst, l.fields[i].Value, l.o.EscapeUnicode)
		}
	case formatTemplate:
		dst = l.appendTemplate(dst, e)
	default:
		dst = nanoseconds(append(append(dst, tag...), ": ["...), e.Time)
		dst = append(l.json.AppendRecord(append(dst, ", "...), e), ']')
	}
	return append(dst, '\n')
}

// parse reads the fields of a record.
func (l *lines) parse(e *record.Event) record.Body {
	l.fields, _ = record.ParseBody(l.fields, e.Body) // the reader has checked it
	return l.fields
}

// appendKey appends the key of a field in quotes.
func (l *lines) appendKey(dst []byte, i int) []byte {
	return record.AppendJSON(dst, l.fields[i].AppendKey(nil), l.o.EscapeUnicode)
}

// appendHeader appends the names of the columns of a CSV, which are those of a record.
func (l *lines) appendHeader(dst []byte, e *record.Event) []byte {
	dst = append(dst, "timestamp"...)
	for i := range l.parse(e) {
		dst = appendCSV(append(dst, l.o.Delimiter...), l.fields[i].AppendKey(nil))
	}
	return append(dst, '\n')
}

// appendCSV appends a value: texts, arrays and maps in quotes, which are doubled inside.
func appendCSV(dst, value []byte) []byte {
	text, quoted := record.Text(value)
	if kind := msgp.NextType(value); kind == msgp.MapType || kind == msgp.ArrayType {
		text, quoted = record.AppendJSON(nil, value, false), true
	}
	if !quoted {
		return record.AppendJSON(dst, value, false)
	}
	dst = append(dst, '"')
	for {
		before, after, found := bytes.Cut(text, []byte{'"'})
		if dst = append(dst, before...); !found {
			return append(dst, '"')
		}
		dst, text = append(dst, '"', '"'), after
	}
}

// appendTemplate fills {time} and {key} in; what has no value stays as it stands.
func (l *lines) appendTemplate(dst []byte, e *record.Event) []byte {
	l.parse(e)
	for rest := l.o.Template; rest != ""; {
		before, inside, open := strings.Cut(rest, "{")
		dst = append(dst, before...)
		if !open {
			break
		}
		key, after, closed := strings.Cut(inside, "}")
		if !closed {
			return append(append(dst, '{'), inside...)
		}
		i := l.fields.Index(key)
		switch {
		case key == "time":
			dst = seconds(dst, e.Time)
		case i >= 0:
			dst = record.AppendPlain(dst, l.fields[i].Value)
		default:
			dst = append(append(append(dst, '{'), key...), '}')
		}
		rest = after
	}
	return dst
}

// appendRuby appends a value as Fluent Bit shows it to people: {"k"=>"v", "n"=>1}.
func appendRuby(dst, value []byte, depth int) []byte {
	const depthMax = 100
	kind := msgp.NextType(value)
	switch {
	case depth == depthMax:
	case kind == msgp.MapType:
		fields, _ := record.ParseBody(nil, value) // the reader has checked it
		dst = append(dst, '{')
		for i := range fields {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(record.AppendJSON(dst, fields[i].AppendKey(nil), false), "=>"...)
			dst = appendRuby(dst, fields[i].Value, depth+1)
		}
		return append(dst, '}')
	case kind == msgp.ArrayType:
		n, rest, _ := msgp.ReadArrayHeaderBytes(value)
		dst = append(dst, '[')
		for i := range n {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			element := rest
			rest, _ = record.Skip(element)
			dst = appendRuby(dst, element[:len(element)-len(rest)], depth+1)
		}
		return append(dst, ']')
	}
	return record.AppendJSON(dst, value, false)
}
