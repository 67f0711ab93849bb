package printable

import (
	"strings"
	"testing"
)

func TestExcerptIsOneShortPrintableLine(t *testing.T) {
	tests := map[string]string{
		"":                        "",
		"plain":                   "plain",
		"two\r\nlines\x1b[31m":    "two  lines [31m",
		"\xff\xfeö":               "ö",
		strings.Repeat("x", 1000): strings.Repeat("x", 256),
		strings.Repeat("ö", 1000): strings.Repeat("ö", 128),
	}
	for text, want := range tests {
		if got := Excerpt([]byte(text)); got != want {
			t.Errorf("%.40q: got %q, want %q", text, got, want)
		}
	}
}
