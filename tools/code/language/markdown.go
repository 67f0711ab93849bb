package main

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/tools/code/source"
)

// fence matches the first line and the last line of a code block.
var fence = regexp.MustCompile("^\\s*(```|~~~)")

// markdownProse returns the text outside of code blocks, paragraph by paragraph.
func markdownProse(text string) []source.Comment {
	var prose []source.Comment
	var paragraph []string
	inCode := false
	first := 0
	flush := func() {
		if len(paragraph) > 0 {
			prose = append(prose, source.Comment{Line: first, Text: strings.Join(paragraph, "\n")})
		}
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
			flush()
			continue
		}
		if inCode || strings.TrimSpace(line) == "" {
			flush()
			continue
		}
		if len(paragraph) == 0 {
			first = i + 1
		}
		paragraph = append(paragraph, line)
	}
	flush()
	return prose
}

// unbreakable matches lines of Markdown that cannot be broken: rows of tables, definitions of
// links, HTML, and lines with a long link.
var unbreakable = regexp.MustCompile(`^\s*(\||\[[^\]]+\]:|<)|\]\(\S{40,}\)`)

// checkMarkdownWidths reports lines of prose that are too wide.
func checkMarkdownWidths(f source.File) []finding {
	var found []finding
	inCode := false
	for i, line := range strings.Split(f.Text, "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
			continue
		}
		width := utf8.RuneCountInString(line)
		if width > maxWidth && !inCode && !unbreakable.MatchString(line) {
			found = append(found, finding{f.Path, i + 1, widthRule, tooWide(width, maxWidth)})
		}
	}
	return found
}
