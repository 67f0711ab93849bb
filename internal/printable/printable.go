// Package printable makes texts that users and hooks write safe for a terminal: names, messages and
// attributes. Use [Text] for a line, [Excerpt] for the start of an unknown body, and [Count] for a
// number with a noun.
package printable

import (
	"strings"
	"unicode"
)

// Text puts a text on one line of at most limit characters. It removes control characters, which
// could change the terminal or the direction of the text.
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
