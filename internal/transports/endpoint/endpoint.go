// Package endpoint holds what every hook's address needs, whatever is spoken to it: the timeout,
// whom to trust and what to show, the addresses that are never dialled, and how much of a hook's
// own words a message may quote.
//
// It speaks no protocol and opens no connection. Its data comes from the controller's spec, and
// from Secrets and ConfigMaps by a function that is handed in. Everything in it is safe for
// concurrent use; table tests cover it.
package endpoint

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// DefaultTimeout is how long a call may take where the spec names no timeout, or one that is not
// above 0.
const DefaultTimeout = 10 * time.Second

// MaxRetryAfter bounds a hook's wish to be asked later: as long as the longest backoff.
const MaxRetryAfter = 1000 * time.Second

// Timeout reads the field timeout, a Go duration.
func Timeout(text string) (time.Duration, error) {
	if text == "" {
		return DefaultTimeout, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("timeout: %q is no duration; expected for example 10s", text)
	}
	if d <= 0 {
		return DefaultTimeout, nil
	}
	return d, nil
}

// maxExcerpt bounds what a message quotes of a hook's words, in bytes.
const maxExcerpt = 256

// Excerpt is the beginning of a text from outside as one line of printable characters, at most 256
// bytes.
func Excerpt(text []byte) string {
	valid := strings.ToValidUTF8(string(text[:min(len(text), maxExcerpt)]), "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, valid))
}
