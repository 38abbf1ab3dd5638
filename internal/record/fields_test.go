package record

import (
	"testing"

	"github.com/tinylib/msgp/msgp"
)

func TestFieldsAreAddedToEveryEvent(t *testing.T) {
	at := Time{Sec: 1, Nsec: 2}
	one := body(t, `{"a":1}`)
	chunk := AppendEvent(nil, at, body(t, `{"m":1}`), one)
	chunk = append(AppendTime(append(chunk, pair), at), one...) // the old form
	fields := msgp.AppendString(msgp.AppendString(nil, "b"), "x")
	out, err := AppendFields([]byte("before"), chunk, fields, 1)
	if err != nil || string(out[:6]) != "before" {
		t.Fatalf("%q, %v", out, err)
	}
	r, n := NewReader(out[6:]), 0
	for ; r.Next(); n++ {
		if got := string(AppendJSON(nil, r.Body, false)); got != `{"a":1,"b":"x"}` || r.Time != at || (r.Meta == nil) != (n == 1) {
			t.Errorf("event %d is %s at %v with the metadata %x", n, got, r.Time, r.Meta)
		}
	}
	if r.Err() != nil || n != 2 {
		t.Fatalf("%d events, %v", n, r.Err())
	}
	if _, err := AppendFields(nil, append(chunk, 0xc1), fields, 1); err == nil {
		t.Fatal("broken events were taken")
	}
}
