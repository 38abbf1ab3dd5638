package plan

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// gridVectors is the shared vectors of the specification.
type gridVectors struct {
	Shares []struct {
		Engines int    `json:"engines"`
		Weights []int  `json:"weights"`
		Caps    []*int `json:"caps"`
		Target  []int  `json:"target"`
	} `json:"shares"`
	About      string `json:"about"`
	Redundancy struct {
		Done    []float64          `json:"done"`
		Running int                `json:"running"`
		Fires   map[string]float64 `json:"fires_above_s"`
	} `json:"redundancy"`

	// The tests of rule read these.
	PollWindow json.RawMessage `json:"poll_window"`
	History    json.RawMessage `json:"history"`
	Queue      json.RawMessage `json:"queue"`
}

// loadGrid reads the vectors, and refuses what no test knows: each test that uses a
// part of them fails if an entry of it is new, or gone.
func loadGrid(t testing.TB) (v gridVectors) {
	t.Helper()
	b, err := os.ReadFile("../../../rule/testdata/grid.json")
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		err = d.Decode(&v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// shares are the shares of a filler that shares out for the first time.
func shares(slots, least int, claims []Claim) []int {
	var f filler
	f.fill(slots, least, claims)
	return f.target
}

const endless = 1 << 40

func claimsOf(weights ...int) (list []Claim) {
	for _, w := range weights {
		list = append(list, Claim{Weight: w, Demand: endless})
	}
	return list
}

func TestA20SharesOfTheVectors(t *testing.T) {
	vectors := loadGrid(t).Shares
	if len(vectors) != 5 {
		t.Fatalf("there are %d vectors", len(vectors))
	}
	for _, v := range vectors {
		claims := claimsOf(v.Weights...)
		for i, most := range v.Caps {
			if most != nil {
				claims[i].Max = *most
			}
		}
		for least := range 2 {
			if got := shares(v.Engines, least, claims); !slices.Equal(got, v.Target) {
				t.Errorf("%d engines, weights %v, caps %v: %v, want %v", v.Engines, v.Weights, v.Caps, got, v.Target)
			}
		}
		if got := filled(v.Engines, claims); !slices.Equal(got, v.Target) {
			t.Errorf("%d engines, weights %v, caps %v: picked %v, want %v", v.Engines, v.Weights, v.Caps, got, v.Target)
		}
	}
}

// filled is who has the slots when each was given to who was picked.
func filled(slots int, claims []Claim) (running []int) {
	r := NewRota(1)
	r.SetSlots(slots)
	var list []*Share
	for _, c := range claims {
		s := r.Join("", c)
		r.Wait(s, c.Demand)
		list = append(list, s)
	}
	for range slots {
		if s := r.Pick(nil); s != nil {
			r.Start(s)
		}
	}
	for _, s := range list {
		running = append(running, s.Running)
	}
	return running
}

func TestSharesAtTheEdges(t *testing.T) {
	demands := claimsOf(5, 5, 5) // reference section 6: demands without end, 10, 2
	demands[1].Demand, demands[2].Demand = 10, 2
	urgent := claimsOf(1, 9, 3)
	urgent[0].Urgent, urgent[0].Demand = true, 4
	for name, c := range map[string]struct {
		slots, least int
		claims       []Claim
		want         []int
	}{
		"demands":              {100, 1, demands, []int{88, 10, 2}},
		"nobody":               {5, 1, nil, []int{}},
		"no slots":             {0, 1, claimsOf(5, 5), []int{0, 0}},
		"all suspended":        {5, 1, claimsOf(0, 0), []int{0, 0}},
		"no work":              {5, 1, []Claim{{Weight: 5}, {Weight: 5, Demand: -1}}, []int{0, 0}},
		"one each":             {4, 1, claimsOf(9, 9, 1, 1), []int{1, 1, 1, 1}},
		"as GridServer does":   {4, 0, claimsOf(9, 9, 1, 1), []int{2, 2, 0, 0}},
		"too few for one each": {3, 1, claimsOf(9, 9, 1, 1), []int{2, 1, 0, 0}},
		"from who has most":    {6, 1, claimsOf(9, 9, 1, 1, 1), []int{2, 1, 1, 1, 1}},
		"urgent first":         {8, 1, urgent, []int{4, 3, 1}},
		"all urgent":           {3, 1, urgent[:1], []int{3}},
	} {
		if got := shares(c.slots, c.least, c.claims); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func drawClaims(t *rapid.T) []Claim {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claim {
		return Claim{
			Weight: rapid.IntRange(0, 9).Draw(t, "weight"), Max: rapid.IntRange(0, 9).Draw(t, "max"),
			Demand: rapid.IntRange(0, 30).Draw(t, "demand"), Urgent: rapid.IntRange(0, 9).Draw(t, "urgent") == 0,
		}
	}), 0, 12).Draw(t, "claims")
}

func TestLawsOfShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, claims, least := rapid.IntRange(0, 60).Draw(t, "slots"), drawClaims(t), rapid.IntRange(0, 1).Draw(t, "least")
		got := shares(slots, least, claims)
		sum, most, active := 0, 0, 0
		for i := range claims {
			sum += got[i]
			most += claims[i].most()
			active += oneIf(claims[i].most() > 0)
			if got[i] < 0 || got[i] > claims[i].most() {
				t.Fatalf("session %d gets %d of %d: %v", i, got[i], claims[i].most(), got)
			}
		}
		if sum != min(slots, most) {
			t.Fatalf("%d slots given of %d, %d could be used: %v", sum, slots, most, got)
		}
		// Who is not full has its part, to less than one slot, of what those have
		// together who are not full.
		for i := range claims {
			for k := range claims {
				a, b := &claims[i], &claims[k]
				if least == 0 && a.Urgent == b.Urgent && a.most() > 0 && b.most() > 0 && got[i] < a.most() &&
					(got[i]+1)*b.Weight < (got[k]-1)*a.Weight {
					t.Fatalf("session %d has %d for its weight of %d, session %d has %d for %d", i, got[i], a.Weight, k, got[k], b.Weight)
				}
			}
			if least == 1 && active <= slots && claims[i].most() > 0 && got[i] == 0 && !slices.ContainsFunc(claims, func(c Claim) bool { return c.Urgent }) {
				t.Fatalf("session %d has nothing: %v", i, got)
			}
		}
		if len(claims) == 0 {
			return
		}
		i := rapid.IntRange(0, len(claims)-1).Draw(t, "raised")
		if more := slices.Clone(claims); more[i].Weight < 9 {
			more[i].Weight++
			if after := shares(slots, 0, more); after[i] < shares(slots, 0, claims)[i] {
				t.Fatalf("more weight for session %d: %v, then %v", i, shares(slots, 0, claims), after)
			}
		}
	})
}
