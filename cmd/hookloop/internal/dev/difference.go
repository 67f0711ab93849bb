package dev

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
)

// change describes a field that a write has changed. Before and After are formatted for people.
type change struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

const (
	// hidden is printed in place of a value of a Secret.
	hidden = "(hidden)"
	absent = "nothing"
	// maxValue bounds a formatted value, in bytes.
	maxValue = 72
	// maxCondition bounds a formatted condition.
	maxCondition = 200
)

// serverFields lists the fields of metadata that the API server maintains.
var serverFields = []string{
	"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", "selfLink", "deletionGracePeriodSeconds",
}

// repeatedAnnotations lists annotations that contain a copy of the object.
var repeatedAnnotations = []string{
	"metacontroller.k8s.io/last-applied-configuration", "kubectl.kubernetes.io/last-applied-configuration",
}

// differences returns the fields in which two versions of an object differ, ordered by path. It
// compares the status if that was written, and everything else otherwise. Values of Secrets are
// hidden.
func differences(before, after *object.Object, status bool) []change {
	from := content(before, status)
	to := content(after, status)
	d := differ{secret: isSecret(before) || isSecret(after)}
	d.compare("", from, to)
	return d.changes
}

func isSecret(o *object.Object) bool {
	return o != nil && o.GVK().Group == "" && o.GVK().Kind == "Secret"
}

// content returns the part of an object that is compared.
func content(o *object.Object, status bool) map[string]any {
	if o == nil {
		return nil
	}
	all, err := o.Map()
	if err != nil {
		return nil
	}
	if status {
		return map[string]any{"status": all["status"]}
	}
	all = maps.Clone(all)
	delete(all, "status")
	if metadata, ok := all["metadata"].(map[string]any); ok {
		metadata = maps.Clone(metadata)
		for _, name := range serverFields {
			delete(metadata, name)
		}
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			annotations = maps.Clone(annotations)
			for _, name := range repeatedAnnotations {
				delete(annotations, name)
			}
			metadata["annotations"] = annotations
		}
		all["metadata"] = metadata
	}
	return all
}

// differ collects differences.
type differ struct {
	secret  bool
	changes []change
}

func (d *differ) compare(path string, before, after any) {
	if strings.HasSuffix(path, "]") && strings.Contains(path, "conditions[") && !d.secret {
		d.compareConditions(path, before, after)
		return
	}
	if from, to, ok := bothMaps(before, after); ok {
		d.compareMaps(path, from, to)
		return
	}
	if from, to, ok := bothKeyed(before, after); ok {
		d.compareMaps(path, from, to)
		return
	}
	if same(before, after) {
		return
	}
	c := change{Path: path, Before: format(before), After: format(after)}
	if d.secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData")) {
		c.Before, c.After = hide(before), hide(after)
	}
	d.changes = append(d.changes, c)
}

// compareConditions compares two conditions by status, reason and message.
func (d *differ) compareConditions(path string, before, after any) {
	from := condition(before)
	to := condition(after)
	if from != to {
		d.changes = append(d.changes, change{Path: path, Before: from, After: to})
	}
}

// condition formats a condition: True Ready: it is.
func condition(value any) string {
	c, ok := value.(map[string]any)
	if !ok {
		return format(value)
	}
	text := fmt.Sprintf("%v", c["status"])
	if reason, _ := c["reason"].(string); reason != "" {
		text += " " + reason
	}
	if message, _ := c["message"].(string); message != "" {
		text += ": " + oneLine(message)
	}
	return shortened(text, maxCondition)
}

func (d *differ) compareMaps(path string, from, to map[string]any) {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, both := from[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if join(path, key) == "status.observedGeneration" { // it follows the generation
			continue
		}
		d.compare(join(path, key), from[key], to[key])
	}
}

// join appends a key to a path. Keys of lists are in brackets already.
func join(path, key string) string {
	switch {
	case path == "" || strings.HasPrefix(key, "["):
		return path + key
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	}
	return path + "." + key
}

// bothMaps returns two maps, or false if one value is not a map. An absent value counts as an empty
// map.
func bothMaps(before, after any) (from, to map[string]any, ok bool) {
	from, isFrom := before.(map[string]any)
	to, isTo := after.(map[string]any)
	return from, to, isFrom && isTo || isFrom && after == nil && len(from) > 0 || isTo && before == nil && len(to) > 0
}

// bothKeyed returns two lists as maps, by the names or the types of their items, or by their index.
func bothKeyed(before, after any) (from, to map[string]any, ok bool) {
	first, isFirst := before.([]any)
	second, isSecond := after.([]any)
	if !isFirst && !isSecond || !isFirst && before != nil || !isSecond && after != nil {
		return nil, nil, false
	}
	if len(first)+len(second) == 0 {
		return nil, nil, false
	}
	for _, key := range []string{"name", "type", "uid"} {
		from, ok = keyed(first, key)
		if !ok {
			continue
		}
		to, ok = keyed(second, key)
		if ok {
			return from, to, true
		}
	}
	return indexed(first), indexed(second), true
}

func keyed(list []any, key string) (map[string]any, bool) {
	items := map[string]any{}
	for _, item := range list {
		m, _ := item.(map[string]any)
		name, _ := m[key].(string)
		if _, twice := items["["+name+"]"]; name == "" || twice {
			return nil, false
		}
		items["["+name+"]"] = item
	}
	return items, true
}

func indexed(list []any) map[string]any {
	items := map[string]any{}
	for i, item := range list {
		items["["+strconv.Itoa(i)+"]"] = item
	}
	return items
}

// same compares two values as JSON.
func same(a, b any) bool {
	first, errA := json.Marshal(a)
	second, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(first) == string(second)
}

func hide(value any) string {
	if value == nil {
		return absent
	}
	return hidden
}

// format formats a value on one line.
func format(value any) string {
	if value == nil {
		return absent
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%T", value)
	}
	return shortened(string(data), maxValue)
}

// shortened cuts a text.
func shortened(text string, limit int) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
