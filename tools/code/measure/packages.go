package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// goPackage holds the figures of one Go package, that is, of one directory with Go files.
type goPackage struct {
	dir        string
	importPath string
	command    bool                // package main
	code       bool                // has files that are not tests
	imports    map[string]bool     // by the files that are not tests
	functions  map[string][]length // by group; without generated files
	names      int                 // exported types, functions, constants and variables; see exportedNames
	methods    int                 // exported methods of exported types
	comments   map[string][]string // by group; without directives and generated files
}

// parsePackages parses all Go files, and returns the packages sorted by directory.
func parsePackages(files []source.File) ([]*goPackage, error) {
	byDir := map[string]*goPackage{}
	modules := modulesByDir(files)
	for _, f := range files {
		if f.Language != "Go" {
			continue
		}
		dir := path.Dir(f.Path)
		p := byDir[dir]
		if p == nil {
			p = &goPackage{
				dir: dir, importPath: importPath(modules, dir),
				imports: map[string]bool{}, functions: map[string][]length{}, comments: map[string][]string{},
			}
			byDir[dir] = p
		}
		if err := p.add(f); err != nil {
			return nil, err
		}
	}
	packages := make([]*goPackage, 0, len(byDir))
	for _, p := range byDir {
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b *goPackage) int { return strings.Compare(a.dir, b.dir) })
	return packages, nil
}

// add parses a file of the package.
func (p *goPackage) add(f source.File) error {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, f.Path, f.Text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if !f.Test {
		p.code = true
		p.command = syntax.Name.Name == "main"
		if err := p.addImports(f, syntax); err != nil {
			return err
		}
	}
	if f.Generated {
		return nil
	}
	for _, group := range syntax.Comments {
		p.comments[f.Group()] = append(p.comments[f.Group()], group.Text())
	}
	for _, decl := range syntax.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok {
			lines := set.Position(function.End()).Line - set.Position(function.Pos()).Line + 1
			p.functions[f.Group()] = append(p.functions[f.Group()], length{functionName(p.dir, function), lines})
		}
		if !f.Test {
			p.addExported(decl)
		}
	}
	return nil
}

// addImports adds the imports of a file that is built on Linux; other platforms add none within the
// repository.
func (p *goPackage) addImports(f source.File, syntax *ast.File) error {
	context := build.Default
	context.GOOS = "linux"
	context.GOARCH = "amd64"
	context.CgoEnabled = true
	context.BuildTags = nil
	context.OpenFile = opener(f)
	match, err := context.MatchFile(path.Dir(f.Path), path.Base(f.Path))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if !match {
		return nil
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", f.Path, spec.Path.Value, err)
		}
		p.imports[imported] = true
	}
	return nil
}

func (p *goPackage) addExported(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		switch {
		case !decl.Name.IsExported():
		case decl.Recv == nil:
			p.names++
		case ast.IsExported(receiver(decl)):
			p.methods++
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			p.names += exportedIn(spec)
		}
	}
}

func exportedIn(spec ast.Spec) int {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			return 1
		}
	case *ast.ValueSpec:
		n := 0
		for _, name := range spec.Names {
			if name.IsExported() {
				n++
			}
		}
		return n
	}
	return 0
}

// functionName returns "dir.Function" or "dir.Type.Method".
func functionName(dir string, function *ast.FuncDecl) string {
	if function.Recv == nil {
		return dir + "." + function.Name.Name
	}
	return dir + "." + receiver(function) + "." + function.Name.Name
}

// receiver returns the name of a method's type, without pointer and type parameters.
func receiver(method *ast.FuncDecl) string {
	expr := method.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
