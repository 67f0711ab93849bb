package main

import (
	_ "embed" // phrases.txt
	"fmt"
	"regexp"
	"strings"
)

//go:embed phrases.txt
var phraseList string

// phrase is a phrase that is not used, and a hint at a better one.
type phrase struct {
	pattern *regexp.Regexp
	hint    string
}

var phrases = mustParse(phraseList)

// mustParse parses phrases.txt: a regular expression and a hint in each line, with "=>" between
// them. Spaces match any white space; case does not count.
func mustParse(list string) []phrase {
	parsed, err := parse(list)
	if err != nil {
		panic(err) // the list is part of the program, and a test parses it
	}
	return parsed
}

func parse(list string) ([]phrase, error) {
	var parsed []phrase
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		expression, hint, ok := strings.Cut(line, "=>")
		expression = strings.TrimSpace(expression)
		hint = strings.TrimSpace(hint)
		if !ok || expression == "" || hint == "" {
			return nil, fmt.Errorf("phrases.txt: %q: expected a phrase, =>, and a hint", line)
		}
		pattern, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(expression, " ", `\s+`) + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("phrases.txt: %q: %w", line, err)
		}
		parsed = append(parsed, phrase{pattern, hint})
	}
	return parsed, nil
}
