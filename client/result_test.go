package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprisehq/reprise/wire"
)

func TestAResultGoesWithAnOKOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := newFake(t, Options{})
		f.fill("q", 4)
		n := 0
		w := start(t, c, WorkerOptions{}, func(_ context.Context, d *Delivery) error {
			n++
			if err := d.SetResult(make(chan int)); err == nil {
				t.Error("a channel was taken for JSON")
			}
			switch n {
			case 1:
				_ = d.SetResult("forgotten")
				return d.SetResult(map[string]int{"sum": 3})
			case 2:
				_ = d.SetResult("of a failure")
				return Dead(errors.New("no"))
			case 3:
				_ = d.SetResult("given back")
				return Release(time.Hour)
			}
			return nil
		})
		pass(time.Minute)
		if err := w.end(); err != nil {
			t.Error(err)
		}
		var got []string
		for _, s := range f.settles {
			got = append(got, s.Outcome+" "+string(s.Result))
		}
		if want := `[ok {"sum":3} dead  release  ok ]`; fmt.Sprint(got) != want {
			t.Errorf("settled %v, want %s", got, want)
		}
	})
}

func TestAResultThatIsTooLargeIsAFailureByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		events := d.events()
		s := newSettler(func(_ context.Context, list []wire.Settle) ([]wire.Verdict, error) {
			for _, s := range list {
				if len(s.Result) > 100 {
					return nil, &Error{Status: 413, Code: wire.CodeTooLarge}
				}
			}
			return make([]wire.Verdict, len(list)), nil
		}, &events, times{}.orDefault())
		s.answer = func(e wire.Settle, _ wire.Verdict) {
			d.note("%s %s %s", e.ID, e.Lease, e.Outcome)
			if e.Error != nil {
				d.note("%s: %s", e.Error.ErrorType, e.Error.Message)
			}
		}
		for _, size := range []int{10, 101, 20} {
			s.add(wire.Settle{ID: fmt.Sprint(size), Lease: "l", Outcome: wire.OutcomeOK, Result: make([]byte, size)})
		}
		s.close()
		s.run(t.Context())
		got := strings.Join(d.lines, "|")
		if want := "10 l ok|101 l retry|ResultTooLarge: the result has 101 bytes, which is more than the server takes: keep what is large elsewhere, and its address in the result|20 l ok"; got != want {
			t.Errorf("%s", got)
		}
	})
}

func TestLargeResultsGoInSeveralCalls(t *testing.T) {
	result := func(n int) report { return report{Settle: wire.Settle{Result: make([]byte, n)}} }
	for _, x := range []struct {
		list []report
		want int
	}{
		{nil, 0},
		{[]report{{}, {}, {}}, 3},
		{[]report{result(resultsBytesMax / 2), result(resultsBytesMax / 2), {}}, 3},
		{[]report{result(resultsBytesMax / 2), result(resultsBytesMax), {}}, 1},
		{[]report{result(5 * resultsBytesMax), {}}, 1},
		{[]report{{}, result(5 * resultsBytesMax)}, 1},
	} {
		if got := fitting(x.list); got != x.want {
			t.Errorf("%d of %d fit, want %d", got, len(x.list), x.want)
		}
	}
}
