package source

import (
	"fmt"
	"slices"
	"testing"
)

func TestComments(t *testing.T) {
	for _, test := range []struct {
		name, language, text string
		want                 []string
	}{
		{"lines that follow each other", "Python", "x = 1\n# a\n  # b\n\n# c", []string{"2 a\n b", "5 c"}},
		{"comment after code", "Protobuf", "a // b\n// c\nd // e", []string{"1 b\n c", "3 e"}},
		{"Go", "Go", "// Package a is.\n// More.\npackage a\n\n/* b */", []string{"1 Package a is.\n More.", "5 b "}},
		{"script", Script, "#!/bin/sh\n  # a\nx=$# # b\n\n# c", []string{"1!/bin/sh\n a", "5 c"}},
		{"other languages have none", "Markdown", "# a // b", nil},
		{"line without end", "Protobuf", "a // b", []string{"1 b"}},
		{"block without end", "Protobuf", "a /* b", []string{"1 b"}},
		{"escaped quote", "Python", `'\'# a' # b`, []string{"1 b"}},
		{"string without end", "Python", "'a\n# b\n", []string{"2 b"}},
		{"docstring after a comment", "Python", "#!x\n\"\"\"a\"\"\"", []string{"1!x\na"}},
		{"triple quotes as argument", "Python", `f("""# a""", '''# b''')`, nil},
		{"division", "TypeScript", "a / b // c", []string{"1 c"}},
		{"regular expression", "TypeScript", `x = /"\/[/]/ // c`, []string{"1 c"}},
		{"regular expression after return", "TypeScript", "return /'/ // c", []string{"1 c"}},
		{"nested templates", "TypeScript", "`${f({a: `// ${'}'}`})} // b` // c", []string{"1 c"}},
		{"template over lines", "TypeScript", "`\n// a\n`", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			comments, err := Comments(File{Path: "x", Language: test.language, Text: test.text})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range comments {
				got = append(got, fmt.Sprint(c.Line, c.Text))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("comments of %q: %q, want %q", test.text, got, test.want)
			}
		})
	}
}
