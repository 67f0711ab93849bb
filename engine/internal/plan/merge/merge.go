// Package merge computes the object to write from three others, as kubectl apply does: the observed
// object, the fields that were applied last, and the desired ones. Use [Apply] for whole objects
// and [Overlay] for a part of one. [Equal] and [Differences] compare JSON values.
//
// It knows no schemas: lists merge by the keys that Metacontroller's users rely on (compatibility:
// dynamic apply). Pass decoded JSON (map[string]any, []any, string, bool, int64, float64, nil). It
// is not changed, and a result shares no part with it that could be changed later.
package merge

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// mergeKeys are the keys that match items of lists, in the order in which they are tried.
var mergeKeys = []string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"}

// system are the metadata fields of the API server, which an apply never changes.
var system = []string{
	"selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields",
}

// Apply returns observed with the fields of desired. Fields that lastApplied has and desired lacks
// are removed; all others stay. System metadata and status stay as observed. A null in desired is
// an absent field, because the API server drops nulls. lastApplied may be nil.
func Apply(observed, lastApplied, desired map[string]any) map[string]any {
	merged := object(observed, lastApplied, desired)
	restore(merged, observed, lastApplied, desired)
	return merged
}

// Overlay returns observed with the fields of desired, like Apply for a part of an object. It
// removes nothing, and no field is special.
func Overlay(observed, desired map[string]any) map[string]any { return object(observed, nil, desired) }

// Strip removes from desired, in place, the fields that an apply never changes: a hook that returns
// observed objects does not desire their resourceVersion.
func Strip(desired map[string]any) {
	delete(desired, "status")
	if metadata, ok := desired["metadata"].(map[string]any); ok {
		for _, field := range system {
			delete(metadata, field)
		}
	}
}

// restore restores the fields that an apply never changes, if one of the two others has them.
func restore(merged, observed, lastApplied, desired map[string]any) {
	keep(merged, observed, "status", lastApplied, desired)
	metadata, _ := merged["metadata"].(map[string]any)
	before, _ := observed["metadata"].(map[string]any)
	if metadata == nil {
		if before != nil {
			merged["metadata"] = runtime.DeepCopyJSONValue(before)
		}
		return
	}
	last, _ := lastApplied["metadata"].(map[string]any)
	wanted, _ := desired["metadata"].(map[string]any)
	for _, field := range system {
		keep(metadata, before, field, last, wanted)
	}
}

// keep restores one field. If neither of the two others has it, merged has a copy of it already.
func keep(merged, before map[string]any, field string, lastApplied, desired map[string]any) {
	_, applied := lastApplied[field]
	if _, wanted := desired[field]; !applied && !wanted {
		return
	}
	if value, ok := before[field]; ok {
		merged[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(merged, field)
	}
}

// value merges one value of any type. If the type changes, desired replaces observed.
func value(observed, lastApplied, desired any) any {
	switch desired := desired.(type) {
	case map[string]any:
		present, ok := observed.(map[string]any)
		if !ok {
			return withoutNulls(desired)
		}
		last, _ := lastApplied.(map[string]any)
		return object(present, last, desired)
	case []any:
		present, ok := observed.([]any)
		if !ok {
			return withoutNulls(desired)
		}
		last, _ := lastApplied.([]any)
		return list(present, last, desired)
	default:
		return desired
	}
}

// object merges field by field. A field that was applied as null never existed, so that it is not
// removed.
func object(observed, lastApplied, desired map[string]any) map[string]any {
	merged := make(map[string]any, max(len(observed), len(desired)))
	for name, present := range observed {
		applied := lastApplied[name]
		wanted := desired[name]
		switch {
		case wanted != nil:
			merged[name] = value(present, applied, wanted)
		case applied == nil:
			merged[name] = runtime.DeepCopyJSONValue(present)
		}
	}
	for name, wanted := range desired {
		if _, present := observed[name]; !present && wanted != nil {
			merged[name] = withoutNulls(wanted)
		}
	}
	return merged
}

// list merges by key if every item of all three lists is an object with that key. Otherwise desired
// replaces observed.
func list(observed, lastApplied, desired []any) []any {
	key := mergeKey(observed, lastApplied, desired)
	if key == "" {
		return replaced(observed, desired)
	}
	wanted := byKey(desired, key)
	applied := byKey(lastApplied, key)
	merged := make([]any, 0, max(len(observed), len(desired)))
	seen := make(map[any]bool, len(observed))
	for _, item := range observed {
		id := identity(item, key)
		seen[id] = true
		switch {
		case wanted[id] != nil:
			merged = append(merged, object(item.(map[string]any), applied[id], wanted[id]))
		case applied[id] == nil:
			merged = append(merged, runtime.DeepCopyJSONValue(item))
		}
	}
	for _, item := range desired {
		if !seen[identity(item, key)] {
			merged = append(merged, withoutNulls(item))
		}
	}
	return merged
}

// replaced returns desired, or observed if the two differ by nulls only.
func replaced(observed, desired []any) []any {
	wanted := withoutNulls(desired)
	if Equal(withoutNulls(observed), wanted) {
		wanted = runtime.DeepCopyJSONValue(observed)
	}
	return wanted.([]any)
}

// mergeKey returns the first key with different values for the items of each list; empty if no key
// has them.
func mergeKey(lists ...[]any) string {
	for _, key := range mergeKeys {
		if keyed(key, lists) {
			return key
		}
	}
	return ""
}

// keyed reports whether every item of all lists has the key, with a value that is unique in its
// list. Repeated values identify no item: the ports 53/TCP and 53/UDP merge by their names, if at
// all.
func keyed(key string, lists [][]any) bool {
	items := 0
	for _, list := range lists {
		for _, item := range list {
			if identity(item, key) == nil {
				return false
			}
		}
		items += len(list)
	}
	return items > 0 && !slices.ContainsFunc(lists, func(list []any) bool { return repeats(list, key) })
}

// repeats reports whether two items of a list have the same identity.
func repeats(list []any, key string) bool {
	const few = 8 // a map would cost more than the comparisons
	if len(list) > few {
		return len(byKey(list, key)) < len(list)
	}
	for i := range list {
		id := identity(list[i], key)
		if slices.ContainsFunc(list[:i], func(other any) bool { return identity(other, key) == id }) {
			return true
		}
	}
	return false
}

// identity returns the value of an item's key, in a form that equal values share; nil if the item
// has no scalar key.
func identity(item any, key string) any {
	m, _ := item.(map[string]any)
	switch v := m[key].(type) {
	case string, int64, bool:
		return v
	case float64:
		if i, exact := integer(v); exact {
			return i
		}
		return v
	}
	return nil
}

func byKey(list []any, key string) map[any]map[string]any {
	out := make(map[any]map[string]any, len(list))
	for _, item := range list {
		out[identity(item, key)] = item.(map[string]any)
	}
	return out
}

// withoutNulls returns a copy of a value without the fields that are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			if field != nil {
				out[name] = withoutNulls(field)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = withoutNulls(item)
		}
		return out
	default:
		return v
	}
}
