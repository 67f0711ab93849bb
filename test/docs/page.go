package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// block is a code block of a page.
type block struct {
	line     int    // of its first line of content
	language string // the info string
	before   string // the paragraph above it
	lines    []string
}

// blocks returns the code blocks of a page.
func blocks(text string) []block {
	var found []block
	var current *block
	before := ""
	ended := true
	for i, line := range strings.Split(text, "\n") {
		switch {
		case current == nil && strings.HasPrefix(line, "```"):
			current = &block{line: i + 2, language: strings.TrimPrefix(line, "```"), before: before}
		case current != nil && line == "```":
			found = append(found, *current)
			current = nil
			before = ""
			ended = true
		case current != nil:
			current.lines = append(current.lines, line)
		case strings.TrimSpace(line) == "":
			ended = true
		case ended:
			before = line
			ended = false
		default:
			before += " " + line
		}
	}
	return found
}

// command is a command of a console block, and the output that the page shows.
type command struct {
	line int
	text string
	want []string
}

// commands returns the commands of a console block: lines with "$ ", continued by lines with "> ".
func (b block) commands() []command {
	var list []command
	for i, line := range b.lines {
		switch {
		case strings.HasPrefix(line, "$ "):
			list = append(list, command{line: b.line + i, text: line[2:]})
		case len(list) == 0:
		case strings.HasPrefix(line, "> ") && len(list[len(list)-1].want) == 0:
			list[len(list)-1].text += "\n" + line[2:]
		default:
			list[len(list)-1].want = append(list[len(list)-1].want, line)
		}
	}
	return list
}

// written matches the text above a block with the content of a file.
var written = regexp.MustCompile("Write this to `([^`]+)`")

// file returns the name of the file that the reader is to write.
func (b block) file() (string, bool) {
	match := written.FindStringSubmatch(b.before)
	if match == nil || b.language == "console" {
		return "", false
	}
	return match[1], true
}

// matches reports whether the output is the documented one. In a documented line, "…" is any
// text; a line with nothing else is any lines.
func matches(want, got []string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range want {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString("(?:.*\n)*")
			continue
		}
		parts := strings.Split(strings.Join(strings.Fields(line), " "), "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		pattern.WriteString(strings.Join(parts, ".*") + "\n")
	}
	var text strings.Builder
	for _, line := range got {
		fmt.Fprintln(&text, strings.Join(strings.Fields(line), " "))
	}
	return regexp.MustCompile(pattern.String() + "$").MatchString(text.String())
}
