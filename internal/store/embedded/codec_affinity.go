package embedded

import (
	"encoding/binary"

	"github.com/reprisehq/reprise/internal/job"
)

func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// strings reads a list; nil if there is none in it.
func (r *reader) strings() (list []string) {
	for n := r.count(); n > 0 && !r.bad; n-- {
		list = append(list, r.string())
	}
	return list
}

func appendAffinity(b []byte, t *job.AffinityTag) []byte {
	b = appendStrings(appendString(appendString(b, t.Session), t.Tag), t.Engines)
	return appendMillis(append(b, t.Head[:]...), t.Until)
}

func (r *reader) affinity() *job.AffinityTag {
	t := &job.AffinityTag{Session: r.string(), Tag: r.string(), Engines: r.strings()}
	t.Head, t.Until = r.id(), r.millis()
	r.bad = r.bad || len(t.Engines) > job.AffinityEngines
	return t
}
