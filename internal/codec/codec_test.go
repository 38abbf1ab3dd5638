package codec

import (
	"reflect"
	"sync"
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

// one calls a field twice, first to write and then to read what was written.
func one(t *testing.T, stored string, field func(*Fields)) {
	t.Helper()
	w := Write(nil)
	if field(&w); string(w.Bytes()) != stored || w.Reads() {
		t.Errorf("written as %q, want %q", w.Bytes(), stored)
	}
	r := Read([]byte(stored))
	if field(&r); !r.Whole() || !r.Reads() {
		t.Errorf("%q is read as %v", stored, r)
	}
}

func TestNumbersTakeAsManyBytesAsTheyNeed(t *testing.T) {
	for stored, n := range map[string]uint64{"\x00": 0, "\x7f": 127, "\x80\x01": 128, "\x81\x01": 129, "\xff\xff\x03": 65535} {
		one(t, stored, func(f *Fields) {
			v := n * uint64(bit(!f.Reads()))
			if Uint(f, &v, n); v != n {
				t.Errorf("%d is read as %d", n, v)
			}
		})
		one(t, stored+stored, func(f *Fields) {
			a, b := uint32(n)*uint32(bit(!f.Reads())), uint32(n)*uint32(bit(!f.Reads()))
			if f.Counters(&a, &b); a != uint32(n) || b != a {
				t.Errorf("the counters %d are read as %d and %d", n, a, b)
			}
		})
	}
	for stored, n := range map[string]int64{
		"\x00": 0, "\x01": -1, "\x7e": 63, "\x7f": -64, "\x80\x01": 64, "\x81\x01": -65,
		"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01": 1<<63 - 1, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01": -1 << 63,
	} {
		one(t, stored+stored, func(f *Fields) {
			a, b := n*int64(bit(!f.Reads())), n*int64(bit(!f.Reads()))
			if Int(f, &a, &b); a != n || b != n {
				t.Errorf("%d is read as %d and %d", n, a, b)
			}
		})
	}
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func TestPiecesAndWhatIsPointedTo(t *testing.T) {
	one(t, "\x05piece\x01", func(f *Fields) {
		var piece []byte
		var n *uint8
		if !f.Reads() {
			piece, n = []byte("piece"), new(uint8(1))
		}
		if f.Piece(&piece); string(piece) != "piece" {
			t.Errorf("read as %q", piece)
		}
		if Byte(f, New(f, &n)); *n != 1 {
			t.Errorf("read as %d", *n)
		}
	})
}

func TestAnEmptyListIsNilAndAMapIsNot(t *testing.T) {
	one(t, "\x00\x00", func(f *Fields) {
		var list []uint8
		m := map[string]string{}
		if List(f, &list); list != nil {
			t.Errorf("read as %v", list)
		}
		if f.Map(&m); m == nil {
			t.Error("read as no map")
		}
	})
	list := []uint8{1}
	f := Read([]byte("\x02\x07"))
	if List(&f, &list); !f.Bad() {
		t.Error("a list of two is in one byte")
	}
	var fits []uint8
	f = Read([]byte("\x01\x07"))
	for i := range List(&f, &fits) {
		Byte(&f, &fits[i])
	}
	if !f.Whole() || len(fits) != 1 || fits[0] != 7 {
		t.Errorf("read as %v", fits)
	}
}

func TestWhatIsWrittenIsNotChanged(t *testing.T) {
	v := value{at: 5, until: 7, named: map[string]string{"a": "1"}}
	same := v
	same.named = map[string]string{"a": "1"}
	var both sync.WaitGroup
	for range 2 { // the race detector sees also what would put the same there
		both.Go(func() {
			f := Write(nil)
			v.fields(&f)
		})
	}
	if both.Wait(); !reflect.DeepEqual(v, same) {
		t.Errorf("it became %+v", v)
	}
}

func TestOnceBadIsBadForGood(t *testing.T) {
	for name, field := range map[string]func(*Fields){
		"bits":     func(f *Fields) { f.Bits(new(bool)) },
		"a number": func(f *Fields) { Uint(f, new(uint16), 9) },
		"counters": func(f *Fields) { f.Counters(new(uint32)) },
		"a rule":   func(f *Fields) { f.Refuse(false) },
	} {
		f := Read([]byte("\x09\x01"))
		Enum(&f, new(uint8), 9)
		if field(&f); !f.Bad() {
			t.Errorf("%s made it good again", name)
		}
	}
	f, n := Read([]byte("1234567")), uint64(5)
	if f.Uint64(&n); !f.Bad() || n != 5 {
		t.Errorf("seven bytes are read as %d", n)
	}
}

func TestANumberThatIsNoneIsRefusedAndReadAsZero(t *testing.T) {
	for _, stored := range []string{"", "\x80", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"} {
		f, n := Read([]byte(stored)), int64(5)
		if Int(&f, &n); !f.Bad() || n != 0 {
			t.Errorf("%q is read as %d, %v", stored, n, f)
		}
	}
}
