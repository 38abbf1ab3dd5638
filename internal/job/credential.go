package job

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
)

// Scopes is a set of what a token of the API allows.
type Scopes uint8

// The scopes. ScopeAdmin holds all others; otherwise none holds another.
const (
	ScopeEnqueue Scopes = 1 << iota // put jobs in
	ScopeWork                       // take, extend and settle
	ScopeRead                       // look at everything, payloads included
	ScopeOperate                    // change queues and jobs, delete and replay
	ScopeAdmin                      // all of it, and tokens
	ScopesAll    = ScopeAdmin<<1 - 1
)

var scopeNames = [...]string{"enqueue", "work", "read", "operate", "admin"}

// Names lists the scopes in their order.
func (s Scopes) Names() (list []string) {
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return list
}

func (s Scopes) String() string { return strings.Join(s.Names(), ", ") }

// Allows reports whether the set holds one of those wanted.
func (s Scopes) Allows(oneOf Scopes) bool { return s&(oneOf|ScopeAdmin) != 0 }

// ParseScopes reads names of scopes. The field of its errors is scopes.
func ParseScopes(names []string) (s Scopes, err error) {
	for _, name := range names {
		i := slices.Index(scopeNames[:], name)
		if i < 0 {
			return 0, badCredential("scopes", "there is no scope %q; choose from %s", name, ScopesAll)
		}
		s |= 1 << i
	}
	if s == 0 {
		return 0, badCredential("scopes", "name at least one scope of %s", ScopesAll)
	}
	return s, nil
}

// Bounds of a credential.
const (
	credentialNameMax     = 128
	CredentialPatternsMax = 64   // patterns of queues
	patternBytesMax       = 1024 // of one, as of the name of a queue
)

// Credential is what is kept of a token of the API: who it is, what it may do,
// and the hash of its text. The text itself is with its owner only.
type Credential struct {
	ID      string // the part of the text that is no secret
	Name    string // for people and the audit log; no two have the same
	Hash    [32]byte
	Scopes  Scopes
	Queues  []string // patterns of MatchQueue; none = all queues
	Created Millis
	Expires Millis // 0 = never
	By      Actor  // who made it
}

// Table implements Row.
func (c *Credential) Table() Table { return Credentials }

// Key implements Row.
func (c *Credential) Key() string { return c.ID }

// Due implements Row: an expired one stays, so that it can be looked at.
func (c *Credential) Due() Millis { return 0 }

// Expired reports whether its time is over.
func (c *Credential) Expired(now Millis) bool { return c.Expires != 0 && c.Expires <= now }

// Lasting reports whether it can always make others.
func (c *Credential) Lasting() bool { return c.Scopes&ScopeAdmin != 0 && c.Expires == 0 }

// Check refuses what cannot be a credential; its errors name the field.
func (c *Credential) Check() error {
	switch {
	case c.Name == "":
		return badCredential("name", "name is missing")
	case len(c.Name) > credentialNameMax || strings.ContainsFunc(c.Name, func(r rune) bool { return !nameRune(r) }):
		return badCredential("name", "name must be at most %d letters, digits and . _ - @", credentialNameMax)
	case c.Scopes == 0 || c.Scopes > ScopesAll:
		return badCredential("scopes", "name at least one scope of %s", ScopesAll)
	case len(c.Queues) > CredentialPatternsMax:
		return badCredential("queues", "there may be at most %d patterns of queues", CredentialPatternsMax)
	case c.Scopes&ScopeAdmin != 0 && len(c.Queues) > 0:
		return badCredential("queues", "a token with the scope admin may do everything, so it cannot be for some queues")
	}
	for _, p := range c.Queues {
		if p == "" || len(p) > patternBytesMax || strings.ContainsAny(p, ",?[]{}\\\x00") {
			return badCredential("queues", "%q is no pattern of queues: 1 to %d bytes, where * stands for any text, without , ? [ ] { } \\ and NUL", p, patternBytesMax)
		}
	}
	return nil
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@", r)
}

func badCredential(field, format string, args ...any) *Error {
	e := Errorf(Invalid, format, args...)
	e.Field = field
	return e
}

// Reaches reports whether the credential is for a queue.
func (c *Credential) Reaches(queue string) bool {
	return len(c.Queues) == 0 || slices.ContainsFunc(c.Queues, func(p string) bool { return MatchQueue(p, queue) })
}

// MatchQueue reports whether a pattern fits the whole name of a queue: * stands
// for any text, also for none, and everything else for itself.
func MatchQueue(pattern, name string) bool {
	star, mark := -1, 0 // the latest star, and what it stands for up to
	p, n := 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0: // let the star take one more
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// The text of a token is rp_ID_SECRET: 10 letters that tell which one it is,
// and 52 that hold 256 random bits, both out of secretLetters.
const (
	secretPrefix  = "rp_"
	secretLetters = "0123456789abcdefghijklmnopqrstuv" // 5 bits each
	secretIDLen   = 10
	secretLen     = len(secretPrefix) + secretIDLen + 1 + 52
)

// NewSecret makes the text of a token. rnd gives 64 bits a call that nobody can
// guess.
func NewSecret(rnd func() uint64) string {
	b := append(make([]byte, 0, secretLen), secretPrefix...)
	letters := func(n int) {
		var bits [40]byte // a byte for each letter costs nothing here
		for i := 0; i < len(bits); i += 8 {
			binary.LittleEndian.PutUint64(bits[i:], rnd())
		}
		for _, c := range bits[:n] {
			b = append(b, secretLetters[c%32])
		}
	}
	letters(secretIDLen)
	b = append(b, '_')
	letters(26)
	letters(26)
	return string(b)
}

// ParseSecret takes the text of a token apart: its id, and the hash that is
// compared. ok is false for what is no such text.
func ParseSecret(text string) (id string, hash [32]byte, ok bool) {
	if len(text) != secretLen || text[:len(secretPrefix)] != secretPrefix {
		return "", hash, false
	}
	const bar = len(secretPrefix) + secretIDLen
	var b [secretLen]byte // on the stack
	copy(b[:], text)
	for i := len(secretPrefix); i < secretLen; i++ {
		c := b[i]
		if i == bar != (c == '_') || i != bar && (c < '0' || c > '9') && (c < 'a' || c > 'v') {
			return "", hash, false
		}
	}
	return text[len(secretPrefix):bar], sha256.Sum256(b[:]), true
}
