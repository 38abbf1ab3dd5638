package record

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// Values with headers of all widths are skipped as the library skips them, and
// written as JSON whole.
func TestHeadersOfAllWidths(t *testing.T) {
	var values [][]byte
	for _, n := range []int{0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		values = append(values, msgp.AppendString(nil, strings.Repeat("x", n)), msgp.AppendBytes(nil, make([]byte, n)))
		array, object := msgp.AppendArrayHeader(nil, uint32(n)), msgp.AppendMapHeader(nil, uint32(n))
		for range n {
			array, object = append(array, 5), append(object, 0xa1, 'k', 6)
		}
		values = append(values, array, object)
	}
	for _, n := range []int{0, 1, 2, 3, 4, 8, 16, 17, 255, 256, 65535, 65536} {
		raw, err := msgp.AppendExtension(nil, &msgp.RawExtension{Type: 42, Data: make([]byte, n)})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, raw)
	}
	for _, n := range []int64{0, 127, 128, 255, 256, math.MaxUint16, math.MaxUint16 + 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64, -1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64} {
		values = append(values, msgp.AppendInt64(nil, n), msgp.AppendUint64(nil, uint64(n)))
	}
	values = append(values, msgp.AppendFloat32(nil, 1), msgp.AppendFloat64(nil, 1), msgp.AppendNil(nil), msgp.AppendBool(nil, true))
	for _, raw := range values {
		twice := append(append([]byte{0x92}, raw...), 7)
		if rest, err := Skip(append(bytes.Clone(raw), 0xc1)); err != nil || len(rest) != 1 {
			t.Errorf("%.8x of %d bytes: %d are left, %v", raw, len(raw), len(rest), err)
		}
		if rest, err := Skip(twice); err != nil || len(rest) != 0 {
			t.Errorf("%.8x in an array: %v", raw, err)
		}
		if rest, err := msgp.Skip(raw); err != nil || len(rest) != 0 {
			t.Fatalf("the library does not read %.8x: %v", raw, err)
		}
		if got := AppendJSON(nil, twice, true); !bytes.HasSuffix(got, []byte(",7]")) {
			t.Errorf("%.8x in an array became %.40s", raw, got)
		}
		for n := range min(len(raw), 64) {
			if _, err := Skip(raw[:n]); err == nil {
				t.Errorf("the first %d bytes of %.8x are whole", n, raw)
			}
		}
	}
}

// The short way of reading an event says what the long way says, about events and
// about all that is nearly one.
func TestTheShortWayIsTheLongWay(t *testing.T) {
	compare := func(chunk []byte) {
		var short, long Event
		end1, err1 := short.read(chunk, 0)
		end2, err2 := long.readAny(chunk, 0)
		if end1 != end2 || err1 != err2 { //nolint:errorlint // both are constants of this package
			t.Fatalf("%x: %d, %v and %d, %v", chunk, end1, err1, end2, err2)
		}
		if err1 == nil && (short.Time != long.Time || !bytes.Equal(short.Meta, long.Meta) || !bytes.Equal(short.Body, long.Body) || !bytes.Equal(short.Raw, long.Raw)) {
			t.Fatalf("%x: %+v and %+v", chunk, short, long)
		}
	}
	for _, chunk := range [][]byte{
		AppendText(nil, Time{Sec: 5, Nsec: 999_999_999}, "log", []byte("a line")),
		AppendEvent(nil, Time{Sec: 5}, nil, []byte{emptyMap}),
		AppendEvent(nil, Time{Sec: 5}, body(t, `{"m":1}`), body(t, `{"a":1}`)),
		AppendEvent(nil, Time{Sec: -5}, nil, body(t, `{"a":[1,2,3,4,5,6,7,8]}`)),
		unhex(t, "92 92 d700 00000001 3b9aca00 80 80"), // a second of 1e9 ns
		unhex(t, "92 d700 00000001 00000000 81 a161 01"),
	} {
		for n := range len(chunk) + 1 {
			compare(chunk[:n])
		}
		for i := range chunk {
			for c := range 256 {
				other := bytes.Clone(chunk)
				other[i] = byte(c)
				compare(other)
			}
		}
	}
}

func TestTheBoundsOfTimes(t *testing.T) {
	for _, row := range []struct {
		raw  []byte
		want Time
		ok   bool
	}{
		{msgp.AppendInt64(nil, secMax), Time{Sec: secMax}, true},
		{msgp.AppendInt64(nil, secMax+1), Time{}, false},
		{msgp.AppendInt64(nil, -secMax), Time{Sec: -secMax}, true},
		{msgp.AppendInt64(nil, -secMax-1), Time{}, false},
		{msgp.AppendUint64(nil, math.MaxUint64), Time{}, false},
		{msgp.AppendFloat64(nil, secMax), Time{Sec: secMax}, true},
		{msgp.AppendFloat64(nil, secMax+1), Time{}, false},
		{msgp.AppendFloat64(nil, -secMax), Time{Sec: -secMax}, true},
		{msgp.AppendFloat64(nil, -secMax-1), Time{}, false},
		{msgp.AppendFloat64(nil, math.Inf(1)), Time{}, false},
		{msgp.AppendFloat64(nil, 1.9999999999), Time{Sec: 2}, true},
		{unhex(t, "d700 00000001 3b9ac9ff"), Time{Sec: 1, Nsec: 999_999_999}, true},
		{unhex(t, "d700 00000001 3b9aca00"), Time{}, false},
		{unhex(t, "d600 00000001"), Time{}, false},
		{unhex(t, "c7"), Time{}, false},
	} {
		got, rest, err := ReadTime(row.raw)
		if (err == nil) != row.ok || got != row.want || len(rest) > 0 {
			t.Errorf("%x: %v, %v", row.raw, got, err)
		}
	}
	if got := AppendTime(nil, Time{}); !bytes.Equal(got, unhex(t, "d700 00000000 00000000")) {
		t.Errorf("the beginning of 1970: %x", got)
	}
}

func TestUnicodeIsKeptOrEscapedEverywhere(t *testing.T) {
	e := Event{Time: Time{Sec: 1}, Meta: body(t, `{"ä":"ä"}`), Body: body(t, `{"ö":["ö",{"ü":"ü"}],"k":{"ß":"ß"}}`)}
	const want = `{"é":1,"__internal__":{"log_metadata":{"ä":"ä"}},"ö":["ö",{"ü":"ü"}],"k":{"ß":"ß"}}`
	if got := NewJSONWriter(Lines, "é", Epoch, false).AppendRecord(nil, &e); string(got) != want {
		t.Errorf("kept: %s", got)
	}
	escaped := string(NewJSONWriter(Lines, "é", Epoch, true).AppendRecord(nil, &e))
	if strings.ContainsFunc(escaped, func(r rune) bool { return r > 0x7f }) || strings.Count(escaped, `\u00`) != 9 {
		t.Errorf("escaped: %s", escaped)
	}
}

func TestFloatsOfTimes(t *testing.T) {
	for _, row := range []struct {
		time Time
		want string
	}{
		{Time{Sec: 5, Nsec: 123456789}, "5.123456789"},
		{Time{Sec: 10_000_000_000, Nsec: 123456789}, "10000000000.12346"},
		{Time{Sec: -2, Nsec: 500_000_000}, "-1.5"},
		{Time{Sec: 1_000_000_000, Nsec: 1500}, "1000000000.000002"},
		{Time{Sec: 1_000_000_000, Nsec: 1499}, "1000000000.000001"},
		{Time{Sec: 1_000_000_000, Nsec: 123_457_000}, "1000000000.123457"},
	} {
		e := Event{Time: row.time, Body: []byte{emptyMap}}
		if got := NewJSONWriter(Lines, "t", Double, true).AppendRecord(nil, &e); string(got) != `{"t":`+row.want+`}` {
			t.Errorf("%v: %s", row.time, got)
		}
	}
	e := Event{Time: Time{Sec: 1, Nsec: 999_999_999}, Body: []byte{emptyMap}}
	if got := NewJSONWriter(Lines, "t", EpochMillis, true).AppendRecord(nil, &e); string(got) != `{"t":1999}` {
		t.Errorf("milliseconds: %s", got)
	}
}

func TestNamesOfKeys(t *testing.T) {
	b, err := ParseBody(nil, unhex(t, "84 a161 01 05 01 c40162 01 81a16b01 01"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range b {
		names = append(names, f.Name())
	}
	if got := strings.Join(names, " "); got != "a 5 b 81a16b01" {
		t.Error(got)
	}
}

func TestPlacesOfTemplates(t *testing.T) {
	raw := body(t, `{"a":{"b":1},"TAG":{"a":[5]},"u":"ü"}`)
	find := func(n int) []byte { return []byte{byte('a' + n)} }
	for _, row := range []struct {
		text, want string
		all        bool
	}{
		{"$0$9", "aj", true},
		{"$none.$TAG[0].$a['b']", ".x.1", false},
		{"$TAG[5].$0", ".a", false},
		{"$TAG['a'][0]", "5", true},
		{"$TAG[0][1]", "", false},
		{"$a", `{"b":1}`, true},
		{"$u", "ü", true},
	} {
		parsed, err := ParseTemplate(row.text)
		if err != nil {
			t.Fatal(err)
		}
		if got, all := parsed.Append(nil, "x.y", raw, find); string(got) != row.want || all != row.all {
			t.Errorf("%s: %q, %t", row.text, got, all)
		}
		if text, ok := parsed.Fixed(); ok {
			t.Errorf("%s is the text %q for each record", row.text, text)
		}
	}
	if p, err := ParsePath("$a['b']"); err != nil || !p.Nested() || p.String() != "$a['b']" {
		t.Errorf("%v, %v", p, err)
	}
}
