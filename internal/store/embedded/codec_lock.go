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
	flags := bit(l.Given)*lockGiven | bit(l.Request != job.LockRequest{})*lockRequest
	b = append(b, flags)
	if flags&lockRequest != 0 {
		b = append(b, l.Request[:]...)
	}
	return b
}

// The flags of a lock. Before there were requests, given was the whole byte.
const (
	lockGiven   = 1 << iota
	lockRequest // what tells the request apart follows
	lockFlags   = lockGiven | lockRequest
)

func (r *reader) lock() *job.Lock {
	l := &job.Lock{Name: r.string(), Fence: r.varint()}
	copy(l.Token[:], r.bytes(uint64(len(l.Token))))
	l.By = r.string()
	for _, m := range []*job.Millis{&l.At, &l.Span, &l.Until, &l.Least, &l.Forget} {
		*m = r.millis()
	}
	flags := r.byte()
	l.Given = flags&lockGiven != 0
	if flags&lockRequest != 0 {
		copy(l.Request[:], r.bytes(uint64(len(l.Request))))
		r.bad = r.bad || l.Request == job.LockRequest{}
	}
	r.bad = r.bad || flags&^lockFlags != 0
	return l
}
