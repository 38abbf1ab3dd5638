package record

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func texts(t testing.TB, r io.Reader, most int) (list []string) {
	all := NewTexts(r, most)
	for {
		text, err := all.Next()
		switch {
		case errors.Is(err, io.EOF):
			return list
		case errors.Is(err, ErrJSON):
			list = append(list, "!")
		case errors.Is(err, ErrLong):
			list = append(list, "long")
		case err != nil:
			t.Fatal(err)
		default:
			list = append(list, string(text))
		}
	}
}

func TestTextsOneBehindAnother(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{" \n ", nil},
		{`{"a":1}{"b":2}` + "\n\n[3]\n", []string{`{"a":1}`, `{"b":2}`, `[3]`}},
		{"{\n\"a\":\n1}\n", []string{"{\n\"a\":\n1}"}},
		{"{\"a\"\n{\"b\":2}\n{\"c\":3}", []string{"!", `{"b":2}`, `{"c":3}`}},
		{"nonsense {}\n{\"b\":2}", []string{"!", `{"b":2}`}},
		{`{"a":1} {"b":`, []string{`{"a":1}`, "!"}},
		{`{"a":` + strings.Repeat("1", 100) + "}", []string{"long"}},
		{`{"a":` + strings.Repeat("1", 200) + "}\n8", []string{"long", "8"}},
		{"x" + strings.Repeat("y", 10000) + "\n7", []string{"!", "7"}},
	} {
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(test.in), "by bytes": iotest.OneByteReader(strings.NewReader(test.in))} {
			if got := texts(t, r, 64); !slices.Equal(got, test.want) {
				t.Errorf("%q %s is %q, want %q", test.in, name, got, test.want)
			}
		}
	}
}

func FuzzTexts(f *testing.F) {
	f.Add(`{"a":1} [2] x` + "\n3")
	f.Fuzz(func(t *testing.T, in string) {
		whole, bytewise := texts(t, strings.NewReader(in), 1<<20), texts(t, iotest.OneByteReader(strings.NewReader(in)), 1<<20)
		if !slices.Equal(whole, bytewise) {
			t.Fatalf("%q is %q whole and %q by bytes", in, whole, bytewise)
		}
	})
}

func TestEventsOfJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":1}`:                  `{"date":7.0,"a":1}`,
		`[3,{"a":1}]`:              `{"date":3.0,"a":1}`,
		`[3.5,{}]`:                 `{"date":3.5}`,
		`[[3,{"m":true}],{"a":1}]`: `{"date":3.0,"__internal__":{"log_metadata":{"m":true}},"a":1}`,
		`[[3,{}],{"a":1}] `:        `{"date":3.0,"a":1}`,
		`[3,{"a":1},4]`:            "",
		`[]`:                       "",
		`["3",{}]`:                 "",
		`[{"a":1},{"a":1}]`:        "",
		`"text"`:                   "",
		`{"a":`:                    "",
	} {
		out, err := AppendEventFromJSON([]byte("before"), Time{Sec: 7}, []byte(in))
		if string(out[:6]) != "before" || (err == nil) != (want != "") || err != nil && len(out) != 6 {
			t.Errorf("%s: %q, %v", in, out, err)
			continue
		}
		if got, _, _ := NewJSONWriter(Stream, "date", Double, false).AppendChunk(nil, out[6:]); string(got) != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
