package verifystream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// match compares a received tree with an expected one, which may leave fields out. {contains: TEXT}
// matches a text with that part. It returns the first difference, or "".
func match(expected, got any, path string) string {
	if d, ok := got.(document); ok {
		return same(expected, d.content, path)
	}
	switch want := expected.(type) {
	case map[string]any:
		if part, ok := want["contains"].(string); ok {
			if whole, isText := got.(string); !isText || !strings.Contains(whole, part) {
				return fmt.Sprintf("%s: expected a text that contains %q, got %s", path, part, text(got))
			}
			return ""
		}
		fields, ok := got.(map[string]any)
		if !ok {
			return different(path, expected, got)
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value, found := fields[key]
			if !found {
				return fmt.Sprintf("%s: expected the field %s, got %s", cmp.Or(path, "the message"), key, text(got))
			}
			if difference := match(want[key], value, join(path, key)); difference != "" {
				return difference
			}
		}
		return ""
	case []any:
		return eachOf(want, got, path, match)
	}
	return same(expected, got, path)
}

// same compares trees as a whole.
func same(expected, got any, path string) string {
	switch want := expected.(type) {
	case map[string]any:
		fields, ok := got.(map[string]any)
		if !ok {
			return different(path, expected, got)
		}
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if _, found := want[key]; !found {
				return fmt.Sprintf("%s: expected no such field, got %s", join(path, key), text(fields[key]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(want)) {
			value, found := fields[key]
			if !found {
				return fmt.Sprintf("%s: expected %s, got no such field", join(path, key), text(want[key]))
			}
			if difference := same(want[key], value, join(path, key)); difference != "" {
				return difference
			}
		}
		return ""
	case []any:
		return eachOf(want, got, path, same)
	}
	if expected != got {
		return different(path, expected, got)
	}
	return ""
}

// eachOf compares the items of lists.
func eachOf(want []any, got any, path string, compare func(expected, got any, path string) string) string {
	list, ok := got.([]any)
	if !ok || len(list) != len(want) {
		return different(path, want, got)
	}
	for i := range want {
		if difference := compare(want[i], list[i], fmt.Sprintf("%s[%d]", path, i)); difference != "" {
			return difference
		}
	}
	return ""
}

func different(path string, expected, got any) string {
	return fmt.Sprintf("%s: expected %s, got %s", path, text(expected), text(got))
}

func join(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// maxText bounds the text of a value in a report.
const maxText = 400

// text returns a tree as JSON for a report.
func text(tree any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(plain(tree)); err != nil {
		return fmt.Sprint(tree)
	}
	short := strings.TrimSpace(out.String())
	if len(short) > maxText {
		return strings.ToValidUTF8(short[:maxText], "") + "…"
	}
	return short
}

// plain returns a tree without documents.
func plain(tree any) any {
	switch tree := tree.(type) {
	case document:
		return tree.content
	case map[string]any:
		out := make(map[string]any, len(tree))
		for key, value := range tree {
			out[key] = plain(value)
		}
		return out
	case []any:
		out := make([]any, len(tree))
		for i, value := range tree {
			out[i] = plain(value)
		}
		return out
	}
	return tree
}
