package record

import "github.com/tinylib/msgp/msgp"

// AppendFields appends the events of a chunk with n more fields, raw keys and values, at
// the end of each body.
func AppendFields(dst, chunk, fields []byte, n int) ([]byte, error) {
	r := NewReader(chunk)
	for r.Next() {
		_, size, members := head(r.Body, 0)
		dst = append(dst, r.Raw[:len(r.Raw)-len(r.Body)]...)
		dst = msgp.AppendMapHeader(dst, uint32(members+n))
		dst = append(append(dst, r.Body[size:]...), fields...)
	}
	return dst, r.Err()
}
