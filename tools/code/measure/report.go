package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// report holds all figures, in the order in which they are printed.
type report struct {
	Functions []functionLengths `json:"functions"`
	Files     []fileLengths     `json:"files"`
	Graph     []graphSize       `json:"graph"`
	Exported  []exportedNames   `json:"exported"`
	Words     []wordCounts      `json:"words"`
	Commits   commitSubjects    `json:"commits"`
	Program   program           `json:"program"`
}

// print writes the report as tables.
func (r *report) print(out io.Writer) error {
	var b strings.Builder
	r.functionTable().write(&b)
	r.fileTable().write(&b)
	r.graphTable().write(&b)
	r.exportedTable().write(&b)
	r.wordTable().write(&b)
	r.commitTable().write(&b)
	r.programTable().write(&b)
	_, err := io.WriteString(out, strings.TrimPrefix(b.String(), "\n"))
	return err
}

func (r *report) functionTable() *table {
	t := newTable("Function lengths, in lines", "", "functions", "p50", "p90", "over 50", "over 80", "max", "longest")
	for _, f := range r.Functions {
		t.add(f.Group, f.Count, f.P50, f.P90, f.Over50, f.Over80, f.Max, f.Longest)
	}
	return t
}

func (r *report) fileTable() *table {
	wide := fmt.Sprintf("over %d columns", maxColumns)
	t := newTable("File lengths, in lines", "", "files", "p50", "p90", "lines", wide, "%", "max", "longest")
	for _, f := range r.Files {
		t.add(f.Group, f.Count, f.P50, f.P90, f.Lines, f.Wide, f.Percent, f.Max, f.Longest)
	}
	return t
}

func (r *report) graphTable() *table {
	t := newTable("Import graph of the packages, without tests", "", "packages", "edges", "depth", "longest chain")
	for _, g := range r.Graph {
		t.add(g.Scope, g.Packages, g.Edges, g.Depth, strings.Join(g.Chain, " > "))
	}
	return t
}

func (r *report) exportedTable() *table {
	t := newTable("Exported names, without commands and tests", "", "packages", "names", "methods", "names and methods")
	var public, internal exportedNames
	for _, e := range r.Exported {
		folder := e.Folder
		total := &public
		if e.Internal {
			total = &internal
			if e.Folder != "internal" {
				folder += ", internal"
			}
		}
		total.Packages = total.Packages + e.Packages
		total.Names = total.Names + e.Names
		total.Methods = total.Methods + e.Methods
		t.add(folder, e.Packages, e.Names, e.Methods, e.Names+e.Methods)
	}
	t.add("public", public.Packages, public.Names, public.Methods, public.Names+public.Methods)
	t.add("internal", internal.Packages, internal.Names, internal.Methods, internal.Names+internal.Methods)
	return t
}

func (r *report) wordTable() *table {
	t := newTable("Words per 1,000 words of comments", append([]string{"", "words"}, countedPhrases...)...)
	for _, w := range r.Words {
		cells := []any{w.Group, w.Words}
		for _, phrase := range countedPhrases {
			cells = append(cells, w.PerThousand[phrase])
		}
		t.add(cells...)
	}
	return t
}

func (r *report) commitTable() *table {
	c := r.Commits
	title := "Commit subjects, in characters, all commits"
	if c.Since != "" {
		title = "Commit subjects, in characters, since " + c.Since
	}
	t := newTable(title, "commits", "p50", "p90", fmt.Sprintf("over %d", maxSubject), "max", "longest")
	t.add(c.Count, c.P50, c.P90, c.Long, c.Max, c.Longest)
	return t
}

func (r *report) programTable() *table {
	p := r.Program
	const title = "A program built with the SDK"
	t := newTable(title, "", "MB", "bytes", "MB released", "packages", "of the standard library", "lines of go.sum")
	t.add(p.Dir, ratio(int(p.Bytes), 1_000_000), p.Bytes, ratio(int(p.Release), 1_000_000),
		p.Packages, p.Standard, p.SumLines)
	return t
}

// table is printed with its first column and columns of text on the left, and columns of numbers on
// the right.
type table struct {
	title string
	rows  [][]string // the first holds the headings
}

func newTable(title string, headings ...string) *table {
	return &table{title: title, rows: [][]string{headings}}
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if number, ok := cell.(float64); ok {
			row[i] = strconv.FormatFloat(number, 'f', 2, 64)
			continue
		}
		row[i] = fmt.Sprint(cell)
	}
	t.rows = append(t.rows, row)
}

func (t *table) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s\n", t.title)
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			width, numeric := t.column(i)
			padding := strings.Repeat(" ", width-utf8.RuneCountInString(cell))
			if numeric {
				line.WriteString("  " + padding + cell)
			} else {
				line.WriteString("  " + cell + padding)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// column returns the width of a column, and whether it holds numbers.
func (t *table) column(i int) (width int, numeric bool) {
	numeric = true
	for n, row := range t.rows {
		width = max(width, utf8.RuneCountInString(row[i]))
		if _, err := strconv.ParseFloat(row[i], 64); n > 0 && err != nil {
			numeric = false
		}
	}
	return width, numeric
}
