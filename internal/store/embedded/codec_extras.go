package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

// Which extras follow in the value of a job.
const (
	extraLabels = 1 << iota
	extraTrace
	extraUnique
	extraBatch
	extrasKnown = 1<<iota - 1
)

func appendExtras(b []byte, x *job.Extras) []byte {
	var has uint64
	set := func(flag uint64, on bool) {
		if on {
			has |= flag
		}
	}
	set(extraLabels, len(x.Labels) > 0)
	set(extraTrace, x.Traceparent != "")
	set(extraUnique, x.Unique != nil)
	set(extraBatch, x.Batch != nil)
	b = binary.AppendUvarint(b, has)
	if has&extraLabels != 0 {
		b = binary.AppendUvarint(b, uint64(len(x.Labels)))
		for _, l := range x.Labels {
			b = appendString(appendString(b, l.Key), l.Value)
		}
	}
	if has&extraTrace != 0 {
		b = appendString(b, x.Traceparent)
	}
	if u := x.Unique; u != nil {
		b = appendString(append(b, byte(u.While)), u.Key)
	}
	if t := x.Batch; t != nil {
		b = appendString(appendString(appendString(b, t.Key), t.When), t.Fold)
	}
	return b
}

func (r *reader) extras() *job.Extras {
	x := &job.Extras{}
	has := r.uvarint()
	r.bad = r.bad || has > extrasKnown
	if has&extraLabels != 0 {
		for n := r.count(); n > 0 && !r.bad; n-- {
			x.Labels = append(x.Labels, job.Label{Key: r.string(), Value: r.string()})
		}
	}
	if has&extraTrace != 0 {
		x.Traceparent = r.string()
	}
	if has&extraUnique != 0 {
		x.Unique = &job.Unique{While: job.Scope(r.byte()), Key: r.string()}
		r.bad = r.bad || x.Unique.While >= job.Scopes
	}
	if has&extraBatch != 0 {
		x.Batch = &job.Batch{Key: r.string(), When: r.string(), Fold: r.string()}
	}
	return x
}
