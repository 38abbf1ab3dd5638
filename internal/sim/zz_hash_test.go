package sim_test

import (
	"fmt"
	"os"
	"testing"
)

func TestHashes(t *testing.T) {
	f, err := os.Create(os.Getenv("HASHES"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for seed := uint64(1); seed <= 1500; seed++ {
		fmt.Fprintln(f, seed, play(t, seed, planOf(seed), noFault, newCoverage()).hash)
	}
}
