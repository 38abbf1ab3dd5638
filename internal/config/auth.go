package config

import (
	"log/slog"
	"strings"

	"github.com/reprisehq/reprise/internal/job"
)

// tokensPath is where the file names the tokens of the API that it gives.
const tokensPath = "auth.tokens"

// The keys of a token in the file.
const (
	tokenSecret = "secret"
	tokenScopes = "scopes"
	tokenQueues = "queues"
)

// tokens reads auth.tokens. What is kept of a secret is its hash: no other
// part of the server ever sees it.
func (l *loader) tokens() {
	l.named(tokensPath, "tokens", func(e entry) {
		base := join(tokensPath, e.key)
		found := l.file.leaves(e.value, base, []string{tokenSecret, tokenScopes, tokenQueues})
		c := job.Credential{Name: e.key, Queues: l.file.texts(found[tokenQueues], join(base, tokenQueues))}
		switch n := found[tokenSecret]; {
		case n == nil:
			l.file.problem(e.line, base, "secret is missing; make one with \"reprise token generate\"")
		case n.kind == badNode: // said already
		default:
			ok := false
			if c.ID, c.Hash, ok = job.ParseSecret(n.text); !ok {
				l.file.problem(n.line, join(base, tokenSecret), "is no token (what it is, is not shown); make one with \"reprise token generate\"")
			}
			if !n.isSecret() {
				l.notice(slog.LevelWarn, join(base, tokenSecret)+" is written into the file: whoever reads it has the token; keep it elsewhere, and refer to it by ${env:NAME} or ${file:PATH}")
			}
			l.fileValues = append(l.fileValues, Value{join(base, tokenSecret), masked, l.fileOrigin(n)})
		}
		names := l.file.texts(found[tokenScopes], join(base, tokenScopes))
		scopes, err := job.ParseScopes(names)
		if err == nil {
			c.Scopes = scopes
			err = c.Check()
		}
		if err != nil {
			l.file.problem(e.line, base, "%s", err)
		}
		for _, have := range l.cfg.Tokens {
			if have.ID == c.ID && c.ID != "" {
				l.file.problem(e.line, base, "has the same secret as %s", join(tokensPath, have.Name))
			}
		}
		l.cfg.Tokens = append(l.cfg.Tokens, c)
		if n := found[tokenScopes]; n != nil {
			l.fileValue(join(base, tokenScopes), strings.Join(names, ","), n)
		}
		if n := found[tokenQueues]; n != nil {
			l.fileValue(join(base, tokenQueues), strings.Join(c.Queues, ","), n)
		}
	})
}

// texts reads a value, or a list of them.
func (d *document) texts(n *node, path string) (list []string) {
	if n == nil {
		return nil
	}
	items := n.items
	if n.kind == scalarNode {
		items = []*node{n}
	}
	if n.kind != listNode && n.kind != scalarNode && n.kind != badNode {
		d.problem(n.line, path, "must be a list, not %s", n.kind)
	}
	for _, item := range items {
		if item.kind != scalarNode {
			d.problem(item.line, path, "each entry must be a single value, not %s", item.kind)
			continue
		}
		list = append(list, item.text)
	}
	return list
}

// HasAdmin reports whether the configuration has a token that may make others.
func (c Config) HasAdmin() bool {
	for _, t := range c.Tokens {
		if t.Scopes&job.ScopeAdmin != 0 {
			return true
		}
	}
	return false
}
