package rule

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// move is one accepted step of a history.
type move struct {
	verb Verb
	to   job.State
}

// noise is a random history as bytes.
func noise(seed uint64, n int) []byte {
	rnd, b := rand.New(rand.NewPCG(seed, 11)), make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
	}
	return b[:n]
}

// tape reads decisions off bytes; at its end all are zero.
type tape struct{ b []byte }

func (t *tape) n(below int) int {
	if len(t.b) == 0 {
		return 0
	}
	v := int(t.b[0])
	t.b = t.b[1:]
	return v % below
}

func (t *tape) yes() bool { return t.n(2) == 1 }

// history plays any bytes as a history of a queue: settings first, then
// commands on up to five jobs, refused or not. The world checks every step.
func history(w *world, b []byte) (moves []move) {
	t := &tape{b}
	furnish(w, t)
	names := []string{"a", "b", "c", "d", "e"}
	tokens := map[string][]job.Token{}
	for len(t.b) > 0 {
		name := names[t.n(len(names))]
		if w.jobs[name] == nil {
			w.putAt(job.Place(t.n(4)), name, anyJob(w, t))
			moves = append(moves, move{Put, w.jobs[name].State})
			tokens[name] = nil
			continue
		}
		c := anyCommand(w, t, name, tokens[name])
		if c.Verb == Take && !standsInLine(w, name) {
			continue // no store offers it
		}
		if err := w.try(name, c); err != nil || w.last.Repeat {
			continue
		}
		to := job.None
		if j := w.jobs[name]; j != nil {
			to = j.State
		}
		moves = append(moves, move{c.Verb, to})
		if c.Verb == Take {
			tokens[name] = append(tokens[name], c.Lease.Token)
		}
		oneLiveTurn(w)
	}
	return moves
}

func standsInLine(w *world, name string) bool {
	for _, n := range w.line(Seeker{}) {
		if n == name {
			return true
		}
	}
	return false
}

// oneLiveTurn is I7: a strict group never has two members out.
func oneLiveTurn(w *world) {
	w.Helper()
	if w.queue.Order != job.OrderStrict {
		return
	}
	for group, g := range w.groups() {
		if g.Live > 1 {
			w.Fatalf("I7: group %s has %d live turns", group, g.Live)
		}
	}
}

func furnish(w *world, t *tape) {
	q := w.queue
	q.Order, q.OnDead, q.FrontOrder = job.Order(t.n(3)), job.OnDead(t.n(3)), job.FrontOrder(t.n(2))
	q.LateOKNever, q.RequireToken = t.n(5) == 4, t.n(5) == 4
	q.RunTimeout, q.StartTimeout = job.Millis(t.n(3))*job.Second, job.Millis(t.n(3))*700
	q.Retry.Curve = wait(job.Millis(t.n(3)) * 500)
	q.Retry.Limit, q.Retry.LossLimit = job.LimitOf(uint32(t.n(4))), job.LimitOf(uint32(1+t.n(4)))
	if t.yes() {
		q.Retry.MaxAge = 4 * job.Second
	}
	if t.yes() {
		q.Retry.Rules = anyRules(t)
	}
	w.server.RetainDead, w.server.RetainDone = job.Millis(t.n(2))*job.Minute, job.Millis(t.n(2))*job.Minute
	w.dice = float64(t.n(8)) / 8
}

func anyRules(t *tape) *job.Rules {
	var list job.Rules
	for n := t.n(4); n > 0; n-- {
		r := job.Rule{Do: job.Do(1 + t.n(4)), Delay: job.Millis(1+t.n(3)) * 400}
		if t.yes() {
			r.When.ErrorTypes = []string{[]string{"E", "Timeout"}[t.n(2)]}
		}
		if t.yes() {
			r.When.Message = "boom"
		}
		if t.n(3) == 0 {
			r.When.Timeout = job.Answer(1 + t.n(2))
		}
		if r.Do == job.DoRetry {
			r.Delay, r.Curve, r.Limit = 0, wait(job.Millis(t.n(3))*300), job.LimitOf(uint32(t.n(3)))
			r.IgnoreRetryAfter = t.yes()
		}
		list = append(list, r)
	}
	return &list
}

func anyJob(w *world, t *tape) func(*job.Job) {
	return func(j *job.Job) {
		j.Group = []string{"", "g", "h"}[t.n(3)]
		j.Copies = uint8(t.n(3))
		j.Priority = uint16(t.n(2))
		j.ReadyAt = []job.Millis{0, w.now - 5, w.now + 900}[t.n(3)]
		j.ExpiresAt = []job.Millis{0, 0, w.now + 2500}[t.n(3)]
		j.GraceUntil = []job.Millis{0, 0, w.now + 1200}[t.n(3)]
		j.Extras = anyKey(t)
	}
}

func anyCommand(w *world, t *tape, name string, tokens []job.Token) Command {
	j := w.jobs[name]
	c := Command{
		Verb: Take + Verb(t.n(int(Verbs-Take))), Place: job.Place(t.n(4)), Allow: t.yes(),
		Failure: job.Failure{Type: "E"}, Edit: func(j *job.Job) { j.ReadyAt = w.now },
	}
	if t.yes() {
		c.Edit = func(j *job.Job) { j.ReadyAt = w.now + 300 }
	}
	holder := []string{"x", "y", "z"}[t.n(3)]
	if isSettle(c.Verb) {
		c.Hold = job.Millis(t.n(2)) * 500
	}
	switch c.Verb {
	case Take:
		c.Lease = w.lease(holder, func(l *job.Lease) {
			l.Kind, l.Exclusive = job.HolderKind(t.n(3)), j.Isolated
			if l.Kind == job.Unary {
				l.Until = w.steady + 800
			}
		})
	case Extend:
		c.Until, c.Started = w.steady+900, t.yes()
	case SettleRetry:
		c.RetryAt = []job.Millis{0, 0, w.now + 100}[t.n(3)]
		c.After = job.Millis(t.n(2)) * 700
		if t.yes() {
			c.Match = func(string) (bool, bool) { return c.After > 0, true }
		}
	case SettleRelease, SettleDead:
		c.After = job.Millis(t.n(2)) * 700
	case Lapse:
		c.Ending = []job.Ending{job.ByLapse, job.ByDisconnect, job.ByRestart}[t.n(3)]
		if t.yes() {
			c.Holder = holder
		}
	default:
	}
	if n := len(tokens); n > 0 && t.n(4) > 0 {
		c.Token = tokens[n-1-t.n(n)]
	}
	if t.n(4) == 3 {
		w.tick(job.Millis(1+t.n(20)) * 100)
	}
	if t.n(40) == 39 {
		w.start++
	}
	return c
}

// FuzzStep plays histories; every step is held against I1 to I4, I6 and I7.
func FuzzStep(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(noise(seed, 400))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4096 {
			t.Skip("long histories find nothing that short ones do not")
		}
		history(newWorld(t), b)
	})
}
