package sim_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
)

var (
	queueNames = []string{"plain", "start", "strict", "one", "small", "configured"}
	groupNames = []string{"a", "b"}
)

func pick[T any](w *world, list []T) T { return list[w.dice.IntN(len(list))] }

func (w *world) oneIn(n int) bool { return w.dice.IntN(n) == 0 }

// between draws a span.
func (w *world) between(lo, hi job.Millis) job.Millis {
	return lo + job.Millis(w.dice.Int64N(int64(hi-lo+1)))
}

// putSome puts one job, or a few in one call.
func (w *world) putSome() { w.putThem(false) }

func (w *world) putThem(keys bool) {
	n := 1
	if w.oneIn(4) {
		n += w.dice.IntN(3)
	}
	if len(w.judge.book.jobs) > 30 {
		w.say("    (there is enough to do)")
		return
	}
	var reqs []*request
	for range n {
		reqs = append(reqs, w.draft(keys))
	}
	w.putAll(reqs)
}

// putAll puts some jobs in one call.
func (w *world) putAll(reqs []*request) {
	c := &call{reqs: reqs}
	list := make([]engine.NewJob, len(reqs))
	sure, now := w.sure(), w.now()
	for i, r := range reqs {
		list[i] = r.put
		w.say("    %s", r)
	}
	added, err := []engine.Added(nil), error(nil)
	c.finish = func() string { return w.putAnswer(c, added, err, sure, now) }
	w.start(c, func() { added, err = w.e.Put(w.ctx, list) })
}

// draft makes up a job, or takes one that was put under a key before. With
// keys most have a unique key or a batch.
func (w *world) draft(keys bool) *request {
	key := ""
	if w.oneIn(4) && !keys {
		key = fmt.Sprint("k", w.dice.IntN(3))
		if n := len(w.contents); n > 0 && w.oneIn(2) {
			at := n - 1 - w.dice.IntN(min(n, 4))
			put := w.contents[at]
			label := string(put.Payload[:strings.IndexByte(string(put.Payload), '|')])
			return &request{kind: askPut, put: put, label: label, content: at + 1, text: fmt.Sprintf("put %s again under key %s", label, put.Key)}
		}
	}
	w.names++
	label := fmt.Sprint("j", w.names)
	put := engine.NewJob{Key: key, Payload: []byte(label + "|" + strings.Repeat(".", w.dice.IntN(12)))}
	w.bodies[label] = string(put.Payload)
	put.Job = w.draw()
	w.rank(&put.Job)
	if keys {
		w.drawKey(&put)
		w.bodies[label] = string(put.Payload)
	}
	w.bind(&put)
	if w.oneIn(6) {
		put.Place = job.PlaceFront
	}
	r := &request{kind: askPut, put: put, label: label, text: "put " + label + described(&put)}
	if key != "" {
		w.contents = append(w.contents, put)
		r.content = len(w.contents)
	}
	return r
}

// draw draws what a client may choose of a job.
func (w *world) draw() job.Job {
	now := w.now()
	j := job.Job{
		Queue: pick(w, queueNames), Type: pick(w, []string{"mail", "bill"}), Priority: job.PriorityDefault,
		RetainDone: job.Unset, RetainDead: job.Unset, Copies: 1,
	}
	if w.dice.IntN(5) > 1 {
		j.Group = pick(w, groupNames)
	}
	if w.oneIn(4) {
		j.Priority += uint16(w.dice.IntN(3)) - 1
	}
	if w.oneIn(4) {
		j.ReadyAt = now + w.between(-2*job.Second, 8*job.Second)
	}
	if w.oneIn(4) {
		j.Door = job.DoorStream
	}
	if w.oneIn(6) {
		j.ExpiresAt = now + w.between(job.Second, 20*job.Second)
	}
	if w.oneIn(5) {
		j.RunTimeout = w.between(job.Second, 10*job.Second)
	}
	if w.oneIn(6) {
		j.StartTimeout = w.between(job.Second, 5*job.Second)
	}
	if w.oneIn(6) {
		j.Copies = uint8(2 + w.dice.IntN(2))
	}
	if w.oneIn(10) {
		j.GraceUntil = now + w.between(job.Second, 30*job.Second)
	}
	if w.oneIn(8) {
		j.Requires = []job.Requirement{{Property: "os", Op: pick(w, []string{"=", "!="}), Value: pick(w, []string{"linux", "plan9"})}}
	}
	if w.oneIn(4) {
		j.RetainDone = pick(w, []job.Millis{0, 5 * job.Second, job.Hour})
	}
	if w.oneIn(4) {
		j.RetainDead = pick(w, []job.Millis{0, 5 * job.Second, job.Hour})
	}
	if w.oneIn(2) {
		p := w.policy()
		j.Retry = &p
	}
	return j
}

// policy draws a retry policy.
func (w *world) policy() (p job.Retry) {
	if w.oneIn(2) {
		p.Limit = job.LimitOf(uint32(w.dice.IntN(3)))
	}
	if w.oneIn(2) {
		p.LossLimit = job.LimitOf(uint32(1 + w.dice.IntN(4)))
	}
	if w.oneIn(6) {
		p.MaxAge = w.between(3*job.Second, 30*job.Second)
	}
	if w.oneIn(3) {
		p.Place = pick(w, []job.Place{job.PlaceKeep, job.PlaceFront, job.PlaceBack})
	}
	if w.oneIn(3) {
		p.Curve = pick(w, []*job.Curve{
			{Kind: job.CurveImmediate},
			{Kind: job.CurveConstant, Delay: 3 * job.Second},
			{Kind: job.CurveExponential, Unit: job.Second, Factor: 2, Cap: 8 * job.Second, Jitter: job.Jitter{Kind: job.JitterFull}},
			{Kind: job.CurveList, Delays: []job.Millis{0, job.Second, 5 * job.Second}},
		})
	}
	if w.oneIn(3) {
		p.Rules = w.rules()
	}
	return p
}

// told is a policy as a person would write it.
func told(p *job.Retry) string {
	b, err := p.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return string(b)
}

// rules draws some rules about the failures that workers report.
func (w *world) rules() *job.Rules {
	all := job.Rules{
		{When: job.When{ErrorTypes: []string{"F", "Timeout"}}, Do: job.DoDead},
		{When: job.When{Message: "(?i)lock|timeout"}, Do: job.DoRelease, Delay: w.between(1, 4*job.Second)},
		{When: job.When{Status: []job.Range{{Lo: 500, Hi: 599}}}, Do: job.DoHold, Delay: w.between(1, 5*job.Second)},
		{When: job.When{ErrorTypes: []string{"E"}, ExitCode: []job.Range{{Lo: 1, Hi: 1}}}, Do: job.DoHold, Delay: w.between(1, 2*job.Second)},
		{When: job.When{Status: []job.Range{{Lo: 429, Hi: 429}}}, Do: job.DoRetry, IgnoreRetryAfter: true},
		{When: job.When{ExitCode: []job.Range{{Lo: 64, Hi: 78}}}, Do: job.DoRetry, Limit: job.LimitOf(uint32(w.dice.IntN(3))), Curve: &job.Curve{Kind: job.CurveImmediate}},
		{When: job.When{Timeout: job.Yes}, Do: job.DoRelease, Delay: job.Second},
		{When: job.When{Timeout: job.No, Message: "broke$"}, Do: job.DoRetry, Curve: &job.Curve{Kind: job.CurveConstant, Delay: job.Second}},
	}
	w.dice.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	some := all[:w.dice.IntN(len(all)+1)]
	return &some
}

// described is a job as the history tells it.
func described(n *engine.NewJob) string {
	j := &n.Job
	s := " into " + j.Queue
	if j.Group != "" {
		s += "/" + j.Group
	}
	say := func(format string, args ...any) { s += ", " + fmt.Sprintf(format, args...) }
	if n.Key != "" {
		say("key %s", n.Key)
	}
	if j.Door != job.DoorJobs {
		say("through %s", j.Door)
	}
	if x := j.Extras; x != nil && x.Unique != nil {
		say("%s, while %s", keyOf(j), x.Unique.While)
	}
	if x := j.Extras; x != nil && x.Batch != nil {
		say("%s, up to %s bytes", keyOf(j), x.Batch.When)
	}
	if n.Place == job.PlaceFront {
		say("at the front")
	}
	if j.Priority != job.PriorityDefault {
		say("priority %+d", int(j.Priority)-int(job.PriorityDefault))
	}
	if j.ReadyAt > 0 {
		say("due %s", stamp(j.ReadyAt))
	}
	if j.ExpiresAt > 0 {
		say("expires %s", stamp(j.ExpiresAt))
	}
	if j.RunTimeout > 0 {
		say("run timeout %s", j.RunTimeout)
	}
	if j.StartTimeout > 0 {
		say("start timeout %s", j.StartTimeout)
	}
	if j.Copies > 1 {
		say("copies %d", j.Copies)
	}
	if j.GraceUntil > 0 {
		say("grace until %s", stamp(j.GraceUntil))
	}
	if len(j.Requires) > 0 {
		say("requires %s %s %s", j.Requires[0].Property, j.Requires[0].Op, j.Requires[0].Value)
	}
	if j.Retry != nil {
		say("%s", told(j.Retry))
	}
	if j.RetainDone != job.Unset {
		say("kept %s when done", j.RetainDone)
	}
	if j.RetainDead != job.Unset {
		say("kept %s when dead", j.RetainDead)
	}
	return s
}

// putAnswer judges the answer to a put: all or nothing, once for a key.
func (w *world) putAnswer(c *call, added []engine.Added, err error, sure bool, now job.Millis) string {
	x := w.judge
	exists, twin := false, map[string]*request{}
	var dup []*receipt
	for _, r := range c.reqs {
		known, key := (*receipt)(nil), r.receipt()
		if first := twin[key]; r.put.Key != "" && first != nil {
			exists = exists || first.content != r.content
			known = &receipt{}
		} else if r.put.Key != "" {
			twin[key] = r
			for _, k := range x.known[key] {
				if k.expires > now && k.commit != r.commit && (k.commit <= w.issued && !within(c, k.commit)) {
					known = &k
				}
			}
			exists = exists || known != nil && known.content != r.content
		}
		dup = append(dup, known)
	}
	if err != nil {
		x.unsure = true
		for _, r := range c.reqs {
			x.handOn(r)
			if r.commit > 0 && job.KindOf(err) != job.Unavailable {
				broken("core.md 10", "%s was refused (%v) and is there", r, err)
			}
		}
		if sure && job.KindOf(err) == job.Exists != exists {
			broken("core.md 7", "the put was refused (%v); its key was used for other content: %t", err, exists)
		}
		if sure && job.KindOf(err) == job.Unprocessable && !bad(c) {
			broken("zizq.md 9", "the put was refused (%v), and nothing in it is bad", err)
		}
		if sure && job.KindOf(err) == job.OverLimit && !w.full(c) && !keyed(c) {
			broken("core.md 10", "the put was refused (%v), and there is room", err)
		}
		x.coverage.feature("put refused: " + kindName(job.KindOf(err)))
		return w.refusal("put", err, job.OverLimit, job.Exists, job.Unprocessable)
	}
	if sure && exists {
		broken("core.md 7", "the put was accepted and its key was used for other content")
	}
	said := []string{}
	for i, r := range c.reqs {
		a := added[i]
		if hasKey(&r.put.Job) && (a.Duplicate || a.Folded) {
			said = append(said, w.keyAnswer(r, a))
			continue
		}
		if sure && a.Duplicate != (dup[i] != nil) {
			broken("core.md 7", "%s was told duplicate %t", r, a.Duplicate)
		}
		if a.Duplicate {
			x.handOn(r)
			if r.commit > 0 || x.born[a.ID] > w.disk.safeNow() {
				broken("core.md 7, I5", "%s is a duplicate of a job that is not on disk (commit %d)", r, x.born[a.ID])
			}
			if sure && dup[i].id != (job.ID{}) && dup[i].id != a.ID || x.name(a.ID) != r.label {
				broken("core.md 7", "%s was told of job %s", r, x.name(a.ID))
			}
			x.stats.Duplicates++
			x.coverage.feature("duplicate")
			said = append(said, r.label+" is known")
			continue
		}
		w.accepted(r, false)
		if x.name(a.ID) != r.label || a.Job == nil || a.Job.ID != a.ID {
			broken("answers", "%s was told of job %s", r, x.name(a.ID))
		}
		said = append(said, r.label+" "+r.state.String())
	}
	return strings.Join(said, ", ")
}

// handOn gives what seemed to be the effect of a request to another one that
// was not answered yet: of a job that is gone, and of two that ask for the same,
// nobody can tell whose it was.
func (x *judge) handOn(r *request) {
	for _, other := range x.asked {
		state, rival := r.rivals[other]
		if !rival {
			state = r.state
		}
		same := r.kind == askPut && other.kind == askPut && other.label == r.label ||
			r.kind != askPut && other.id == r.id && x.book.jobs[r.id] == nil ||
			rival ||
			r.kind == askSettle && other.id == r.id && other.settle.Token == r.settle.Token && other.settle.Outcome == r.settle.Outcome
		if other.call != r.call && same && other.commit == 0 && r.commit > 0 && !other.lost {
			other.commit, other.state, r.commit = r.commit, state, 0
			other.doubted, other.rivals = other.doubted || r.doubted, r.rivals
			x.blurred = x.blurred || r.kind != askPut && x.book.jobs[r.id] == nil
		}
	}
}

// within reports whether a commit is the one in which the call took effect.
func within(c *call, commit int) bool {
	for _, r := range c.reqs {
		if r.commit == commit {
			return true
		}
	}
	return false
}

// full reports whether some queue has no room for what a call puts.
func (w *world) full(c *call) bool {
	for _, name := range queueNames {
		q := w.judge.book.queue(name)
		var jobs, bytes, fixed int64
		for _, j := range w.judge.book.jobs {
			if j.Queue == name && j.State.Open() {
				jobs++
				bytes += int64(j.PayloadSize)
				if j.State == job.Leased {
					fixed++
				}
			}
		}
		for _, r := range c.reqs {
			if r.put.Job.Queue == name {
				jobs++
				fixed++
				bytes += int64(len(r.put.Payload))
			}
		}
		if q.OnFull == job.FullDropOldest && q.MaxBytes == 0 {
			jobs = fixed
		}
		if q.MaxJobs > 0 && jobs > q.MaxJobs || q.MaxBytes > 0 && bytes > q.MaxBytes {
			return true
		}
	}
	return false
}

// connect opens a stream.
func (w *world) connect() {
	h := &holder{kind: job.Anonymous, prefetch: pick(w, []int{0, 1, 1, 2, 3, 9}), got: map[job.Token]bool{}, slow: w.oneIn(6)}
	name := ""
	if w.oneIn(2) {
		h.kind, name = job.Named, fmt.Sprint("n", 1+w.dice.IntN(2))
		h.name = "w/" + name
	}
	w.asks(h)
	if h.kind == job.Anonymous && w.joining != nil || len(w.streams) > 5 {
		w.say("    (too many)")
		return
	}
	w.say("    %s stream %s for %v, prefetch %d, properties %v, slow %t", h.kind, name, h.queues, h.prefetch, h.props, h.slow)
	if h.kind == job.Named {
		w.holders[h.name] = h
	} else {
		w.joining = h
	}
	var err error
	c := &call{finish: func() string {
		if w.joining == h {
			w.joining = nil
		}
		if err != nil {
			h.gone = true
			return w.refusal("connect", err)
		}
		if h.name == "" {
			h.name = "a/" + h.s.Name()
			w.holders[h.name] = h
		}
		if h.name[2:] != h.s.Name() {
			broken("answers", "stream %s is called %s", h.name, h.s.Name())
		}
		w.streams = append(w.streams, h)
		return "connected as " + h.name
	}}
	o := engine.StreamOptions{Name: name, Queues: h.queues, Prefetch: h.prefetch, Properties: h.props}
	w.start(c, func() { h.s, err = w.e.Stream(w.ctx, o) })
}

// asks draws what a holder asks for.
func (w *world) asks(h *holder) {
	if w.oneIn(3) {
		h.queues = []string{pick(w, queueNames), pick(w, queueNames)}
	}
	if w.oneIn(2) {
		h.props = map[string]string{"os": pick(w, []string{"linux", "plan9"})}
	}
}

// disconnect ends a stream: its worker crashed, or goes on without it.
func (w *world) disconnect() {
	if len(w.streams) == 0 {
		w.say("    (no stream)")
		return
	}
	h := pick(w, w.streams)
	w.say("    %s disconnects", h.name)
	h.closing = true
	h.s.Close()
	w.settle()
	h.gone = h.gone || w.up()
}

// readSlow lets a slow worker read.
func (w *world) readSlow() {
	for _, h := range w.streams {
		if h.slow && !h.closing {
			if _, on := w.read(h); !on {
				h.closing = true
			}
		}
	}
}

// lease is a unary take.
func (w *world) lease() {
	name := pick(w, []string{"u1", "u2", ""})
	h := &holder{kind: job.Unary, got: map[job.Token]bool{}, life: w.between(job.Second, 15*job.Second), prefetch: 1 + w.dice.IntN(3)}
	w.asks(h)
	if name == "" {
		if w.polling != nil {
			w.say("    (waits already)")
			return
		}
		w.polling = h
	} else {
		h.name = "u/" + name
		if old := w.holders[h.name]; old != nil && !old.gone {
			w.say("    (waits already)")
			return
		}
		w.holders[h.name] = h
	}
	w.say("    unary take %s of %d for %s from %v, properties %v", name, h.prefetch, h.life, h.queues, h.props)
	ctx, cancel := context.WithCancel(w.ctx)
	var list []engine.Delivery
	var err error
	c := &call{waits: true, cancel: cancel}
	c.finish = func() string {
		cancel()
		h.gone = true
		if w.polling == h {
			w.polling = nil
		}
		if err != nil {
			return w.refusal("take", err)
		}
		if len(list) > h.prefetch {
			broken("answers", "a take of %d got %d jobs", h.prefetch, len(list))
		}
		for _, d := range list {
			if h.name == "" {
				h.name = d.Lease.Holder
			}
			w.delivered(h, d)
		}
		return fmt.Sprint("took ", len(list))
	}
	o := engine.LeaseOptions{Worker: name, Queues: h.queues, Max: h.prefetch, For: h.life, Properties: h.props}
	w.start(c, func() { list, err = w.e.Lease(ctx, o) })
	c.polls = h
	if !c.done.Load() && w.dice.IntN(3) > 0 {
		cancel()
		w.settle()
	}
}

// giveUpWaiting ends the waiting of unary calls, one after the other.
func (w *world) giveUpWaiting() {
	for _, c := range w.calls {
		if c.cancel != nil {
			c.cancel()
			w.rest()
		}
	}
}
