package printable

import (
	"strings"
	"unicode"
)

const maxExcerpt = 256

// Excerpt returns the first 256 bytes of a text that we do not trust, as one line of printable
// characters.
func Excerpt(text []byte) string {
	valid := strings.ToValidUTF8(string(text[:min(len(text), maxExcerpt)]), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, valid))
}
