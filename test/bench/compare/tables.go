package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// tables prints the report as Markdown.
func (r *report) tables(out io.Writer) error {
	var b strings.Builder
	r.costTable(&b)
	r.faultTable(&b)
	_, err := io.WriteString(out, b.String())
	return err
}

// costTable has a column for each program.
func (r *report) costTable(b *strings.Builder) {
	rows := []struct {
		title string
		cell  func(result) string
	}{
		{"lines of Go, and of YAML", func(r result) string {
			if r.YAML == 0 {
				return fmt.Sprint(r.Lines)
			}
			return fmt.Sprintf("%d + %d", r.Lines, r.YAML)
		}},
		{fmt.Sprintf("%d Websites appear: until all are right", r.Sites), func(r result) string {
			return seconds(r.Costs.Converge.Wall)
		}},
		{"… CPU; syncs", func(r result) string { return cpuAndSyncs(r.Costs.Converge) }},
		{"… API writes; refused", func(r result) string { return writesOf(r.Costs.Converge) }},
		{"their theme changes: until all are right", func(r result) string { return seconds(r.Costs.Update.Wall) }},
		{"… CPU; syncs", func(r result) string { return cpuAndSyncs(r.Costs.Update) }},
		{"… API writes; refused", func(r result) string { return writesOf(r.Costs.Update) }},
		{"a label of the theme changes: CPU per Website", func(result result) string {
			return perTouch(result.Costs.Theme, result.Costs.ThemeTouches*r.Sites)
		}},
		{"… syncs per Website; API writes", func(result result) string {
			return syncsPerTouch(result.Costs.Theme, result.Costs.ThemeTouches*r.Sites)
		}},
		{"an annotation of a Service changes: CPU", func(r result) string {
			return perTouch(r.Costs.Child, r.Costs.ChildTouches)
		}},
		{"… syncs; API writes", func(r result) string { return syncsPerTouch(r.Costs.Child, r.Costs.ChildTouches) }},
		{fmt.Sprintf("memory with %d objects (RSS)", r.objects()), func(r result) string {
			if r.Costs.HookRSS == 0 {
				return megabytes(r.Costs.RSS)
			}
			return fmt.Sprintf("%s, of which the hook %s", megabytes(r.Costs.RSS), megabytes(r.Costs.HookRSS))
		}},
	}
	r.header(b, "")
	for _, row := range rows {
		cells := []string{row.title}
		for _, result := range r.Programs {
			cells = append(cells, row.cell(result))
		}
		line(b, cells)
	}
}

// faultTable has a column for each program, and a row for each fault.
func (r *report) faultTable(b *strings.Builder) {
	r.header(b, "Fault")
	for i, f := range faults {
		cells := []string{f.name}
		for _, result := range r.Programs {
			cells = append(cells, result.Faults[i].Text)
		}
		line(b, cells)
	}
}

func (r *report) header(b *strings.Builder, first string) {
	cells := []string{first}
	for _, result := range r.Programs {
		cells = append(cells, result.Title)
	}
	b.WriteString("\n")
	line(b, cells)
	line(b, slices.Repeat([]string{"---"}, len(cells)))
}

// objects is the number of objects of the memory row.
func (r *report) objects() int {
	n := 0
	for _, result := range r.Programs {
		n = max(n, result.Costs.Objects)
	}
	return n
}

func line(b *strings.Builder, cells []string) { fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | ")) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }

func cpuAndSyncs(c cost) string { return fmt.Sprintf("%s; %d", seconds(c.CPU), c.Syncs) }

func writesOf(c cost) string { return fmt.Sprintf("%d; %d", c.Writes, c.Refused) }

func perTouch(c cost, touches int) string {
	return fmt.Sprintf("%.2f ms", float64(c.CPU.Microseconds())/1e3/float64(touches))
}

func syncsPerTouch(c cost, touches int) string {
	return fmt.Sprintf("%.1f; %d", float64(c.Syncs)/float64(touches), c.Writes+c.Refused)
}
