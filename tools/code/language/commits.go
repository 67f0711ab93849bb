package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/tools/code/source"
)

// baseCommit is the last commit that need not keep the rule for subjects.
const baseCommit = "0208a5a"

// maxSubject is the number of characters that a subject may have.
const maxSubject = 72

// subjectForm matches "area: what changes"; git makes the other two itself.
var subjectForm = regexp.MustCompile(`^([a-z0-9._/{},* -]+: \S|Revert "|Merge )`)

// checkCommits reports subjects of commits after base. A shallow clone may not have base; then only
// its last commit is checked.
func checkCommits(ctx context.Context, root, base string) ([]finding, error) {
	revisions := []string{base + "..HEAD"}
	if _, err := source.Output(ctx, root, "git", "cat-file", "-e", base+"^{commit}"); err != nil {
		revisions = []string{"-1", "HEAD"}
	}
	args := append([]string{"log", "--format=%h %s"}, revisions...)
	log, err := source.Output(ctx, root, "git", append(args, "--")...)
	if err != nil {
		return nil, err
	}
	var found []finding
	for line := range strings.Lines(log) {
		hash, subject, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if text := checkSubject(subject); text != "" {
			found = append(found, finding{rule: commitRule, text: fmt.Sprintf("commit %s %q: %s", hash, subject, text)})
		}
	}
	return found, nil
}

// checkSubject returns the fault of a subject, or an empty string.
func checkSubject(subject string) string {
	if width := utf8.RuneCountInString(subject); width > maxSubject {
		return fmt.Sprintf("%d characters; at most %d", width, maxSubject)
	}
	if !subjectForm.MatchString(subject) {
		return `expected "area: what changes"`
	}
	return ""
}
