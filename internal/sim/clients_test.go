package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/part/turn"
	"github.com/reprisehq/reprise/internal/rule"
)

// ask is what somebody may ask the engine for.
type ask uint8

const (
	askPut ask = iota
	askSettle
	askExtend
	askDelete
	askOperate
	askQueue
	askGroup
	askRun
	askCancel // of a run
	askMark   // of a fingerprint
	askCron
	askLock
	askPauseGroup
)

// request is one thing that was asked for and not yet answered.
type request struct {
	kind      ask
	id        job.ID
	name      string // of a queue
	label     string // of a job to put
	content   int    // of what is put under a key
	put       engine.NewJob
	settle    engine.Settle
	extension engine.Extension
	command   rule.Command
	edit      func(*job.Queue)
	until     job.Millis // of a hold
	run       *job.Replay
	paused    bool   // of a fingerprint, or of a group
	skips     bool   // a message, so that its group goes on without it
	body      string // a new payload
	cron      *cronAsk
	lock      *lockAsk

	call    *call
	into    job.ID                 // the job that took it in
	commit  int                    // in which it took effect
	state   job.State              // it led to
	lost    bool                   // a power cut took it back
	doubted bool                   // it may have had another reason than the request
	rivals  map[*request]job.State // whose effect it may have been as well, and what that led to
	acked   bool
	sure    bool // what it must be told is known: nothing else goes on
	told    answer
	kindOf  job.Kind // of the refusal
	text    string
}

func (r *request) String() string { return r.text }

// receipt is what an idempotency key belongs to (core.md 7).
func (r *request) receipt() string {
	return r.put.Job.Door.String() + "/" + r.put.Job.Queue + "/" + r.put.Key
}

// call is a request, or several, on its way.
type call struct {
	reqs   []*request
	done   atomic.Bool
	waits  bool // for work, and nothing else
	cancel func()
	polls  *holder       // who waits
	finish func() string // judges the answer and says what it was
}

// start sends a call; it is answered when the engine gets to it.
func (w *world) start(c *call, send func()) {
	for _, r := range c.reqs {
		r.call = c
	}
	w.judge.asked = append(w.judge.asked, c.reqs...)
	w.calls = append(w.calls, c)
	go func() { send(); c.done.Store(true) }()
	w.rest()
}

// answers judges what was answered by now.
func (w *world) answers() bool {
	some, open := false, w.calls[:0:0]
	for _, c := range w.calls {
		if !c.done.Load() {
			open = append(open, c)
			continue
		}
		some = true
		w.say("    %s", c.finish())
		for _, r := range c.reqs {
			w.judge.forget(r)
		}
	}
	w.calls = open
	return some
}

func (x *judge) forget(r *request) {
	kept := x.asked[:0:0]
	for _, a := range x.asked {
		if a != r {
			kept = append(kept, a)
		}
	}
	x.asked = kept
}

// refusal judges an error of a whole call.
func (w *world) refusal(what string, err error, kinds ...job.Kind) string {
	kind := job.KindOf(err)
	switch {
	case kind == job.Unavailable && (w.troubled || w.low):
		return what + ": unavailable"
	case errors.Is(err, engine.ErrStreamEnded) && w.troubled:
		return what + ": ended"
	}
	for _, k := range kinds {
		if k == kind && kind != job.Internal {
			return fmt.Sprintf("%s: refused (%v)", what, err)
		}
	}
	broken("answers", "%s was answered %v", what, err)
	return ""
}

// accepted judges a request that was accepted: it took effect, and that is on
// disk (I5).
func (w *world) accepted(r *request, unsynced bool) {
	r.acked = true
	if r.commit == 0 {
		broken("I5", "%s was accepted and nothing was written", r)
	}
	if safe := w.disk.safeNow(); r.commit > safe && !unsynced {
		broken("I5", "%s was accepted in commit %d, and only %d are on disk", r, r.commit, safe)
	}
}

// verdict judges the answer to one settle, extension or operator's command.
func (w *world) verdict(r *request, v engine.Verdict) string {
	if v.Err != nil {
		w.judge.handOn(r)
		if r.commit > 0 && !r.doubted {
			broken("I2", "%s took effect and was refused: %v", r, v.Err)
		}
		w.judge.blurred = w.judge.blurred || r.commit > 0
		if r.sure && (r.told != refused || job.KindOf(v.Err) != r.kindOf) {
			broken("core.md 4", "%s was refused: %v; it must be %s (error kind %d)", r, v.Err, r.told, r.kindOf)
		}
		w.judge.coverage.feature("refused: " + kindName(job.KindOf(v.Err)))
		return "refused: " + kindName(job.KindOf(v.Err))
	}
	if r.sure && r.told == refused {
		broken("I2, core.md 4", "%s was accepted; it must be refused (error kind %d)", r, r.kindOf)
	}
	promised := r.kind != askExtend || r.extension.Progress != nil && r.extension.Progress.Checkpoint != nil
	if !promised && r.lost { // nobody promised that it survives
		return v.State.String() + ", and that is lost"
	}
	if r.commit == 0 { // the same answer as before
		if r.kind != askSettle || r.sure && r.told != repeated {
			broken("core.md 4", "%s was accepted and nothing was written", r)
		}
		if safe := w.disk.safeNow(); w.judge.touched[r.id] > safe && apart(plain(v.Job), plain(w.judge.book.jobs[r.id])) == "" {
			broken("I5", "%s was accepted again, and the first time is not on disk", r)
		}
		w.judge.coverage.feature("the same settle twice")
		return "the same again"
	}
	w.accepted(r, !promised)
	if v.State != r.state {
		broken("answers", "%s led to %s and was told %s", r, r.state, v.State)
	}
	return v.State.String()
}

func (a answer) String() string { return [...]string{"accepted", "accepted again", "refused"}[a] }

func kindName(k job.Kind) string {
	return [...]string{
		"internal", "invalid", "not found", "exists", "wrong state", "superseded", "token needed", "over limit", "unavailable", "corrupt",
		"unprocessable",
	}[k]
}

// holder is somebody who runs work, as the simulation knows it.
type holder struct {
	name     string // as its leases carry it
	kind     job.HolderKind
	queues   []string
	prefetch int
	props    map[string]string
	life     job.Millis    // of each unary lease
	turns    *turn.Options // asks for turns of groups; nil = for jobs

	s        *engine.Stream
	slow     bool   // reads only when a step says so
	closing  bool   // it disconnected
	gone     bool   // and the engine knows
	answered bool   // of a call for turns
	behind   *begun // asks for the rest of the batch of this turn
	got      map[job.Token]bool
	voided   map[job.Token]bool // it was told that these are over
}

// meets reports whether the holder has what a job requires.
func (h *holder) meets(j *job.Job) bool {
	for _, r := range j.Requires {
		if (h.props[r.Property] == r.Value) != (r.Op == "=") {
			return false
		}
	}
	return true
}

// asks reports whether the holder takes jobs of the queue.
func (h *holder) asks(queue string) bool {
	return len(h.queues) == 0 || slices.Contains(h.queues, queue)
}

// hand is a delivery in the hands of a worker.
type hand struct {
	d engine.Delivery
	h *holder
}

// holderOf finds who a lease belongs to. The name of who connects now is
// learnt from its first lease.
func (w *world) holderOf(name string) *holder {
	if h := w.holders[name]; h != nil {
		return h
	}
	for _, h := range []*holder{w.joining, w.polling} {
		if h != nil && h.name == "" && strings.HasPrefix(name, [...]string{"a/", "w/", "u/"}[h.kind]) {
			h.name = name
			w.holders[name] = h
			return h
		}
	}
	return nil
}

// over is a context that is done: what is there is taken, and nobody waits.
func over(parent context.Context) context.Context {
	ctx, cancel := context.WithCancel(parent)
	cancel()
	return ctx
}

// readAll takes what the streams have, in their order.
func (w *world) readAll() bool {
	some, open := false, w.streams[:0:0]
	for _, h := range w.streams {
		if h.closing {
			continue
		}
		read, on := false, true
		if !h.slow {
			read, on = w.read(h)
		}
		some = some || read
		if on {
			open = append(open, h)
		}
	}
	w.streams = open
	return some
}

// read takes what one stream has; on = it goes on.
func (w *world) read(h *holder) (some, on bool) {
	for {
		list, err := h.s.Next(over(w.ctx))
		switch {
		case errors.Is(err, context.Canceled):
			return some, true
		case errors.Is(err, engine.ErrStreamEnded):
			if !w.troubled && !h.gone && w.holders[h.name] == h {
				broken("answers", "stream %s was ended by the server", h.name)
			}
			h.gone = true
			w.say("    %s was ended by the server", h.name)
			return some, false
		case job.KindOf(err) == job.Unavailable && (w.troubled || h.gone):
			w.say("    %s cannot be read", h.name)
			h.gone = true
			return some, false
		case err != nil:
			broken("answers", "reading %s: %v", h.name, err)
		}
		some = true
		for _, d := range list {
			if d.Voided {
				w.voided(h, d)
			} else {
				w.delivered(h, d)
			}
		}
		w.listen() // it was told that there is room again
	}
}

// voided judges the news that a lease is over.
func (w *world) voided(h *holder, d engine.Delivery) {
	x := w.judge
	name := x.name(d.Job.ID)
	now := x.book.jobs[d.Job.ID]
	switch {
	case !h.got[d.Lease.Token] || h.kind != job.Named:
		broken("core.md 4", "%s is told that %s is over for it, which it was not given", h.name, name)
	case h.voided[d.Lease.Token]:
		broken("core.md 4", "%s is told twice that %s is over for it", h.name, name)
	case now != nil && now.LeaseOf(d.Lease.Token) >= 0:
		broken("I3", "%s is told that %s is over for it, and holds it", h.name, name)
	}
	if h.voided == nil {
		h.voided = map[job.Token]bool{}
	}
	h.voided[d.Lease.Token] = true
	x.coverage.feature("told of a void")
	w.say("    %s hears that %s is over for it: %s", h.name, name, d.Ending)
}

// delivered judges one delivery and puts it into the hands of the worker.
func (w *world) delivered(h *holder, d engine.Delivery) {
	x := w.judge
	name := x.name(d.Job.ID)
	g, granted := x.tokens[d.Lease.Token]
	switch {
	case !granted || d.Lease.Holder != h.name:
		broken("I2", "%s got %s under a token that was granted to nobody, or to %s", h.name, name, d.Lease.Holder)
	case h.got[d.Lease.Token]:
		broken("core.md 4", "%s got %s twice under the same token", h.name, name)
	case d.Job.State != job.Leased || d.Job.LeaseOf(d.Lease.Token) < 0:
		broken("I3", "%s got %s as %s", h.name, name, d.Job.State)
	case string(d.Payload) != w.bodyOf(d.Job, name):
		broken("I8", "%s got %s with payload %q, not %q", h.name, name, d.Payload, w.bodyOf(d.Job, name))
	case g.synced && g.commit > w.disk.safeNow():
		broken("I5, core.md 4", "%s got %s before its take was on disk", h.name, name)
	case !d.Held && w.seen[d.Lease.Token] && w.holders[h.name] == h:
		broken("core.md 4", "%s got %s again and was not told that it holds it", h.name, name)
	}
	w.stopAfter(h, &d)
	h.got[d.Lease.Token] = true
	w.seen[d.Lease.Token] = true
	mark := ""
	if d.Held {
		mark = ", held"
		x.coverage.feature("re-attached")
	}
	w.say("    %s has %s%s", h.name, name, mark)
	w.hands = append(w.hands, hand{d, h})
	w.hands = w.hands[max(0, len(w.hands)-w.grasp):]
}
