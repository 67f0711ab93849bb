package main

import (
	"slices"
	"strings"
)

// graphSize is the size of an import graph: packages and the imports between them. Test files and
// packages that serve tests do not count; the names of the latter end in "test", as httptest's
// does.
type graphSize struct {
	Scope    string   `json:"scope"`
	Packages int      `json:"packages"`
	Edges    int      `json:"edges"`
	Depth    int      `json:"depth"` // the number of packages in the longest chain of imports
	Chain    []string `json:"chain"` // the directories of one such chain, the importing package first
}

// measureGraph returns one row for engine/ with internal/engine/, and one for the repository, both
// without tests.
func measureGraph(packages []*goPackage) []graphSize {
	return []graphSize{
		sizeOf("engine", packages, func(p *goPackage) bool {
			return strings.HasPrefix(strings.TrimPrefix(p.dir, "internal/")+"/", "engine/")
		}),
		sizeOf("repository", packages, func(*goPackage) bool { return true }),
	}
}

// graph holds the packages of a scope in the order of their directories, and the longest chains
// that were found.
type graph struct {
	packages map[string]*goPackage // by import path
	chains   map[string][]string
}

func sizeOf(scope string, packages []*goPackage, within func(*goPackage) bool) graphSize {
	g := graph{packages: map[string]*goPackage{}, chains: map[string][]string{}}
	for _, p := range packages {
		if p.code && !strings.HasSuffix(p.dir, "test") && within(p) {
			g.packages[p.importPath] = p
		}
	}
	size := graphSize{Scope: scope, Packages: len(g.packages), Chain: []string{}}
	for _, p := range packages {
		if g.packages[p.importPath] != p {
			continue
		}
		size.Edges += len(g.imports(p))
		if chain := g.longest(p); len(chain) > len(size.Chain) {
			size.Chain = chain
		}
	}
	size.Depth = len(size.Chain)
	return size
}

// imports returns the packages of the graph that p imports, sorted by import path.
func (g *graph) imports(p *goPackage) []*goPackage {
	var imported []*goPackage
	for path := range p.imports {
		if q := g.packages[path]; q != nil {
			imported = append(imported, q)
		}
	}
	slices.SortFunc(imported, func(a, b *goPackage) int { return strings.Compare(a.importPath, b.importPath) })
	return imported
}

// longest returns the longest chain of imports that begins at p; of several, the first by import
// path. Go allows no cycle.
func (g *graph) longest(p *goPackage) []string {
	if chain := g.chains[p.importPath]; chain != nil {
		return chain
	}
	var tail []string
	for _, q := range g.imports(p) {
		if chain := g.longest(q); len(chain) > len(tail) {
			tail = chain
		}
	}
	chain := append([]string{p.dir}, tail...)
	g.chains[p.importPath] = chain
	return chain
}
