package merge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Equal compares JSON values. An integer and a float of the same value are equal; integers beyond
// 2^53 are compared exactly.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case int64:
		f, ok := b.(float64)
		return a == b || ok && sameNumber(a, f)
	case float64:
		i, ok := b.(int64)
		return a == b || ok && sameNumber(i, a)
	default:
		return a == b
	}
}

func sameNumber(i int64, f float64) bool {
	whole, exact := integer(f)
	return exact && whole == i
}

// integer returns a float as an integer, and reports whether the float is a whole number.
func integer(f float64) (i int64, exact bool) {
	const limit = 1 << 63
	if f < -limit || f >= limit {
		return 0, false
	}
	i = int64(f)
	return i, float64(i) == f
}

// maxDiff bounds the text of a difference, in bytes, and maxPaths the number of its paths.
const (
	maxDiff  = 256
	maxPaths = 4
)

// Diff returns the first paths at which two objects differ: "metadata.labels.app, spec.replicas".
// It never contains values, because they may be secret. It is empty if and only if the objects are
// equal.
func Diff(before, after map[string]any) string {
	text, _ := DiffPaths(before, after)
	return text
}

// DiffPaths returns the text of Diff and the paths in it.
func DiffPaths(before, after map[string]any) (text string, paths []string) {
	total := 0
	Differences(before, after, func(path string, _, _ any) {
		total++
		if len(paths) < maxPaths {
			paths = append(paths, path)
		}
	})
	text = strings.Join(paths, ", ")
	more := ""
	if total > maxPaths {
		more = fmt.Sprintf(" and %d more", total-maxPaths)
	}
	if room := maxDiff - len(more); len(text) > room {
		text = strings.ToValidUTF8(text[:room-len("…")], "") + "…"
	}
	return text + more, paths
}

// Differences calls visit for each place at which two objects differ, in the order of the fields'
// names. An absent value is nil. Fields of objects and items of equally long lists are compared one
// by one.
func Differences(before, after map[string]any, visit func(path string, before, after any)) {
	for _, name := range different(before, after) {
		differ(step(name), before[name], after[name], visit)
	}
}

// differ visits a difference, or the differences inside of it.
func differ(path string, before, after any, visit func(path string, before, after any)) {
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			Differences(before, after, func(inner string, b, a any) { visit(path+"."+inner, b, a) })
			return
		}
	case []any:
		if before, ok := before.([]any); ok && len(before) == len(after) {
			for i := range after {
				if !Equal(before[i], after[i]) {
					differ(path+"["+strconv.Itoa(i)+"]", before[i], after[i], visit)
				}
			}
			return
		}
	}
	visit(path, before, after)
}

// different returns the fields in which two objects differ, in order.
func different(before, after map[string]any) []string {
	var names []string
	for name, current := range after {
		if old, both := before[name]; !both || !Equal(old, current) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, both := after[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// step returns a field's name in its form in a path. A name that is unprintable, or contains a line
// break, is quoted.
func step(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return strings.Clone(name) // it is a part of the decoded JSON, and paths are kept for long
}
