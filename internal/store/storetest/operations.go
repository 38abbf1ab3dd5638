package storetest

import (
	"fmt"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// What the histories speak of. Every queue has an order of its own to begin
// with; few names make many meetings.
var (
	queueNames  = []string{"none", "start", "strict", "one"}
	groupNames  = []string{"", "a", "b", "c"}
	holderNames = []string{"h1", "h2", "h3", "h4"}
	hostNames   = []string{"", "x", "y"}
	typeNames   = []string{"mail", "bill", "ship"}
)

// operation is one thing that may happen in a transaction.
type operation struct {
	name   string
	weight int
	run    func(h *history, tx store.Tx) error
}

// jobsMax is how many jobs a history keeps about; above it none is put.
const jobsMax = 60

var operations = []operation{
	{"put", 24, (*history).putOne},
	{"take", 16, (*history).takeSome},
	{"turn", 8, (*history).takeTurn},
	{"settle ok", 6, settleBy(rule.SettleOK)},
	{"settle retry", 10, settleBy(rule.SettleRetry)},
	{"settle release", 4, settleBy(rule.SettleRelease)},
	{"settle dead", 4, settleBy(rule.SettleDead)},
	{"late", 3, (*history).settleLate},
	{"extend", 3, (*history).extendOne},
	{"lapse", 3, (*history).lapseHolder},
	{"clock", 14, (*history).turnHands},
	{"offer", 3, stepAny(rule.Command{Verb: rule.Offer}, job.Leased)},
	{"revive", 5, stepAny(rule.Command{Verb: rule.Revive, Allow: true}, job.Dead, job.Scheduled)},
	{"revive in order", 2, stepAny(rule.Command{Verb: rule.Revive}, job.Dead)},
	{"cancel", 2, stepAny(rule.Command{Verb: rule.Cancel, Failure: job.Failure{Message: "cancelled"}}, job.Scheduled, job.Ready, job.Leased)},
	{"purge", 4, stepAny(rule.Command{Verb: rule.Purge}, job.Done, job.Dead)},
	{"patch", 8, (*history).patchOne},
	{"queue", 6, (*history).changeQueue},
	{"gate", 6, (*history).changeGate},
	{"throttle", 8, (*history).changeThrottle},
	{"row", 6, (*history).changeRow},
	{"fold", 6, (*history).foldOne},
	{"grow", 6, (*history).growOne},
}

// operate draws an operation. What the rules refuse changes nothing.
func (h *history) operate(tx store.Tx) error {
	total := 0
	for _, o := range operations {
		total += o.weight
	}
	at := h.rng.IntN(total)
	for _, o := range operations {
		if at -= o.weight; at >= 0 {
			continue
		}
		err := o.run(h, tx)
		if refused(err) {
			h.say("%s refused: %v", o.name, err)
			h.tally[o.name+" refused"]++
			return nil
		}
		h.tally[o.name]++
		return err
	}
	return nil
}

// broken is an answer that must not be; no rule refused anything.
func broken(format string, args ...any) error { return job.Errorf(job.Internal, format, args...) }

func one[T any](h *history, list []T) T { return list[h.rng.IntN(len(list))] }

// sometimes reports true once in n times.
func (h *history) sometimes(n int) bool { return h.rng.IntN(n) == 0 }

// pick draws a job in one of the states, nil if there is none.
func (h *history) pick(tx store.Tx, states ...job.State) (*job.Job, error) {
	list, err := tx.List(store.Filter{States: states}, pageMax)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return one(h, list), nil
}

// stepAny applies a command to any job in one of the states.
func stepAny(c rule.Command, states ...job.State) func(*history, store.Tx) error {
	return func(h *history, tx store.Tx) error {
		j, err := h.pick(tx, states...)
		if j == nil {
			return err
		}
		c := c
		c.Place = job.Place(h.rng.IntN(4))
		h.say("%s %s %s", c.Verb, j.ID, c.Place)
		_, err = h.world.step(tx, j.ID, c)
		return err
	}
}

func (h *history) putOne(tx store.Tx) error {
	n, err := tx.Count(store.Filter{})
	if err != nil || n >= jobsMax {
		return err
	}
	j := &job.Job{
		ID: h.id(), Queue: one(h, queueNames), Type: one(h, typeNames), Group: one(h, groupNames),
		Priority: job.PriorityDefault + uint16(h.rng.IntN(3)), Copies: uint8(max(1, h.rng.IntN(5)-1)),
		RetainDone: h.retention(), RetainDead: h.retention(),
	}
	if h.sometimes(3) {
		j.ReadyAt = h.now + job.Millis(h.rng.IntN(20_000)) - 5000
	}
	if h.sometimes(6) {
		j.ExpiresAt = h.now + job.Millis(h.rng.IntN(60_000))
	}
	if h.sometimes(4) {
		j.Ranked, j.Rank = true, int64(h.rng.IntN(300))-100
	}
	if h.sometimes(4) {
		j.Requires = []job.Requirement{{Property: "os", Op: "=", Value: one(h, []string{"linux", "plan9"})}}
	}
	if h.sometimes(2) {
		j.Retry = &job.Retry{Limit: job.LimitOf(uint32(h.rng.IntN(3))), LossLimit: job.LimitOf(uint32(1 + h.rng.IntN(4)))}
	}
	if h.sometimes(4) {
		j.RunTimeout = job.Millis(1 + h.rng.IntN(30_000))
	}
	if h.sometimes(4) {
		j.StartTimeout = job.Millis(1 + h.rng.IntN(30_000))
	}
	if h.sometimes(8) {
		j.GraceUntil = h.now + job.Minute
	}
	if h.sometimes(3) {
		j.Extras = h.keyed()
	}
	if err := h.givePayload(tx, j, j.ID); err != nil {
		return err
	}
	c := rule.Command{New: j, Place: job.Place(h.rng.IntN(4))}
	h.ids = append(h.ids, j.ID)
	h.say("put %s into %s, group %q, ready at %d, expires %d, copies %d, %d bytes %s",
		j.ID, j.Queue, j.Group, j.ReadyAt, j.ExpiresAt, j.Copies, j.PayloadSize, c.Place)
	_, err = h.put(tx, c)
	return err
}

func (h *history) retention() job.Millis {
	return one(h, []job.Millis{job.Unset, 0, job.Second, job.Minute, job.Hour})
}

// givePayload gives a job a payload of its own, the one of another job, or none.
func (h *history) givePayload(tx store.Tx, j *job.Job, ref job.ID) error {
	other, err := h.pick(tx)
	switch {
	case err != nil:
		return err
	case h.sometimes(4):
		j.Payload, j.PayloadSize = job.ID{}, 0
	case h.sometimes(3) && other != nil:
		j.Payload, j.PayloadSize = other.Payload, other.PayloadSize
	default:
		body := fmt.Appendf(nil, "%*d", h.rng.IntN(30), h.now)[:h.rng.IntN(14)]
		j.Payload, j.PayloadSize = ref, uint32(len(body))
		return tx.PutPayload(ref, body)
	}
	return nil
}

func (h *history) seeker() rule.Seeker {
	s := rule.Seeker{Holder: one(h, holderNames), Held: h.rng.IntN(2), HasIsolated: h.sometimes(10)}
	if h.sometimes(2) {
		s.Properties = map[string]string{"os": one(h, []string{"linux", "plan9", "beos"})}
	}
	if h.sometimes(3) {
		s.Room = rooms(h.rng.IntN(5))
	}
	if s.Engine = h.sometimes(3); s.Engine {
		s.Host = one(h, hostNames)
	}
	return s
}

// takeSome takes what Ready offers, as the engine does: as long as it still
// fits. That a rule refuses what was offered is an error of the store.
func (h *history) takeSome(tx store.Tx) error {
	s := h.seeker()
	var queues []string
	if h.sometimes(2) {
		queues = queueNames[h.rng.IntN(len(queueNames)):]
	}
	list, err := tx.Ready(queues, s, 1+h.rng.IntN(4))
	if err != nil {
		return err
	}
	for _, j := range list {
		class := rule.EntriesOf(j).Class
		if !rule.Fits(class, j.Requires, s) {
			continue
		}
		l := &job.Lease{Token: h.token(), Holder: s.Holder, Kind: job.HolderKind(h.rng.IntN(3)), Exclusive: s.Held == 0, Host: s.Host, AnyHost: h.rng.IntN(4) == 0}
		if l.Kind == job.Unary {
			l.Until = h.now + job.Millis(h.rng.IntN(20_000))
		}
		h.say("take %s for %s %s", j.ID, s.Holder, l.Kind)
		if _, err = h.world.step(tx, j.ID, rule.Command{Verb: rule.Take, Lease: l}); err != nil {
			return broken("Ready offers job %s, which cannot be taken: %v", j.ID, err)
		}
		h.tokens = append(h.tokens, granted{j.ID, l.Token})
		s.Held++
		s.HasIsolated = s.HasIsolated || class.Isolated
	}
	return nil
}

func settleBy(v rule.Verb) func(*history, store.Tx) error {
	return func(h *history, tx store.Tx) error {
		j, err := h.pick(tx, job.Leased)
		if j == nil {
			return err
		}
		return h.settleWith(tx, v, j.ID, one(h, j.Leases).Token)
	}
}

// settleLate settles with any token that was ever granted.
func (h *history) settleLate(tx store.Tx) error {
	if len(h.tokens) == 0 {
		return nil
	}
	g := one(h, h.tokens[max(0, len(h.tokens)-30):])
	return h.settleWith(tx, rule.SettleOK+rule.Verb(h.rng.IntN(4)), g.id, g.token)
}

func (h *history) settleWith(tx store.Tx, v rule.Verb, id job.ID, t job.Token) error {
	c := rule.Command{Verb: v, Token: t, Place: job.Place(h.rng.IntN(4))}
	if h.sometimes(5) {
		c.Token = job.Token{}
	}
	if v == rule.SettleRetry || v == rule.SettleDead {
		c.Failure = job.Failure{Type: one(h, typeNames), Message: fmt.Sprint("it broke at ", h.now), Status: h.rng.IntN(600)}
	}
	if h.sometimes(5) {
		c.After = job.Millis(h.rng.IntN(10_000))
	}
	if h.sometimes(5) && v == rule.SettleRetry {
		c.RetryAt = h.now + job.Millis(h.rng.IntN(10_000))
	}
	if v == rule.SettleOK && h.sometimes(3) {
		if c.Result = job.InlineResult(make([]byte, h.rng.IntN(9))); h.sometimes(2) {
			c.Result = &job.Result{Ref: h.payloadID(), Size: c.Result.Size}
		}
	}
	h.say("%s %s %s after %d at %d, result %+v", v, id, c.Place, c.After, c.RetryAt, c.Result)
	e, err := h.world.step(tx, id, c)
	if err == nil && c.Result != nil && c.Result.Bytes == nil && e.Job.Result() == c.Result {
		err = tx.PutPayload(c.Result.Ref, make([]byte, c.Result.Size))
	}
	return err
}

func (h *history) extendOne(tx store.Tx) error {
	j, err := h.pick(tx, job.Leased)
	if j == nil {
		return err
	}
	c := rule.Command{Verb: rule.Extend, Token: one(h, j.Leases).Token, Until: h.now + 10*job.Second, Started: h.sometimes(2)}
	h.say("extend %s", j.ID)
	_, err = h.world.step(tx, j.ID, c)
	return err
}

// lapseHolder takes everything from a holder.
func (h *history) lapseHolder(tx store.Tx) error {
	names, err := store.Holders(tx)
	if err != nil || len(names) == 0 {
		return err
	}
	c := rule.Command{Verb: rule.Lapse, Holder: one(h, names), Ending: job.Ending(h.rng.IntN(3))}
	ids, err := tx.IDs(store.Held(c.Holder), store.All)
	for _, id := range ids {
		h.say("lapse %s by %s of %s", id, c.Ending, c.Holder)
		if _, err = h.world.step(tx, id, c); err != nil {
			return broken("Held names job %s, which is not held: %v", id, err)
		}
	}
	return err
}

// turnHands does what the clock does. That a rule refuses a job that is due
// is an error of the store (I6).
func (h *history) turnHands(tx store.Tx) error {
	verbs := [rule.Hands]rule.Verb{
		rule.HandDue: rule.Promote, rule.HandTimeout: rule.Lapse, rule.HandLapse: rule.Lapse, rule.HandExpire: rule.Expire, rule.HandPurge: rule.Purge,
	}
	for hand, v := range verbs {
		ids, err := tx.IDs(store.Due(rule.Hand(hand), h.now), 1+h.rng.IntN(10))
		if err != nil {
			return err
		}
		for _, id := range ids {
			h.say("clock: %s %s", v, id)
			if _, err = h.world.step(tx, id, rule.Command{Verb: v}); err != nil {
				return broken("Due names job %s for the hand %s: %v", id, rule.Hand(hand), err)
			}
		}
	}
	return nil
}
