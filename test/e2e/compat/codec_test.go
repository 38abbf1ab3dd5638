package compat

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

// A value is what encoding/json makes of a text, with numbers as json.Number:
// a whole number has digits only, a float has a point or an exponent.

// value reads JSON text.
func value(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// text writes a value so that equal values are equal texts.
func text(v any) string {
	switch v := v.(type) {
	case map[string]any:
		sorted := map[string]string{}
		for name, member := range v {
			sorted[strconv.Quote(name)] = text(member)
		}
		return fmt.Sprint(sorted)
	case []any:
		list := make([]string, len(v))
		for i := range v {
			list[i] = text(v[i])
		}
		return "[" + strings.Join(list, ", ") + "]"
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			return fmt.Sprintf("float(%v)", f)
		}
		return string(v)
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// pack writes a value as MessagePack.
func pack(t testing.TB, b []byte, v any) []byte {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		b = msgp.AppendMapHeader(b, uint32(len(v)))
		for name, member := range v {
			b = pack(t, msgp.AppendString(b, name), member)
		}
		return b
	case []any:
		b = msgp.AppendArrayHeader(b, uint32(len(v)))
		for _, member := range v {
			b = pack(t, b, member)
		}
		return b
	case json.Number:
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return msgp.AppendUint64(b, n)
		}
		if n, err := v.Int64(); err == nil {
			return msgp.AppendInt64(b, n)
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return msgp.AppendFloat64(b, f)
	}
	b, err := msgp.AppendIntf(b, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unpack reads a value from MessagePack.
func unpack(t testing.TB, b []byte) any {
	t.Helper()
	v, rest, err := msgp.ReadIntfBytes(b)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%x is no MessagePack: %v, %d bytes too many", b, err, len(rest))
	}
	return plain(v)
}

// plain makes numbers of any width a json.Number.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name])
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case float64:
		f := strconv.FormatFloat(v, 'g', -1, 64)
		if v == math.Trunc(v) && !strings.Contains(f, "e") {
			f += ".0"
		}
		return json.Number(f)
	case int64, uint64, int8, uint8, int16, uint16, int32, uint32, int, uint:
		return json.Number(fmt.Sprint(v))
	}
	return v
}
