package record

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"
)

func unhex(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// sample is a chunk of 100 records of one line of 150 bytes.
func sample(t testing.TB) (chunk []byte) {
	t.Helper()
	const line = `192.168.1.42 - - [24/Nov/2015:22:15:40 +0000] GET /api/v1/items/4711?page=3&size=50 HTTP/1.1 200 5316 https://example.com/shop Mozilla/5.0 (X11; L`
	for i := range 100 {
		chunk = AppendText(chunk, Time{Sec: 1448403340, Nsec: uint32(i) * 12345678 % 1e9}, "log", []byte(line))
	}
	return chunk
}

// body makes a raw body of JSON.
func body(t testing.TB, text string) []byte {
	t.Helper()
	raw, err := AppendFromJSON(nil, []byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return raw
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	when := Time{Sec: 1448403340, Nsec: 123456789}
	var chunk []byte
	chunk = AppendText(chunk, when, "log", []byte("a line"))
	chunk = AppendEvent(chunk, Time{Sec: 1}, nil, body(t, `{"b":2}`))
	chunk = AppendEvent(chunk, Time{Sec: 2}, body(t, `{"m":true}`), body(t, `{}`))
	want := []struct {
		time       Time
		meta, body string
	}{{when, `{}`, `{"log":"a line"}`}, {Time{Sec: 1}, `{}`, `{"b":2}`}, {Time{Sec: 2}, `{"m":true}`, `{}`}}
	r := NewReader(chunk)
	var raw []byte
	for i := 0; r.Next(); i++ {
		w := want[i]
		meta, got := AppendJSON(nil, r.Meta, true), AppendJSON(nil, r.Body, true)
		if r.Time != w.time || string(meta) != w.meta || string(got) != w.body {
			t.Errorf("event %d: %v %s %s", i, r.Time, meta, got)
		}
		raw = append(raw, r.Raw...)
	}
	if r.Err() != nil || !bytes.Equal(raw, chunk) {
		t.Errorf("%v; the events are not the chunk", r.Err())
	}
	if n, whole, err := Count(chunk); n != 3 || whole != len(chunk) || err != nil {
		t.Errorf("Count: %d events in %d bytes, %v", n, whole, err)
	}
}

func TestTheBytesAreThoseOfTheOriginal(t *testing.T) {
	got := AppendText(nil, Time{Sec: 1, Nsec: 2}, "log", []byte("x"))
	if want := unhex(t, "92 92 d700 00000001 00000002 80 81 a36c6f67 a178"); !bytes.Equal(got, want) {
		t.Errorf("%x", got)
	}
}

func TestOldFormsAreRead(t *testing.T) {
	for _, row := range []struct {
		name, chunk string
		want        Time
	}{
		{"a whole number", "92 01 80", Time{Sec: 1}},
		{"a negative number", "92 ff 80", Time{Sec: -1}},
		{"64 bits", "92 cf0000000056550000 80", Time{Sec: 0x56550000}},
		{"a float", "92 cb3ff8000000000000 80", Time{Sec: 1, Nsec: 5e8}},
		{"a float before 1970", "92 cbbff8000000000000 80", Time{Sec: -2, Nsec: 5e8}},
		{"a small float", "92 ca3fc00000 80", Time{Sec: 1, Nsec: 5e8}},
		{"EventTime", "92 d7000000000100000002 80", Time{Sec: 1, Nsec: 2}},
		{"EventTime with a length", "92 c708000000000100000002 80", Time{Sec: 1, Nsec: 2}},
		{"a number in the new form", "92 92 01 80 80", Time{Sec: 1}},
		{"long headers", "dc0002 dd00000002 01 de0000 df00000000", Time{Sec: 1}},
	} {
		r := NewReader(unhex(t, row.chunk))
		if !r.Next() || r.Time != row.want || r.Next() || r.Err() != nil {
			t.Errorf("%s: %v, %v", row.name, r.Time, r.Err())
		}
	}
}

func TestTimesThatEventTimeCannotSayAreNumbers(t *testing.T) {
	for _, want := range []Time{{Sec: -1}, {Sec: math.MaxUint32 + 1}, {Sec: -1, Nsec: 5e8}, {Sec: math.MaxUint32, Nsec: 1}} {
		if got, rest, err := ReadTime(AppendTime(nil, want)); got != want || len(rest) > 0 || err != nil {
			t.Errorf("%v became %v, %v", want, got, err)
		}
	}
}

func TestBrokenBytesAreRefusedWithTheirPlace(t *testing.T) {
	whole := AppendText(nil, Time{Sec: 1}, "log", []byte("x"))
	for _, row := range []struct {
		name, chunk string
		offset      int
		text        string
	}{
		{"no event", "01", 0, "no event"},
		{"an array of three", "93 01 80 80", 0, "no event"},
		{"the end behind the header", "92", 0, "ends early"},
		{"a text as a time", "92 a161 80", 1, "the time"},
		{"an extension of another type", "92 d7010000000100000002 80", 1, "the time"},
		{"a second of more than 1e9 ns", "92 d7000000000177777777 80", 1, "the time"},
		{"NaN as a time", "92 cb7ff8000000000001 80", 1, "the time"},
		{"a time far away", "92 cf7fffffffffffffff 80", 1, "the time"},
		{"an array as metadata", "92 92 01 90 80", 3, "metadata"},
		{"a text as a body", "92 01 a161", 2, "the body"},
		{"a byte that begins nothing", "92 01 81 a161 c1", 5, "begins no value"},
		{"a text that is cut", "92 01 81 a161 a5 61", 5, "ends early"},
		{"a map that claims more than there is", "92 01 df ffffffff", 2, "ends early"},
		{"an array in an array that does", "92 01 81 a161 91 dd 7fffffff 01 01", 6, "ends early"},
	} {
		chunk := append(bytes.Clone(whole), unhex(t, row.chunk)...)
		n, end, err := Count(chunk)
		var at *Error
		if !errors.As(err, &at) || n != 1 || end != len(whole) {
			t.Errorf("%s: %d events in %d bytes, %v", row.name, n, end, err)
		} else if at.Offset != len(whole)+row.offset || !strings.Contains(at.Text, row.text) {
			t.Errorf("%s: %v, want %q at %d", row.name, err, row.text, len(whole)+row.offset)
		}
	}
}

func TestEachCutOfAnEventIsRefused(t *testing.T) {
	whole := AppendEvent(nil, Time{Sec: 1}, body(t, `{"m":1}`), body(t, `{"a":{"b":[1.5,"x",null]}}`))
	for n := 1; n < len(whole); n++ {
		if records, end, err := Count(whole[:n]); records != 0 || end != 0 || err == nil {
			t.Errorf("the first %d bytes: %d events, %v", n, records, err)
		}
	}
}

func TestReadingAndWritingAllocateNothing(t *testing.T) {
	chunk := sample(t)
	w := NewJSONWriter(Lines, "date", ISO8601, true)
	line, dst, out := []byte("a line"), make([]byte, 0, 4096), make([]byte, 0, 1<<16)
	if n := testing.AllocsPerRun(100, func() {
		dst = AppendText(dst[:0], Time{Sec: 1}, "log", line)
		dst = AppendEvent(dst, Time{Sec: 1}, nil, dst)
		out, _, _ = w.AppendChunk(out[:0], chunk)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestTimesOfGoComeBack(t *testing.T) {
	for _, at := range []time.Time{time.Unix(1, 2).UTC(), time.Unix(-1, 5e8).UTC()} {
		if got := At(at).Go(); !got.Equal(at) {
			t.Errorf("%v became %v", at, got)
		}
	}
	if got := (Time{Sec: 1448403340}).AppendFormat(nil, "logs-%Y.%m.%d"); string(got) != "logs-2015.11.24" {
		t.Errorf("%s", got)
	}
}

func TestBodies(t *testing.T) {
	set := func(b Body) Body { return b.Set("b", msgp.AppendInt(nil, 7)) }
	for _, row := range []struct {
		name, before, after string
		change              func(Body) Body
	}{
		{"nothing changes", `{"a":1,"b":[2],"c":{"d":3}}`, `{"a":1,"b":[2],"c":{"d":3}}`, func(b Body) Body { return b }},
		{"set in its place", `{"a":1,"b":2,"c":3}`, `{"a":1,"b":7,"c":3}`, set},
		{"set at the end", `{"a":1}`, `{"a":1,"b":7}`, set},
		{"remove", `{"a":1,"b":2}`, `{"b":2}`, func(b Body) Body { return b.Remove("a") }},
		{"remove what stands twice", `{"a":1,"b":2,"a":3}`, `{"b":2}`, func(b Body) Body { return b.Remove("a") }},
		{"remove what is not there", `{"a":1}`, `{"a":1}`, func(b Body) Body { return b.Remove("x") }},
		{"rename", `{"a":1,"b":2}`, `{"z":1,"b":2}`, func(b Body) Body { return b.Rename("a", "z") }},
		{"rename over another", `{"z":0,"a":1,"z":2}`, `{"z":1}`, func(b Body) Body { return b.Rename("a", "z") }},
		{"rename what is not there", `{"b":2}`, `{"b":2}`, func(b Body) Body { return b.Rename("a", "b") }},
		{"rename to itself", `{"a":2}`, `{"a":2}`, func(b Body) Body { return b.Rename("a", "a") }},
	} {
		b, err := ParseBody(nil, body(t, row.before))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendJSON(nil, row.change(b).Append(nil), true); string(got) != row.after {
			t.Errorf("%s: %s", row.name, got)
		}
	}
}

func TestKeysThatAreNoTextsStay(t *testing.T) {
	raw := unhex(t, "83 01a161 c40162a163 a161a162") // {1:"a", bin b:"c", "a":"b"}
	b, err := ParseBody(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	b = b.Rename("a", "z").Set("b", []byte{0x02}).Remove("")
	if got, want := b.Append(nil), unhex(t, "83 01a161 a16202 a17aa162"); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func TestBodiesThatAreNoneAreRefused(t *testing.T) {
	for _, text := range []string{"", "01", "90", "81", "81 a1", "81 a161", "81 a161 c1", "80 80"} {
		if _, err := ParseBody(nil, unhex(t, text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

func TestRecordAccessor(t *testing.T) {
	raw := body(t, `{"log":"x","a":{"b":[10,{"c.d":"deep"}],"n":null},"k['x']":1,"x":1,"x":2,"a.b":"dot"}`)
	parsed, err := ParseBody(nil, raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][2]string{
		{`$log`, `"x"`},
		{`log`, `"x"`},
		{`$a['b'][0]`, `10`},
		{`$a["b"][1]['c.d']`, `"deep"`},
		{`a['b'][0]`, `10`},
		{`$a['n']`, `null`},
		{`$a.b`, `"dot"`},
		{`$x`, `2`},
		{`$a['b'][2]`, ``},
		{`$a['b']['c']`, ``},
		{`$a[0]`, ``},
		{`$log['a']`, ``},
		{`$nothing['a'][1]`, ``},
	} {
		p, err := ParsePath(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		for _, found := range [][]byte{p.Find(raw), p.FindIn(parsed)} {
			got := ""
			if found != nil {
				got = string(AppendJSON(nil, found, true))
			}
			if got != row[1] {
				t.Errorf("%s: %q, want %q", row[0], got, row[1])
			}
		}
	}
}

func TestAccessorsThatAreNoneAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		`$`: "names no key", ``: "names no key", `$['a']`: "names no key", `$a['b'`: "has no end", `$a[b]`: "neither",
		`$a[-1]`: "neither", `$a['b']c`: "behind the last bracket", `$a[`: "neither", `$a[99999999999]`: "neither",
	} {
		if _, err := ParsePath(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if p, err := ParsePath("odd[key"); err != nil || p.Key() != "odd[key" || p.Nested() {
		t.Errorf("a plain key with a bracket: %v, %v", p, err)
	}
}

func TestTemplates(t *testing.T) {
	raw := body(t, `{"name":"abc-123","n":5,"f":1.5,"ss":{"s1":{"s2":"flb"}},"TAG":{"a":"field"}}`)
	found := [][]byte{[]byte("abc-123"), []byte("abc")}
	find := func(n int) []byte {
		if n < len(found) {
			return found[n]
		}
		return nil
	}
	for _, row := range []struct {
		text, want string
		all        bool
	}{
		{`newtag.$TAG.$TAG[1].$1.$ss['s1']['s2'].out.host`, "newtag.aa.bb.cc.bb.abc.flb.out.host", true},
		{`plain`, "plain", true},
		{``, "", true},
		{`$n,$f.$name`, "5,1.5.abc-123", true},
		{`$ss['s1']`, `{"s2":"flb"}`, true},
		{`a.$none.b`, "a..b", false},
		{`$TAG[3]`, "", false},
		{`$TAG['a']`, "field", true},
		{`$2`, "", false},
		{`cost $ 5 $`, "cost $ 5 $", true},
		{`x$name`, "xabc-123", true},
	} {
		parsed, err := ParseTemplate(row.text)
		if err != nil {
			t.Errorf("%s: %v", row.text, err)
			continue
		}
		if got, all := parsed.Append(nil, "aa.bb.cc", raw, find); string(got) != row.want || all != row.all {
			t.Errorf("%s: %q, %t", row.text, got, all)
		}
	}
	if _, err := ParseTemplate("a.$b[x].c"); err == nil || !strings.Contains(err.Error(), "a.$b[x].c") {
		t.Errorf("brackets that hold nothing: %v", err)
	}
	fixed, _ := ParseTemplate("a b")
	if text, ok := fixed.Fixed(); text != "a b" || !ok {
		t.Errorf("fixed: %q, %t", text, ok)
	}
}
