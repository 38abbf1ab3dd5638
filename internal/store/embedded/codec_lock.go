package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

func appendLock(b []byte, l *job.Lock) []byte {
	b = binary.AppendVarint(appendString(b, l.Name), l.Fence)
	b = appendString(append(b, l.Token[:]...), l.By)
	for _, m := range []job.Millis{l.At, l.Span, l.Until, l.Least, l.Forget} {
		b = appendMillis(b, m)
	}
	if l.Given {
		return append(b, 1)
	}
	return append(b, 0)
}

func (r *reader) lock() *job.Lock {
	l := &job.Lock{Name: r.string(), Fence: r.varint()}
	copy(l.Token[:], r.bytes(uint64(len(l.Token))))
	l.By = r.string()
	for _, m := range []*job.Millis{&l.At, &l.Span, &l.Until, &l.Least, &l.Forget} {
		*m = r.millis()
	}
	given := r.byte()
	l.Given = given == 1
	r.bad = r.bad || given > 1
	return l
}
