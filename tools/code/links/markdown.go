package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/hookloop/hookloop/tools/code/source"
)

var (
	fence   = regexp.MustCompile("^\\s*(```|~~~)")
	code    = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	// link matches the target of an inline link or image; definition that of a link definition.
	link       = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s+(\S+)`)
	// named matches links in headings, of which only the text is part of the anchor.
	named   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	mention = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/-]+\.md\b`)
	scheme  = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// checkRepository returns the links of Markdown files, and the mentions of pages in other files,
// that lead nowhere, and the broken rows of tables.
func checkRepository(root fs.FS, files []source.File) []finding {
	anchors := map[string]map[string]bool{}
	for _, f := range files {
		if f.Language == "Markdown" {
			anchors[f.Path] = anchorsOf(f.Text)
		}
	}
	var found []finding
	linked := map[string]bool{start: true}
	for _, f := range files {
		if f.Language != "Markdown" {
			found = append(found, checkMentions(root, f)...)
			continue
		}
		found = append(found, checkTables(f)...)
		for i, line := range prose(f.Text) {
			for _, target := range targets(line) {
				if message := checkTarget(root, anchors, f.Path, target); message != "" {
					found = append(found, finding{f.Path, i + 1, message})
				}
				if f.Path == start || f.Path == decisions {
					linked[resolve(f.Path, target)] = true
				}
			}
		}
	}
	for _, f := range files {
		if _, isPage := anchors[f.Path]; isPage && strings.HasPrefix(f.Path, "docs/") && !linked[f.Path] {
			message := "no link leads here from " + start + "; expected a row in one of its tables"
			found = append(found, finding{f.Path, 1, message})
		}
	}
	return found
}

// The map of the documentation links to every page; the list of decisions links to the records.
const (
	start     = "docs/README.md"
	decisions = "docs/explanation/decisions/README.md"
)

// checkMentions returns the pages that a file other than Markdown names and that do not exist.
func checkMentions(root fs.FS, f source.File) []finding {
	if f.Test {
		return nil // tests make up files
	}
	var found []finding
	for i, line := range strings.Split(f.Text, "\n") {
		for _, page := range mention.FindAllString(line, -1) {
			if _, err := fs.Stat(root, page); err != nil {
				found = append(found, finding{f.Path, i + 1, fmt.Sprintf("%s does not exist", page)})
			}
		}
	}
	return found
}

// prose returns the lines of a Markdown file, with code blanked.
func prose(text string) []string {
	lines := strings.Split(text, "\n")
	inCode := false
	for i, line := range lines {
		switch {
		case fence.MatchString(line):
			inCode = !inCode
			lines[i] = ""
		case inCode:
			lines[i] = ""
		default:
			lines[i] = code.ReplaceAllStringFunc(line, func(s string) string { return strings.Repeat(" ", len(s)) })
		}
	}
	return lines
}

// targets returns the targets of the links in a line.
func targets(line string) []string {
	var list []string
	for _, match := range link.FindAllStringSubmatch(line, -1) {
		list = append(list, match[1])
	}
	if match := definition.FindStringSubmatch(line); match != nil {
		list = append(list, match[1])
	}
	return list
}

// checkTarget returns the fault of a link in the file from, or nothing.
func checkTarget(root fs.FS, anchors map[string]map[string]bool, from, target string) string {
	if scheme.MatchString(target) {
		return ""
	}
	_, anchor, _ := strings.Cut(target, "#")
	to := resolve(from, target)
	if _, err := fs.Stat(root, to); err != nil {
		return fmt.Sprintf("link to %s: no such file or folder", target)
	}
	if known, isPage := anchors[to]; anchor != "" && isPage && !known[anchor] {
		return fmt.Sprintf("link to %s: %s has no heading with that anchor", target, to)
	}
	return ""
}

// resolve returns the path that a link in the file from leads to.
func resolve(from, target string) string {
	name, _, _ := strings.Cut(target, "#")
	if name == "" {
		return from
	}
	return path.Join(path.Dir(from), name)
}

// anchorsOf returns the anchors of a page's headings, as GitHub and Hugo make them.
func anchorsOf(text string) map[string]bool {
	anchors := map[string]bool{}
	inCode := false
	for line := range strings.SplitSeq(text, "\n") {
		if fence.MatchString(line) {
			inCode = !inCode
		}
		match := heading.FindStringSubmatch(line)
		if inCode || match == nil {
			continue
		}
		base := slug(named.ReplaceAllString(match[1], "$1"))
		anchor := base
		for n := 1; anchors[anchor]; n++ {
			anchor = fmt.Sprintf("%s-%d", base, n)
		}
		anchors[anchor] = true
	}
	return anchors
}

// slug returns the anchor of a heading: lower case, without punctuation, spaces as hyphens.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}
