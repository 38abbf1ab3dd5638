package job

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestATokenCarriesItsStartAnd128RandomBits(t *testing.T) { // core.md section 4
	token := NewToken(0xdeadbeef, constant(0x0123456789abcdef))
	if token.Start() != 0xdeadbeef {
		t.Errorf("start %x", token.Start())
	}
	random := []byte{0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01}
	if !bytes.Equal(token[4:12], random) || !bytes.Equal(token[12:20], random) {
		t.Errorf("the random part is %x", token[4:])
	}
}

func TestTokensAreDifferentAndSoAreTheirHashes(t *testing.T) { // I2
	rnd, tokens, hashes := dice(1), map[Token]bool{}, map[uint64]bool{}
	for range 10_000 {
		token := NewToken(3, rnd)
		if tokens[token] || hashes[token.Hash()] || token.IsZero() {
			t.Fatalf("%x came twice, or is no token", token)
		}
		tokens[token], hashes[token.Hash()] = true, true
	}
}

func TestTwoStartsNeverMakeTheSameToken(t *testing.T) {
	if NewToken(1, dice(1)) == NewToken(2, dice(1)) {
		t.Error("the start number does not tell them apart")
	}
}

func TestATokenIsWrittenAs40HexadecimalCharactersAndReadBack(t *testing.T) {
	rnd := dice(2)
	for start := range uint32(100) {
		token := NewToken(start, rnd)
		text := string(token.AppendTo(nil))
		if len(text) != 40 || strings.Trim(text, "0123456789abcdef") != "" {
			t.Fatalf("%q", text)
		}
		if back, err := ParseToken(text); err != nil || back != token {
			t.Fatalf("%s reads as %x, %v", text, back, err)
		}
	}
}

func TestParseTokenRefusesEverythingElse(t *testing.T) {
	good := string(NewToken(1, dice(3)).AppendTo(nil))
	for _, text := range []string{"", good[1:], good + "0", good[:39] + "g", good[:39] + " ", "0x" + good[2:]} {
		if token, err := ParseToken(text); !errors.Is(err, ErrToken) || !token.IsZero() {
			t.Errorf("%q was read as %x, %v", text, token, err)
		}
	}
}

func TestEveryEndingOutcomeAndHolderKindHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	name := func(s string) {
		if s == "" || seen[s] {
			t.Errorf("the name %q is empty or taken", s)
		}
		seen[s] = true
	}
	for e := ByLapse; e <= ByTimeout; e++ {
		name("ending " + e.String())
	}
	for o := OK; o <= Released; o++ {
		name("outcome " + o.String())
	}
	for k := Anonymous; k <= Unary; k++ {
		name("holder " + k.String())
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add("")
	f.Add(strings.Repeat("0", 40))
	f.Add(strings.Repeat("Ff", 20))
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		if err != nil {
			return
		}
		if back := string(token.AppendTo(nil)); back != strings.ToLower(text) {
			t.Fatalf("%q is written back as %s", text, back)
		}
	})
}
