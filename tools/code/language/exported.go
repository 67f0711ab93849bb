package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// checkExported reports exported names without a comment. In Go, the comment begins with the name.
// Tests and commands export nothing; of the other languages, only the SDKs do.
func checkExported(f source.File) ([]finding, error) {
	sdk := strings.HasPrefix(f.Path, "sdk/")
	switch {
	case f.Test:
		return nil, nil
	case f.Language == "Go":
		return checkGo(f)
	case f.Language == "Python" && sdk:
		return checkPython(f), nil
	case f.Language == "TypeScript" && sdk:
		return checkTypeScript(f), nil
	}
	return nil, nil
}

// checkGo checks the exported declarations of a file: functions, methods of exported types, types,
// constants and variables. One comment is enough for a group of constants or variables.
func checkGo(f source.File) ([]finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, f.Path, f.Text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []finding
	report := func(name *ast.Ident, text string) {
		found = append(found, finding{f.Path, set.Position(name.Pos()).Line, exportedRule, name.Name + " " + text})
	}
	if file.Name.Name == "main" {
		return nil, nil
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			method := decl.Recv != nil && (conventional[decl.Name.Name] || !ast.IsExported(receiver(decl)))
			if decl.Name.IsExported() && !method {
				checkComment(report, decl.Name, decl.Doc)
			}
		case *ast.GenDecl:
			checkDeclaration(report, decl)
		}
	}
	return found, nil
}

// conventional are methods of the standard library's interfaces, which need no comment.
var conventional = map[string]bool{"Error": true, "Unwrap": true, "String": true}

func checkDeclaration(report func(*ast.Ident, string), decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			if spec.Doc == nil && !decl.Lparen.IsValid() {
				checkComment(report, spec.Name, decl.Doc)
				continue
			}
			checkComment(report, spec.Name, spec.Doc)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					report(name, "has no comment")
				}
			}
		}
	}
}

// checkComment reports a comment that is missing, or does not begin with the name after an article.
func checkComment(report func(*ast.Ident, string), name *ast.Ident, doc *ast.CommentGroup) {
	text := doc.Text()
	if text == "" {
		report(name, "has no comment")
		return
	}
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	if rest, ok := strings.CutPrefix(text, name.Name); !ok || rest != "" && isLetter(rest[0]) {
		report(name, "has a comment that does not begin with the name")
	}
}

func isLetter(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
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

// The first lines of the exported declarations of the other languages; the first group is the name.
var (
	pythonExport     = regexp.MustCompile(`^(?:async )?(?:def|class) ([A-Za-z]\w*)`)
	typeScriptExport = regexp.MustCompile(
		`^export (?:default )?(?:async |abstract |declare )*(?:function|class|interface|type|const|enum) (\w+)`)
)

// checkPython reports public functions and classes without a docstring.
func checkPython(f source.File) []finding {
	var found []finding
	lines := strings.Split(f.Text, "\n")
	for i, line := range lines {
		match := pythonExport.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		body := i + 1
		for body < len(lines) && !strings.HasSuffix(strings.TrimSpace(lines[body-1]), ":") {
			body++
		}
		if body == len(lines) || !strings.HasPrefix(strings.TrimLeft(lines[body], " r"), `"""`) {
			found = append(found, finding{f.Path, i + 1, exportedRule, match[1] + " has no docstring"})
		}
	}
	return found
}

// checkTypeScript reports exported declarations without a comment on the line before. One comment
// is enough for the overloads of a function.
func checkTypeScript(f source.File) []finding {
	var found []finding
	lines := strings.Split(f.Text, "\n")
	documented := map[string]bool{}
	for i, line := range lines {
		match := typeScriptExport.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		before := ""
		if i > 0 {
			before = strings.TrimSpace(lines[i-1])
		}
		if strings.HasSuffix(before, "*/") || strings.HasPrefix(before, "//") {
			documented[match[1]] = true
		}
		if !documented[match[1]] {
			found = append(found, finding{f.Path, i + 1, exportedRule, match[1] + " has no comment"})
		}
	}
	return found
}
