package jobs

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/reprisehq/reprise/internal/job"
)

// extrasOf returns the extras of a job that is being read, to be set.
func extrasOf(j *job.Job) *job.Extras {
	if j.Extras == nil {
		j.Extras = &job.Extras{}
	}
	return j.Extras
}

// labels reads an object of texts.
func (r *values) labels() (list []job.Label) {
	bytes := 0
	r.object("labels", func(name []byte) {
		key := r.label("labels", string(name))
		if key == "" {
			r.fail("labels", "must not have an empty name")
		}
		l := job.Label{Key: key, Value: r.label("labels."+key, r.string("labels."+key))}
		list = append(list, l)
		if bytes += len(l.Key) + len(l.Value); len(list) > job.LabelsMax || bytes > job.LabelBytesMax {
			r.fail("labels", "must not be more than "+strconv.Itoa(job.LabelsMax)+", or "+strconv.Itoa(job.LabelBytesMax)+" bytes together")
		}
	})
	slices.SortFunc(list, func(a, b job.Label) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

func (r *values) traceparent() string {
	text := r.string("traceparent")
	if text != "" && !job.IsTraceparent(text) {
		r.fail("traceparent", "must be a W3C trace context, 00-<32 hex digits>-<16 hex digits>-<2 hex digits>")
	}
	return text
}

// appendExtras appends what an answer tells of them.
func appendExtras(b []byte, x *job.Extras) []byte {
	for i, l := range x.Labels {
		b = quote(append(b, [...]string{`,"labels":{`, `,`}[min(i, 1)]...), "", l.Key)
		b = quote(append(b, ':'), "", l.Value)
		if i == len(x.Labels)-1 {
			b = append(b, '}')
		}
	}
	if x.Traceparent != "" {
		b = quote(b, `,"traceparent":`, x.Traceparent)
	}
	b = appendUses(b, x.Budgets)
	if x.Progress != nil {
		b = appendProgress(b, x.Progress)
	}
	if x.Result != nil {
		b = number(b, `,"result_bytes":`, int64(x.Result.Size))
	}
	return b
}
