package main

import (
	"go/scanner"
	"go/token"
	"os"
	"strings"
)

// lines returns the number of lines of code of a program, by language.
func (p program) lines() (code, yaml int, err error) {
	for _, name := range p.sources {
		data, err := os.ReadFile(source(name))
		if err != nil {
			return 0, 0, err
		}
		if strings.HasSuffix(name, ".yaml") {
			yaml += yamlLines(string(data))
		} else {
			code += goLines(data)
		}
	}
	return code, yaml, nil
}

// goLines counts the lines with code: no comments, no empty lines, no imports.
func goLines(data []byte) int {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(data))
	var s scanner.Scanner
	s.Init(file, data, nil, 0) // without comments
	seen := map[int]bool{}
	imports := false
	depth := 0
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			return len(seen)
		}
		switch kind {
		case token.IMPORT:
			imports = true
		case token.LPAREN:
			depth++
		case token.RPAREN:
			depth--
		}
		if kind == token.SEMICOLON && text == "\n" {
			if imports && depth == 0 {
				imports = false
			}
			continue
		}
		if imports {
			continue
		}
		from := files.Position(pos).Line
		for line := range strings.Count(text, "\n") + 1 {
			seen[from+line] = true
		}
	}
}

// yamlLines counts the lines that are neither empty nor comments.
func yamlLines(text string) int {
	n := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			n++
		}
	}
	return n
}
