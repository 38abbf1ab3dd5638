package filter

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprisehq/reprise/internal/parser"
	"github.com/reprisehq/reprise/internal/record"
)

// newChunk makes a chunk of bodies in JSON, one second after the other.
func newChunk(t testing.TB, bodies ...string) (chunk []byte) {
	t.Helper()
	for i, text := range bodies {
		body, err := record.AppendFromJSON(nil, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		chunk = record.AppendEvent(chunk, record.Time{Sec: int64(i)}, nil, body)
	}
	return chunk
}

// shown are the bodies of a chunk, one behind another.
func shown(t testing.TB, chunk []byte) string {
	t.Helper()
	out, _, err := record.NewJSONWriter(record.Stream, "", record.Double, false).AppendChunk(nil, chunk)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// run lets a filter look at bodies and returns those that are left.
func run(t testing.TB, f Filter, bodies ...string) (left string, out *Output) {
	t.Helper()
	out = &Output{}
	result, counts, err := Run(f, time.Unix(0, 0), "aa.bb.cc", newChunk(t, bodies...), out)
	if n, _, _ := record.Count(result); err != nil || counts.Records != len(bodies) || n != counts.Records-counts.Dropped+counts.Added {
		t.Fatalf("%d events are left, %+v, %v", n, counts, err)
	}
	return shown(t, result), out
}

// made is a filter that its constructor did not refuse.
func made(t testing.TB) func(Filter, error) Filter {
	t.Helper()
	return func(f Filter, err error) Filter {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

func refused(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}
}

// numbered does what the field "do" of an event says.
type numbered struct{}

func (numbered) Filter(in Input, out *Output) Verdict {
	b, err := record.ParseBody(nil, in.Body)
	if err != nil {
		return Keep
	}
	text, _ := record.Text(b[0].Value)
	switch string(text) {
	case "drop":
		out.Events = append(out.Events, "rest of something"...)
		return Dropped
	case "twice":
		out.Events = append(append(out.Events, in.Raw...), in.Raw...)
		return Changed
	case "none":
		return Changed
	case "broken":
		out.Events = append(out.Events, 0x92)
		return Changed
	}
	out.Events = append(out.Events, "rest of something"...)
	return Keep
}

func TestAChunkIsCopiedOnlyIfSomethingChanges(t *testing.T) {
	for _, row := range []struct {
		do, want string
		counts   Counts
	}{
		{"keep keep", "keep keep", Counts{2, 0, 0}},
		{"drop", "", Counts{1, 1, 0}},
		{"keep drop keep", "keep keep", Counts{3, 1, 0}},
		{"keep twice keep twice", "keep twice twice keep twice twice", Counts{4, 0, 2}},
		{"twice none drop", "twice twice", Counts{3, 2, 1}},
	} {
		var bodies []string
		for word := range strings.FieldsSeq(row.do) {
			bodies = append(bodies, `{"do":"`+word+`"}`)
		}
		chunk := newChunk(t, bodies...)
		before := bytes.Clone(chunk)
		out := &Output{Events: []byte("of another chunk")}
		result, counts, err := Run(numbered{}, time.Unix(0, 0), "t", chunk, out)
		if err != nil || counts != row.counts || !bytes.Equal(chunk, before) {
			t.Errorf("%s: %+v, %v", row.do, counts, err)
		}
		got := strings.TrimSpace(strings.NewReplacer(`{"do":"`, "", `"}`, " ").Replace(shown(t, result)))
		if same := len(result) > 0 && &result[0] == &chunk[0]; got != row.want || same != (row.do == row.want) {
			t.Errorf("%s: %s; the chunk itself: %t", row.do, got, same)
		}
	}
	if _, _, err := Run(numbered{}, time.Unix(0, 0), "t", newChunk(t, `{"do":"broken"}`), &Output{}); err == nil {
		t.Error("what is no event was passed on")
	}
	chunk := newChunk(t, `{"do":"keep"}`, `{"do":"drop"}`)
	result, counts, err := Run(numbered{}, time.Unix(0, 0), "t", append(chunk, 0xc1), &Output{})
	var broken *record.Error
	if !errors.As(err, &broken) || counts != (Counts{2, 1, 0}) || shown(t, result) != `{"do":"keep"}` {
		t.Errorf("behind a broken event: %s, %+v, %v", result, counts, err)
	}
}

func TestGrep(t *testing.T) {
	bodies := []string{`{"log":"aab","n":5,"k":{"app":"x y"}}`, `{"log":"bbb","n":15}`, `{"other":true}`}
	for _, row := range []struct{ rules, op, want string }{
		{"regex log aa", "", bodies[0]},
		{"regex log ^a|b$", "", bodies[0] + bodies[1]},
		{"exclude log aa", "legacy", bodies[1] + bodies[2]},
		{"regex $k['app'] ^x y$", "", bodies[0]},
		{"exclude $k['app'] x", "", bodies[1] + bodies[2]},
		{"regex n 5;regex log bbb", "", bodies[1]},
		{"exclude log aab;regex n 5", "", bodies[1]},
		{"regex log aa;regex n 15", "or", bodies[0] + bodies[1]},
		{"regex log b;regex n 15", "AND", bodies[1]},
		{"exclude log aa;exclude n 15", "or", bodies[2]},
		{"exclude log b;exclude n 15", "and", bodies[0] + bodies[2]},
		{"regex other true", "", bodies[2]},
		{"", "and", bodies[0] + bodies[1] + bodies[2]},
		{`regex log "a a|b b"`, "", ""},
	} {
		o := GrepOptions{LogicalOp: row.op}
		for rule := range strings.SplitSeq(row.rules, ";") {
			if kind, text, ok := strings.Cut(rule, " "); ok {
				o.Rules = append(o.Rules, GrepRule{kind == "exclude", text})
			}
		}
		if got, _ := run(t, made(t)(NewGrep(o)), bodies...); got != row.want {
			t.Errorf("%s %s: %s", row.op, row.rules, got)
		}
	}
	_, err := NewGrep(GrepOptions{Rules: []GrepRule{{false, "log"}, {true, "$a[ x"}, {true, "a ("}}, LogicalOp: "xor"})
	refused(t, err, "filter grep", `regex "log" is not: key value`, "$a[", "(", `"xor"`)
	_, err = NewGrep(GrepOptions{Rules: []GrepRule{{false, "a b"}, {true, "a c"}}, LogicalOp: "and"})
	refused(t, err, "use two filters")
}

func TestModify(t *testing.T) {
	const in = `{"Key1":"Value1","Key2":2,"Mem.a":1,"Mem.b":2}`
	for _, row := range []struct{ rules, conditions, want string }{
		{"Rename Key2 RenamedKey;Add OtherKey Value3;Add Key1 x", "", `{"Key1":"Value1","RenamedKey":2,"Mem.a":1,"Mem.b":2,"OtherKey":"Value3"}`},
		{`set Key1 "a b"`, "", `{"Key1":"a b","Key2":2,"Mem.a":1,"Mem.b":2}`},
		{"set new several words", "", `{"Key1":"Value1","Key2":2,"Mem.a":1,"Mem.b":2,"new":"several words"}`},
		{"remove Key1;remove none", "", `{"Key2":2,"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard Mem;Remove_Wildcard Key2*", "", `{"Key1":"Value1"}`},
		{`remove_regex ^Mem\.`, "", `{"Key1":"Value1","Key2":2}`},
		{"rename Key1 Key2;rename none x", "", in},
		{"hard_rename Key1 Key2", "", `{"Key2":"Value1","Mem.a":1,"Mem.b":2}`},
		{"copy Key1 k;copy Key1 Key2;copy none x", "", `{"Key1":"Value1","Key2":2,"Mem.a":1,"Mem.b":2,"k":"Value1"}`},
		{"hard_copy Key1 Key2", "", `{"Key1":"Value1","Key2":"Value1","Mem.a":1,"Mem.b":2}`},
		{"move_to_start Mem", "", `{"Mem.a":1,"Mem.b":2,"Key1":"Value1","Key2":2}`},
		{"move_to_end Key*", "", `{"Mem.a":1,"Mem.b":2,"Key1":"Value1","Key2":2}`},
		{"set x 1;rename x y;set x 2", "Key_Exists Key1", `{"Key1":"Value1","Key2":2,"Mem.a":1,"Mem.b":2,"y":"1","x":"2"}`},
		{"remove Key1", "Key_exists none", in},
		{"remove Key1", "Key_exists Key1;Key_exists none", in},
		{"remove_wildcard K", "Key_does_not_exist none", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "Key_does_not_exist Key1", in},
		{"remove_wildcard K", "A_key_matches ^Mem", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "A_key_matches ^em", in},
		{"remove_wildcard K", "No_key_matches ^em", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "No_key_matches ^Mem", in},
		{"remove_wildcard K", "Key_value_equals Key2 2", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "Key_value_equals Key1 Value", in},
		{"remove_wildcard K", "Key_value_does_not_equal Key1 Value", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "Key_value_does_not_equal none Value", in},
		{"remove_wildcard K", "Key_value_matches Key1 ^Val", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "Key_value_matches Key1 ^al", in},
		{"remove_wildcard K", "Key_value_does_not_match Key1 ^al", `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", "Key_value_does_not_match none ^al", in},
		{"remove_wildcard K", `Matching_keys_have_matching_values ^Mem ^\d$`, `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", `Matching_keys_have_matching_values ^Key ^\d$`, in},
		{"remove_wildcard K", `Matching_keys_do_not_have_matching_values ^Mem 3`, `{"Mem.a":1,"Mem.b":2}`},
		{"remove_wildcard K", `Matching_keys_do_not_have_matching_values ^Mem 2`, in},
	} {
		var o ModifyOptions
		for rule := range strings.SplitSeq(row.rules, ";") {
			kind, text, _ := strings.Cut(rule, " ")
			o.Rules = append(o.Rules, ModifyRule{kind, text})
		}
		if row.conditions != "" {
			o.Conditions = strings.Split(row.conditions, ";")
		}
		if got, _ := run(t, made(t)(NewModify(o)), in); got != row.want {
			t.Errorf("%s if %s: %s", row.rules, row.conditions, got)
		}
	}
	// A condition may look below the fields of the record.
	f := made(t)(NewModify(ModifyOptions{Rules: []ModifyRule{{"set", "x 1"}}, Conditions: []string{"Key_value_equals $a['b c'] d"}}))
	if got, _ := run(t, f, `{"a":{"b c":"d"}}`); got != `{"a":{"b c":"d"},"x":"1"}` {
		t.Errorf("an accessor: %s", got)
	}
	_, err := NewModify(ModifyOptions{Rules: []ModifyRule{{"set", "a"}, {"remove", " "}, {"swap", "a b"}, {"remove_regex", "("}}, Conditions: []string{"Key_is a", "A_key_matches", "Key_value_matches a", "Key_value_matches a ("}})
	refused(t, err, "filter modify", `set "a"`, "remove has no key", `"swap"`, "hard_rename", "(", `"key_is"`, "a_key_matches has no", `key_value_matches "a"`)
}

func TestRecordModifier(t *testing.T) {
	const in = `{"Mem.total":1,"Swap.total":2,"Swap.used":3}`
	for _, row := range []struct {
		o    RecordModifierOptions
		want string
	}{
		{RecordModifierOptions{Records: []string{"hostname a.b", `product "Awesome Tool"`}}, `{"Mem.total":1,"Swap.total":2,"Swap.used":3,"hostname":"a.b","product":"Awesome Tool"}`},
		{RecordModifierOptions{Records: []string{"Mem.total x"}}, `{"Mem.total":"x","Swap.total":2,"Swap.used":3}`},
		{RecordModifierOptions{RemoveKeys: []string{"Swap.total", "none"}}, `{"Mem.total":1,"Swap.used":3}`},
		{RecordModifierOptions{RemoveKeys: []string{"Swap.*"}}, `{"Mem.total":1}`},
		{RecordModifierOptions{AllowKeys: []string{"Mem.total", "Swap.u*"}}, `{"Mem.total":1,"Swap.used":3}`},
		{RecordModifierOptions{UUIDKey: "id", Random: bytes.NewReader(bytes.Repeat([]byte{0xff}, 16))}, `{"Mem.total":1,"Swap.total":2,"Swap.used":3,"id":"ffffffff-ffff-4fff-bfff-ffffffffffff"}`},
		{RecordModifierOptions{UUIDKey: "id", Random: bytes.NewReader(nil)}, in},
	} {
		if got, _ := run(t, made(t)(NewRecordModifier(row.o)), in); got != row.want {
			t.Errorf("%+v: %s", row.o, got)
		}
	}
	_, err := NewRecordModifier(RecordModifierOptions{Records: []string{"a"}, RemoveKeys: []string{"a"}, AllowKeys: []string{"b"}})
	refused(t, err, "filter record_modifier", `record "a"`, "exclude each other")
}

func TestParserFilter(t *testing.T) {
	p, err := parser.New(parser.Options{Name: "p", Format: "regex", Regex: `^(?<int>[^ ]+) (?<text>.+)$`, Types: "int:integer"})
	if err != nil {
		t.Fatal(err)
	}
	timed, err := parser.New(parser.Options{Name: "j", Format: "json", TimeFormat: "%s"})
	if err != nil {
		t.Fatal(err)
	}
	both := []*parser.Parser{timed, p}
	const in = `{"data":"100 some text","key1":"v","int":7}`
	for _, row := range []struct {
		o        ParserOptions
		in, want string
	}{
		{ParserOptions{KeyName: "data", Parsers: both}, in, `{"int":100,"text":"some text"}`},
		{ParserOptions{KeyName: "data", Parsers: both, ReserveData: true}, in, `{"int":100,"text":"some text","key1":"v"}`},
		{ParserOptions{KeyName: "data", Parsers: both, PreserveKey: true}, in, `{"int":100,"text":"some text","data":"100 some text"}`},
		{ParserOptions{KeyName: "data", Parsers: both, PreserveKey: true, ReserveData: true}, in, `{"int":100,"text":"some text","data":"100 some text","key1":"v"}`},
		{ParserOptions{KeyName: "data", Parsers: both}, `{"data":"x","a":1}`, `{"data":"x","a":1}`},
		{ParserOptions{KeyName: "data", Parsers: both}, `{"data":5}`, `{"data":5}`},
		{ParserOptions{KeyName: "data", Parsers: both}, `{"a":5}`, `{"a":5}`},
		{ParserOptions{KeyName: "$a['b']", Parsers: both, ReserveData: true}, `{"a":{"b":"1 x"}}`, `{"int":1,"text":"x","a":{"b":"1 x"}}`},
		{ParserOptions{KeyName: "data", Parsers: both}, `{"data":"{\\\"a\\\":1}"}`, `{"data":"{\\\"a\\\":1}"}`},
		{ParserOptions{KeyName: "data", Parsers: both, UnescapeKey: true}, `{"data":"{\\\"a\\\":1}"}`, `{"a":1}`},
	} {
		if got, _ := run(t, made(t)(NewParser(row.o)), row.in); got != row.want {
			t.Errorf("%+v of %s: %s", row.o, row.in, got)
		}
	}
	out := &Output{}
	result, _, err := Run(made(t)(NewParser(ParserOptions{KeyName: "data", Parsers: both})), time.Unix(0, 0), "t", newChunk(t, `{"data":"{\"time\":\"77\",\"a\":1}"}`), out)
	if r := record.NewReader(result); err != nil || !r.Next() || r.Time.Sec != 77 {
		t.Errorf("the time of the text: %v, %v", r.Time, err)
	}
	_, err = NewParser(ParserOptions{})
	refused(t, err, "filter parser", "key_name", "parser is missing")
}

func TestNest(t *testing.T) {
	for _, row := range []struct {
		o        NestOptions
		in, want string
	}{
		{NestOptions{Operation: "nest", Wildcards: []string{"Key*"}, NestUnder: "NestKey"}, `{"Key1":1,"Key2":2,"OtherKey":3}`, `{"OtherKey":3,"NestKey":{"Key1":1,"Key2":2}}`},
		{NestOptions{Operation: "nest", Wildcards: []string{"Mem.*", "x"}, NestUnder: "m", RemovePrefix: "Mem."}, `{"Mem.a":1,"x":2,"xx":3}`, `{"xx":3,"m":{"a":1,"x":2}}`},
		{NestOptions{Operation: "NEST", Wildcards: []string{"K*"}, NestUnder: "n", AddPrefix: "p_"}, `{"K":1}`, `{"n":{"p_K":1}}`},
		{NestOptions{Operation: "nest", Wildcards: []string{"none*"}, NestUnder: "n"}, `{"K":1}`, `{"K":1}`},
		{NestOptions{Operation: "lift", NestedUnder: "n"}, `{"n":{"a":1,"b":{}},"o":3}`, `{"o":3,"a":1,"b":{}}`},
		{NestOptions{Operation: "lift", NestedUnder: "n", AddPrefix: "n_", RemovePrefix: "x"}, `{"n":{"xa":1},"o":3}`, `{"o":3,"n_a":1}`},
		{NestOptions{Operation: "lift", NestedUnder: "n"}, `{"n":{"o":1},"o":3}`, `{"o":1}`},
		{NestOptions{Operation: "lift", NestedUnder: "n"}, `{"n":5}`, `{"n":5}`},
		{NestOptions{Operation: "lift", NestedUnder: "n"}, `{"m":{}}`, `{"m":{}}`},
	} {
		if got, _ := run(t, made(t)(NewNest(row.o)), row.in); got != row.want {
			t.Errorf("%+v: %s", row.o, got)
		}
	}
	for want, o := range map[string]NestOptions{`"fold"`: {Operation: "fold"}, "wildcard and nest_under": {Operation: "nest"}, "nested_under": {Operation: "lift"}} {
		_, err := NewNest(o)
		refused(t, err, "filter nest", want)
	}
}

func TestRewriteTag(t *testing.T) {
	const in = `{"name":"abc-123","ss":{"s1":{"s2":"flb"}},"n":5}`
	for _, row := range []struct{ rules, tag, left string }{
		{`$name ^([a-z]+)-([0-9]+)$ newtag.$TAG.$TAG[1].$1.$ss['s1']['s2'].out.host false`, "newtag.aa.bb.cc.bb.abc.flb.out.host", ""},
		{`$name abc copy.$0 true`, "copy.abc", in},
		{`$name xyz a false;$ss['s1']['s2'] f(x)?lb b$1 On`, "b", in},
		{`$n 5 a false`, "", in},
		{`$none . a false`, "", in},
		{`$name . $none false`, "", in}, // a tag of no bytes
		{`$name "abc-|a b" a.b false`, "a.b", ""},
		{`$name abc|d e  a.b  false`, "a.b", ""},
	} {
		f := made(t)(NewRewriteTag(RewriteTagOptions{Rules: strings.Split(row.rules, ";")}))
		left, out := run(t, f, in)
		tag := ""
		for _, again := range out.Again {
			if tag = again.Tag; shown(t, again.Event) != in {
				t.Errorf("%s: %s", row.rules, shown(t, again.Event))
			}
		}
		if tag != row.tag || left != row.left {
			t.Errorf("%s: tag %q, %s is left", row.rules, tag, left)
		}
	}
	for text, want := range map[string]string{"$a b c": "is not", "$a b c maybe": "neither true nor false", "$a ( c true": "(", "$a[ b c true": "$a[", "$a b $c[x] true": "$c[x]"} {
		_, err := NewRewriteTag(RewriteTagOptions{Rules: []string{text}})
		refused(t, err, "filter rewrite_tag", want)
	}
	_, err := NewRewriteTag(RewriteTagOptions{})
	refused(t, err, "rule is missing")
}

func TestThrottle(t *testing.T) {
	f := made(t)(NewThrottle(ThrottleOptions{Rate: 2, Window: 3}))
	now := time.Unix(1000, 0)
	pass := func(after time.Duration, tried int) (passed int) {
		now = now.Add(after)
		for range tried {
			if f.Filter(Input{Now: now}, &Output{}) == Keep {
				passed++
			}
		}
		return passed
	}
	for i, row := range []struct {
		after        time.Duration
		tried, wants int
	}{
		{0, 5, 2},           // the first second: 2
		{time.Second, 5, 2}, // two seconds: 4
		{time.Second, 1, 1},
		{time.Second / 2, 5, 1},
		{time.Second / 2, 9, 2},    // the first second's 2 are out of the window
		{time.Hour, 9, 6},          // nothing came for long: the whole window's worth
		{-30 * time.Second, 9, 0},  // a clock that goes back opens nothing
		{33*time.Second - 1, 9, 0}, // until the seconds of before are over
		{time.Second, 9, 6},
	} {
		if got := pass(row.after, row.tried); got != row.wants {
			t.Errorf("step %d: %d passed, want %d", i, got, row.wants)
		}
	}
	_, err := NewThrottle(ThrottleOptions{Window: -1, Interval: -1})
	refused(t, err, "filter throttle", "rate", "window", "interval")
}

func TestMultiline(t *testing.T) {
	var java, docker *parser.Multiline
	for _, o := range parser.BuiltInMultiline() {
		m, err := parser.NewMultiline(o)
		if err != nil {
			t.Fatal(err)
		}
		switch o.Name {
		case "java":
			java = m
		case "docker":
			docker = m
		}
	}
	bodies := []string{`{"log":"before","n":1}`, `{"log":"xError: a","n":2}`, `{"log":"\tat b","n":3}`, `{"x":1}`, `{"log":"yError: a\n"}`}
	f := made(t)(NewMultiline(MultilineOptions{Parsers: []*parser.Multiline{java}, KeyContent: "log"}))
	const want = `{"log":"before","n":1}{"log":"xError: a\n\tat b\n","n":2}{"x":1}{"log":"yError: a\n"}`
	if got, _ := run(t, f, bodies...); got != want {
		t.Error(got)
	}
	if got, _ := run(t, f); got != "" {
		t.Error(got)
	}
	f = made(t)(NewMultiline(MultilineOptions{Parsers: []*parser.Multiline{docker}}))
	if got, _ := run(t, f, `{"log":"a ","stream":"stdout"}`, `{"log":"x\n","stream":"stderr"}`, `{"log":"b\n","stream":"stdout"}`); got != `{"log":"x\n","stream":"stderr"}{"log":"a b\n","stream":"stdout"}` {
		t.Error(got)
	}
	// What is not joined keeps its metadata.
	chunk := record.AppendEvent(nil, record.Time{Sec: 1}, []byte("\x81\xa1m\x01"), []byte("\x81\xa1a\x01"))
	result, _, err := Run(f, time.Unix(0, 0), "t", chunk, &Output{})
	if err != nil || !bytes.Equal(result, chunk) {
		t.Errorf("%x, %v", result, err)
	}
	_, err = NewMultiline(MultilineOptions{Parsers: []*parser.Multiline{java}})
	refused(t, err, "filter multiline", "key_content")
	_, err = NewMultiline(MultilineOptions{})
	refused(t, err, "multiline.parser")
}

// FuzzFilters: whatever stands in a chunk, the filters write events.
func FuzzFilters(f *testing.F) {
	p, err := parser.New(parser.Options{Name: "j", Format: "json"})
	if err != nil {
		f.Fatal(err)
	}
	java, err := parser.NewMultiline(parser.BuiltInMultiline()[2])
	if err != nil {
		f.Fatal(err)
	}
	multiline := made(f)(NewMultiline(MultilineOptions{Parsers: []*parser.Multiline{java}, KeyContent: "a"}))
	filters := []Filter{
		made(f)(NewGrep(GrepOptions{Rules: []GrepRule{{false, "$a['b'][0] ."}}})),
		made(f)(NewModify(ModifyOptions{Rules: []ModifyRule{{"copy", "a b"}, {"hard_rename", "b c"}, {"remove_regex", "^d"}, {"move_to_start", "e"}}, Conditions: []string{"No_key_matches xxxx"}})),
		made(f)(NewRecordModifier(RecordModifierOptions{Records: []string{"x y"}, RemoveKeys: []string{"a*"}, UUIDKey: "id"})),
		made(f)(NewParser(ParserOptions{KeyName: "a", Parsers: []*parser.Parser{p}, ReserveData: true, UnescapeKey: true})),
		made(f)(NewNest(NestOptions{Operation: "nest", Wildcards: []string{"a*"}, NestUnder: "n"})),
		made(f)(NewNest(NestOptions{Operation: "lift", NestedUnder: "a", AddPrefix: "x"})),
		made(f)(NewRewriteTag(RewriteTagOptions{Rules: []string{"$a (.) $1.$b true"}})),
		script(f, "return 2, ts, record"),
		script(f, "return 2, ts, {record, {r = record}}"),
		multiline,
	}
	f.Add(newChunk(f, `{"a":"{\"x\":1}","b":[1]}`, `{"a":{"b":["x"],"c":{}},"e":null}`))
	f.Add([]byte("\x92\x01\x83\x01\x02\xa1a\xc4\x01\xff\xc0\x81\xa1a\xa1b"))
	f.Fuzz(func(t *testing.T, chunk []byte) {
		n, whole, _ := record.Count(chunk)
		for i, filter := range filters {
			out := &Output{}
			result, counts, _ := Run(filter, time.Unix(0, 0), "t", chunk[:whole], out)
			left, _, err := record.Count(result)
			if err != nil || counts.Records != n || left != n-counts.Dropped+counts.Added {
				t.Fatalf("filter %d: %x became %x, %+v, %v", i, chunk[:whole], result, counts, err)
			}
		}
	})
}

func BenchmarkFilters(b *testing.B) {
	bodies := make([]string, 100)
	for i := range bodies {
		bodies[i] = `{"log":"a line of some length as they are usual in logs","stream":"stdout","n":5}`
	}
	chunk := newChunk(b, bodies...)
	for name, f := range map[string]Filter{
		"grep":            made(b)(NewGrep(GrepOptions{Rules: []GrepRule{{false, "log usual"}}})),
		"modify":          made(b)(NewModify(ModifyOptions{Rules: []ModifyRule{{"set", "x y"}, {"rename", "log message"}}})),
		"record_modifier": made(b)(NewRecordModifier(RecordModifierOptions{Records: []string{"host a"}})),
		"throttle":        made(b)(NewThrottle(ThrottleOptions{Rate: 1e12})),
	} {
		b.Run(name, func(b *testing.B) {
			out := &Output{}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := Run(f, time.Unix(0, 0), "t", chunk, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/record")
		})
	}
}
