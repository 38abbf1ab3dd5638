// Package chart draws line charts as SVG, to be read on a page, in a browser
// or in a repository: panels below each other over one horizontal axis, each
// with lines and a band between two of them. It knows nothing of what it
// draws. The same chart gives the same bytes on every machine.
package chart

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Chart is one picture.
type Chart struct {
	Title  string
	Notes  []string // lines below the title
	X      Axis
	Panels []Panel
	Shade  Shade
}

// Panel is one plot. Its lines share an axis.
type Panel struct {
	Y     Axis
	Lines []Line
	Band  bool // fill between the first two lines, which have the same x
}

// Axis is a label and how values on it are written. Its range follows from the
// data, and starts at nothing unless it is logarithmic.
type Axis struct {
	Label string
	Unit  Unit
}

// Line is a series of points, from left to right.
type Line struct {
	Name   string
	Points []Point
	Steps  bool // hold each value until the next point
}

// Point is one value.
type Point struct{ X, Y float64 }

// Shade marks a part of the horizontal axis; From = To marks none.
type Shade struct {
	From, To float64
	Name     string
}

// The picture, in pixels.
const (
	width        = 800
	left, right  = 84, 20
	lineHeight   = 18
	panelHeight  = 230
	panelSpace   = 26
	bottom       = 50
	fontSize     = 12
	ticksMax     = 8
	logFrom      = 100 // a panel whose values span more than this is logarithmic
	emptyMaximum = 1
)

// colours tell lines apart, also for those who do not see red and green.
var colours = [...]string{"#0b5cad", "#d1600a", "#5b5b5b"}

// Write draws the chart.
func (c *Chart) Write(w io.Writer) error {
	d := &drawing{}
	top := 3*lineHeight + lineHeight*len(c.Notes)
	height := top + (panelHeight+panelSpace)*len(c.Panels) - panelSpace + bottom
	d.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" font-family="system-ui, sans-serif" font-size="%d">`,
		width, height, width, height, fontSize)
	d.add(`<title>%s</title>`, escape(c.Title))
	d.add(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	d.text(left, 24, `font-size="16" font-weight="600"`, c.Title)
	for i, note := range c.Notes {
		d.text(left, 24+lineHeight*(i+1), `fill="#5b5b5b"`, note)
	}
	x := c.horizontal()
	y := top
	for i := range c.Panels {
		c.panel(d, &c.Panels[i], x, y, i == len(c.Panels)-1)
		y += panelHeight + panelSpace
	}
	d.text((left+width-right)/2, height-12, `text-anchor="middle"`, c.X.Label)
	d.add(`</svg>`)
	_, err := io.WriteString(w, d.b.String())
	return err
}

// horizontal is the scale of the x axis over all panels.
func (c *Chart) horizontal() scale {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range c.Panels {
		for _, l := range p.Lines {
			for _, at := range l.Points {
				low, high = min(low, at.X), max(high, at.X)
			}
		}
	}
	if c.Shade.From < c.Shade.To {
		low, high = min(low, c.Shade.From), max(high, c.Shade.To)
	}
	if low > high { // nothing to show
		low, high = 0, emptyMaximum
	}
	if low == high {
		low, high = low-0.5, high+0.5
	}
	return scale{low: low, high: high, from: left, to: width - right}
}

// vertical is the scale of a panel whose frame ends at y+panelHeight.
func (p *Panel) vertical(y int) scale {
	least, most := math.Inf(1), 0.0
	for _, l := range p.Lines {
		for _, at := range l.Points {
			least, most = min(least, at.Y), max(most, at.Y)
		}
	}
	s := scale{high: cmp.Or(most, emptyMaximum), from: float64(y + panelHeight), to: float64(y)}
	if least > 0 && most/least > logFrom && p.Y.Unit.ladder != nil {
		s.log, s.low = true, p.Y.Unit.below(least)
	}
	return s
}

func (c *Chart) panel(d *drawing, p *Panel, x scale, y int, last bool) {
	v := p.vertical(y)
	shade := c.Shade
	from, to := x.at(shade.From), x.at(shade.To)
	if shade.From < shade.To {
		d.add(`<rect x="%s" y="%d" width="%s" height="%d" fill="#f3d9d9"/>`, px(from), y, px(to-from), panelHeight)
	}
	for _, tick := range v.ticks(p.Y.Unit) {
		at := v.at(tick)
		d.add(`<path d="M%d %sH%d" stroke="#dddddd"/>`, left, px(at), width-right)
		d.text(left-8, int(math.Round(at))+4, `text-anchor="end"`, p.Y.Unit.text(tick))
	}
	if shade.From < shade.To {
		d.text(int(from)+4, y+14, `fill="#8a2b2b"`, shade.Name)
	}
	for _, tick := range x.ticks(c.X.Unit) {
		at := x.at(tick)
		d.add(`<path d="M%s %dv5" stroke="#5b5b5b"/>`, px(at), y+panelHeight)
		if last {
			d.text(int(math.Round(at)), y+panelHeight+20, `text-anchor="middle"`, c.X.Unit.text(tick))
		}
	}
	if p.Band && len(p.Lines) > 1 {
		d.add(`<path d="%s%sZ" fill="%s" fill-opacity="0.15"/>`,
			path("M", p.Lines[0].Points, x, v), path("L", reversed(p.Lines[1].Points), x, v), colours[0])
	}
	for i, l := range p.Lines {
		points := l.Points
		if l.Steps {
			points = stepped(points)
		}
		d.add(`<path d="%s" fill="none" stroke="%s" stroke-width="1.8" stroke-linejoin="round"/>`,
			path("M", points, x, v), colours[i%len(colours)])
		if !l.Steps && len(points) <= 60 {
			for _, at := range points {
				d.add(`<circle cx="%s" cy="%s" r="2.5" fill="%s"/>`, px(x.at(at.X)), px(v.at(at.Y)), colours[i%len(colours)])
			}
		}
	}
	d.add(`<path d="M%d %dV%dH%d" fill="none" stroke="#5b5b5b"/>`, left, y, y+panelHeight, width-right)
	label := p.Y.Label
	if v.log {
		label += " (logarithmic)"
	}
	d.add(`<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`, y+panelHeight/2, escape(label))
	p.legend(d, y)
}

// legend names the lines, above the frame at its right end.
func (p *Panel) legend(d *drawing, y int) {
	const letter, mark, gap = 7, 18, 6 // a letter is about so wide
	at := width - right
	for i := len(p.Lines) - 1; i >= 0; i-- {
		at -= letter*len(p.Lines[i].Name) + mark + gap
		d.add(`<path d="M%d %dh%d" stroke="%s" stroke-width="3"/>`, at, y-11, mark, colours[i%len(colours)])
		d.text(at+mark+gap, y-7, "", p.Lines[i].Name)
		at -= 2 * gap
	}
}

func stepped(points []Point) []Point {
	var list []Point
	for i, at := range points {
		if i > 0 {
			list = append(list, Point{at.X, points[i-1].Y})
		}
		list = append(list, at)
	}
	return list
}

func reversed(points []Point) []Point {
	list := make([]Point, len(points))
	for i, at := range points {
		list[len(points)-1-i] = at
	}
	return list
}

func path(first string, points []Point, x, y scale) string {
	var b strings.Builder
	for i, at := range points {
		b.WriteString(first + px(x.at(at.X)) + " " + px(y.at(at.Y)))
		if i == 0 {
			first = "L"
		}
	}
	return b.String()
}

// drawing is the text of an SVG.
type drawing struct{ b strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *drawing) text(x, y int, attributes, text string) {
	if attributes != "" {
		attributes = " " + attributes
	}
	d.add(`<text x="%d" y="%d"%s>%s</text>`, x, y, attributes, escape(text))
}

// px writes a coordinate to a tenth of a pixel, which hides what the last bit
// of a computed number is on another machine.
func px(v float64) string {
	v = math.Round(v*10) / 10
	return strconv.FormatFloat(v+0, 'f', -1, 64) // + 0: no -0
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace
