package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var spans = Span(func(v float64) string { return (time.Duration(v) * time.Millisecond).String() })

func TestTicksAreFewRoundAndInside(t *testing.T) {
	for _, tt := range []struct {
		s    scale
		unit Unit
		want []float64
	}{
		{scale{low: 1, high: 25}, Number, []float64{5, 10, 15, 20, 25}},
		{scale{low: 0, high: 3}, Number, []float64{0, 1, 2, 3}},
		{scale{low: 0, high: 30 * second}, spans, []float64{0, 5 * second, 10 * second, 15 * second, 20 * second, 25 * second, 30 * second}},
		{scale{low: 0, high: 40 * day}, spans, []float64{0, 5 * day, 10 * day, 15 * day, 20 * day, 25 * day, 30 * day, 35 * day, 40 * day}},
		{scale{low: 5 * second, high: 2000 * second, log: true}, spans, []float64{10 * second, minute, 10 * minute}},
	} {
		if got := tt.s.ticks(tt.unit); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.s, got, tt.want)
		}
	}
	for high := 1.0; high < 1e19; high *= 3 {
		for _, s := range []scale{{low: 0, high: high}, {low: 1, high: high, log: true}} {
			got := s.ticks(spans)
			if len(got) == 0 || len(got) > ticksMax+2 || got[0] < s.low || got[len(got)-1] > high {
				t.Errorf("%+v has the ticks %v", s, got)
			}
		}
	}
}

func TestScalesMapTheirEndsToTheFrame(t *testing.T) {
	for _, s := range []scale{{1, 100, false, 10, 20}, {1, 100, true, 20, 10}} {
		if s.at(1) != s.from || s.at(100) != s.to {
			t.Errorf("%+v: %v..%v", s, s.at(1), s.at(100))
		}
	}
	if got := (scale{1, 100, true, 0, 10}).at(10); math.Abs(got-5) > 1e-9 {
		t.Errorf("the logarithmic middle is at %v", got)
	}
}

func TestAChartIsWellFormedInsideItsFrameAndAlwaysTheSame(t *testing.T) {
	c := &Chart{
		Title: `a < b & "c"`, Notes: []string{"a note"},
		X: Axis{Label: "retry", Unit: Number},
		Panels: []Panel{
			{Y: Axis{Label: "wait", Unit: spans}, Band: true, Lines: []Line{
				{Name: "latest", Points: []Point{{1, 15000}, {2, 46000}, {25, 332496000}}},
				{Name: "earliest", Points: []Point{{1, 15000}, {2, 16000}, {25, 331776000}}},
			}},
			{Y: Axis{Label: "n", Unit: Number}, Lines: []Line{{Name: "n", Steps: true, Points: []Point{{1, 0}, {20, 8}}}}},
			{Y: Axis{Label: "nothing", Unit: Number}},
		},
		Shade: Shade{From: 3, To: 5, Name: "outage"},
	}
	svg := draw(t, c)
	if again := draw(t, c); again != svg {
		t.Error("the same chart gave other bytes")
	}
	for _, want := range []string{
		"<title>a &lt; b &amp; &quot;c&quot;</title>", ">a note<", ">outage<", ">earliest<", ">latest<", ">24h0m0s<", ">25<", ">retry<", ">wait (logarithmic)<",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("the chart lacks %s", want)
		}
	}
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			for _, a := range e.Attr {
				v, err := strconv.ParseFloat(a.Value, 64)
				if a.Name.Local == "cx" && (err != nil || v < left || v > width-right) {
					t.Errorf("a point stands at x = %s", a.Value)
				}
			}
		}
	}
}

func TestSmallLinearAndEmptyPanelsAreDrawn(t *testing.T) {
	for _, points := range [][]Point{nil, {{0, 0}}, {{1, 0}, {2, 0}}, {{1, 5}, {2, 5}}} {
		svg := draw(t, &Chart{Panels: []Panel{{Y: Axis{Unit: spans}, Lines: []Line{{Points: points}}}}, X: Axis{Unit: Number}})
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%v: %s", points, svg)
		}
	}
}

func draw(t *testing.T, c *Chart) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
