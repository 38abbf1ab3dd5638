package wire

// The scopes of a token. Admin holds all others.
const (
	ScopeEnqueue = "enqueue" // put jobs in
	ScopeWork    = "work"    // take, extend and settle
	ScopeRead    = "read"    // look at everything, payloads included
	ScopeOperate = "operate" // change queues and jobs, delete and replay
	ScopeAdmin   = "admin"   // all of it, and tokens
)

// NewToken is the body of POST /tokens.
type NewToken struct {
	Name      string   `json:"name"`   // letters, digits and . _ - @; no two tokens have the same
	Scopes    []string `json:"scopes"` // at least one
	Queues    []string `json:"queues,omitzero"`
	ExpiresAt int64    `json:"expires_at,omitzero"` // 0 = never
	ExpiresIn int64    `json:"expires_in_ms,omitzero"`
}

// Token is what is known of a token.
type Token struct {
	ID         string   `json:"id"` // the part after rp_, which is no secret
	Name       string   `json:"name"`
	Scopes     []string `json:"scopes"`
	Queues     []string `json:"queues,omitzero"` // patterns, where * stands for any text; none = all queues
	CreatedAt  int64    `json:"created_at,omitzero"`
	ExpiresAt  int64    `json:"expires_at,omitzero"`
	Expired    bool     `json:"expired,omitzero"`
	LastUsedAt int64    `json:"last_used_at,omitzero"` // to the minute; not there if it was not used since the server started
	By         string   `json:"by,omitzero"`           // who made it
	From       string   `json:"from,omitzero"`
	Configured bool     `json:"configured,omitzero"` // it stands in the configuration
}

// MadeToken answers POST /tokens.
type MadeToken struct {
	Token
	Secret string `json:"token"` // its whole text, told once and kept nowhere
}

// Tokens answers GET /tokens, by name.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}
