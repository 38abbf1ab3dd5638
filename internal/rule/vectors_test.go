package rule

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// gridVectors is testdata/grid.json, the shared vectors of the specification.
type gridVectors struct {
	About      string `json:"about"`
	PollWindow struct {
		About      string       `json:"about"`
		MaxTime    float64      `json:"task_max_time"`
		PollPeriod float64      `json:"poll_period"`
		Cases      [][2]float64 `json:"cases"`
	} `json:"poll_window"`
	History []historyVector `json:"history"`
	Queue   []lineVector    `json:"queue"`

	// The tests of grid/plan read these.
	Shares     json.RawMessage `json:"shares"`
	Redundancy json.RawMessage `json:"redundancy"`
}

// loadGrid reads the vectors, and refuses what no test knows: each test that uses a
// part of them fails if an entry of it is new, or gone.
func loadGrid(t testing.TB) (v gridVectors) {
	t.Helper()
	b, err := os.ReadFile("testdata/grid.json")
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

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
