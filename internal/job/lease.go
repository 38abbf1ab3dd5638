package job

import (
	"encoding/hex"
	"errors"
	"hash/fnv"
)

// Token proves a lease: the number of the server's start, then 128 random
// bits. It is given only to its holder and shown nowhere else. The start
// number lets an OK be honoured whose unsynced take a crash forgot (core.md 4).
type Token [20]byte

// ErrToken says that a text is not a lease token.
var ErrToken = errors.New("a lease token has exactly 40 hexadecimal characters")

// IsZero reports whether there is no token.
func (t Token) IsZero() bool { return t == Token{} }

// Start is the number of the server start that issued the token.
func (t Token) Start() uint32 {
	return uint32(t[0])<<24 | uint32(t[1])<<16 | uint32(t[2])<<8 | uint32(t[3])
}

// Hash is what a job remembers of a token that ended.
func (t Token) Hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write(t[:])
	return h.Sum64()
}

// AppendTo appends the 40 characters of the token.
func (t Token) AppendTo(b []byte) []byte { return hex.AppendEncode(b, t[:]) }

// ParseToken reads the 40 characters of a token.
func ParseToken(s string) (Token, error) {
	var t Token
	if len(s) != 2*len(t) {
		return t, ErrToken
	}
	if _, err := hex.Decode(t[:], []byte(s)); err != nil {
		return Token{}, ErrToken
	}
	return t, nil
}

// NewToken makes a token from random bits.
func NewToken(start uint32, rnd func() uint64) Token {
	t := Token{byte(start >> 24), byte(start >> 16), byte(start >> 8), byte(start)}
	for i := 4; i < len(t); i += 8 {
		r := rnd()
		for j := range 8 {
			t[i+j] = byte(r >> (8 * j))
		}
	}
	return t
}

// HolderKind says how the liveness of a holder is known (core.md section 4).
type HolderKind uint8

// The kinds of holder.
const (
	Anonymous HolderKind = iota // a stream without a name: alive while connected
	Named                       // a stream with Worker-Id and tokens: survives reconnect and restart
	Unary                       // leases taken one call at a time, each with its own end
)

func (k HolderKind) String() string { return [...]string{"anonymous", "named", "unary"}[k] }

// Lease is the right to run one attempt.
type Lease struct {
	Token     Token
	Holder    string
	Kind      HolderKind
	AnyHost   bool   // another copy may run on Host
	Copy      bool   // of a task: another run of it was live when it was given out
	Commits   bool   // of a task: its engine had the word that the effects of this run count, and no other runs beside it
	Number    uint32 // of a task: among its runs, 1 for the first; 0 = not counted
	Since     Millis // granted
	Started   Millis // run began, if the holder says so; 0 = not said
	Until     Millis // soft end of a unary lease, moved by Extend; 0 = follows the holder
	Length    Millis // from its grant or latest extension to Until; of a task fetched ahead to RunEnd; 0 = not known
	RunEnd    Millis // hard end (run timeout); 0 = none
	StartBy   Millis // start timeout; 0 = none
	Turn      int64  // turn of the group this lease is part of; 0 = none
	Exclusive bool   // the holder had nothing else when it got this
	Host      string // of an engine: no other copy runs there, unless AnyHost; "" = does not matter
}

// Bars is the host on which no other copy may run; "" = there is none.
func (l *Lease) Bars() string {
	if l.AnyHost {
		return ""
	}
	return l.Host
}

// Ending says how a lease came to its end.
type Ending uint8

// The endings.
const (
	ByLapse Ending = iota
	ByDisconnect
	ByRestart
	ByOK
	ByRetry
	ByRelease
	ByDead
	ByCancel
	BySupersede
	ByTimeout
	ByTurn     // an earlier member of its turn failed or went back; nobody is to blame
	ByEvict    // given back by the server: its engine was logged off
	ByPreempt  // the same, because another session needs the slot
	ByWithdraw // the same, because copies have spent what they may

	ByUndelivered // its engine does not know of it: the answer that gave it was lost

	Endings // how many there are
)

// Evicts reports whether the server took the run back, without blame.
func (e Ending) Evicts() bool { return e == ByEvict || e == ByPreempt || e == ByWithdraw }

func (e Ending) String() string {
	return [...]string{"lapse", "disconnect", "restart", "ok", "retry", "release", "dead", "cancel", "supersede", "timeout", "turn", "evict", "preempt", "withdraw", "undelivered"}[e]
}

// Ended is a token that is not live any more, and how it ended.
type Ended struct {
	Hash uint64
	How  Ending
	Turn int64
}

// Outcome is how an attempt ended, as its holder tells.
type Outcome uint8

// The outcomes (DESIGN section 1).
const (
	OK Outcome = iota
	Retried
	Died
	Released
)

func (o Outcome) String() string { return [...]string{"ok", "retry", "dead", "release"}[o] }

// Requirement is one condition a holder must meet to run a job.
type Requirement struct {
	Property string
	Op       string // = != < <= > >=
	Value    string
}
