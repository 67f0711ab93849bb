package actor

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime"
)

// changedFields names the fields that differ between two states of an object, such as
// "metadata.labels, spec.replicas", for spans. It reports whether one is outside of metadata and
// status, so that the API server increases the generation.
func changedFields(before, after runtime.Object) (fields string, specChanged bool) {
	old := jsonOf(before)
	current := jsonOf(after)
	names := map[string]bool{}
	for _, side := range []map[string]any{old, current} {
		for name := range side {
			if merge.Equal(old[name], current[name]) {
				continue
			}
			specChanged = specChanged || name != "metadata" && name != "status"
			for _, path := range below(name, old[name], current[name]) {
				names[path] = true
			}
		}
	}
	paths := make([]string, 0, len(names))
	for path := range names {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	const most = 8
	if len(paths) > most {
		paths = append(paths[:most], "…")
	}
	return strings.Join(paths, ", "), specChanged
}

// below returns the paths of the fields of two objects that differ; the path itself if they are no
// objects.
func below(path string, old, current any) []string {
	before, isObject := old.(map[string]any)
	after, isToo := current.(map[string]any)
	if !isObject || !isToo {
		return []string{path}
	}
	var paths []string
	for _, side := range []map[string]any{before, after} {
		for name := range side {
			if !merge.Equal(before[name], after[name]) {
				paths = append(paths, path+"."+name)
			}
		}
	}
	return paths
}

// jsonOf returns an object as JSON values; nil if it has no JSON form.
func jsonOf(o runtime.Object) map[string]any {
	data, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	values, err := object.DecodeMap(data)
	if err != nil {
		return nil
	}
	return values
}
