package filter

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tinylib/msgp/msgp"
	lua "github.com/yuin/gopher-lua"

	"github.com/reprisehq/reprise/internal/record"
)

const (
	luaDepthMax       = 100     // of nested values
	luaRecordBytesMax = 8 << 20 // that a script returns
)

// toLua is a raw value as scripts get it. Binary data and extensions are texts,
// and so are all keys.
func (f *luaFilter) toLua(raw []byte, depth int) lua.LValue {
	if depth > luaDepthMax || len(raw) == 0 {
		return lua.LNil
	}
	switch msgp.NextType(raw) {
	case msgp.MapType:
		table := f.state.NewTable()
		body, err := record.ParseBody(nil, raw)
		if err != nil {
			return lua.LNil
		}
		for _, field := range body {
			table.RawSetString(field.Name(), f.toLua(field.Value, depth+1))
		}
		return table
	case msgp.ArrayType:
		table := f.state.NewTable()
		n, rest, _ := msgp.ReadArrayHeaderBytes(raw)
		for range n {
			next, err := record.Skip(rest)
			if err != nil {
				break
			}
			table.Append(f.toLua(rest[:len(rest)-len(next)], depth+1))
			rest = next
		}
		return table
	case msgp.IntType:
		n, _, _ := msgp.ReadInt64Bytes(raw)
		return lua.LNumber(n)
	case msgp.UintType:
		n, _, _ := msgp.ReadUint64Bytes(raw)
		return lua.LNumber(n)
	case msgp.Float32Type:
		n, _, _ := msgp.ReadFloat32Bytes(raw)
		return lua.LNumber(n)
	case msgp.Float64Type:
		n, _, _ := msgp.ReadFloat64Bytes(raw)
		return lua.LNumber(n)
	case msgp.BoolType:
		b, _, _ := msgp.ReadBoolBytes(raw)
		return lua.LBool(b)
	case msgp.NilType:
		return f.null
	default:
		return lua.LString(record.AppendPlain(nil, raw))
	}
}

// luaWriter writes what a script returned. What is equal to what was there
// before stays what it was: a float that is whole, a large number, binary data.
type luaWriter struct {
	f *luaFilter
	s *scratch
}

// events writes the record, or each of several. Several have metadata of their
// own if the script returned as many.
func (w *luaWriter) events(out *Output, t record.Time, meta, was []byte, table *lua.LTable, metas lua.LValue) (Verdict, error) {
	records := []*lua.LTable{table}
	if table.Len() > 0 {
		records = records[:0]
		for i := 1; i <= table.Len(); i++ {
			one, ok := table.RawGetInt(i).(*lua.LTable)
			if !ok {
				return Keep, fmt.Errorf("record %d of those that it returns is no table", i)
			}
			records = append(records, one)
		}
	}
	before := len(out.Events)
	for i, one := range records {
		own := metas
		if list, ok := metas.(*lua.LTable); ok && list.Len() == len(records) {
			own = list.RawGetInt(i + 1)
		}
		raw, err := w.fields(nil, one, was, 0)
		if err == nil && own != lua.LNil {
			if list, ok := own.(*lua.LTable); ok {
				meta, err = w.fields(nil, list, meta, 0)
			}
		}
		if err == nil && len(out.Events)-before+len(raw) > luaRecordBytesMax {
			err = fmt.Errorf("it returns records of more than %d bytes", luaRecordBytesMax)
		}
		if err != nil {
			out.Events = out.Events[:before]
			return Keep, err
		}
		out.Events = record.AppendEvent(out.Events, t, meta, raw)
	}
	return Changed, nil
}

// fields appends a table as a map: the keys that were there before in their
// order, then the new ones.
func (w *luaWriter) fields(dst []byte, table *lua.LTable, was []byte, depth int) ([]byte, error) {
	var before record.Body
	if record.IsMap(was) {
		before, _ = record.ParseBody(nil, was)
	}
	n := uint32(0)
	at := len(dst)
	dst = append(dst, 0xdf, 0, 0, 0, 0)
	write := func(key string, value lua.LValue, raw []byte) (err error) {
		if value == lua.LNil {
			return nil
		}
		n++
		dst = msgp.AppendString(dst, key)
		dst, err = w.value(dst, key, value, raw, depth+1)
		return err
	}
	done := map[string]bool{}
	for _, field := range before {
		key, raw := field.Name(), field.Value
		if i := before.Index(key); i >= 0 { // the last one, of a key that stands there twice
			raw = before[i].Value
		}
		if !done[key] {
			done[key] = true
			if err := write(key, table.RawGetString(key), raw); err != nil {
				return dst, err
			}
		}
	}
	for k, v := table.Next(lua.LNil); k != lua.LNil; k, v = table.Next(k) {
		if key := k.String(); !done[key] {
			done[key] = true
			if err := write(key, v, nil); err != nil {
				return dst, err
			}
		}
	}
	copy(dst[at+1:], []byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
	return dst, nil
}

var errLuaDeep = errors.New("it returns a record that is too large, or goes round in itself")

// value appends a value; was is what stood at its place before, or nil.
func (w *luaWriter) value(dst []byte, key string, value lua.LValue, was []byte, depth int) ([]byte, error) {
	if depth > luaDepthMax || len(dst) > luaRecordBytesMax {
		return dst, errLuaDeep
	}
	table, isTable := value.(*lua.LTable)
	if !isTable && was != nil && w.f.toLua(was, 0) == value && !slices.Contains(w.f.o.TypeIntKeys, key) {
		return append(dst, was...), nil
	}
	switch value := value.(type) {
	case lua.LBool:
		return msgp.AppendBool(dst, bool(value)), nil
	case lua.LNumber:
		return appendLuaNumber(dst, float64(value), slices.Contains(w.f.o.TypeIntKeys, key)), nil
	case lua.LString:
		return msgp.AppendString(dst, string(value)), nil
	case *lua.LTable:
		n := table.Len()
		isArray := n > 0 || slices.Contains(w.f.o.TypeArrayKeys, key) || msgp.NextType(was) == msgp.ArrayType && isEmpty(table)
		if !isArray {
			return w.fields(dst, table, was, depth)
		}
		var err error
		dst = msgp.AppendArrayHeader(dst, uint32(n))
		for i := 1; i <= n && err == nil; i++ {
			dst, err = w.value(dst, "", table.RawGetInt(i), nil, depth+1)
		}
		return dst, err
	}
	return msgp.AppendNil(dst), nil // flb_null, or what cannot be written, such as a function
}

func isEmpty(table *lua.LTable) bool {
	k, _ := table.Next(lua.LNil)
	return k == lua.LNil
}

// appendLuaNumber appends a whole number as one, as far as a float counts them.
func appendLuaNumber(dst []byte, f float64, cut bool) []byte {
	if cut {
		f = math.Trunc(f)
	}
	if f == math.Trunc(f) && math.Abs(f) <= 1<<53 {
		return msgp.AppendInt64(dst, int64(f))
	}
	return msgp.AppendFloat64(dst, f)
}
