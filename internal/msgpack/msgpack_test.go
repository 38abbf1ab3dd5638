package msgpack

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// unhex reads bytes as the format's specification writes them.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Every form of the format, byte by byte, so that the table stands beside the
// specification and not beside a library.
func TestEveryFormIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"c0": "null", "c2": "false", "c3": "true",
		"00": "0", "7f": "127", "e0": "-32", "ff": "-1",
		"cc ff": "255", "cd ffff": "65535", "ce ffffffff": "4294967295",
		"cf ffffffffffffffff": "18446744073709551615", "cf 0020000000000001": "9007199254740993",
		"d0 80": "-128", "d1 8000": "-32768", "d2 80000000": "-2147483648",
		"d3 8000000000000000": "-9223372036854775808", "d3 0020000000000001": "9007199254740993",
		"ca 3fc00000": "1.5", "ca 3dcccccd": "0.10000000149011612", "cb 3ff0000000000000": "1.0",
		"cb 8000000000000000": "-0.0", "cb 7e37e43c8800759c": "1e+300", "cb 4340000000000001": "9007199254740994.0",
		"a0": `""`, "a3 61 0062": "\"a\\u0000b\"", "d9 02 c3a9": `"é"`, "da 0001 22": `"\""`, "db 00000001 5c": `"\\"`,
		"90": "[]", "92 01 90": "[1,[]]", "dc 0001 c0": "[null]", "dd 00000001 c3": "[true]",
		"80": "{}", "82 a1 61 01 a1 62 91 80": `{"a":1,"b":[{}]}`, "de 0001 a0 c0": `{"":null}`, "df 00000001 a1 78 c2": `{"x":false}`,
		"82 a1 61 01 a1 61 02": `{"a":1,"a":2}`, // kept, for whoever reads it to judge
	} {
		got, err := AppendJSON([]byte("before "), unhex(t, text), 1000)
		if string(got) != "before "+want || err != nil {
			t.Errorf("% s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

func TestWhatJSONCannotSayIsRefusedWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "it ends early",
		"c1":                                "the byte 0xc1 begins no value",
		"c0 c0":                             "there is more after the first value",
		"81 a7 7061796c6f6164 c4 01 00":     "payload: binary data (bin) is not allowed here",
		"81 a1 6a 92 80 81 a1 70 91 c4 00":  "j[1].p[0]: binary data",
		"d6 ff 00000000":                    "extension types, such as timestamps",
		"c7 00 01":                          "extension types",
		"d4":                                "extension types",
		"91 c1":                             "[0]: the byte 0xc1",
		"81 01 02":                          "a map has a key that is no string",
		"81 c4 01 61 02":                    "a map has a key that is no string",
		"81":                                "it ends early",
		"81 a1 61":                          "it ends early",
		"dd ffffffff":                       "it ends early: a map or an array is longer",
		"df ffffffff a1 61":                 "it ends early: a map or an array is longer",
		"db ffffffff 61":                    "it ends early",
		"cf 00":                             "it ends early",
		"a2 61":                             "it ends early",
		"a1 ff":                             "a string is not UTF-8",
		"a3 eda080":                         "a string is not UTF-8", // half a surrogate pair
		"81 a1 ff c0":                       "a string is not UTF-8",
		"cb 7ff8000000000001":               "NaN or infinite",
		"cb fff0000000000000":               "NaN or infinite",
		"ca 7f800000":                       "NaN or infinite",
		"81 a1 61 91 cb 7ff0000000000000":   "a[0]: a number is NaN or infinite",
		strings.Repeat("91", 10_001) + "c0": "values are nested deeper than 10000",
	} {
		_, err := AppendJSON(nil, unhex(t, text), 1<<20)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 300 {
			t.Errorf("%.40s: got %v, want %s", text, err, want)
		}
	}
}

func TestTheSizeIsBounded(t *testing.T) {
	control := append([]byte{0xd9, 100}, make([]byte, 100)...) // six bytes of JSON each
	if _, err := AppendJSON(nil, control, 601); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one byte too many: %v", err)
	}
	if got, err := AppendJSON([]byte("x"), control, 602); err != nil || len(got) != 603 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// A claim costs nothing: four billion entries in five bytes.
	if n := testing.AllocsPerRun(100, func() { _, _ = AppendJSON(nil, []byte{0xdd, 0xff, 0xff, 0xff, 0xff}, 1<<30) }); n > 4 {
		t.Errorf("a false claim costs %.0f allocations", n)
	}
}

func TestJSONIsWrittenInTheShortestForm(t *testing.T) {
	for text, want := range map[string]string{
		" null ": "c0", "true": "c3", "false": "c2",
		"0": "00", "-0": "00", "127": "7f", "128": "cc80", "255": "ccff", "256": "cd0100", "65536": "ce00010000",
		"4294967296": "cf0000000100000000", "9007199254740993": "cf0020000000000001", "18446744073709551615": "cfffffffffffffffff",
		"-1": "ff", "-32": "e0", "-33": "d0df", "-129": "d1ff7f", "-9223372036854775808": "d38000000000000000",
		"1.0": "cb3ff0000000000000", "1e2": "cb4059000000000000", "-0.0": "cb8000000000000000", "1E300": "cb7e37e43c8800759c",
		// What MessagePack cannot hold becomes the nearest float.
		"18446744073709551616": "cb43f0000000000000", "-9223372036854775809": "cbc3e0000000000000", "1e999": "cb7ff0000000000000",
		`""`: "a0", `"é"`: "a2c3a9", `"\u0000\n\"\\"`: "a4000a225c", `"\\"`: "a15c", `"\\\""`: "a25c22",
		`"` + strings.Repeat("x", 32) + `"`: "d920" + strings.Repeat("78", 32),
		"[]":                                "90", "[ 1 , [ ] ]": "920190", "{}": "80",
		`{ "a" : 1 , "b" : [ { } ] }`: "82a16101a1629180", `{"a":1,"a":2}`: "82a16101a16102",
		"[" + strings.Repeat("1,", 14) + "1]":                           "9f" + strings.Repeat("01", 15),
		"[" + strings.Repeat("[],", 15) + "[]]":                         "dc0010" + strings.Repeat("90", 16),
		"{" + strings.Repeat(`"a":{},`, 15) + `"a":{}}`:                 "de0010" + strings.Repeat("a16180", 16),
		"[" + strings.Repeat("1,", 65535) + "1]":                        "dd00010000" + strings.Repeat("01", 65536),
		strings.Repeat("[", 20_000) + "1" + strings.Repeat("]", 20_000): strings.Repeat("91", 20_000) + "01",
	} {
		got, err := Append([]byte("before"), []byte(text))
		if want = "6265666f7265" + want; hex.EncodeToString(got) != want || err != nil {
			t.Errorf("%.60s: got %.80x, %v, want %.80s", text, got, err, want)
		}
	}
}

func TestMalformedJSONIsAnError(t *testing.T) {
	for _, text := range []string{"", " ", "[", "{", "]", "1 2", "[1]]", "[] []", "x", "-", `"`, `"\`, `"\x"`, "1.2.3"} {
		if got, err := Append(nil, []byte(text)); err == nil {
			t.Errorf("%q became %x", text, got)
		}
	}
}

// There and back, through a payload as the clients' suites send it.
func TestNumbersStayWhatTheyAre(t *testing.T) {
	const text = `{"exact":9007199254740993,"least":-9223372036854775808,"most":18446744073709551615,"one":1,` +
		`"float":1.0,"huge":1e+300,"tiny":5e-324,"third":0.3333333333333333,"zero":-0.0,"nested":[[{"x":[null,true,"ü\u0000"]}]]}`
	packed, err := Append(nil, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := AppendJSON(nil, packed, 1000); string(got) != text || err != nil {
		t.Errorf("got  %s, %v\nwant %s", got, err, text)
	}
	var m map[string]any // what another implementation reads
	if m, _, err = msgp.ReadMapStrIntfBytes(packed, nil); err != nil {
		t.Fatal(err)
	}
	if m["exact"] != uint64(1<<53+1) || m["least"] != int64(math.MinInt64) || m["most"] != uint64(math.MaxUint64) || m["float"] != 1.0 || m["huge"] != 1e300 {
		t.Errorf("read as %v", m)
	}
}

func BenchmarkAppend(b *testing.B) {
	text := []byte(`{"id":"03gq0x7k2m4v9c1d8f5h6j0a1","type":"welcome-mail","queue":"mail","priority":32768,"status":"ready",` +
		`"payload":{"to":"ada@example.org","n":[1,2,3]},"ready_at":1767225600000,"attempts":0}`)
	var out []byte
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		out, _ = Append(out[:0], text)
	}
	if !bytes.Contains(out, []byte("ada@example.org")) {
		b.Fatalf("%x", out)
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	packed, err := Append(nil, []byte(`{"type":"welcome-mail","queue":"mail","payload":{"to":"ada@example.org","n":[1,2,3]},"priority":100}`))
	if err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.SetBytes(int64(len(packed)))
	b.ReportAllocs()
	for b.Loop() {
		out, _ = AppendJSON(out[:0], packed, 1<<20)
	}
	if !bytes.Contains(out, []byte("ada@example.org")) {
		b.Fatalf("%s", out)
	}
}
