package embedded

import (
	"math"

	"github.com/reprisehq/reprise/internal/codec"
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

// extraLayouts are what an extra is, in their order.
var extraLayouts = [...]struct {
	flag   uint64
	has    func(x *job.Extras) bool
	fields func(c *codec.Fields, x *job.Extras)
}{
	{extraLabels, func(x *job.Extras) bool { return len(x.Labels) > 0 }, func(c *codec.Fields, x *job.Extras) {
		for i := range codec.List(c, &x.Labels) {
			l := &x.Labels[i]
			c.Text(&l.Key, &l.Value)
		}
	}},
	{extraTrace, func(x *job.Extras) bool { return x.Traceparent != "" }, func(c *codec.Fields, x *job.Extras) { c.Text(&x.Traceparent) }},
	{extraProgress, func(x *job.Extras) bool { return x.Progress != nil }, func(c *codec.Fields, x *job.Extras) { progressFields(c, codec.New(c, &x.Progress)) }},
	{extraUnique, func(x *job.Extras) bool { return x.Unique != nil }, func(c *codec.Fields, x *job.Extras) {
		u := codec.New(c, &x.Unique)
		codec.Enum(c, &u.While, job.UniqueScopes)
		c.Text(&u.Key)
	}},
	{extraBatch, func(x *job.Extras) bool { return x.Batch != nil }, func(c *codec.Fields, x *job.Extras) {
		t := codec.New(c, &x.Batch)
		c.Text(&t.Key, &t.When, &t.Fold)
	}},
	{extraBudgets, func(x *job.Extras) bool { return len(x.Budgets) > 0 }, func(c *codec.Fields, x *job.Extras) {
		for i := range codec.List(c, &x.Budgets) {
			u := &x.Budgets[i]
			c.Text(&u.Key)
			codec.Uint(c, &u.Cost, job.BudgetUnits)
			c.Refuse(u.Key == "" || u.Cost < 1)
		}
		c.Refuse(len(x.Budgets) == 0)
	}},
	{extraResult, func(x *job.Extras) bool { return x.Result != nil && x.Result.Bytes == nil }, func(c *codec.Fields, x *job.Extras) {
		r := codec.New(c, &x.Result)
		c.Raw(r.Ref[:])
		c.Counters(&r.Size)
	}},
	{extraInlineResult, func(x *job.Extras) bool { return x.Result != nil && x.Result.Bytes != nil }, func(c *codec.Fields, x *job.Extras) {
		if !c.Reads() {
			c.Piece(&x.Result.Bytes)
			return
		}
		var b []byte
		c.Piece(&b)
		c.Refuse(x.Result != nil)
		x.Result = job.InlineResult(b)
	}},
	{extraNeeds, func(x *job.Extras) bool { return x.Needs != nil }, func(c *codec.Fields, x *job.Extras) {
		n := codec.New(c, &x.Needs)
		codec.Enum(c, &n.OnFail, job.DepRun+1)
		for i := range codec.List(c, &n.Tasks) {
			id := &n.Tasks[i]
			c.Raw(id[:])
		}
		c.Refuse(len(n.Tasks) == 0)
	}},
	{extraAttempts, func(x *job.Extras) bool { return len(x.Attempts) > 0 }, func(c *codec.Fields, x *job.Extras) {
		for i := range codec.List(c, &x.Attempts) {
			a := &x.Attempts[i]
			attemptFields(c, a)
		}
		c.Refuse(len(x.Attempts) == 0)
	}},
	{extraAffinity, func(x *job.Extras) bool { return x.Affinity != nil }, func(c *codec.Fields, x *job.Extras) {
		a := codec.New(c, &x.Affinity)
		c.Text(&a.Tag)
		texts(c, &a.For)
		c.Refuse(a.Tag == "" || len(a.For) > job.AffinityEngines)
	}},
	{extraNarrow, func(x *job.Extras) bool { return x.Narrow }, func(c *codec.Fields, x *job.Extras) { c.Mark(&x.Narrow) }},
	{extraNoRetention, func(x *job.Extras) bool { return x.NoRetention }, func(c *codec.Fields, x *job.Extras) { c.Mark(&x.NoRetention) }},
}

func extraFields(to *codec.Fields, x *job.Extras) {
	fields := *to // which the calls below keep on the heap: most jobs have no extras
	c := &fields
	defer func() { *to = fields }()
	var has uint64
	for i := range extraLayouts {
		has |= flagIf(extraLayouts[i].flag, extraLayouts[i].has(x))
	}
	codec.Uint(c, &has, extrasKnown)
	for i := range extraLayouts {
		if has&extraLayouts[i].flag != 0 {
			extraLayouts[i].fields(c, x)
		}
	}
}

func texts(c *codec.Fields, list *[]string) {
	for i := range codec.List(c, list) {
		s := &(*list)[i]
		c.Text(s)
	}
}

func progressFields(c *codec.Fields, p *job.RunProgress) {
	fraction, kept, text := math.Float64bits(p.Fraction), p.Checkpoint != nil, p.Checkpoint
	c.Uint64(&fraction)
	c.Text(&p.Text)
	codec.Int(c, &p.At)
	c.Bits(&kept)
	c.Piece(&text)
	if !c.Reads() {
		return
	}
	c.Refuse(!kept && len(text) > 0)
	if p.Fraction = math.Float64frombits(fraction); kept {
		p.Checkpoint = append([]byte{}, text...)
	}
}

// attemptFields has times as spans from when it was given out.
func attemptFields(c *codec.Fields, a *job.Attempt) {
	codec.Byte(c, &a.Why)
	codec.Byte(c, &a.Charged)
	started := a.Started > 0
	c.Bits(&a.Copy, &a.Committed, &started)
	c.Uint64(&a.Token)
	c.Counters(&a.Number, &a.Failure)
	c.Text(&a.Holder, &a.Host)
	codec.Int(c, &a.Since)
	codec.Since(c, &a.Ended, a.Since)
	if started {
		codec.Since(c, &a.Started, a.Since)
	}
	c.Refuse(!a.Why.Valid() || !a.Charged.Valid() || started && a.Started <= 0)
}
