package main

import (
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// checkTables returns the rows of a Markdown file's tables that have more or fewer cells than the
// table's header. A vertical line in code ends a cell, too, unless it is escaped.
func checkTables(f source.File) []finding {
	var found []finding
	inCode := false
	columns := 0
	for i, line := range strings.Split(f.Text, "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
		}
		row, isRow := strings.CutPrefix(strings.TrimSpace(line), "|")
		if inCode || !isRow {
			columns = 0
			continue
		}
		cells := strings.Count(strings.ReplaceAll(row, `\|`, ""), "|")
		switch {
		case columns == 0:
			columns = cells
		case cells != columns:
			message := fmt.Sprintf("a table row with %d cells, expected the %d of the header", cells, columns)
			found = append(found, finding{f.Path, i + 1, message})
		}
	}
	return found
}
