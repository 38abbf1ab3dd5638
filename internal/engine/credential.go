package engine

import (
	"context"

	"github.com/reprisehq/reprise/internal/job"
	"github.com/reprisehq/reprise/internal/store"
)

// credentialsMax bounds the tokens of the API.
const credentialsMax = 10_000

// Credentials returns what is kept of the tokens of the API, by id.
func (e *Engine) Credentials(ctx context.Context) (list []job.Credential, err error) {
	err = e.View(ctx, func(v store.Reader) error {
		list, err = credentials(v)
		return err
	})
	return list, err
}

func credentials(v store.Reader) (list []job.Credential, err error) {
	rows, err := v.Rows(job.Credentials, "", credentialsMax)
	for _, row := range rows {
		list = append(list, *row.(*job.Credential))
	}
	return list, err
}

// AddCredential makes a token of the API with a text of its own, which is
// returned and nowhere kept. Name, scopes, queues and expiry are the caller's.
//
// The first token must have the scope admin, and DropCredential keeps the last
// such one: once there are tokens a call needs one, and somebody must be able
// to make and revoke them. Options.Admin says that somebody always is.
func (e *Engine) AddCredential(ctx context.Context, c job.Credential, by job.Actor) (text string, made job.Credential, err error) {
	if err := c.Check(); err != nil {
		return "", made, err
	}
	text = job.NewSecret(e.rnd)
	c.ID, c.Hash, _ = job.ParseSecret(text)
	c.By = by
	err = e.Do(ctx, 0, func(r *Tx) error {
		list, err := credentials(r.tx)
		if err != nil {
			return err
		}
		first := len(list) == 0 && !e.opts.Admin
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
		case c.Expired(r.now):
			return &job.Error{Kind: job.Invalid, Field: "expires", Text: "expires must be in the future"}
		}
		for i := range list {
			if list[i].Name == c.Name {
				return job.Errorf(job.Exists, "there is a token %q already; revoke it first, or use another name", c.Name)
			}
		}
		own := c
		own.Created = r.now
		made = own
		r.tx.Durable()
		if err := r.tx.Set(&own); err != nil {
			return err
		}
		return r.Audit(by, job.AuditToken, c.Name+": "+c.Scopes.String(), 0)
	})
	if err != nil {
		return "", job.Credential{}, err
	}
	return text, made, nil
}

// DropCredential revokes a token.
func (e *Engine) DropCredential(ctx context.Context, id string, by job.Actor) error {
	return e.Do(ctx, 0, func(r *Tx) error {
		list, err := credentials(r.tx)
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
		case gone.Lasting() && admins == 1 && !e.opts.Admin:
			return job.Errorf(job.WrongState, "this is the last token with the scope admin that does not expire; make another one first, or give one in the configuration (auth.tokens)")
		}
		r.tx.Durable()
		if err := r.tx.Unset(job.Credentials, id); err != nil {
			return err
		}
		return r.Audit(by, job.AuditRevoke, gone.Name, 0)
	})
}

// QueuesOf returns the queues of jobs, "" for one that is not there.
func (e *Engine) QueuesOf(ctx context.Context, ids []job.ID) (queues []string, err error) {
	err = e.View(ctx, func(v store.Reader) error {
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
