// Package token is the part for the tokens of the API (operations.md, Security).
//
// Its state is rows.
package token

import (
	"context"
	"sync/atomic"

	"github.com/reprisehq/reprise/internal/engine"
	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// credentialsMax bounds the tokens of the API.
const credentialsMax = 10_000

// Tokens are the tokens of a server that are not in its configuration.
type Tokens struct {
	// Admin: the configuration has a token with the scope admin that does not expire.
	Admin atomic.Bool

	engine *engine.Engine
}

// Join implements engine.Part.
func (t *Tokens) Join(e *engine.Engine) engine.Hooks {
	t.engine = e
	return engine.Hooks{}
}

// List returns what is kept of the tokens, by id.
func (t *Tokens) List(ctx context.Context) (list []job.Credential, err error) {
	err = t.engine.View(ctx, func(v store.Reader) error {
		list, err = credentials(v)
		return err
	})
	return list, err
}

func credentials(v store.Reader) (list []job.Credential, err error) {
	rows, err := store.Rows[*job.Credential](v, "", credentialsMax)
	for _, c := range rows {
		list = append(list, *c)
	}
	return list, err
}

// Add makes a token with a text of its own, which is
// returned and nowhere kept. Name, scopes, queues and expiry are the caller's.
//
// The first token must have the scope admin, and Drop keeps the last
// such one: once there are tokens a call needs one, and somebody must be able
// to make and revoke them. Tokens.Admin says that somebody always is.
func (t *Tokens) Add(ctx context.Context, c job.Credential, by job.Actor) (text string, made job.Credential, err error) {
	if err := c.Check(); err != nil {
		return "", made, err
	}
	text = job.NewSecret(t.engine.Random)
	c.ID, c.Hash, _ = job.ParseSecret(text)
	c.By = by
	err = t.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		list, err := credentials(tx.Store())
		if err != nil {
			return err
		}
		first := len(list) == 0 && !t.Admin.Load()
		switch {
		case len(list) == credentialsMax:
			return job.Errorf(job.OverLimit, "there may be %d tokens; revoke some", credentialsMax)
		case first && c.Scopes&job.ScopeAdmin == 0:
			return &job.Error{
				Kind: job.Invalid, Field: "scopes",
				Text: "the first token must have the scope admin: from then on every call needs a token, and somebody must be able to make the others",
			}
		case first && c.Expires != 0:
			return &job.Error{Kind: job.Invalid, Field: "expires", Text: "the first token must not expire: once it did, nobody could make another one"}
		case c.Expired(tx.Now()):
			return &job.Error{Kind: job.Invalid, Field: "expires", Text: "expires must be in the future"}
		}
		for i := range list {
			if list[i].Name == c.Name {
				return job.Errorf(job.Exists, "there is a token %q already; revoke it first, or use another name", c.Name)
			}
		}
		own := c
		own.Created = tx.Now()
		made = own
		tx.Store().Durable()
		if err := tx.Store().Set(&own); err != nil {
			return err
		}
		return tx.Audit(by, job.AuditToken, c.Name+": "+c.Scopes.String(), 0)
	})
	if err != nil {
		return "", job.Credential{}, err
	}
	return text, made, nil
}

// Drop revokes a token.
func (t *Tokens) Drop(ctx context.Context, id string, by job.Actor) error {
	return t.engine.Do(ctx, 0, func(tx *engine.Tx) error {
		list, err := credentials(tx.Store())
		if err != nil {
			return err
		}
		var gone *job.Credential
		admins := 0 // those that cannot leave all at once
		for i := range list {
			if list[i].ID == id {
				gone = &list[i]
			}
			if list[i].Lasting() {
				admins++
			}
		}
		switch {
		case gone == nil:
			return job.Errorf(job.NotFound, "there is no token %q", id)
		case gone.Lasting() && admins == 1 && !t.Admin.Load():
			return job.Errorf(job.WrongState, "this is the last token with the scope admin that does not expire; make another one first, or give one in the configuration (auth.tokens)")
		}
		tx.Store().Durable()
		if err := tx.Store().Unset(job.Credentials, id); err != nil {
			return err
		}
		return tx.Audit(by, job.AuditRevoke, gone.Name, 0)
	})
}

// Queues returns the queues of jobs, which a token may be for or not; "" for one that is not there.
func (t *Tokens) Queues(ctx context.Context, ids []job.ID) (queues []string, err error) {
	err = t.engine.View(ctx, func(v store.Reader) error {
		queues = make([]string, len(ids))
		for i, id := range ids {
			j, err := v.Get(id)
			if err != nil {
				return err
			}
			if j != nil {
				queues[i] = j.Queue
			}
		}
		return nil
	})
	return queues, err
}
