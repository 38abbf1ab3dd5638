package job

import (
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"path"
	"strings"
	"testing"
)

func TestTheTextOfATokenIsReadBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2)).Uint64
	seen := map[string]bool{}
	for range 1000 {
		text := NewSecret(rnd)
		id, hash, ok := ParseSecret(text)
		if !ok || hash != sha256.Sum256([]byte(text)) || !strings.HasPrefix(text, "rp_"+id+"_") {
			t.Fatalf("%q was read as %q, %t", text, id, ok)
		}
		if seen[id] || seen[text[14:]] {
			t.Fatalf("%q was there before", text)
		}
		seen[id], seen[text[14:]] = true, true
	}
	good := NewSecret(rnd)
	for _, bad := range []string{
		"", "rp_", good[1:], good + "0", good[:len(good)-1], "xx" + good[2:], strings.ToUpper(good),
		strings.Replace(good, "_", "-", 2), good[:20] + "w" + good[21:], good[:20] + "_" + good[21:], good[:5] + " " + good[6:],
	} {
		if _, _, ok := ParseSecret(bad); ok {
			t.Errorf("%q is taken for a token", bad)
		}
	}
}

// Each of the 52 letters must be any of 32, or there were fewer than 256 bits.
func TestASecretHasAllItsBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4)).Uint64
	var seen [secretLen]map[byte]bool
	for range 2000 {
		for i, c := range []byte(NewSecret(rnd)) {
			if seen[i] == nil {
				seen[i] = map[byte]bool{}
			}
			seen[i][c] = true
		}
	}
	for i, letters := range seen {
		if want := 32; i > 13 && len(letters) != want {
			t.Errorf("letter %d is one of %d, not of %d", i, len(letters), want)
		}
	}
}

func TestScopesAreReadByName(t *testing.T) {
	s, err := ParseScopes([]string{"work", "enqueue", "work"})
	if err != nil || s != ScopeEnqueue|ScopeWork || s.String() != "enqueue, work" {
		t.Errorf("got %v, %v", s, err)
	}
	for _, bad := range [][]string{nil, {}, {"write"}, {"read", ""}, {"ADMIN"}} {
		if s, err := ParseScopes(bad); fieldOf(err) != "scopes" || s != 0 {
			t.Errorf("%q: got %v, %v", bad, s, err)
		}
	}
	for _, c := range []struct {
		has, wants Scopes
		ok         bool
	}{
		{ScopeEnqueue, ScopeEnqueue, true},
		{ScopeEnqueue, ScopeWork, false},
		{ScopeOperate, ScopeRead, false},
		{ScopeRead | ScopeWork, ScopeEnqueue | ScopeWork, true},
		{ScopeAdmin, ScopeEnqueue, true},
		{ScopeOperate, ScopeAdmin, false},
		{0, ScopesAll, false},
	} {
		if c.has.Allows(c.wants) != c.ok {
			t.Errorf("%v allows %v: want %t", c.has, c.wants, c.ok)
		}
	}
}

func fieldOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Field
	}
	return ""
}

func TestACredentialNamesWhatIsWrongWithIt(t *testing.T) {
	many := func(n int) (list []string) {
		for range n {
			list = append(list, "q*")
		}
		return list
	}
	for _, c := range []struct {
		field string
		c     Credential
	}{
		{"", Credential{Name: "ci@host-1.x", Scopes: ScopeEnqueue, Queues: []string{"mail-*", "*", "ü"}}},
		{"", Credential{Name: "root", Scopes: ScopeAdmin}},
		{"", Credential{Name: "azAZ09._-@", Scopes: ScopesAll}},
		{"", Credential{Name: strings.Repeat("a", 128), Scopes: ScopeRead, Queues: many(64)}},
		{"", Credential{Name: "a", Scopes: ScopeRead, Queues: []string{strings.Repeat("q", 1024)}}},
		{"name", Credential{Name: "a{", Scopes: ScopeRead}},
		{"name", Credential{Name: "a:", Scopes: ScopeRead}},
		{"name", Credential{Name: "ü", Scopes: ScopeRead}},
		{"name", Credential{Scopes: ScopeRead}},
		{"name", Credential{Name: "a b", Scopes: ScopeRead}},
		{"name", Credential{Name: strings.Repeat("a", 129), Scopes: ScopeRead}},
		{"scopes", Credential{Name: "a"}},
		{"scopes", Credential{Name: "a", Scopes: 64}},
		{"queues", Credential{Name: "a", Scopes: ScopeRead, Queues: []string{""}}},
		{"queues", Credential{Name: "a", Scopes: ScopeRead, Queues: []string{"a,b"}}},
		{"queues", Credential{Name: "a", Scopes: ScopeRead, Queues: []string{"a?"}}},
		{"queues", Credential{Name: "a", Scopes: ScopeRead, Queues: many(65)}},
		{"queues", Credential{Name: "a", Scopes: ScopeRead, Queues: []string{strings.Repeat("q", 1025)}}},
		{"queues", Credential{Name: "a", Scopes: ScopeAdmin | ScopeRead, Queues: []string{"a"}}},
	} {
		if field := fieldOf(c.c.Check()); field != c.field {
			t.Errorf("%+v: %q is wrong, want %q", c.c, field, c.field)
		}
	}
}

func TestPatternsFitWholeNames(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		fits          bool
	}{
		{"mail", "mail", true},
		{"mail", "mails", false},
		{"mail", "email", false},
		{"mail", "Mail", false},
		{"mail-*", "mail-", true},
		{"mail-*", "mail-eu", true},
		{"mail-*", "mail", false},
		{"mail-*", "xmail-eu", false},
		{"*", "", true},
		{"*", "anything", true},
		{"**", "a", true},
		{"", "", true},
		{"", "a", false},
		{"*-eu", "mail-eu", true},
		{"*-eu", "mail-eu-eu", true},
		{"*-eu", "mail-eu2", false},
		{"a*b*c", "abc", true},
		{"a*b*c", "axbxc", true},
		{"a*b*c", "acb", false},
		{"a*b*c", "abcbc", true},
		{"*a", "aa", true},
		{"a*a", "a", false},
	} {
		if MatchQueue(c.pattern, c.name) != c.fits {
			t.Errorf("%q fits %q: want %t", c.pattern, c.name, c.fits)
		}
	}
	c := Credential{Queues: []string{"mail-*", "bills"}}
	if !c.Reaches("mail-x") || !c.Reaches("bills") || c.Reaches("bill") || !(&Credential{}).Reaches("any") {
		t.Errorf("%v reaches the wrong queues", c.Queues)
	}
}

// FuzzMatchQueue compares with path.Match, whose * is ours in names without a
// slash, and looks at how long a hostile pattern may take.
func FuzzMatchQueue(f *testing.F) {
	f.Add("mail-*", "mail-eu")
	f.Add("a*b*c", "aXbXc")
	f.Add("*a*a*a*a*b", strings.Repeat("a", 100))
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if strings.ContainsAny(pattern, "?[]\\/") || strings.Contains(name, "/") || len(pattern)+len(name) > 4000 {
			return
		}
		want, err := path.Match(pattern, name)
		if got := MatchQueue(pattern, name); err == nil && got != want {
			t.Errorf("%q fits %q: %t, want %t", pattern, name, got, want)
		}
	})
}

func FuzzParseSecret(f *testing.F) {
	f.Add(NewSecret(rand.New(rand.NewPCG(1, 2)).Uint64))
	f.Add("rp_0123456789_")
	f.Fuzz(func(t *testing.T, text string) {
		id, hash, ok := ParseSecret(text)
		if ok != (id != "") || ok != (hash != [32]byte{}) {
			t.Fatalf("%q: id %q, hash %x, %t", text, id, hash, ok)
		}
		if ok && (text[:14] != "rp_"+id+"_" || hash != sha256.Sum256([]byte(text))) {
			t.Fatalf("%q was read as %q", text, id)
		}
	})
}
