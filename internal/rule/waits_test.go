package rule

import (
	"fmt"
	"math"
	"testing"

	"github.com/reprisehq/reprise/internal/job"
)

// firstWaits are the first n waits of a curve.
func firstWaits(c *job.Curve, n int) []Wait {
	list := make([]Wait, 0, n)
	for w := range Waits(c) {
		if list = append(list, w); len(list) == n {
			break
		}
	}
	return list
}

func TestWaitsHoldTheVectorsOfTheSpecification(t *testing.T) {
	for _, file := range []string{"testdata/backoff.json", "testdata/zizq_including.json"} {
		for _, v := range loadVectors(t, file).Waits {
			got := firstWaits(curveOf(t, string(v.Policy)), v.Retry)[v.Retry-1]
			middle := float64(v.MinMillis+v.MaxMillis) / 2
			if got.Min != v.MinMillis || got.Max != v.MaxMillis || math.Abs(float64(got.Mean)-middle) > 0.5 {
				t.Errorf("%s retry %d: %+v, want %d, %.1f, %d", v.Policy, v.Retry, got, v.MinMillis, middle, v.MaxMillis)
			}
		}
	}
}

func TestDrawnDelaysLieInTheirWaitsAndAverageToTheMean(t *testing.T) {
	const retries, draws = 14, 5_000
	for _, policy := range everyKind {
		t.Run(policy, func(t *testing.T) {
			c := curveOf(t, policy)
			waits := firstWaits(c, retries)
			rnd := seeded()
			var sum, squares [retries]float64
			for range draws {
				previous := job.Millis(0)
				for i, w := range waits {
					previous = Delay(c, i+1, previous, rnd)
					if previous < w.Min || previous > w.Max {
						t.Fatalf("retry %d drew %d, outside %d..%d", i+1, previous, w.Min, w.Max)
					}
					off := float64(previous - w.Mean)
					sum[i], squares[i] = sum[i]+off, squares[i]+off*off
				}
			}
			for i, w := range waits {
				mean := sum[i] / draws // how far the draws are off
				noise := math.Sqrt(squares[i]/draws) / math.Sqrt(draws)
				if math.Abs(mean) > 4*noise+0.5 {
					t.Errorf("retry %d: draws average to %.1f, the mean is %d (noise %.1f)", i+1, float64(w.Mean)+mean, w.Mean, noise)
				}
			}
		})
	}
}

func TestTheEndsOfAWaitAreReachedByTheEndsOfTheSource(t *testing.T) {
	for _, policy := range everyKind {
		c := curveOf(t, policy)
		least, most := job.Millis(0), job.Millis(0)
		for i, w := range firstWaits(c, 40) {
			least, most = Delay(c, i+1, least, always(0)), Delay(c, i+1, most, always(1-1.0/(1<<53)))
			if _, _, inclusive := DelayBounds(c, i+1); !inclusive {
				most++ // the end itself is not drawn
			}
			if least != w.Min || w.Max-most > w.Max>>50 { // a float cannot reach each of so many values
				t.Errorf("%s retry %d: drew %d..%d, want %d..%d", policy, i+1, least, most, w.Min, w.Max)
			}
		}
	}
}

func TestDecorrelatedMeansFollowTheClosedFormUntilTheCap(t *testing.T) {
	c := curveOf(t, `{"kind":"exponential","unit":"1s","cap":"30000d","jitter":"decorrelated"}`)
	want := 1000.0 // E[w(n)] = (base + 3 E[w(n-1)]) / 2 where nothing is cut
	for i, w := range firstWaits(c, 15) {
		want = (1000 + 3*want) / 2
		if math.Abs(float64(w.Mean)-want) > want*1e-4 {
			t.Errorf("retry %d: mean %d, want %.0f", i+1, w.Mean, want)
		}
	}
}

func TestWaitsOfAnyCurveStayInOrderAndLegal(t *testing.T) {
	for _, policy := range append([]string{
		`{"kind":"exponential","unit":"1ms","factor":1e300,"cap":"365d","jitter":"decorrelated"}`,
		`{"kind":"linear","base":0,"step":"1s","jitter":"decorrelated"}`,
		`{"kind":"linear","base":"1ms","step":"1s","jitter":"decorrelated"}`,
		`{"kind":"linear","base":"5s","step":"1s","cap":"5s","jitter":"decorrelated"}`,
		`{"kind":"list","delays":[1,2],"jitter":"decorrelated"}`,
		`{"kind":"polynomial","exponent":400}`,
	}, everyKind...) {
		for i, w := range firstWaits(curveOf(t, policy), 1000) {
			if w.Min < 0 || w.Mean < w.Min || w.Max < w.Mean || w.Max > job.MaxMillis {
				t.Fatalf("%s retry %d: %+v", policy, i+1, w)
			}
		}
	}
	want := Wait{16 * job.Second, 31 * job.Second, 46 * job.Second}
	if got := firstWaits(nil, 2)[1]; got != want {
		t.Errorf("without a curve: %+v, want the default's %+v", got, want)
	}
}

func ExampleWaits() {
	c := &job.Curve{Kind: job.CurveUniform, Base: 3 * job.Second, Cap: 30 * job.Second}
	for _, w := range firstWaits(c, 4) {
		fmt.Println(w.Min, w.Mean, w.Max)
	}
	// Output:
	// 3s 4.5s 6s
	// 3s 7.5s 12s
	// 3s 13.5s 24s
	// 3s 16.5s 30s
}
