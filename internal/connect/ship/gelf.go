package ship

import (
	"strconv"

	"github.com/tinylib/msgp/msgp"

	"github.com/reprisehq/reprise/internal/record"
)

// GELF names the keys of records that are fields of their own in GELF 1.1. The
// comments name the properties.
type GELF struct {
	TimestampKey    string // gelf_timestamp_key
	HostKey         string // gelf_host_key
	ShortMessageKey string // gelf_short_message_key
	FullMessageKey  string // gelf_full_message_key
	LevelKey        string // gelf_level_key
}

// DefaultGELF has the defaults of Fluent Bit.
func DefaultGELF() GELF {
	return GELF{TimestampKey: "timestamp", HostKey: "host", ShortMessageKey: "short_message", FullMessageKey: "full_message", LevelKey: "level"}
}

// gelfWriter writes records as GELF, one object behind another.
type gelfWriter struct {
	keys   GELF
	fields record.Body
	name   []byte
}

func (w *gelfWriter) appendChunk(dst, chunk []byte) (out []byte, records int, err error) {
	r := record.NewReader(chunk)
	for ; r.Next(); records++ {
		if dst, err = w.appendRecord(dst, &r.Event); err != nil {
			return dst, records, err
		}
	}
	return dst, records, r.Err()
}

// appendRecord appends one object. Every key that has no place of its own begins with _,
// and nested maps and arrays become keys with _ between.
func (w *gelfWriter) appendRecord(dst []byte, e *record.Event) (out []byte, err error) {
	if w.fields, err = record.ParseBody(w.fields, e.Body); err != nil {
		return dst, err
	}
	dst = append(dst, `{"version":"1.1"`...)
	dated := false
	for _, f := range w.fields {
		switch key := string(f.Key); key {
		case "version":
		case w.keys.TimestampKey:
			dst, dated = record.AppendJSON(append(dst, `,"timestamp":`...), f.Value, true), true
		case w.keys.HostKey:
			dst = record.AppendJSON(append(dst, `,"host":`...), f.Value, true)
		case w.keys.ShortMessageKey:
			dst = record.AppendJSON(append(dst, `,"short_message":`...), f.Value, true)
		case w.keys.FullMessageKey:
			dst = record.AppendJSON(append(dst, `,"full_message":`...), f.Value, true)
		case w.keys.LevelKey:
			dst = record.AppendJSON(append(dst, `,"level":`...), f.Value, true)
		default:
			w.name = appendGELFName(w.name[:0], f.Key)
			dst = w.appendField(dst, f.Value, 0)
		}
	}
	if !dated {
		dst = strconv.AppendInt(append(dst, `,"timestamp":`...), e.Time.Sec, 10)
		dst = append(dst, '.')
		millis := strconv.Itoa(1000 + int(e.Time.Nsec/1e6))
		dst = append(dst, millis[1:]...)
	}
	return append(dst, '}'), nil
}

// appendField appends a value under the name that is set, or what is nested in it.
func (w *gelfWriter) appendField(dst, value []byte, depth int) []byte {
	const depthMax = 32
	length := len(w.name)
	if depth < depthMax {
		switch msgp.NextType(value) { //nolint:exhaustive // all others are written
		case msgp.MapType:
			fields, err := record.ParseBody(nil, value)
			for _, f := range fields {
				w.name = appendGELFName(w.name[:length], f.Key)
				dst = w.appendField(dst, f.Value, depth+1)
			}
			if err == nil {
				return dst
			}
		case msgp.ArrayType:
			n, rest, err := msgp.ReadArrayHeaderBytes(value)
			for i := 0; err == nil && i < int(n); i++ {
				element := rest
				if rest, err = record.Skip(element); err == nil {
					w.name = strconv.AppendInt(append(w.name[:length], '_'), int64(i), 10)
					dst = w.appendField(dst, element[:len(element)-len(rest)], depth+1)
				}
			}
			return dst
		case msgp.NilType:
			return dst // GELF has texts and numbers
		case msgp.BoolType:
			dst = append(append(append(dst, ',', '"'), w.name[:length]...), `":"`...)
			return append(record.AppendJSON(dst, value, true), '"')
		}
	}
	dst = append(append(append(dst, ',', '"'), w.name[:length]...), '"', ':')
	return record.AppendJSON(dst, value, true)
}

// appendGELFName appends _ and a key; what GELF does not know in names becomes _.
func appendGELFName(dst, key []byte) []byte {
	if len(dst) == 0 && string(key) == "id" {
		dst = append(dst, '_') // _id is not for users
	}
	dst = append(dst, '_')
	for _, c := range key {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			c = '_'
		}
		dst = append(dst, c)
	}
	return dst
}
