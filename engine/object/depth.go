package object

import "bytes"

// Deeper reports whether JSON is nested deeper than limit levels. It counts brackets outside of
// strings and does not recurse. Call it before decoding JSON from another process.
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

// closingQuote returns the index of the quote that ends the string starting at index at, or the
// length of data if the string does not end.
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
