package record

import "github.com/tinylib/msgp/msgp"

// Field is one member of a body: the text of its key and its raw value.
type Field struct {
	Key   []byte
	Value []byte

	odd []byte // the raw key, if that is no text
}

// Name is the text of the key; of a key that is no text it is what stands in JSON.
func (f Field) Name() string {
	if f.odd == nil {
		return string(f.Key)
	}
	quoted, _ := appendKey(nil, f.odd, 0, 0, false)
	return string(quoted[1 : len(quoted)-1])
}

// Body is a body that is changed: its fields in their order. The bytes of what
// is not changed stay where they were.
type Body []Field

// ParseBody reads a raw map into dst, whose fields are written over.
func ParseBody(dst Body, raw []byte) (Body, error) {
	dst = dst[:0]
	k, at, n := head(raw, 0)
	if k != kindMap {
		return dst, &Error{Text: errBody.Error()}
	}
	for range n {
		end, err := skip(raw, at)
		if err != nil {
			return dst, &Error{Offset: end, Text: err.Error()}
		}
		f := Field{odd: raw[at:end:end]}
		if text, ok := Text(f.odd); ok {
			f.Key, f.odd = text, nil
		}
		if at, err = skip(raw, end); err != nil {
			return dst, &Error{Offset: at, Text: err.Error()}
		}
		f.Value = raw[end:at:at]
		dst = append(dst, f)
	}
	if at < len(raw) {
		return dst, &Error{Offset: at, Text: errMore.Error()}
	}
	return dst, nil
}

// Append appends the body as a raw map.
func (b Body) Append(dst []byte) []byte {
	dst = msgp.AppendMapHeader(dst, uint32(len(b)))
	for i := range b {
		dst = append(b[i].AppendKey(dst), b[i].Value...)
	}
	return dst
}

// AppendKey appends the raw key.
func (f *Field) AppendKey(dst []byte) []byte {
	if f.odd != nil {
		return append(dst, f.odd...)
	}
	return msgp.AppendStringFromBytes(dst, f.Key)
}

// Index is the place of a key, of the last one if it stands twice, or -1.
func (b Body) Index(key string) int {
	for i := len(b) - 1; i >= 0; i-- {
		if string(b[i].Key) == key && b[i].odd == nil {
			return i
		}
	}
	return -1
}

// Set gives a key a raw value, in its place or at the end.
func (b Body) Set(key string, value []byte) Body {
	if i := b.Index(key); i >= 0 {
		b[i].Value = value
		return b
	}
	return append(b, Field{Key: []byte(key), Value: value})
}

// RemoveFunc takes the fields away that a function chooses.
func (b Body) RemoveFunc(chosen func(Field) bool) Body {
	kept := b[:0]
	for _, f := range b {
		if !chosen(f) {
			kept = append(kept, f)
		}
	}
	return kept
}

// Remove takes a key away, each time that it stands there.
func (b Body) Remove(key string) Body {
	if b.Index(key) < 0 {
		return b
	}
	return b.RemoveFunc(func(f Field) bool { return f.odd == nil && string(f.Key) == key })
}

// Rename gives a field another key and takes away what had that key before.
func (b Body) Rename(from, to string) Body {
	at := b.Index(from)
	if at < 0 || from == to {
		return b
	}
	kept := b[:0]
	for i, f := range b {
		if i == at {
			f.Key = []byte(to)
		} else if f.odd == nil && string(f.Key) == to {
			continue
		}
		kept = append(kept, f)
	}
	return kept
}
