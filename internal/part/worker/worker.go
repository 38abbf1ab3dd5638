// Package worker is the part for the secrets of workers (operations.md, Security).
//
// Its state is two rows, the halves of the key that secrets are made by.
package worker

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"github.com/reprisehq/reprise/internal/engine"
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

// Workers are the workers with secrets.
type Workers struct{ engine *engine.Engine }

// Join implements engine.Part.
func (w *Workers) Join(e *engine.Engine) engine.Hooks {
	w.engine = e
	return engine.Hooks{}
}

// Register draws a secret for a worker: see Name, Extend.
func (w *Workers) Register(ctx context.Context, worker string) (secret string, err error) {
	key, err := w.key(ctx)
	if err == nil && key == nil {
		if err = w.engine.Do(ctx, 0, w.drawKey); err == nil {
			key, err = w.key(ctx)
		}
	}
	if err != nil {
		return "", err
	}
	number := binary.BigEndian.AppendUint64(nil, w.engine.Random())
	return hex.EncodeToString(append(number, codeOf(key, worker, number)...)), nil
}

// drawKey makes the key, unless another call just did.
func (w *Workers) drawKey(tx *engine.Tx) error {
	tx.Store().Durable()
	for _, name := range workerKeys {
		half, err := store.Row[*job.Reserve](tx.Store(), name)
		if err != nil || half != nil {
			return err
		}
		if err := tx.Store().Set(&job.Reserve{Name: name, Next: int64(w.engine.Random())}); err != nil {
			return err
		}
	}
	return nil
}

// key is nil before the first registration.
func (w *Workers) key(ctx context.Context) (key []byte, err error) {
	err = w.engine.View(ctx, func(v store.Reader) error {
		for _, name := range workerKeys {
			half, err := store.Row[*job.Reserve](v, name)
			if err != nil || half == nil {
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

// Name is the one under which a worker leases with its secret; ErrSecret if that is not
// its secret.
func (w *Workers) Name(ctx context.Context, worker, secret string) (name string, err error) {
	given, bad := hex.DecodeString(secret)
	if bad != nil || len(given) != secretNumber+secretCode {
		return "", ErrSecret
	}
	key, err := w.key(ctx)
	if err != nil {
		return "", err
	}
	number := given[:secretNumber]
	if key == nil || subtle.ConstantTimeCompare(given[secretNumber:], codeOf(key, worker, number)) != 1 {
		return "", ErrSecret
	}
	return worker + "\x00" + secret[:2*secretNumber], nil
}

// extendMax bounds the leases of one transaction.
const extendMax = 2000

// Extend is the heartbeat of all leases that a worker took with its secret: each lives
// for span from now, or if that is 0 for as long as it did before. It answers one verdict
// for each lease, by id; what the worker runs and is not told of is over. A wrong secret
// is ErrSecret, and nothing was changed.
func (w *Workers) Extend(ctx context.Context, worker, secret string, span job.Millis) ([]engine.Verdict, error) {
	name, err := w.Name(ctx, worker, secret)
	if err != nil {
		return nil, err
	}
	holder := engine.UnaryHolder(name)
	var ids []job.ID
	if err := w.engine.View(ctx, func(v store.Reader) error { ids, err = v.IDs(store.Held(holder), store.All); return err }); err != nil {
		return nil, err
	}
	slices.SortFunc(ids, job.ID.Compare)
	var all []engine.Verdict
	for part := range slices.Chunk(ids, extendMax) {
		out, err := engine.Ask(ctx, w.engine, func(tx *engine.Tx) ([]engine.Verdict, error) { return extendHeld(tx, holder, part, span) })
		if err != nil {
			return nil, err
		}
		all = append(all, out...)
	}
	return all, nil
}

// extendHeld extends what a holder still has of these jobs.
func extendHeld(tx *engine.Tx, holder string, ids []job.ID, span job.Millis) (out []engine.Verdict, err error) {
	for _, id := range ids {
		j, err := tx.Store().Get(id)
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
		v, err := engine.VerdictOf(tx.Step(j, rule.Command{Verb: rule.Extend, Token: l.Token, Until: tx.Steady().Add(cmp.Or(span, l.Length, engine.LeaseDefault))}))
		if err != nil {
			return nil, err
		}
		v.Job = cmp.Or(v.Job, j)
		out = append(out, v)
	}
	return out, nil
}
