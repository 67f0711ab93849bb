package printable

import "fmt"

// Count returns a number with its noun: "1 error", "2 errors". Pass a plural if it is not the noun
// with an "s".
func Count(n int, noun string, plural ...string) string {
	switch {
	case n == 1:
	case len(plural) > 0:
		noun = plural[0]
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
