// Package merge is dynamic apply's three-way merge: observed, last applied and desired in, the object to write out. It also
// compares JSON values and names the paths at which two of them differ.
//
// It is pure and knows nothing of Kubernetes' schemas: lists merge by the keys that Metacontroller's users rely on (compatibility:
// dynamic apply). Inputs are decoded JSON (map[string]any, []any, string, bool, int64, float64, nil) and are never changed; outputs share
// no mutable part with them. Table tests, properties (apply twice = once) and a fuzz target cover it.
package merge

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// MergeKeys are the keys by which items of a list are matched, in the order in which they are tried.
var MergeKeys = []string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"}

// system are the metadata fields that belong to the API server and are never changed by an apply.
var system = []string{
	"selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
	"deletionGracePeriodSeconds", "managedFields",
}

// Apply returns observed with desired laid over it: what desired names is set, what lastApplied names and desired does not is
// removed, all else stays. System metadata and status stay as observed. A null in desired stands for an absent field, as the API
// server drops nulls. lastApplied may be nil.
func Apply(observed, lastApplied, desired map[string]any) map[string]any {
	merged := object(observed, lastApplied, desired)
	restore(merged, observed)
	return merged
}

// restore puts back what an apply never changes.
func restore(merged, observed map[string]any) {
	keep(merged, observed, "status")
	metadata, _ := merged["metadata"].(map[string]any)
	before, _ := observed["metadata"].(map[string]any)
	if metadata == nil {
		if before != nil {
			merged["metadata"] = runtime.DeepCopyJSONValue(before)
		}
		return
	}
	for _, field := range system {
		keep(metadata, before, field)
	}
}

// keep makes a field what it was.
func keep(merged, before map[string]any, field string) {
	if value, ok := before[field]; ok {
		merged[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(merged, field)
	}
}

// value merges one value of any type; a type that changes is replaced.
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

func object(observed, lastApplied, desired map[string]any) map[string]any {
	merged := make(map[string]any, max(len(observed), len(desired)))
	for name, present := range observed {
		_, applied := lastApplied[name]
		wanted := desired[name]
		switch {
		case wanted != nil:
			merged[name] = value(present, lastApplied[name], wanted)
		case !applied:
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

// list merges by key where every item of all three lists is an object with that key; else desired replaces observed.
func list(observed, lastApplied, desired []any) []any {
	key := mergeKey(observed, lastApplied, desired)
	if key == "" {
		return withoutNulls(desired).([]any)
	}
	wanted, applied := byKey(desired, key), byKey(lastApplied, key)
	merged := make([]any, 0, max(len(observed), len(desired)))
	seen := map[any]bool{}
	for _, item := range observed {
		present := item.(map[string]any)
		id := present[key]
		seen[id] = true
		switch {
		case wanted[id] != nil:
			merged = append(merged, object(present, applied[id], wanted[id]))
		case applied[id] == nil:
			merged = append(merged, runtime.DeepCopyJSONValue(item))
		}
	}
	for _, item := range desired {
		if !seen[item.(map[string]any)[key]] {
			merged = append(merged, withoutNulls(item))
		}
	}
	return merged
}

// mergeKey is the first key that every item of all lists has, with scalar values that do not repeat; empty where there is none.
// Repeated values name no item, so that such a list is replaced.
func mergeKey(lists ...[]any) string {
	for _, key := range MergeKeys {
		if keyedBy(key, lists) {
			return key
		}
	}
	return ""
}

func keyedBy(key string, lists [][]any) bool {
	items := 0
	for _, list := range lists {
		seen := map[any]bool{}
		for _, item := range list {
			m, ok := item.(map[string]any)
			if !ok {
				return false
			}
			id, ok := m[key]
			if !ok || !scalar(id) || seen[id] {
				return false
			}
			seen[id] = true
			items++
		}
	}
	return items > 0
}

func scalar(v any) bool {
	switch v.(type) {
	case string, int64, float64, bool:
		return true
	}
	return false
}

func byKey(list []any, key string) map[any]map[string]any {
	out := make(map[any]map[string]any, len(list))
	for _, item := range list {
		m := item.(map[string]any)
		out[m[key]] = m
	}
	return out
}

// withoutNulls copies a value and leaves out fields that are null.
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
