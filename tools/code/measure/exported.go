package main

import (
	"maps"
	"slices"
	"strings"
)

// exportedNames counts the exported names of the packages in a top-level folder that can be
// imported. Commands, tools, tests and generated files do not count.
type exportedNames struct {
	Folder   string `json:"folder"`
	Internal bool   `json:"internal"` // below internal/, where only this repository can import it
	Packages int    `json:"packages"`
	Names    int    `json:"names"`   // types, functions, constants and variables
	Methods  int    `json:"methods"` // of exported types
}

// measureExported returns one row for each top-level folder; packages below internal/ have a row of
// their own.
func measureExported(packages []*goPackage) []exportedNames {
	rows := map[string]*exportedNames{}
	for _, p := range packages {
		if p.command || p.names+p.methods == 0 {
			continue
		}
		folder, _, _ := strings.Cut(p.dir, "/")
		if folder == "tools" {
			continue
		}
		key := folder
		internal := slices.Contains(strings.Split(p.dir, "/"), "internal")
		if internal {
			key += "/internal"
		}
		if rows[key] == nil {
			rows[key] = &exportedNames{Folder: folder, Internal: internal}
		}
		rows[key].Packages++
		rows[key].Names += p.names
		rows[key].Methods += p.methods
	}
	sorted := make([]exportedNames, 0, len(rows))
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		sorted = append(sorted, *rows[key])
	}
	return sorted
}
