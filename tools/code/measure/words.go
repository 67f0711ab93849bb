package main

import (
	"regexp"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// countedPhrases are words. Their frequency shows how far comments are from plain technical
// English. All but "if" should be rare.
var countedPhrases = []string{"says", "what", "where", "whose", "if", "is told", "stands"}

// wordCounts counts phrases in the comments of one language.
type wordCounts struct {
	Group       string             `json:"group"`
	Words       int                `json:"words"`
	Count       map[string]int     `json:"count"`
	PerThousand map[string]float64 `json:"perThousand"`
}

// measureWords returns one row for each language, and for the tests in it.
func measureWords(files []source.File, packages []*goPackage) ([]wordCounts, error) {
	var rows []wordCounts
	for _, group := range source.Groups {
		var comments []string
		for _, p := range packages {
			comments = append(comments, p.comments[group]...)
		}
		for _, f := range source.Written(files, group) {
			if f.Language == "Go" {
				continue // has been parsed with its package, without directives
			}
			found, err := source.Comments(f)
			if err != nil {
				return nil, err
			}
			for _, c := range found {
				comments = append(comments, c.Text)
			}
		}
		rows = append(rows, countWords(group, comments))
	}
	return rows, nil
}

var word = regexp.MustCompile(`[\p{L}\p{N}_]+(?:['’-][\p{L}\p{N}_]+)*`)

func countWords(group string, comments []string) wordCounts {
	c := wordCounts{Group: group, Count: map[string]int{}, PerThousand: map[string]float64{}}
	for _, comment := range comments {
		words := word.FindAllString(strings.ToLower(comment), -1)
		c.Words += len(words)
		text := " " + strings.Join(words, "  ") + " "
		for _, phrase := range countedPhrases {
			c.Count[phrase] += strings.Count(text, " "+strings.ReplaceAll(phrase, " ", "  ")+" ")
		}
	}
	for _, phrase := range countedPhrases {
		c.PerThousand[phrase] = ratio(1000*c.Count[phrase], c.Words)
	}
	return c
}
