// Package record holds events as Fluent Bit 2 and later write them: in
// MessagePack, [[time, metadata], body], one behind another in a chunk. It
// reads them without copying, writes them, carries them to JSON and back, and
// finds values in them by the record accessor ($a['b'][0]).
//
// Bytes that are no events are an error with an offset, never a panic; what is
// an event can always be written as JSON.
package record

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/itchyny/timefmt-go"
	"github.com/tinylib/msgp/msgp"
)

// Time is when an event happened, since the beginning of 1970 (UTC).
type Time struct {
	Sec  int64
	Nsec uint32 // less than a second, and counted forwards before 1970 too
}

// At is a time of Go.
func At(t time.Time) Time {
	return Time{Sec: t.Unix(), Nsec: uint32(t.Nanosecond())}
}

// Go is the time as one of Go, in UTC.
func (t Time) Go() time.Time {
	return time.Unix(t.Sec, int64(t.Nsec)).UTC()
}

// AppendFormat appends the time in UTC by a format of strftime, as names of
// indexes have it (%Y.%m.%d).
func (t Time) AppendFormat(dst []byte, format string) []byte {
	return timefmt.AppendFormat(dst, t.Go(), format)
}

const (
	pair      = 0x92 // an array of two
	emptyMap  = 0x80
	fixext8   = 0xd7
	eventTime = 0 // the type of the extension

	commonHead = 13 // bytes: two pairs, EventTime, no metadata

	secMax = 1 << 50 // what is more is no time; milliseconds fit in 63 bits
)

// AppendTime appends a time as EventTime, eight bytes. What these cannot say,
// before 1970 and after 2106, is a whole number, or a float if it has a fraction.
func AppendTime(dst []byte, t Time) []byte {
	if t.Sec < 0 || t.Sec > math.MaxUint32 {
		if t.Nsec == 0 {
			return msgp.AppendInt64(dst, t.Sec)
		}
		return msgp.AppendFloat64(dst, t.seconds())
	}
	dst = append(dst, fixext8, eventTime)
	dst = binary.BigEndian.AppendUint32(dst, uint32(t.Sec))
	return binary.BigEndian.AppendUint32(dst, t.Nsec)
}

func (t Time) seconds() float64 { return float64(t.Sec) + float64(t.Nsec)/1e9 }

// AppendHead appends what stands before the body of an event without metadata:
// the body, one raw map, has to follow.
func AppendHead(dst []byte, t Time) []byte {
	return append(AppendTime(append(dst, pair, pair), t), emptyMap)
}

// AppendEvent appends an event of raw maps; no metadata is an empty map.
func AppendEvent(dst []byte, t Time, meta, body []byte) []byte {
	if len(meta) == 0 {
		return append(AppendHead(dst, t), body...)
	}
	dst = AppendTime(append(dst, pair, pair), t)
	return append(append(dst, meta...), body...)
}

// AppendText appends an event with one field, a text: a line of a file.
func AppendText(dst []byte, t Time, key string, text []byte) []byte {
	dst = append(AppendHead(dst, t), emptyMap|1)
	return msgp.AppendStringFromBytes(msgp.AppendString(dst, key), text)
}

// Event is one record with its time. Its bytes lie in the chunk it was read from.
type Event struct {
	Time Time
	Meta []byte // raw map; nil in the old form [time, body]
	Body []byte // raw map
	Raw  []byte // the event as it stands in the chunk
}

// Error says what is wrong with bytes, and where.
type Error struct {
	Offset int
	Text   string
}

func (e *Error) Error() string {
	return "byte " + strconv.Itoa(e.Offset) + ": " + e.Text
}

// Reader goes over the events of a chunk:
//
//	r := record.NewReader(chunk)
//	for r.Next() {
//		use(r.Time, r.Body)
//	}
//	if err := r.Err(); err != nil { ... }
type Reader struct {
	Event // the last one that Next read

	data []byte
	at   int
	err  *Error
}

// NewReader begins at the first event of a chunk.
func NewReader(chunk []byte) Reader { return Reader{data: chunk} }

// Next reads an event and reports whether there was one.
func (r *Reader) Next() bool {
	if r.err != nil || r.at == len(r.data) {
		return false
	}
	end, err := r.read(r.data, r.at)
	if err != nil {
		r.err = &Error{Offset: end, Text: err.Error()}
		return false
	}
	r.at = end
	return true
}

// Offset is where the next event begins: all before it is whole.
func (r *Reader) Offset() int { return r.at }

// Err says why Next stopped before the end of the chunk, as an *Error.
func (r *Reader) Err() error {
	if r.err == nil {
		return nil
	}
	return r.err
}

// Count counts the events of a chunk. If one is broken, the error says where,
// and whole is the length of what stands before it.
func Count(chunk []byte) (records, whole int, err error) {
	r := NewReader(chunk)
	for r.Next() {
		records++
	}
	return records, r.at, r.Err()
}

// read reads the event at a place, and returns its end, or the place of a fault.
func (e *Event) read(b []byte, at int) (end int, err error) {
	if len(b)-at > commonHead && string(b[at:at+4]) == "\x92\x92\xd7\x00" && b[at+12] == emptyMap {
		nsec := binary.BigEndian.Uint32(b[at+8:])
		if e.Body, end, err = readMap(b, at+commonHead, errBody); err == nil && nsec < 1e9 {
			e.Time = Time{Sec: int64(binary.BigEndian.Uint32(b[at+4:])), Nsec: nsec}
			e.Meta, e.Raw = b[at+12:at+13:at+13], b[at:end:end]
			return end, nil
		}
	}
	return e.readAny(b, at)
}

// readAny reads an event in any form.
func (e *Event) readAny(b []byte, at int) (end int, err error) {
	begin, inner := at, false
	if at, err = array2(b, at); err != nil {
		return at, err
	}
	if inner = b[at]&0xf0 == 0x90 || b[at] == 0xdc || b[at] == 0xdd; inner {
		if at, err = array2(b, at); err != nil {
			return at, err
		}
	}
	if e.Time, at, err = readTime(b, at); err != nil {
		return at, err
	}
	e.Meta = nil
	if inner {
		if e.Meta, at, err = readMap(b, at, errMeta); err != nil {
			return at, err
		}
	}
	if e.Body, at, err = readMap(b, at, errBody); err != nil {
		return at, err
	}
	e.Raw = b[begin:at:at]
	return at, nil
}

// array2 reads the header of an array of two, behind which something stands.
func array2(b []byte, at int) (int, error) {
	k, size, n := head(b, at)
	switch {
	case k == kindShort:
		return at, errShort
	case k != kindArray || n != 2:
		return at, errEvent
	case at+size == len(b):
		return at, errShort
	}
	return at + size, nil
}

// readMap reads a raw map and returns it with its end.
func readMap(b []byte, at int, wrong error) ([]byte, int, error) {
	if at >= len(b) {
		return nil, at, errShort
	} else if forms[b[at]].kind != kindMap {
		return nil, at, wrong
	}
	end, err := skip(b, at)
	if err != nil {
		return nil, end, err
	}
	return b[at:end:end], end, nil
}

// ReadTime reads a time at the beginning of b, in all forms that are known: as
// EventTime, as a whole number and as a float. It returns what follows.
func ReadTime(b []byte) (t Time, rest []byte, err error) {
	t, end, err := readTime(b, 0)
	if err != nil {
		return Time{}, nil, &Error{Offset: end, Text: err.Error()}
	}
	return t, b[end:], nil
}

func readTime(b []byte, at int) (Time, int, error) {
	k, size, n := head(b, at)
	switch body := at + size; k { //nolint:exhaustive // all others are wrong
	case kindShort:
		return Time{}, at, errShort
	case kindExt:
		nsec := uint32(0)
		if n != 8 || b[body-1] != eventTime {
			return Time{}, at, errTime
		} else if nsec = binary.BigEndian.Uint32(b[body+4:]); nsec >= 1e9 {
			return Time{}, at, errTime
		}
		return Time{Sec: int64(binary.BigEndian.Uint32(b[body:])), Nsec: nsec}, body + 8, nil
	case kindInt, kindUint:
		sec := integer(b, at)
		if sec < -secMax || sec > secMax || k == kindUint && sec < 0 {
			return Time{}, at, errTime
		}
		return Time{Sec: sec}, body, nil
	case kindFloat:
		f := float(b, at)
		sec := math.Floor(f)
		if math.IsNaN(f) || sec < -secMax || sec > secMax {
			return Time{}, at, errTime
		}
		nsec := math.Round((f - sec) * 1e9)
		if nsec == 1e9 {
			sec, nsec = sec+1, 0
		}
		return Time{Sec: int64(sec), Nsec: uint32(nsec)}, body, nil
	}
	return Time{}, at, errTime
}
