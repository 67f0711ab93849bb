package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/tools/code/source"
)

// The rules, in the order in which summaries show them.
const (
	phraseRule   = "phrase"
	widthRule    = "width"
	commentRule  = "comment"
	exportedRule = "exported"
	commitRule   = "commit"
)

var ruleNames = []string{phraseRule, widthRule, commentRule, exportedRule, commitRule}

// The widths that a line of a file, and a line with nothing but a comment, may have. A tab counts
// as one column.
const (
	maxWidth        = 120
	maxCommentWidth = 100
)

// checkFile returns the findings in a file, rule by rule.
func checkFile(f source.File) ([]finding, error) {
	if f.Language == "Markdown" {
		prose := markdownProse(f.Text)
		return append(checkPhrases(f.Path, prose), checkMarkdownWidths(f)...), nil
	}
	if f.Language == "" {
		return nil, nil
	}
	comments, err := source.Comments(f)
	if err != nil {
		return nil, err
	}
	found := checkPhrases(f.Path, comments)
	if f.Language == source.Script {
		return found, nil
	}
	found = append(found, checkWidths(f, comments)...)
	more, err := checkExported(f)
	return append(found, more...), err
}

// checkPhrases reports the phrases of phrases.txt. A phrase may be broken over two lines.
func checkPhrases(path string, texts []source.Comment) []finding {
	var found []finding
	for _, t := range texts {
		text := withoutCode(t.Text)
		for _, p := range phrases {
			for _, at := range p.pattern.FindAllStringIndex(text, -1) {
				line := t.Line + strings.Count(text[:at[0]], "\n")
				used := strings.Join(strings.Fields(text[at[0]:at[1]]), " ")
				found = append(found, finding{path, line, phraseRule, fmt.Sprintf("%q: %s", used, p.hint)})
			}
		}
	}
	return found
}

// quoted matches code and quotations, which are not the author's own words.
var quoted = regexp.MustCompile("`[^`\n]*`|\"[^\"\n]*\"")

// withoutCode blanks code and quotations; the lines stay.
func withoutCode(text string) string {
	return quoted.ReplaceAllStringFunc(text,
		func(s string) string { return strings.Repeat("·", utf8.RuneCountInString(s)) })
}

// exempt matches lines that cannot be broken: URLs, and directives to compilers and linters.
var exempt = regexp.MustCompile(`https?://\S{40}|//(go:|nolint| ?\+| Output:)|# (type|noqa|pylint)|eslint-`)

// checkWidths reports lines that are too wide.
func checkWidths(f source.File, comments []source.Comment) []finding {
	inComment := map[int]bool{}
	for _, c := range comments {
		for i := range strings.Split(c.Text, "\n") {
			inComment[c.Line+i] = true
		}
	}
	var found []finding
	for i, line := range strings.Split(f.Text, "\n") {
		width := utf8.RuneCountInString(strings.TrimRight(line, "\r"))
		switch {
		case width <= maxCommentWidth || exempt.MatchString(line):
		case width > maxWidth:
			found = append(found, finding{f.Path, i + 1, widthRule, tooWide(width, maxWidth)})
		case inComment[i+1] && onlyComment(f.Language, line):
			found = append(found, finding{f.Path, i + 1, commentRule, tooWide(width, maxCommentWidth)})
		}
	}
	return found
}

// onlyComment reports whether a line with a comment has no code. Lines of a docstring have no
// delimiter.
func onlyComment(language, line string) bool {
	line = strings.TrimSpace(line)
	for _, delimiter := range []string{"//", "/*", "*", "#", `"""`} {
		if strings.HasPrefix(line, delimiter) {
			return true
		}
	}
	return language == "Python" && !strings.Contains(line, " # ")
}

func tooWide(width, limit int) string {
	return fmt.Sprintf("%d columns wide; at most %d", width, limit)
}
