package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/record"
)

// script makes a filter of the body of a function f(tag, ts, record).
func script(t testing.TB, body string) Filter {
	t.Helper()
	return made(t)(NewLua(LuaOptions{Source: "function f(tag, ts, record)\n" + body + "\nend", Call: "f"}))
}

func TestLua(t *testing.T) {
	const in = `{"a":1,"f":1.0,"big":9007199254740993,"n":null,"m":{"y":[1,2],"x":"é"},"e":[],"s":"5"}`
	for _, row := range []struct{ name, body, want string }{
		{"keep", `return 0, ts, record`, in},
		{"drop", `return -1, ts, record`, ""},
		{"change", `record.a = record.a + 1 record["tag"] = tag return 2, ts, record`, `{"a":2,"f":1.0,"big":9007199254740993,"m":{"y":[1,2],"x":"é"},"e":[],"s":"5","tag":"aa.bb.cc"}`},
		{"a new record", `return 1, ts, {x = 1.5, y = {1, "two", {}}, z = {k = true}}`, `{"x":1.5,"y":[1,"two",{}],"z":{"k":true}}`},
		{"remove", `record.a = nil record.m = nil record.big = nil return 2, ts, record`, `{"f":1.0,"e":[],"s":"5"}`},
		{"split", `return 2, ts, {{a = 1}, {b = 2}}`, `{"a":1}{"b":2}`},
		{
			"texts", `return 2, ts, {x = ("a" .. 1 .. "b"):upper(), g = string.gsub("a-b", "%-", "+"), h = string.gsub("ab", "(%a)", "<%1>"),
			i = string.gsub("ab", "%a", {a = "1"}), j = string.gsub("ab", "%a", function(c) return c .. c end), r = string.rep("x", 3), c = table.concat({"a", "b"}, ","), d = string.format("%03d %s", 7, "x")}`,
			`{"x":"A1B","g":"a+b","h":"<a><b>","i":"1b","j":"aabb","r":"xxx","c":"a,b","d":"007 x"}`,
		},
		{"no libraries that reach out", `return 2, ts, {x = (io == nil and os.execute == nil and os.exit == nil and require == nil and loadstring == nil and os.time() > 0)}`, `{"x":true}`},
	} {
		left, out := run(t, script(t, row.body), in)
		if left != row.want || out.Trouble != nil {
			t.Errorf("%s: %s, %v", row.name, left, out.Trouble)
		}
	}
}

func TestLuaWritesWhatTheSettingsSay(t *testing.T) {
	f := made(t)(NewLua(LuaOptions{
		Source: `function f(tag, ts, record) print("n", record.n) record.i = 5.7 record.l = {} record.x = flb_null return 2, ts, record end`,
		Call:   "f", TypeIntKeys: []string{"i"}, TypeArrayKeys: []string{"l"}, EnableNull: true,
	}))
	if got, _ := run(t, f, `{"n":null}`); got != `{"n":null,"i":5,"l":[],"x":null}` {
		t.Error(got)
	}
	var printed []string
	f = made(t)(NewLua(LuaOptions{Source: `print("loaded", 1, nil) function f() return 0 end`, Call: "f", Print: func(text string) { printed = append(printed, text) }}))
	if run(t, f, `{}`); len(printed) != 1 || printed[0] != "loaded\t1\tnil" {
		t.Errorf("%q", printed)
	}
}

func TestLuaGetsKeysAsTexts(t *testing.T) {
	chunk := record.AppendEvent(nil, record.Time{}, nil, []byte("\x83\x01\xa1a\xa1k\x05\xa1k\x06")) // {1: "a", "k": 5, "k": 6}
	result, _, err := Run(script(t, `return 2, ts, record`), time.Unix(0, 0), "t", chunk, &Output{})
	if got := shown(t, result); err != nil || got != `{"1":"a","k":6}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestLuaTimes(t *testing.T) {
	was := record.Time{Sec: 1448403340, Nsec: 123456789}
	for _, row := range []struct {
		body  string
		table bool
		want  record.Time
	}{
		{`return 1, ts, record`, false, was}, // with the digits a float has no room for
		{`return 1, ts + 1.5, record`, false, record.Time{Sec: 1448403341, Nsec: 623456717}},
		{`return 2, 7, record`, false, was},
		{`ts.sec = ts.sec + 1 return 1, ts, record`, true, record.Time{Sec: 1448403341, Nsec: 123456789}},
		{`return 1, {sec = 1, nsec = 2}, record`, false, record.Time{Sec: 1, Nsec: 2}},
	} {
		f := made(t)(NewLua(LuaOptions{Source: "function f(tag, ts, record) " + row.body + " end", Call: "f", TimeAsTable: row.table}))
		out := &Output{}
		result, _, err := Run(f, time.Unix(0, 0), "t", record.AppendEvent(nil, was, nil, []byte{0x81, 0xa1, 'a', 1}), out)
		r := record.NewReader(result)
		if r.Next(); err != nil || out.Trouble != nil || r.Time != row.want {
			t.Errorf("%s: %v, %v, %v", row.body, r.Time, err, out.Trouble)
		}
	}
}

func TestLuaWithMetadata(t *testing.T) {
	f := made(t)(NewLua(LuaOptions{Call: "f", Source: `function f(tag, ts, group, metadata, record)
		if record.two then return 1, ts, {{m = 1}, {m = 2}}, {{r = 1}, {r = 2}} end
		metadata.seen = metadata.old .. "!" return 1, ts, metadata, record end`}))
	meta := []byte("\x81\xa3old\xa1x")
	chunk := record.AppendEvent(nil, record.Time{Sec: 1}, meta, []byte("\x81\xa1a\x01"))
	chunk = record.AppendEvent(chunk, record.Time{Sec: 1}, meta, []byte("\x81\xa3two\x01"))
	out := &Output{}
	result, counts, err := Run(f, time.Unix(0, 0), "t", chunk, out)
	want := `{"__internal__":{"log_metadata":{"old":"x","seen":"x!"}},"a":1}{"__internal__":{"log_metadata":{"m":1}},"r":1}{"__internal__":{"log_metadata":{"m":2}},"r":2}`
	if got := shown(t, result); err != nil || out.Trouble != nil || counts.Added != 1 || got != want {
		t.Errorf("%s, %+v, %v, %v", got, counts, err, out.Trouble)
	}
}

// Whatever a script does wrong, the record stays, and the next call works.
func TestLuaThatFailsLeavesTheRecord(t *testing.T) {
	for _, row := range []struct{ body, trouble string }{
		{`error("no")`, "no"},
		{`local x = nil; return x.y`, "attempt to index"},
		{`return "x"`, "not the code"},
		{`return 7, ts, record`, "the code 7"},
		{`return 1, "x", record`, "the time"},
		{`return 1, 1/0, record`, "the time"},
		{`return 1, ts, 5`, "not a table"},
		{`return 2, ts, {{}, 5}`, "record 2"},
		{`return 2, ts, {5}`, "record 1"},
		{`while true do end`, "steps"},
		{`while true do pcall(function() while true do end end) end`, "steps"},
		{`local s = "xxxxxxxxxxxxxxxx" while true do s = s .. s end`, "bytes of text"},
		{`local s = ("x"):rep(1e9)`, "bytes of text"},
		{`local s = ("x"):rep(1e6):gsub("x", ("y"):rep(1e6))`, "bytes of text"},
		{`local s = ("x"):rep(1e6):gsub("(x)", ("%1"):rep(1e6))`, "bytes of text"},
		{`local t = {} for i = 1, 1000 do t[i] = ("x"):rep(1e4) end local u = {} for i = 1, 1000 do u[i] = table.concat(t) end`, "bytes of text"},
		{`return string.format("%999999999d", 5)`, "two digits"},
		{`return {} .. "x"`, "attempt to concatenate a table"},
		{`local function g() return 1 + g() end return g()`, "stack overflow"},
		{`local t = {} t.t = t return 2, ts, t`, "goes round"},
		{`local t = {"x"} for i = 1, 50 do t = {t, t} end return 2, ts, {r = t}`, "goes round"},
		{`return unpack({}, 1, 1e9)`, "registry overflow"},
		{`local s = ("x"):rep(1e6) local t = {} for i = 1, 20 do t[i] = {s = s} end return 2, ts, t`, "more than"},
	} {
		f := script(t, `if record.fail then return (function() `+row.body+` end)() end return 2, ts, {ok = true}`)
		left, out := run(t, f, `{"fail":1}`, `{}`)
		if out.Trouble == nil || !strings.Contains(out.Trouble.Error(), row.trouble) || left != `{"fail":1}{"ok":true}` {
			t.Errorf("%s: %v; %s", row.body, out.Trouble, left)
		}
	}
}

func TestLuaScriptsThatAreNoneAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		`function f(`: "x.lua", `error("at load")`: "at load", `g = 5`: `call "f"`, `while true do end`: "steps", `f = 5`: `call "f"`,
	} {
		_, err := NewLua(LuaOptions{Source: source, Name: "x.lua", Call: "f"})
		refused(t, err, "filter lua", want)
	}
}

func BenchmarkLua(b *testing.B) {
	f := script(b, `record.host = "web-" .. record.n return 2, ts, record`)
	chunk := newChunk(b, `{"log":"a line of some length as they are usual in logs","stream":"stdout","n":5}`)
	out := &Output{}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Run(f, time.Unix(0, 0), "t", chunk, out); err != nil || out.Trouble != nil {
			b.Fatal(err, out.Trouble)
		}
	}
}
