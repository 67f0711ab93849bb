// Package printable makes texts of others fit for a terminal: names, messages and attributes that
// users and hooks write. It also writes numbers with their nouns.
//
// It is pure, and its tests are beside it.
package printable

import (
	"strings"
	"unicode"
)

// Text returns a text on one line and without control characters, which could change a terminal or
// the direction of its text. It shortens the text to limit characters.
func Text(s string, limit int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}
