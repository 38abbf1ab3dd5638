package job

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// dice gives the same numbers in every run.
func dice(seed uint64) func() uint64 { return rand.New(rand.NewPCG(seed, 7)).Uint64 }

func constant(n uint64) func() uint64 { return func() uint64 { return n } }

func TestAnIDIsWrittenAs25CharactersOfDigitsAndLowerLetters(t *testing.T) {
	ids := NewIDs(ID{}, dice(1))
	for range 1000 {
		text := ids.Next(1_700_000_000_000).String()
		if len(text) != IDChars || strings.Trim(text, idDigits) != "" {
			t.Fatalf("%q is not 25 characters of 0-9 and a-z", text)
		}
	}
}

func TestKnownIDsAreWrittenAsEveryBase36CalculatorDoes(t *testing.T) {
	last := ID{}
	for i := range last {
		last[i] = 0xff
	}
	for text, id := range map[string]ID{
		"0000000000000000000000000": {},
		"0000000000000000000000001": {15: 1},
		"000000000000000000000000z": {15: 35},
		"0000000000000000000000010": {15: 36},
		"000000000000000000001ynvl": {13: 0x32, 14: 0x4e, 15: 0x61}, // 3296865
		"f5lxx1zz5pnorynqglhzmsp33": last,                           // 2^128 - 1
	} {
		if got := id.String(); got != text {
			t.Errorf("%x is written %s, want %s", id[:], got, text)
		}
		if back, err := ParseID(text); err != nil || back != id {
			t.Errorf("%s reads as %x, %v", text, back[:], err)
		}
	}
}

func TestOrderOfBytesOfTextAndOfCreationAgree(t *testing.T) {
	ids := NewIDs(ID{}, dice(2))
	clock := rand.New(rand.NewPCG(3, 3))
	now, last := Millis(1_700_000_000_000), ID{}
	for range 20_000 {
		now += Millis(clock.IntN(5)) - 2 // stands, runs and goes back
		id := ids.Next(now)
		agree(t, last, id)
		if !last.Before(id) {
			t.Fatalf("%s was made after %s and does not stand behind it", id, last)
		}
		last = id
	}
}

// agree holds the three ways to order two ids against each other.
func agree(t testing.TB, a, b ID) {
	t.Helper()
	want := bytes.Compare(a[:], b[:])
	if got := a.Compare(b); got != want {
		t.Fatalf("Compare(%s, %s) is %d, their bytes say %d", a, b, got, want)
	}
	if got := cmp.Compare(a.String(), b.String()); got != want {
		t.Fatalf("%s and %s compare as text %d, as bytes %d", a, b, got, want)
	}
	if a.Before(b) != (want < 0) || b.Before(a) != (want > 0) {
		t.Fatalf("Before disagrees with the bytes of %s and %s", a, b)
	}
}

func TestIDsRiseWhileTheClockStandsStill(t *testing.T) {
	for name, rnd := range map[string]func() uint64{
		"random": dice(4), "all zero": constant(0), "all one": constant(1<<64 - 1),
	} {
		t.Run(name, func(t *testing.T) {
			ids, last := NewIDs(ID{}, rnd), ID{}
			for range 5000 {
				id := ids.Next(Minute)
				if !last.Before(id) {
					t.Fatalf("%s does not stand behind %s", id, last)
				}
				last = id
			}
		})
	}
}

func TestIDsRiseWhenTheClockGoesBackAYear(t *testing.T) {
	ids := NewIDs(ID{}, dice(5))
	before := ids.Next(1_700_000_000_000)
	for range 1000 {
		id := ids.Next(1_700_000_000_000 - 365*Day)
		if !before.Before(id) {
			t.Fatalf("%s does not stand behind %s", id, before)
		}
		before = id
	}
	if after := ids.Next(1_700_000_000_001 + Day); after.millis() != uint64(1_700_000_000_001+Day) {
		t.Errorf("once the clock is ahead again, ids carry its time: %d", after.millis())
	}
}

func TestIDsRiseWhenTheCountersOverflowIntoTheTime(t *testing.T) {
	full := idOf(7, 1<<24-1, 1<<24-1, 1<<32-1)
	next := NewIDs(full, constant(0)).Next(7)
	if !full.Before(next) || next.millis() != 8 {
		t.Errorf("after %s comes %s with time %d, want time 8", full, next, next.millis())
	}
}

func TestIDsAreAboveTheFloorTheyWereMadeWith(t *testing.T) { // core.md section 4
	floor := NewIDs(ID{}, dice(6)).Next(1_900_000_000_000)
	if id := NewIDs(floor, dice(6)).Next(1_700_000_000_000); !floor.Before(id) {
		t.Errorf("%s is not above the highest stored id %s", id, floor)
	}
}

func TestAnIDBeforeTheEpochHasTimeZero(t *testing.T) {
	if id := NewIDs(ID{}, constant(0)).Next(-Hour); id.millis() != 0 || id.IsZero() {
		t.Errorf("got %s with time %d", id, id.millis())
	}
}

func TestParseIDRefusesEverythingElse(t *testing.T) {
	good := NewIDs(ID{}, dice(8)).Next(1_700_000_000_000).String()
	for _, text := range []string{
		"", "0", good[1:], good + "0", " " + good[1:], good[:24] + " ",
		strings.ToUpper(good), good[:24] + "-", good[:24] + "{", good[:24] + "/", good[:24] + ":", good[:24] + "`",
		good[:23] + "é",             // 25 bytes, 24 characters
		"f5lxx1zz5pnorynqglhzmsp34", // 2^128
		"zzzzzzzzzzzzzzzzzzzzzzzzz",
	} {
		if id, err := ParseID(text); !errors.Is(err, ErrID) || !id.IsZero() {
			t.Errorf("%q was read as %s, %v", text, id, err)
		}
	}
}

func TestOnlyTheZeroIDIsZero(t *testing.T) {
	if !(ID{}).IsZero() || (ID{15: 1}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

// FuzzParseID reads any text. What is read is written back the same, and
// neighbours keep their order.
func FuzzParseID(f *testing.F) {
	f.Add([]byte("0000000000000000000000000"), []byte("f5lxx1zz5pnorynqglhzmsp33"))
	f.Add([]byte("f5lxx1zz5pnorynqglhzmsp34"), []byte("zzzzzzzzzzzzzzzzzzzzzzzzz"))
	f.Add([]byte("03cp6hyr0fa5z7pm7wy7p2b9o"), []byte("03CP6HYR0FA5Z7PM7WY7P2B9O"))
	f.Add([]byte("0123456789abcdef"), []byte(""))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var ids []ID
		for _, text := range [][]byte{a, b} {
			id, err := ParseID(text)
			if err != nil {
				if !errors.Is(err, ErrID) || !id.IsZero() {
					t.Fatalf("%q: refused with %v and %s", text, err, id)
				}
				var raw ID // any 16 bytes are an id
				copy(raw[:], text)
				id = raw
			} else if id.String() != string(text) {
				t.Fatalf("%q is written back as %s", text, id)
			}
			if again, err := ParseID(id.String()); err != nil || again != id {
				t.Fatalf("%s reads as %s, %v", id, again, err)
			}
			ids = append(ids, id)
		}
		agree(t, ids[0], ids[1])
	})
}
