package main

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/tools/code/source"
)

// maxColumns is the width that a line may have. A tab counts as one column, as it does for the
// linter lll.
const maxColumns = 120

// lengths is the distribution of the lengths of functions or files, in lines.
type lengths struct {
	Group   string `json:"group"`
	Count   int    `json:"count"`
	P50     int    `json:"p50"`
	P90     int    `json:"p90"`
	Max     int    `json:"max"`
	Longest string `json:"longest"` // the name of the longest; of several, the first by name
}

// functionLengths counts the lines of functions from "func" to the closing brace, with comments.
type functionLengths struct {
	lengths
	Over50 int `json:"over50"`
	Over80 int `json:"over80"`
}

// fileLengths counts the lines of files, and those lines that are wider than maxColumns.
type fileLengths struct {
	lengths
	Lines   int     `json:"lines"`
	Wide    int     `json:"wide"`
	Percent float64 `json:"widePercent"`
}

// length is the length of one function or file.
type length struct {
	name  string
	lines int
}

// distribution summarizes lengths. Percentiles are nearest ranks.
func distribution(group string, all []length) lengths {
	d := lengths{Group: group, Count: len(all)}
	if len(all) == 0 {
		return d
	}
	slices.SortFunc(all, func(a, b length) int {
		return cmp.Or(cmp.Compare(a.lines, b.lines), cmp.Compare(b.name, a.name))
	})
	longest := all[len(all)-1]
	d.P50, d.P90, d.Max, d.Longest = rank(all, 50).lines, rank(all, 90).lines, longest.lines, longest.name
	return d
}

// rank returns the nearest rank of a percentile in a sorted slice that is not empty.
func rank[T any](sorted []T, percent int) T {
	return sorted[(len(sorted)*percent+99)/100-1]
}

func over(all []length, limit int) int {
	n := 0
	for _, l := range all {
		if l.lines > limit {
			n++
		}
	}
	return n
}

// measureFunctions returns one row for code and one for tests.
func measureFunctions(packages []*goPackage) []functionLengths {
	var rows []functionLengths
	for _, group := range source.Groups[:2] {
		var all []length
		for _, p := range packages {
			all = append(all, p.functions[group]...)
		}
		rows = append(rows, functionLengths{lengths: distribution(group, all), Over50: over(all, 50), Over80: over(all, 80)})
	}
	return rows
}

// measureFiles returns one row for each language, and for the tests in it.
func measureFiles(files []source.File) []fileLengths {
	var rows []fileLengths
	for _, group := range source.Groups {
		var all []length
		var row fileLengths
		for _, f := range source.Written(files, group) {
			lines := 0
			for line := range strings.Lines(f.Text) {
				lines++
				if utf8.RuneCountInString(strings.TrimRight(line, "\r\n")) > maxColumns {
					row.Wide++
				}
			}
			row.Lines += lines
			all = append(all, length{f.Path, lines})
		}
		row.lengths = distribution(group, all)
		row.Percent = ratio(100*row.Wide, row.Lines)
		rows = append(rows, row)
	}
	return rows
}

// ratio returns a/b with two digits, and 0 if there is nothing to divide by.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64((200*a+b)/(2*b)) / 100
}
