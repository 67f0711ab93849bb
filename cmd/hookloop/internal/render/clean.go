package render

import (
	"reflect"

	"github.com/hookloop/hookloop/engine/object"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// incidental is the metadata that is different in every run or that the engine and the API server
// keep for themselves.
var incidental = []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}

// clean returns a copy of an object without incidental metadata and without times.
func clean(u *unstructured.Unstructured) map[string]any {
	content := u.DeepCopy().Object
	metadata, _ := content["metadata"].(map[string]any)
	for _, field := range incidental {
		delete(metadata, field)
	}
	if metadata["deletionTimestamp"] != nil {
		metadata["deletionTimestamp"] = "(now)"
		delete(metadata, "deletionGracePeriodSeconds")
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		delete(annotations, object.LastAppliedAnnotation)
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	owners, _ := metadata["ownerReferences"].([]any)
	for _, o := range owners {
		if owner, ok := o.(map[string]any); ok {
			delete(owner, "uid")
		}
	}
	timeless(content["status"])
	return content
}

// timeless removes the times of conditions.
func timeless(status any) {
	fields, _ := status.(map[string]any)
	conditions, _ := fields["conditions"].([]any)
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			for _, field := range []string{"lastTransitionTime", "lastUpdateTime", "lastProbeTime"} {
				delete(condition, field)
			}
		}
	}
}

// bare is clean without the status, which the section of parents has; nil for no object.
func bare(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	content := clean(u)
	delete(content, "status")
	return content
}

func equal(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }

func isSecret(k schema.GroupVersionKind) bool { return k.Group == "" && k.Kind == "Secret" }

// mask replaces the values of a Secret, in both of its states: a value that differs is marked.
func mask(before, after map[string]any) {
	for _, state := range []map[string]any{before, after} {
		metadata, _ := state["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if annotations[corev1.LastAppliedConfigAnnotation] != nil { // kubectl repeats the values there
			annotations[corev1.LastAppliedConfigAnnotation] = "***"
		}
	}
	for _, field := range []string{"data", "stringData"} {
		old, _ := before[field].(map[string]any)
		now, _ := after[field].(map[string]any)
		for key, value := range old {
			other, both := now[key]
			switch {
			case both && reflect.DeepEqual(value, other):
				old[key], now[key] = "***", "***"
			case both:
				old[key], now[key] = "*** (before)", "*** (after)"
			default:
				old[key] = "***"
			}
		}
		for key := range now {
			if _, both := old[key]; !both {
				now[key] = "***"
			}
		}
	}
}

// toMap returns a typed object as a map.
func toMap(o any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}
