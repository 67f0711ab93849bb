package parts

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/hookloop/hookloop/engine/object"
)

// Bounds of the conditions of one output that are counted, and of the length of a type.
const (
	maxConditions = 16
	maxType       = 64
)

// TrueConditions returns the names of the conditions of an object that are True, as a status counts
// them: the type in lowerCamel, each once, in order.
func TrueConditions(o *object.Object) []string {
	raw, there := o.Field("status", "conditions")
	if !there {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil { // the object uses the field for something else
		return nil
	}
	var names []string
	for _, item := range items {
		var c struct{ Type, Status string }
		if json.Unmarshal(item, &c) != nil || c.Status != "True" || c.Type == "" || len(c.Type) > maxType {
			continue
		}
		names = append(names, lowerCamel(c.Type))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxConditions):min(len(names), maxConditions)]
}

// lowerCamel returns a type of condition as the name of a field: Ready is ready, DNSReady dnsReady.
// A type with a domain keeps it.
func lowerCamel(name string) string {
	domain := ""
	last := name
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		domain = name[:at+1]
		last = name[at+1:]
	}
	letters := []rune(last)
	for i, r := range letters {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(r)
	}
	return domain + string(letters)
}
