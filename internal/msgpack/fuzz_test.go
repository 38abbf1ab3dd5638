package msgpack

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"
)

// FuzzFromMsgpack: whatever is accepted becomes JSON that a strict reader
// takes, comes back as the same JSON, and means what another implementation
// reads in it.
func FuzzFromMsgpack(f *testing.F) {
	for _, seed := range []string{
		"c0", "82a16101a16291cb3ff0000000000000", "dd00000001a0", "81a161c40100", "d6ff00000000",
		"cf0020000000000001", "d38000000000000000", "ca3dcccccd", "a3eda080", "92a25c22a10a", "91dfffffffff",
	} {
		f.Add(unhex(f, seed))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		text, err := AppendJSON(nil, msg, 8*len(msg)+16)
		if err != nil {
			var named *Error
			if !errors.As(err, &named) {
				t.Fatalf("%x: an error without a name: %v", msg, err)
			}
			return
		}
		if !jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true)) {
			t.Fatalf("%x became %s, which is no JSON", msg, text)
		}
		packed, err := Append(nil, text)
		if err != nil {
			t.Fatalf("%s cannot be written: %v", text, err)
		}
		again, err := AppendJSON(nil, packed, 8*len(packed)+16)
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s came back as %s, %v", text, again, err)
		}
		was, _, err := msgp.ReadIntfBytes(msg)
		if err != nil {
			return // it reads less than we do: duplicate or very deep things
		}
		is, _, err := msgp.ReadIntfBytes(packed)
		if err != nil || plain(was) != plain(is) {
			t.Fatalf("%x means %s, and became %s, %v", msg, plain(was), plain(is), err)
		}
	})
}

// plain writes a value so that the width of its numbers does not matter, but
// whether they are whole does.
func plain(v any) string {
	switch v := v.(type) {
	case float32:
		return plain(float64(v))
	case float64:
		return fmt.Sprintf("float %b", v)
	case []any:
		text := "["
		for _, x := range v {
			text += plain(x) + ","
		}
		return text + "]"
	case map[string]any:
		sorted := map[string]string{}
		for name, x := range v {
			sorted[name] = plain(x)
		}
		return fmt.Sprint(sorted) // in the order of the names
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// FuzzToMsgpack: whatever a strict reader takes as JSON can be written, is
// read back, and is then as stable as it was valid. Nothing else does harm.
func FuzzToMsgpack(f *testing.F) {
	for _, seed := range []string{
		"null", `{"a":[1,2.0,-3e5,"x\"\\\u0000"]}`, "18446744073709551615", "-9223372036854775809", "[[[]],{}]",
		"1e999", "[1", `"\`, "{\"a\":1,\"a\":2}", " [ ] ", "[] []",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true))
		packed, err := Append(nil, text)
		if !valid {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		back, err := AppendJSON(nil, packed, 8*len(packed)+16)
		if err != nil {
			if bytes.ContainsAny(text, "eE") || len(text) > 300 { // a number beyond every float
				return
			}
			t.Fatalf("%s became %x, which cannot be read: %v", text, packed, err)
		}
		again, err := Append(nil, back)
		if err != nil || !bytes.Equal(again, packed) {
			t.Fatalf("%s became %x, then %s, then %x, %v", text, packed, back, again, err)
		}
		if same, _ := strictly(text); same != "" {
			if got, _ := strictly(back); got != same {
				t.Fatalf("%s became %s", text, back)
			}
		}
	})
}

// strictly is the canonical form of a text whose names are unique and whose
// whole numbers a double can hold; "" for others.
func strictly(text []byte) (string, error) {
	v := jsontext.Value(bytes.Clone(text))
	err := v.Canonicalize()
	if err != nil {
		return "", err
	}
	return string(v), nil
}
