package engine

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/rule"
	"github.com/reprisehq/reprise/internal/store"
)

// A worker may keep all its unary leases with one heartbeat, by its name and a
// secret that only it has: names are no secrets. The secret is a number drawn
// for this registration, and a code over name and number by a key that never
// leaves the store. So nothing is kept of a registration, it needs no end, and
// it survives a restart. The number is a part of the holder's name: whoever
// leases under the same name without the secret is another holder.

const (
	secretNumber = 8 // bytes
	secretCode   = 16
)

// ErrSecret refuses the secret of a worker.
var ErrSecret = &job.Error{
	Kind: job.Forbidden, Field: "secret",
	Text: "this is not the secret of this worker: send the one that POST /jobs/lease answered with register, or extend by tokens",
}

// workerKeys are the rows with the two halves of the key.
var workerKeys = [2]string{"worker key 0", "worker key 1"}

// Register draws a secret for a worker: see LeaseOptions.Secret, ExtendWorker.
func (e *Engine) Register(ctx context.Context, worker string) (secret string, err error) {
	key, err := e.workerKey(ctx)
	if err == nil && key == nil {
		if err = e.Do(ctx, 0, (*Tx).drawWorkerKey); err == nil {
			key, err = e.workerKey(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	number := binary.BigEndian.AppendUint64(nil, e.rnd())
	return hex.EncodeToString(append(number, codeOf(key, worker, number)...)), nil
}

// drawWorkerKey makes the key, unless another call just did.
func (r *Tx) drawWorkerKey() error {
	r.tx.Durable()
	for _, name := range workerKeys {
		row, err := r.tx.Row(job.Reserves, name)
		if err != nil || row != nil {
			return err
		}
		if err := r.tx.Set(&job.Reserve{Name: name, Next: int64(r.e.rnd())}); err != nil {
			return err
		}
	}
	return nil
}

// workerKey is nil before the first registration.
func (e *Engine) workerKey(ctx context.Context) (key []byte, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		for _, name := range workerKeys {
			row, err := v.Row(job.Reserves, name)
			half, ok := row.(*job.Reserve)
			if err != nil || !ok {
				return err
			}
			key = binary.BigEndian.AppendUint64(key, uint64(half.Next))
		}
		return nil
	})
	return key, err
}

func codeOf(key []byte, worker string, number []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(worker))
	h.Write(number)
	return h.Sum(nil)[:secretCode]
}

// registered is the holder that a secret proves to be; ErrSecret if it does not.
func (e *Engine) registered(ctx context.Context, worker, secret string) (holder string, err error) {
	given, bad := hex.DecodeString(secret)
	if bad != nil || len(given) != secretNumber+secretCode {
		return "", ErrSecret
	}
	key, err := e.workerKey(ctx)
	if err != nil {
		return "", err
	}
	number := given[:secretNumber]
	if key == nil || subtle.ConstantTimeCompare(given[secretNumber:], codeOf(key, worker, number)) != 1 {
		return "", ErrSecret
	}
	return unaryPrefix + worker + "\x00" + secret[:2*secretNumber], nil
}

// ExtendWorker is the heartbeat of all leases that a worker took with its
// secret: each lives for span from now, or if that is 0 for as long as it did before. It answers one verdict for each lease,
// by id; what the worker runs and is not told of is over. A wrong secret is
// ErrSecret, and nothing was changed.
func (e *Engine) ExtendWorker(ctx context.Context, worker, secret string, span job.Millis) ([]Verdict, error) {
	holder, err := e.registered(ctx, worker, secret)
	if err != nil {
		return nil, err
	}
	var ids []job.ID
	if err := e.View(ctx, func(v store.Reader) error { ids, err = v.Held(holder); return err }); err != nil {
		return nil, err
	}
	slices.SortFunc(ids, job.ID.Compare)
	var all []Verdict
	for part := range slices.Chunk(ids, recoverMax) {
		var out []Verdict
		err := e.Do(ctx, 0, func(r *Tx) (err error) { out, err = r.extendHeld(holder, part, span); return err })
		if err != nil { // out may still be written to
			return nil, err
		}
		all = append(all, out...)
	}
	return all, nil
}

// extendHeld extends what a holder still has of these jobs.
func (r *settling) extendHeld(holder string, ids []job.ID, span job.Millis) (out []Verdict, err error) {
	for _, id := range ids {
		j, err := r.tx.Get(id)
		if err != nil {
			return nil, err
		}
		if j == nil {
			continue
		}
		at := slices.IndexFunc(j.Leases, func(l job.Lease) bool { return l.Holder == holder })
		if at < 0 {
			continue
		}
		l := &j.Leases[at]
		v, err := VerdictOf(r.Step(j, rule.Command{Verb: rule.Extend, Token: l.Token, Until: r.steady.Add(cmp.Or(span, l.Span, LeaseDefault))}))
		if err != nil {
			return nil, err
		}
		v.Job = cmp.Or(v.Job, j)
		out = append(out, v)
	}
	return out, nil
}
