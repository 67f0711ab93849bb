package merge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Equal compares JSON values. An integer and a float of the same value are equal; integers beyond 2^53 are compared exactly.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case int64:
		if f, ok := b.(float64); ok {
			return sameNumber(a, f)
		}
		return a == b
	case float64:
		if i, ok := b.(int64); ok {
			return sameNumber(i, a)
		}
		return a == b
	default:
		return a == b
	}
}

// sameNumber compares without losing digits: a float that is not exactly the integer is another number.
func sameNumber(i int64, f float64) bool {
	const limit = 1 << 62
	return f > -limit && f < limit && float64(int64(f)) == f && int64(f) == i
}

// maxDiff bounds a difference's text, in bytes, and maxPaths the paths in it.
const (
	maxDiff  = 256
	maxPaths = 4
)

// Diff names the first paths at which two objects differ: "spec.replicas, metadata.labels.app". It never shows values, because they
// may be secret. It is empty for equal objects.
func Diff(before, after map[string]any) string {
	d := differ{}
	d.objects("", before, after)
	text := strings.Join(d.paths[:min(len(d.paths), maxPaths)], ", ")
	if more := len(d.paths) - maxPaths; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(text) > maxDiff {
		text = strings.ToValidUTF8(text[:maxDiff-len("…")], "") + "…"
	}
	return text
}

type differ struct{ paths []string }

func (d *differ) values(path string, before, after any) {
	switch after := after.(type) {
	case map[string]any:
		if before, ok := before.(map[string]any); ok {
			d.objects(path, before, after)
			return
		}
	case []any:
		if before, ok := before.([]any); ok && len(before) == len(after) {
			for i := range after {
				d.values(fmt.Sprintf("%s[%d]", path, i), before[i], after[i])
			}
			return
		}
	}
	if !Equal(before, after) {
		d.paths = append(d.paths, path)
	}
}

func (d *differ) objects(path string, before, after map[string]any) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		at := name
		if path != "" {
			at = path + "." + name
		}
		old, had := before[name]
		current, has := after[name]
		if had != has {
			d.paths = append(d.paths, at)
			continue
		}
		d.values(at, old, current)
	}
}
