// Package chart draws lines through a few points as SVG, for the pictures of the benchmarks' page.
//
// It is no plotting library: both axes are linear and begin at 0, each line is labelled at its end.
// Its data comes from the caller. A Chart is a value; Write may be called concurrently. A golden
// file and table tests cover it.
package chart

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Chart is one picture.
type Chart struct {
	// Title is above the picture; X and Y name the axes, with their units.
	Title, X, Y string
	Lines       []Line
}

// Line is a line through points in ascending order of X. A dashed line is a bound, not a
// measurement: its points have no dots.
type Line struct {
	Name   string
	Points []Point
	Dashed bool
}

// Point is one value; neither number is negative.
type Point struct{ X, Y float64 }

// The measures of the picture in pixels: the whole, and the margins of the plotted part.
const (
	width, height                          = 720, 380
	leftEdge, rightEdge, topEdge, downEdge = 66, 150, 52, 52
	labelHeight                            = 15
)

// colours are those of the lines; people with weak colour vision can distinguish
// them.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"}

// Write draws the chart. It fails for a chart without points, and for numbers that have no place.
func (c Chart) Write(out io.Writer) error {
	s, err := c.scale()
	if err != nil {
		return fmt.Errorf("chart %q: %w", c.Title, err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s" `+
		`font-family="sans-serif" font-size="13" fill="#333">`+"\n", width, height, escape(c.Title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="26" font-size="16">%s</text>`+"\n", leftEdge, escape(c.Title))
	c.axes(&b, s)
	for i, l := range c.Lines {
		l.draw(&b, s, colours[i%len(colours)])
	}
	c.labels(&b, s)
	b.WriteString("</svg>\n")
	_, err = io.WriteString(out, b.String())
	return err
}

// scale maps numbers to pixels. x and y are the ends of the axes, stepX and stepY the distances of
// their ticks.
type scale struct{ x, y, stepX, stepY float64 }

func (c Chart) scale() (scale, error) {
	var x, y float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			if !(p.X >= 0 && p.Y >= 0) || math.IsInf(p.X+p.Y, 0) {
				return scale{}, fmt.Errorf("line %q: point %v: expected numbers of 0 or more", l.Name, p)
			}
			x = max(x, p.X)
			y = max(y, p.Y)
		}
	}
	if len(c.Lines) > len(colours) {
		return scale{}, fmt.Errorf("%d lines; expected %d at most", len(c.Lines), len(colours))
	}
	if x == 0 || y == 0 {
		return scale{}, errors.New("no point above 0 on both axes")
	}
	s := scale{stepX: step(x), stepY: step(y)}
	s.x, s.y = math.Ceil(x/s.stepX)*s.stepX, math.Ceil(y/s.stepY)*s.stepY
	return s, nil
}

// step returns a distance of ticks for an axis up to a number: 1, 2 or 5 times a power of ten, so
// that there are four to ten.
func step(end float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(end)))
	for _, factor := range []float64{0.1, 0.2, 0.5, 1} {
		if end/(factor*power) <= 8 {
			return factor * power
		}
	}
	return 2 * power
}

func (s scale) at(p Point) (x, y float64) {
	return leftEdge + p.X/s.x*(width-leftEdge-rightEdge), height - downEdge - p.Y/s.y*(height-topEdge-downEdge)
}

func (c Chart) axes(b *strings.Builder, s scale) {
	right := width - rightEdge
	bottom := height - downEdge
	for i := 0; float64(i)*s.stepY <= s.y*1.001; i++ {
		value := float64(i) * s.stepY
		_, y := s.at(Point{Y: value})
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			leftEdge, y, right, leftEdge-8, y+4, number(value))
	}
	for i := 0; float64(i)*s.stepX <= s.x*1.001; i++ {
		value := float64(i) * s.stepX
		x, _ := s.at(Point{X: value})
		fmt.Fprintf(b, `<path d="M%.1f %dv5" stroke="#333"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x, bottom, x, bottom+19, number(value))
	}
	fmt.Fprintf(b, `<path d="M%d %dV%dH%d" stroke="#333" fill="none"/>`+"\n", leftEdge, topEdge, bottom, right)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", right, height-12, escape(c.X))
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", leftEdge, topEdge-8, escape(c.Y))
}

func (l Line) draw(b *strings.Builder, s scale, colour string) {
	var path strings.Builder
	for i, p := range l.Points {
		x, y := s.at(p)
		fmt.Fprintf(&path, "%c%.1f %.1f", "ML"[min(i, 1)], x, y)
		if !l.Dashed {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s: %s</title></circle>`+"\n",
				x, y, colour, escape(l.Name), number(p.Y))
		}
	}
	dashes := ""
	if l.Dashed {
		dashes = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<path d="%s" stroke="%s" stroke-width="2" fill="none"%s/>`+"\n", path.String(), colour, dashes)
}

// labels writes the lines' names beside their ends, the highest end first, without overlaps.
func (c Chart) labels(b *strings.Builder, s scale) {
	type label struct {
		name, colour string
		y            float64
	}
	var all []label
	for i, l := range c.Lines {
		if n := len(l.Points); n > 0 {
			_, y := s.at(l.Points[n-1])
			all = append(all, label{l.Name, colours[i%len(colours)], y})
		}
	}
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	for i := range all {
		if i > 0 {
			all[i].y = max(all[i].y, all[i-1].y+labelHeight)
		}
	}
	for i := len(all) - 1; i >= 0; i-- {
		lowest := float64(height - downEdge - (len(all)-1-i)*labelHeight)
		all[i].y = min(all[i].y, lowest)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", width-rightEdge+10, all[i].y+4, all[i].colour,
			escape(all[i].name))
	}
}

// number writes a number with its thousands separated by commas.
func number(v float64) string {
	text := fmt.Sprintf("%.3g", v)
	if v >= 100 {
		text = fmt.Sprintf("%.0f", v)
	}
	for at := len(text) - 3; at > 0 && v >= 1000; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func escape(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic(err) // a Builder takes everything
	}
	return b.String()
}
