package main

import (
	"regexp"
	"strings"
)

// countedPhrases are the words whose frequency shows how far comments are from plain technical
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
func measureWords(files []sourceFile, packages []*goPackage) []wordCounts {
	var rows []wordCounts
	for _, group := range groups {
		var comments []string
		for _, p := range packages {
			comments = append(comments, p.comments[group]...)
		}
		for _, f := range measured(files, group) {
			if syntax, ok := syntaxes[f.language]; ok {
				comments = append(comments, syntax.comments(f.text)...)
			}
		}
		rows = append(rows, countWords(group, comments))
	}
	return rows
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
