package source

import (
	"fmt"
	"go/parser"
	"go/token"
	"strings"
)

// Comment is a comment, or several comments on lines of their own that follow each other.
type Comment struct {
	Line int    // of the first character
	Text string // without delimiters; has a line for each line of the source
}

// Comments returns the comments of a file with code. Directives to compilers and linters are
// comments, too.
func Comments(f File) ([]Comment, error) {
	if s, ok := syntaxes[f.Language]; ok {
		return s.comments(f.Text), nil
	}
	if f.Language == Script {
		return scriptComments(f.Text), nil
	}
	if f.Language != "Go" {
		return nil, nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, f.Path, f.Text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read comments: %w", err)
	}
	var found []Comment
	for _, group := range file.Comments {
		var lines []string
		for _, c := range group.List {
			lines = append(lines, strings.TrimSuffix(c.Text[2:], "*/"))
		}
		found = append(found, Comment{set.Position(group.Pos()).Line, strings.Join(lines, "\n")})
	}
	return found, nil
}

// scriptComments returns the comments on lines of their own. A "#" after code may be a part of it.
func scriptComments(text string) []Comment {
	c := collector{text: text}
	at := 0
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#"); ok {
			c.add(at, at+len(line), strings.TrimSuffix(rest, "\n"))
		}
		at += len(line)
	}
	return c.found
}

// syntax describes the comments of a language, and the literals that may contain the delimiters of
// comments. Go has a parser of its own.
type syntax struct {
	line       string   // begins a comment that ends with the line
	block      bool     // has comments between /* and */
	quotes     []string // delimiters of strings, the longer first
	docstrings bool     // a string between three quotes where a statement may begin is a comment
	regexps    bool     // has literals between slashes
}

var syntaxes = map[string]syntax{
	"Protobuf":   {line: "//", block: true, quotes: []string{`"`, `'`}},
	"Python":     {line: "#", quotes: []string{`"""`, `'''`, `"`, `'`}, docstrings: true},
	"TypeScript": {line: "//", block: true, quotes: []string{`"`, `'`, "`"}, regexps: true},
}

// comments returns the comments of a text.
func (s syntax) comments(text string) []Comment {
	c := collector{text: text}
	var last byte // of the code before, without white space and comments
	for at := 0; at < len(text); {
		rest := text[at:]
		quote := s.quoteAt(rest)
		switch {
		case strings.HasPrefix(rest, s.line):
			end := until(rest, len(s.line), "\n")
			c.add(at, at+end, strings.TrimSuffix(rest[len(s.line):end], "\n"))
			at += end
		case s.block && strings.HasPrefix(rest, "/*"):
			end := until(rest, 2, "*/")
			c.add(at, at+end, strings.TrimSuffix(rest[2:end], "*/"))
			at += end
		case quote != "":
			end := literal(rest, quote)
			if s.docstrings && len(quote) == 3 && (last == 0 || last == ':') {
				c.add(at, at+end, strings.TrimSuffix(rest[len(quote):end], quote))
			}
			at = at + end
			last = quote[0]
		case s.regexps && rest[0] == '/' && beginsRegexp(text[:at], last):
			at = at + regexpLiteral(rest)
			last = '/'
		default:
			if !strings.ContainsRune(" \t\r\n", rune(rest[0])) {
				last = rest[0]
			}
			at++
		}
	}
	return c.found
}

// collector joins comments that follow each other without an empty line.
type collector struct {
	text  string
	found []Comment
	end   int // of the last comment, with the end of its line
}

// add takes the comment at text[from:to] in.
func (c *collector) add(from, to int, comment string) {
	between := c.text[c.end:from]
	if n := len(c.found); n > 0 && strings.Trim(between, " \t") == "" && strings.HasSuffix(c.text[:c.end], "\n") {
		c.found[n-1].Text += "\n" + comment
	} else {
		c.found = append(c.found, Comment{strings.Count(c.text[:from], "\n") + 1, comment})
	}
	c.end = to
}

func (s syntax) quoteAt(rest string) string {
	for _, quote := range s.quotes {
		if strings.HasPrefix(rest, quote) {
			return quote
		}
	}
	return ""
}

// until returns the index after the first end in text from index from on, or the length of text.
func until(text string, from int, end string) int {
	if i := strings.Index(text[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(text)
}

// literal returns the length of the string that text begins with. A string between single quotes
// ends with the line at the latest; in a template, literals within ${} are skipped.
func literal(text, quote string) int {
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case quote == "`" && strings.HasPrefix(text[i:], "${"):
			i += expression(text[i+2:]) + 1
		case text[i] == '\n' && len(quote) == 1 && quote != "`":
			return i
		}
	}
	return len(text)
}

// expression returns the length of a template's expression up to its closing brace, which counts.
func expression(text string) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth--
			if depth == 0 {
				return i + 1
			}
		case '"', '\'', '`':
			i += literal(text[i:], text[i:i+1]) - 1
		}
	}
	return len(text)
}

// beginsRegexp reports whether a slash after this code begins a regular expression: where a value
// is expected, that is, not after an operand.
func beginsRegexp(before string, last byte) bool {
	return last == 0 || strings.IndexByte("(,=:[!&|?{};+-*%<>~^", last) >= 0 ||
		strings.HasSuffix(strings.TrimRight(before, " \t\r\n"), "return")
}

// regexpLiteral returns the length of the regular expression that text begins with. It ends with
// the line at the latest.
func regexpLiteral(text string) int {
	class := false
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '\n':
			return i
		case '/':
			if !class {
				return i + 1
			}
		}
	}
	return len(text)
}
