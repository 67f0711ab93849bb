package merge

import "bytes"

// Includes reports that an apply of part to whole changes nothing if part was applied last, too:
// Apply(whole, part, part) equals whole. It compares the JSON texts, and builds nothing. False
// means that it is unknown: texts that differ may mean the same, and a server may have added fields
// to the items of a list.
//
// whole must be valid JSON. Both should be compact, because spaces make the answer false.
func Includes(whole, part []byte) bool {
	if len(part) == 0 || part[0] != '{' {
		return len(part) > 0 && part[0] != 'n' && bytes.Equal(whole, part)
	}
	var stored, wanted [16]member
	present, ok := members(whole, stored[:0])
	if !ok {
		return false
	}
	fields, ok := members(part, wanted[:0])
	if !ok {
		return false
	}
	for _, f := range fields {
		value, ok := find(present, f.name)
		if !ok || !Includes(value, f.value) {
			return false
		}
	}
	return true
}

// member is a member of a JSON object, as text: its name in quotes, and its value.
type member struct{ name, value []byte }

// find returns the value of the last member of a name, which wins.
func find(all []member, name []byte) (value []byte, ok bool) {
	for i := len(all) - 1; i >= 0; i-- {
		if bytes.Equal(all[i].name, name) {
			return all[i].value, true
		}
	}
	return nil, false
}

// members appends the members of a compact JSON object; not ok if the text is none.
func members(text []byte, into []member) (all []member, ok bool) {
	if len(text) < 2 || text[0] != '{' {
		return nil, false
	}
	if text[1] == '}' {
		return into, len(text) == 2
	}
	for at := 1; ; {
		colon := endOfString(text, at)
		if colon < 0 || colon >= len(text) || text[colon] != ':' {
			return nil, false
		}
		end := endOfValue(text, colon+1)
		if end < 0 || end >= len(text) {
			return nil, false
		}
		into = append(into, member{text[at:colon], text[colon+1 : end]})
		switch {
		case text[end] == ',':
			at = end + 1
		case text[end] == '}' && end == len(text)-1:
			return into, true
		default:
			return nil, false
		}
	}
}

// endOfString returns the place behind the string that begins at a place; -1 if there is none.
func endOfString(text []byte, at int) int {
	if at >= len(text) || text[at] != '"' {
		return -1
	}
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return -1
}

// endOfValue returns the place behind the value that begins at a place; -1 if it has no end.
func endOfValue(text []byte, at int) int {
	depth := 0
	for at < len(text) {
		switch text[at] {
		case '"':
			at = endOfString(text, at)
			if at < 0 {
				return -1
			}
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth < 0 {
				return at
			}
			if depth == 0 {
				return at + 1
			}
		case ',':
			if depth == 0 {
				return at
			}
		}
		at++
	}
	return -1
}
