package object

import "bytes"

// Deeper reports whether JSON is nested deeper than limit. It looks at brackets outside of strings
// only and never recurses, so that it is safe on text from outside.
func Deeper(data []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = closingQuote(data, i)
		case '{', '[':
			depth++
			if depth > limit {
				return true
			}
		case '}', ']':
			depth--
		}
	}
	return false
}

// closingQuote returns the place of the quote that ends the string that begins at a place, and the
// length of data if there is none.
func closingQuote(data []byte, at int) int {
	start := at + 1
	for at = start; ; at++ {
		n := bytes.IndexByte(data[at:], '"')
		if n < 0 {
			return len(data)
		}
		at += n
		escapes := at
		for escapes > start && data[escapes-1] == '\\' {
			escapes--
		}
		if (at-escapes)%2 == 0 {
			return at
		}
	}
}
