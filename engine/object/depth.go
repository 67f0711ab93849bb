package object

// Deeper reports whether JSON is nested deeper than limit. It looks at brackets outside of strings
// only and never recurses, so that it is safe on text from outside.
func Deeper(data []byte, limit int) bool {
	depth, quoted, escaped := 0, false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = b == '\\', b != '"'
		case b == '"':
			quoted = true
		case b == '{' || b == '[':
			if depth++; depth > limit {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}
