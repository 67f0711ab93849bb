package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// exported returns a line for each exported name, sorted. Of generated code it lists the types
// alone, because buf guards what is in them.
func exported(files []file) ([]string, error) {
	var lines []string
	for _, f := range files {
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, f.path, f.text, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if parsed.Name.Name == "main" {
			continue
		}
		p := lister{set: set, dir: path.Dir(f.path), generated: ast.IsGenerated(parsed)}
		for _, decl := range parsed.Decls {
			p.declaration(decl)
		}
		lines = append(lines, p.lines...)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// lister collects the lines of one file.
type lister struct {
	set       *token.FileSet
	dir       string
	generated bool
	lines     []string
}

// add adds a line; nodes are printed as source code without line breaks.
func (l *lister) add(parts ...any) {
	words := []string{l.dir + ":"}
	for _, part := range parts {
		word, ok := part.(string)
		if !ok {
			word = l.print(part)
		}
		words = append(words, word)
	}
	l.lines = append(l.lines, strings.Join(words, " "))
}

var space = regexp.MustCompile(`\s+`)

func (l *lister) print(node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.set, node); err != nil {
		return err.Error() // only for a node that the parser does not make
	}
	return space.ReplaceAllString(b.String(), " ")
}

func (l *lister) declaration(decl ast.Decl) {
	if l.generated {
		l.generatedTypes(decl)
		return
	}
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Name.IsExported() && (decl.Recv == nil || ast.IsExported(receiver(decl))) {
			decl.Body = nil
			decl.Doc = nil
			l.add(decl)
		}
	case *ast.GenDecl:
		var last *ast.ValueSpec // with a type or values, which the next constants repeat
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				l.typeOf(spec)
			case *ast.ValueSpec:
				if spec.Type != nil || len(spec.Values) > 0 || last == nil {
					last = spec
				}
				l.values(decl.Tok.String(), spec, last.Type)
			}
		}
	}
}

// generatedTypes adds the names of types.
func (l *lister) generatedTypes(decl ast.Decl) {
	types, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range types.Specs {
		if spec, ok := spec.(*ast.TypeSpec); ok && spec.Name.IsExported() {
			l.add("type", spec.Name)
		}
	}
}

// values adds constants or variables. A constant of an untyped value has the value instead of the
// type.
func (l *lister) values(keyword string, spec *ast.ValueSpec, of ast.Expr) {
	for i, name := range spec.Names {
		switch {
		case !name.IsExported():
		case of != nil:
			l.add(keyword, name, of)
		case keyword == "const" && i < len(spec.Values):
			l.add(keyword, name, "=", spec.Values[i])
		default:
			l.add(keyword, name)
		}
	}
}

// typeOf adds a type, and its exported fields or methods on lines of their own.
func (l *lister) typeOf(spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	name := l.print(spec.Name)
	declared := *spec
	declared.Doc = nil
	declared.Comment = nil
	switch of := spec.Type.(type) {
	case *ast.StructType:
		declared.Type = &ast.Ident{Name: "struct"}
		l.add("type", &declared)
		l.fields(name, "field", of.Fields)
	case *ast.InterfaceType:
		declared.Type = &ast.Ident{Name: "interface"}
		l.add("type", &declared)
		l.fields(name, "method", of.Methods)
	default:
		l.add("type", &declared)
	}
}

// fields adds the fields of a struct, or the methods of an interface. Unexported ones get one line,
// because users can neither write a literal without names nor implement the interface.
func (l *lister) fields(of, kind string, list *ast.FieldList) {
	for _, field := range list.List {
		if len(field.Names) == 0 {
			l.add(kind, of, "embeds", field.Type)
		}
		for _, name := range field.Names {
			switch {
			case !name.IsExported():
				l.add(kind, of, "has unexported ones")
			case kind == "method":
				l.add(kind, of+"."+name.Name+strings.TrimPrefix(l.print(field.Type), "func"))
			default:
				l.add(kind, of+"."+name.Name, field.Type)
			}
		}
	}
}

// receiver returns the name of a method's type, without pointer and type parameters.
func receiver(method *ast.FuncDecl) string {
	name := ""
	ast.Inspect(method.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}
