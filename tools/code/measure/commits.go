package main

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/tools/code/source"
)

// maxSubject is the number of characters that the first line of a commit message may have.
const maxSubject = 72

// commitSubjects is the distribution of the lengths of commit subjects, without merges.
type commitSubjects struct {
	Since   string `json:"since"`
	Count   int    `json:"count"`
	P50     int    `json:"p50"`
	P90     int    `json:"p90"`
	Max     int    `json:"max"`
	Long    int    `json:"long"` // longer than maxSubject
	Longest string `json:"longest"`
}

func measureCommits(ctx context.Context, root, since string) (commitSubjects, error) {
	revisions := "HEAD"
	if since != "" {
		revisions = since + "..HEAD"
	}
	log, err := source.Output(ctx, root, "git", "log", "--no-merges", "--format=%s", "--end-of-options", revisions, "--")
	if err != nil {
		return commitSubjects{}, err
	}
	return distributeSubjects(since, strings.FieldsFunc(log, func(r rune) bool { return r == '\n' })), nil
}

func distributeSubjects(since string, subjects []string) commitSubjects {
	c := commitSubjects{Since: since, Count: len(subjects)}
	var sizes []int
	for _, subject := range subjects {
		size := utf8.RuneCountInString(subject)
		sizes = append(sizes, size)
		if size > maxSubject {
			c.Long++
		}
		if size > c.Max {
			c.Max = size
			c.Longest = subject
		}
	}
	slices.Sort(sizes)
	if len(sizes) > 0 {
		c.P50, c.P90 = rank(sizes, 50), rank(sizes, 90)
	}
	return c
}
