package record

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The bodies of reference 6.4.
func TestBodiesOfTheOriginalHTTPOutput(t *testing.T) {
	var chunk []byte
	for sec := range int64(2) {
		chunk = AppendEvent(chunk, Time{Sec: sec + 1}, nil, body(t, `{"msg":"hello world"}`))
	}
	for layout, want := range map[Layout]string{
		Array:  `[{"date":1.0,"msg":"hello world"},{"date":2.0,"msg":"hello world"}]`,
		Stream: `{"date":1.0,"msg":"hello world"}{"date":2.0,"msg":"hello world"}`,
		Lines:  `{"date":1.0,"msg":"hello world"}` + "\n" + `{"date":2.0,"msg":"hello world"}` + "\n",
	} {
		got, n, err := NewJSONWriter(layout, "date", Double, true).AppendChunk(nil, chunk)
		if string(got) != want || n != 2 || err != nil {
			t.Errorf("%s: %s, %d, %v", layout, got, n, err)
		}
	}
}

func TestFormsOfTimes(t *testing.T) {
	for _, row := range []struct {
		form DateForm
		time Time
		want string
	}{
		{Double, Time{Sec: 1448403340, Nsec: 123456789}, `1448403340.123457`},
		{Double, Time{Sec: 1448403340, Nsec: 500000000}, `1448403340.5`},
		{Double, Time{Sec: 1448403340, Nsec: 1000}, `1448403340.000001`},
		{Double, Time{Sec: 1448403340}, `1448403340.0`},
		{Double, Time{Sec: 1448403340, Nsec: 999999999}, `1448403341.0`},
		{Double, Time{}, `0.0`},
		{Double, Time{Sec: 1, Nsec: 500000000}, `1.5`},
		{Double, Time{Sec: -1}, `-1.0`},
		{Epoch, Time{Sec: 1448403340, Nsec: 999999999}, `1448403340`},
		{EpochMillis, Time{Sec: 1448403340, Nsec: 5999999}, `1448403340005`},
		{ISO8601, Time{Sec: 1448403340, Nsec: 1234567}, `"2015-11-24T22:15:40.001234Z"`},
		{JavaSQL, Time{Sec: 1448403340, Nsec: 123456789}, `"2015-11-24 22:15:40.123456"`},
	} {
		e := Event{Time: row.time, Body: []byte{emptyMap}}
		if got := NewJSONWriter(Lines, "t", row.form, true).AppendRecord(nil, &e); string(got) != `{"t":`+row.want+`}` {
			t.Errorf("%s of %v: %s", row.form, row.time, got)
		}
	}
}

func TestRecordsAsObjects(t *testing.T) {
	for _, row := range []struct{ name, key, meta, body, want string }{
		{"without a date", "", `{}`, `{"a":1}`, `{"a":1}`},
		{"empty without a date", "", `{}`, `{}`, `{}`},
		{"empty with a date", "@ä", `{}`, `{}`, `{"@\u00e4":7.0}`},
		{"metadata", "date", `{"m":"x"}`, `{"a":1}`, `{"date":7.0,"__internal__":{"log_metadata":{"m":"x"}},"a":1}`},
		{"metadata alone", "", `{"m":1}`, `{}`, `{"__internal__":{"log_metadata":{"m":1}}}`},
	} {
		e := Event{Time: Time{Sec: 7}, Meta: body(t, row.meta), Body: body(t, row.body)}
		if got := NewJSONWriter(Lines, row.key, Double, true).AppendRecord(nil, &e); string(got) != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
}

// A second that is written stays right when the next record is of another one.
func TestTheTextOfASecondIsOfThatSecond(t *testing.T) {
	w := NewJSONWriter(Stream, "t", ISO8601, true)
	var chunk []byte
	for _, sec := range []int64{0, 0, 61, 60, 61} {
		chunk = AppendEvent(chunk, Time{Sec: sec}, nil, []byte{emptyMap})
	}
	got, _, _ := w.AppendChunk(nil, chunk)
	at := func(text string) string { return `{"t":"1970-01-01T00:` + text + `.000000Z"}` }
	if want := at("00:00") + at("00:00") + at("01:01") + at("01:00") + at("01:01"); string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestABrokenEventEndsTheChunk(t *testing.T) {
	chunk := append(AppendEvent(nil, Time{Sec: 1}, nil, body(t, `{"a":1}`)), 0x92, 0x01, 0xc1)
	got, n, err := NewJSONWriter(Array, "", Double, true).AppendChunk(nil, chunk)
	if string(got) != `[{"a":1}]` || n != 1 || err == nil {
		t.Errorf("%s, %d, %v", got, n, err)
	}
}

func TestEveryValueBecomesJSON(t *testing.T) {
	for _, row := range []struct{ name, raw, want string }{
		{"small numbers", "94 00 7f ff e0", `[0,127,-1,-32]`},
		{"unsigned", "94 ccff cdffff ceffffffff cfffffffffffffffff", `[255,65535,4294967295,18446744073709551615]`},
		{"signed", "94 d080 d18000 d280000000 d38000000000000000", `[-128,-32768,-2147483648,-9223372036854775808]`},
		{"floats without a fraction", "92 cb3ff0000000000000 ca40000000", `[1.0,2.0]`},
		{"16 digits", "91 cb3fd3333333333334", `[0.3]`},
		{"a third", "91 cb3fd5555555555555", `[0.3333333333333333]`},
		{"a large float", "91 cb43e158e460913d00", `[1e+19]`},
		{"a large whole float", "91 cb430c6bf526340000", `[1000000000000000.0]`},
		{"a small float", "91 cb3e7ad7f29abcaf48", `[1e-07]`},
		{"NaN and infinities", "93 cb7ff8000000000001 cb7ff0000000000000 cafff00000", `[null,null,null]`},
		{"words", "93 c0 c2 c3", `[null,false,true]`},
		{"binary", "92 c40161 c402ff41", `["a","\ufffdA"]`},
		{"EventTime", "91 d700 00000001 1dcd6500", `[1.5]`},
		{"other extensions", "92 d4017f c70305 0102ff", `["7f","0102ff"]`},
		{"keys that are no texts", "85 01 02 c40161 02 c0 03 91a178 04 80 05", `{"1":2,"a":2,"null":3,"91a178":4,"80":5}`},
		{"nothing", "", `null`},
		{"no value", "c1", `null`},
		{"cut short", "92 a161", `["a"]`},
		{"a member without a value", "81 a161", `{"a":null}`},
		{"a map cut short", "81 c0", `null`},
	} {
		if got := AppendJSON(nil, unhex(t, row.raw), true); string(got) != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
	}
}

func TestTexts(t *testing.T) {
	for _, row := range []struct{ name, text, escaped, kept string }{
		{"plain", "a line of more than eight bytes", `"a line of more than eight bytes"`, ``},
		{"what JSON escapes", "\"\\\b\f\n\r\t\x00\x1f\x7f/", `"\"\\\b\f\n\r\t\u0000\u001f` + "\x7f/\"", ``},
		{"beyond ASCII", "ä€😀", `"\u00e4\u20ac\ud83d\ude00"`, `"ä€😀"`},
		{"broken", "a\xffb\xc3", `"a\ufffdb\ufffd"`, `"a` + "\uFFFDb\uFFFD\""},
		{"a surrogate", "\xed\xa0\x80", `"\ufffd\ufffd\ufffd"`, "\"\uFFFD\uFFFD\uFFFD\""},
	} {
		if row.kept == "" {
			row.kept = row.escaped
		}
		escaped, kept := appendQuoted(nil, []byte(row.text), true), appendQuoted(nil, []byte(row.text), false)
		if string(escaped) != row.escaped || string(kept) != row.kept {
			t.Errorf("%s: %s and %s", row.name, escaped, kept)
		}
	}
}

// Each byte is found wherever it stands among the eight that are looked at once.
func TestSpecialBytesAreFoundEverywhere(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			text := []byte(strings.Repeat("a", 20))
			text[at] = byte(c)
			want := 20
			if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
				want = at
			}
			if got := plain(text); got != want {
				t.Fatalf("byte %#x at %d: %d", c, at, got)
			}
		}
	}
}

func TestDeepValuesEnd(t *testing.T) {
	deep := append([]byte(strings.Repeat("\x91", depthMax+5)), 0x01)
	got := string(AppendJSON(nil, deep, true))
	if want := strings.Repeat("[", depthMax) + "null" + strings.Repeat("]", depthMax); got != want {
		t.Errorf("%d bytes", len(got))
	}
}

func TestJSONIn(t *testing.T) {
	for in, want := range map[string]string{
		` {"a" : [1, -2, 1.5, true, null, "x\n"], "a":{}} `: `{"a":[1,-2,1.5,true,null,"x\n"],"a":{}}`,
		`{"n":18446744073709551615}`:                        `{"n":18446744073709551615}`,
		"{\"b\":\"\xff\"}":                                  `{"b":"` + "\uFFFD\"}",
		`{"s":"\ud800"}`:                                    `{"s":"` + "\uFFFD\"}",
		`7`:                                                 `7`,
	} {
		raw, err := AppendFromJSON([]byte("x"), []byte(in))
		if err != nil || raw[0] != 'x' {
			t.Errorf("%s: %v", in, err)
		} else if got := AppendJSON(nil, raw[1:], false); string(got) != want {
			t.Errorf("%s became %s", in, got)
		}
	}
	for _, in := range []string{``, `{`, `{"a":1}x`, `{} {}`, `a line`, `{"a":01}`, `{a:1}`, "{\"a\":\"\n\"}"} {
		if raw, err := AppendFromJSON([]byte("x"), []byte(in)); err == nil || string(raw) != "x" {
			t.Errorf("%q became %x", in, raw)
		}
	}
}

// FuzzChunk: any bytes are read to an end; what is whole becomes JSON, and comes
// back the same when it is taken apart and written again.
func FuzzChunk(f *testing.F) {
	f.Add(sample(f)[:400])
	f.Add(unhex(f, "9292d7000000000100000002818001810102"))
	f.Add(unhex(f, "92cb3ff800000000000082a161d9ff61a162df00000001"))
	f.Add(AppendEvent(nil, Time{Sec: -1, Nsec: 5}, nil, body(f, `{"a":{"b":[1,2.5,"é",null]},"a":1}`)))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		n, whole, err := Count(chunk)
		if (err == nil) != (whole == len(chunk)) {
			t.Fatalf("%d of %d bytes are whole: %v", whole, len(chunk), err)
		}
		for _, form := range []DateForm{Double, ISO8601} {
			out, written, _ := NewJSONWriter(Array, "date", form, form == Double).AppendChunk(nil, chunk)
			if written != n || !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Fatalf("%d of %d events became %s", written, n, out)
			}
		}
		path, err := ParsePath("$a['b'][0]")
		if err != nil {
			t.Fatal(err)
		}
		var again []byte
		for r := NewReader(chunk); r.Next(); {
			b, err := ParseBody(nil, r.Body)
			if err != nil {
				t.Fatalf("the body %x cannot be taken apart: %v", r.Body, err)
			}
			if string(path.Find(r.Body)) != string(path.FindIn(b)) {
				t.Fatalf("%s finds %x in %x, and %x when it is taken apart", path, path.Find(r.Body), r.Body, path.FindIn(b))
			}
			if got := AppendJSON(nil, b.Append(nil), true); string(got) != string(AppendJSON(nil, r.Body, true)) {
				t.Fatalf("the body %x became %s", r.Body, got)
			}
			again = AppendEvent(again, r.Time, r.Meta, r.Body)
		}
		if count, _, err := Count(again); count != n || err != nil {
			t.Fatalf("%d of %d events came back: %v", count, n, err)
		}
		AppendJSON(nil, chunk, true)
		if out := AppendJSON(nil, chunk, false); !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%x became %s", chunk, out)
		}
	})
}

// FuzzFromJSON: any text is refused, or is JSON again after a way there and back.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x\u00e9",null,true,{"b":{}}]}`))
	f.Add([]byte("{\"a\":\"\xff\",\"\xff\":\"\\ud800\"}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		raw, err := AppendFromJSON(nil, text)
		if err != nil {
			return
		}
		if rest, err := Skip(raw); err != nil || len(rest) > 0 {
			t.Fatalf("%s became %x, %v", text, raw, err)
		}
		if out := AppendJSON(nil, raw, true); !jsontext.Value(out).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%s came back as %s", text, out)
		}
	})
}

// FuzzPlaces: any accessor and template is refused, or finds something or nothing.
func FuzzPlaces(f *testing.F) {
	f.Add(`$a['b'][0]`, "x.y")
	f.Add(`a.$TAG[1].$0.$a['b'].`, "")
	raw := body(f, `{"a":{"b":[1,2]}}`)
	f.Fuzz(func(t *testing.T, text, tag string) {
		if p, err := ParsePath(text); err == nil {
			p.Find(raw)
		}
		if template, err := ParseTemplate(text); err == nil {
			template.Append(nil, tag, raw, nil)
		}
	})
}
