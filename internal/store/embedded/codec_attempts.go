package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

// Attempts that are over, times as spans from when they were given out.

func appendAttempts(b []byte, list []job.Attempt) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		a := &list[i]
		b = append(b, byte(a.Why), byte(a.Charged), bit(a.Copy)|bit(a.Committed)<<1|bit(a.Started > 0)<<2)
		b = binary.BigEndian.AppendUint64(b, a.Token)
		b = appendCounters(b, a.Number, a.Failure)
		b = appendString(appendString(b, a.Holder), a.Host)
		b = appendMillis(b, a.Since, a.Ended-a.Since)
		if a.Started > 0 {
			b = appendMillis(b, a.Started-a.Since)
		}
	}
	return b
}

func (r *reader) attempts() (list []job.Attempt) {
	for n := r.count(); n > 0 && !r.bad; n-- {
		a := job.Attempt{Why: job.AttemptEnd(r.byte()), Charged: job.Charge(r.byte())}
		bits := r.byte()
		a.Copy, a.Committed = bits&1 != 0, bits&2 != 0
		if b := r.bytes(8); b != nil {
			a.Token = binary.BigEndian.Uint64(b)
		}
		a.Number, a.Failure = r.counter(), r.counter()
		a.Holder, a.Host = r.string(), r.string()
		a.Since = r.millis()
		a.Ended = a.Since + r.millis()
		if bits&4 != 0 {
			a.Started = a.Since + r.millis()
		}
		r.bad = r.bad || !a.Why.Valid() || !a.Charged.Valid() || bits > 7 || bits&4 != 0 && a.Started <= 0
		list = append(list, a)
	}
	r.bad = r.bad || len(list) == 0
	return list
}
