package validate

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// splitLast splits a path at its last field.
func splitLast(path string) (parent, name string) {
	at := strings.LastIndexByte(path, '.')
	return path[:max(at, 0)], path[at+1:]
}

// fieldsAt returns the names of the fields that a schema has at a path.
func fieldsAt(schema *apiextensionsv1.JSONSchemaProps, path string) []string {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' }) {
		switch {
		case schema == nil:
			return nil
		case strings.HasSuffix(step, "]") && schema.Items != nil:
			schema = schema.Items.Schema
		case len(schema.Properties) > 0:
			next, found := schema.Properties[step]
			if !found {
				return nil
			}
			schema = &next
		case schema.AdditionalProperties != nil:
			schema = schema.AdditionalProperties.Schema
		default:
			return nil
		}
	}
	if schema == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(schema.Properties))
}

// closest returns the name that is nearest to a wrong one; empty if none is near.
func closest(wrong string, names []string) string {
	best := ""
	least := max(2, len(wrong)/3) + 1
	for _, name := range names {
		if d := distance(strings.ToLower(wrong), strings.ToLower(name)); d < least {
			best = name
			least = d
		}
	}
	return best
}

// distance is the number of characters to insert, delete or replace (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j]+1, row[j+1]+1, cost)
		}
	}
	return row[len(b)]
}
