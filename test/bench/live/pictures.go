package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hookloop/hookloop/test/bench/chart"
)

// pictures writes the curves of the report into a folder, one SVG file for each chart that has
// measurements.
func (r *report) pictures(folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	charts := map[string]chart.Chart{"edit.svg": r.editChart()}
	for _, s := range r.Scale {
		charts[fmt.Sprintf("scale-cpu-%s.svg", s.Transport)] = s.cpuChart()
		charts[fmt.Sprintf("scale-memory-%s.svg", s.Transport)] = s.memoryChart()
	}
	for name, c := range charts {
		if len(c.Lines) == 0 {
			continue
		}
		if err := draw(filepath.Join(folder, name), c); err != nil {
			return err
		}
	}
	return nil
}

func draw(file string, c chart.Chart) (err error) {
	out, err := os.Create(file) //nolint:gosec // the user's flag names the folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return c.Write(out)
}

// editChart shows the cost of one edited child against the number of its siblings.
func (r *report) editChart() chart.Chart {
	c := chart.Chart{
		Title: "Engine CPU for one edited child", X: "children of the parent", Y: "ms",
	}
	at := map[transport]int{}
	for _, d := range r.Drift {
		i, known := at[d.Transport]
		if !known {
			i = len(c.Lines)
			at[d.Transport] = len(c.Lines)
			c.Lines = append(c.Lines, chart.Line{Name: string(d.Transport)})
		}
		c.Lines[i].Points = append(c.Lines[i].Points,
			chart.Point{X: float64(d.Children), Y: milliseconds(each(d.Drift.EngineCPU, d.Rounds))})
	}
	return c
}

// cpuChart shows the cost of one event against the number of parents.
func (s scale) cpuChart() chart.Chart {
	return chart.Chart{
		Title: fmt.Sprintf("Engine CPU for one event, by %s", s.Transport), X: "parents with nine children each", Y: "ms",
		Lines: []chart.Line{
			s.line("edit of a child", func(z scaleSize) float64 { return milliseconds(each(z.Drift.EngineCPU, z.Events)) }),
			s.line("touch of a parent", func(z scaleSize) float64 { return milliseconds(each(z.Touch.EngineCPU, z.Events)) }),
			s.line("related object", func(z scaleSize) float64 { return milliseconds(each(z.Related.EngineCPU, z.Events)) }),
		},
	}
}

// memoryChart shows the engine's memory against the number of parents.
func (s scale) memoryChart() chart.Chart {
	return chart.Chart{
		Title: "Memory of the engine", X: "parents with nine children of 1 kB each", Y: "MB",
		Lines: []chart.Line{
			s.line("resident (RSS)", func(z scaleSize) float64 { return float64(z.RSS) / 1e6 }),
			s.line("live heap", func(z scaleSize) float64 { return float64(z.Live) / 1e6 }),
			s.line("JSON of the objects", func(z scaleSize) float64 { return float64(z.JSON) / 1e6 }),
		},
	}
}

// line returns a line with one point for each size.
func (s scale) line(name string, y func(scaleSize) float64) chart.Line {
	l := chart.Line{Name: name}
	for _, z := range s.Sizes {
		l.Points = append(l.Points, chart.Point{X: float64(z.Parents), Y: y(z)})
	}
	return l
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
