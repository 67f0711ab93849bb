package printable

import "fmt"

// Count returns a number with its noun: "1 error", "2 errors". plural is the noun for other numbers
// than 1; none is the noun with an "s".
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
