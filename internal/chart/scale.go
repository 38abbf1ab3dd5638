package chart

import (
	"math"
	"slices"
	"strconv"
)

// Unit is how values of an axis are counted and written.
type Unit struct {
	steps  []float64 // the distances between ticks to choose from, rising
	ladder []float64 // the ticks of a logarithmic axis, rising; nil = never logarithmic
	text   func(float64) string
}

// Number counts things.
var Number = Unit{steps: decimal(nil, 1), text: func(v float64) string {
	switch {
	case v >= 1e6:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M"
	case v >= 1e4:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + "k"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}}

const (
	second = 1000.0
	minute = 60 * second
	hour   = 60 * minute
	day    = 24 * hour
)

// Span counts time in milliseconds and writes it by text.
func Span(text func(float64) string) Unit {
	u := Unit{text: text, steps: decimal([]float64{
		1, 2, 5, 10, 20, 50, 100, 200, 500,
		1 * second, 2 * second, 5 * second, 10 * second, 15 * second, 30 * second,
		1 * minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute,
		1 * hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour,
	}, day)}
	u.ladder = []float64{1, 10, 100, second, 10 * second, minute, 10 * minute, hour, 6 * hour, day, 7 * day, 30 * day}
	for v := 365 * day; v < endless; v *= 10 {
		u.ladder = append(u.ladder, v)
	}
	return u
}

// below is where a logarithmic axis of values from v on begins.
func (u Unit) below(v float64) float64 {
	low := v
	for _, rung := range u.ladder {
		if rung <= v {
			low = rung
		}
	}
	return low
}

const endless = 1e19 // beyond every value we draw

// decimal goes on after the list with 1, 2, 5, 10, 20 and so on times unit.
func decimal(list []float64, unit float64) []float64 {
	for ; unit < endless; unit *= 10 {
		list = append(list, unit, 2*unit, 5*unit)
	}
	return list
}

// scale maps low..high to pixels.
type scale struct {
	low, high float64
	log       bool
	from, to  float64
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return s.from + float64((v-low)/(high-low)*(s.to-s.from))
}

// ticks are the values to write on an axis.
func (s scale) ticks(u Unit) []float64 {
	var list []float64
	if s.log {
		for _, v := range u.ladder {
			if v >= s.low && v <= s.high {
				list = append(list, v)
			}
		}
		return thinned(list)
	}
	step := s.high - s.low
	if i := slices.IndexFunc(u.steps, func(v float64) bool { return v*ticksMax >= step }); i >= 0 {
		step = u.steps[i]
	}
	for k := math.Ceil(s.low / step); k*step <= s.high; k++ {
		list = append(list, k*step)
	}
	return list
}

// thinned leaves out every other value until there are few enough.
func thinned(list []float64) []float64 {
	for len(list) > ticksMax+2 {
		i := 0
		list = slices.DeleteFunc(list, func(float64) bool { i++; return i%2 == 0 })
	}
	return list
}
