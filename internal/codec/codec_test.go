package codec

import (
	"reflect"
	"testing"
)

type value struct {
	raw       [2]byte
	kind      uint8
	a, b      bool
	n         uint16
	count     uint32
	at, until int64
	text      string
	list      []uint64
	named     map[string]string
	marked    bool
	rest      []byte
}

func (v *value) fields(f *Fields) {
	f.Raw(v.raw[:])
	Enum(f, &v.kind, 3)
	f.Bits(&v.a, &v.b)
	Uint(f, &v.n, 1000)
	f.Counters(&v.count)
	Int(f, &v.at)
	Since(f, &v.until, v.at)
	f.Text(&v.text)
	for i := range List(f, &v.list) {
		f.Uint64(&v.list[i])
	}
	f.Map(&v.named)
	f.Mark(&v.marked)
	f.Rest(&v.rest)
}

func TestOneListOfFieldsWritesAndReads(t *testing.T) {
	v := value{
		raw: [2]byte{1, 2}, kind: 2, b: true, n: 1000, count: 1<<32 - 1, at: -5, until: 7, text: "text",
		list: []uint64{1, 1<<64 - 1}, named: map[string]string{"b": "2", "a": "1"}, marked: true, rest: []byte("rest"),
	}
	f := Write([]byte("before"))
	v.fields(&f)
	const want = "before\x01\x02\x02\x02\xe8\x07\xff\xff\xff\xff\x0f\x09\x18\x04text\x02\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\x02\x01a\x011\x01b\x012rest"
	if string(f.Bytes()) != want {
		t.Errorf("written as %q", f.Bytes())
	}
	r, got := Read([]byte(want[6:])), value{}
	if got.fields(&r); !r.Whole() || !reflect.DeepEqual(got, v) {
		t.Errorf("read as %+v, %v", got, r)
	}
}

func TestWhatCannotBeIsRefused(t *testing.T) {
	var (
		kind  uint8
		is    bool
		n     uint16
		count uint32
		at    int64
		text  string
		list  []uint64
	)
	for name, c := range map[string]struct {
		stored string
		field  func(*Fields)
	}{
		"nothing for a byte":        {"", func(f *Fields) { Byte(f, &kind) }},
		"an enumeration at its end": {"\x03", func(f *Fields) { Enum(f, &kind, 3) }},
		"an unknown bit":            {"\x02", func(f *Fields) { f.Bits(&is) }},
		"a number above the most":   {"\x0b", func(f *Fields) { Uint(f, &n, 10) }},
		"a counter of 33 bits":      {"\x80\x80\x80\x80\x10", func(f *Fields) { f.Counters(&count) }},
		"half a number":             {"\x80", func(f *Fields) { Int(f, &at) }},
		"a text cut short":          {"\x03ab", func(f *Fields) { f.Text(&text) }},
		"a list that cannot fit":    {"\x03ab", func(f *Fields) { List(f, &list) }},
		"what its owner refuses":    {"", func(f *Fields) { f.Refuse(true) }},
		"an array cut short":        {"a", func(f *Fields) { f.Raw(make([]byte, 2)) }},
		"a byte that nobody reads":  {"a", func(*Fields) {}},
	} {
		f := Read([]byte(c.stored))
		if c.field(&f); f.Whole() || len(list) > 0 {
			t.Errorf("%s: %v", name, f)
		}
	}
	w := Write(nil)
	if w.Refuse(true); w.Bad() {
		t.Error("what is written was refused")
	}
}
