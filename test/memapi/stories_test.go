package memapi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// story is a sequence of requests. Each story runs in its own namespace, which exists.
type story struct {
	name  string
	steps []step
}

// stories reads the files of testdata. A story begins with "## NAME". A step is a line with method,
// path and options (the fields of step), and a line with the body, if any.
func stories(t *testing.T) []story {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []story
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for paragraph := range strings.SplitSeq(string(data), "\n\n") {
			paragraph = strings.TrimSpace(paragraph)
			if name, ok := strings.CutPrefix(paragraph, "## "); ok {
				all = append(all, story{name: name})
			} else if paragraph != "" {
				last := &all[len(all)-1]
				last.steps = append(last.steps, parseStep(t, paragraph))
			}
		}
	}
	return all
}

func parseStep(t *testing.T, text string) step {
	t.Helper()
	head, body, _ := strings.Cut(text, "\n")
	words := strings.Fields(head)
	s := step{do: words[0] + " " + words[1], body: body}
	for _, word := range words[2:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "kind":
			s.kind = value
		case "as":
			s.as = value
		case "await":
			s.await = true
		case "code":
			s.codeOnly = true
		case "ignore":
			s.ignore = strings.Split(value, ",")
		default:
			t.Fatalf("%s: unknown option %q", head, word)
		}
	}
	return s
}
