package embedded

import (
	"encoding/binary"
	"math"

	"github.com/reprisehq/reprise/internal/job"
)

// Which extras follow in the value of a job.
const (
	extraLabels = 1 << iota
	extraTrace
	extraProgress
	extraUnique
	extraBatch
	extraBudgets
	extraResult
	extraNeeds
	extraAttempts
	extraAffinity
	extraInlineResult // in the place of extraResult
	extraNarrow       // nothing follows
	extraNoRetention  // neither
	extrasKnown       = 1<<iota - 1
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
	set(extraProgress, x.Progress != nil)
	set(extraUnique, x.Unique != nil)
	set(extraBatch, x.Batch != nil)
	set(extraBudgets, len(x.Budgets) > 0)
	set(extraResult, x.Result != nil && x.Result.Bytes == nil)
	set(extraNeeds, x.Needs != nil)
	set(extraAttempts, len(x.Attempts) > 0)
	set(extraAffinity, x.Affinity != nil)
	set(extraNarrow, x.Narrow)
	set(extraNoRetention, x.NoRetention)
	set(extraInlineResult, x.Result != nil && x.Result.Bytes != nil)
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
	if p := x.Progress; p != nil {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Fraction))
		b = appendMillis(appendString(b, p.Text), p.At)
		b = appendString(append(b, bit(p.Checkpoint != nil)), string(p.Checkpoint))
	}
	if u := x.Unique; u != nil {
		b = appendString(append(b, byte(u.While)), u.Key)
	}
	if t := x.Batch; t != nil {
		b = appendString(appendString(appendString(b, t.Key), t.When), t.Fold)
	}
	if has&extraBudgets != 0 {
		b = appendBudgets(b, x.Budgets)
	}
	switch r := x.Result; {
	case has&extraResult != 0:
		b = appendCounters(append(b, r.Ref[:]...), r.Size)
	case has&extraInlineResult != 0:
		b = append(binary.AppendUvarint(b, uint64(len(r.Bytes))), r.Bytes...)
	}
	if n := x.Needs; n != nil {
		b = binary.AppendUvarint(append(b, byte(n.OnFail)), uint64(len(n.Tasks)))
		for _, id := range n.Tasks {
			b = append(b, id[:]...)
		}
	}
	if has&extraAttempts != 0 {
		b = appendAttempts(b, x.Attempts)
	}
	if a := x.Affinity; a != nil {
		b = appendStrings(appendString(b, a.Tag), a.For)
	}
	return b
}

func (r *reader) extras() *job.Extras {
	has := r.uvarint()
	x := &job.Extras{Narrow: has&extraNarrow != 0, NoRetention: has&extraNoRetention != 0}
	r.bad = r.bad || has > extrasKnown
	if has&extraLabels != 0 {
		for n := r.count(); n > 0 && !r.bad; n-- {
			x.Labels = append(x.Labels, job.Label{Key: r.string(), Value: r.string()})
		}
	}
	if has&extraTrace != 0 {
		x.Traceparent = r.string()
	}
	if has&extraProgress != 0 {
		x.Progress = r.progress()
	}
	if has&extraUnique != 0 {
		x.Unique = &job.Unique{While: job.UniqueScope(r.byte()), Key: r.string()}
		r.bad = r.bad || x.Unique.While >= job.UniqueScopes
	}
	if has&extraBatch != 0 {
		x.Batch = &job.Batch{Key: r.string(), When: r.string(), Fold: r.string()}
	}
	if has&extraBudgets != 0 {
		x.Budgets = r.budgets()
	}
	if has&extraResult != 0 {
		x.Result = &job.Result{}
		copy(x.Result.Ref[:], r.bytes(uint64(len(x.Result.Ref))))
		x.Result.Size = r.counter()
	}
	if has&extraInlineResult != 0 {
		r.bad = r.bad || x.Result != nil
		x.Result = job.InlineResult(r.bytes(r.uvarint()))
	}
	if has&extraNeeds != 0 {
		x.Needs = &job.Needs{OnFail: job.OnDepFail(r.byte())}
		for n := r.count(); n > 0 && !r.bad; n-- {
			var id job.ID
			copy(id[:], r.bytes(uint64(len(id))))
			x.Needs.Tasks = append(x.Needs.Tasks, id)
		}
		r.bad = r.bad || x.Needs.OnFail > job.DepRun || len(x.Needs.Tasks) == 0
	}
	if has&extraAttempts != 0 {
		x.Attempts = r.attempts()
	}
	if has&extraAffinity != 0 {
		x.Affinity = &job.Affinity{Tag: r.string(), For: r.strings()}
		r.bad = r.bad || x.Affinity.Tag == "" || len(x.Affinity.For) > job.AffinityEngines
	}
	return x
}

func (r *reader) progress() *job.RunProgress {
	p := &job.RunProgress{}
	if b := r.bytes(8); b != nil {
		p.Fraction = math.Float64frombits(binary.BigEndian.Uint64(b))
	}
	p.Text, p.At = r.string(), r.millis()
	has := r.byte()
	text := r.string()
	r.bad = r.bad || has > 1 || has == 0 && text != ""
	if has == 1 {
		p.Checkpoint = []byte(text)
	}
	return p
}
