package pipeline

import (
	"cmp"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rewrites returns the fields that actions rewrite. Creates and deletes count if objects replace
// others of their kind.
func rewrites(actions []plan.Action) []circuit.Field {
	var fields []circuit.Field
	var made, gone []schema.GroupVersionKind
	for _, a := range actions {
		switch {
		case a.Verb == plan.Create:
			made = append(made, a.Ref.GVK)
		case a.Verb == plan.Delete && len(a.Fields) == 0:
			gone = append(gone, a.Ref.GVK)
		case a.Verb == plan.AddFinalizer:
			fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.finalizers"})
		case a.Verb == plan.Adopt || a.Verb == plan.Release:
			fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.ownerReferences"})
		case a.Verb == plan.PatchMetadata && a.Finalizer == "":
			fields = append(fields, metadataFields(a)...)
		default:
			for _, path := range a.Fields {
				fields = append(fields, circuit.Field{Ref: a.Ref, Path: path})
			}
		}
	}
	slices.SortFunc(gone, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	for _, gvk := range slices.Compact(gone) {
		if slices.Contains(made, gvk) {
			fields = append(fields, circuit.Field{Ref: object.Ref{GVK: gvk}, Path: "metadata.name"})
		}
	}
	return fields
}

// metadataFields returns the fields of a patch of labels and annotations.
func metadataFields(a plan.Action) []circuit.Field {
	var fields []circuit.Field
	for key := range a.Labels {
		fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.labels." + key})
	}
	for key := range a.Annotations {
		fields = append(fields, circuit.Field{Ref: a.Ref, Path: "metadata.annotations." + key})
	}
	return fields
}

// movers returns the objects that caused a sync by a change. A trigger counts as one: its hook has
// seen a change.
func movers(causes []queue.Cause) []object.Ref {
	var refs []object.Ref
	for _, c := range causes {
		switch c.Kind {
		case queue.CauseObject, queue.CauseChild, queue.CauseRelated, queue.CauseTrigger:
			refs = append(refs, c.Ref)
		case queue.CauseInitial, queue.CauseResync, queue.CauseRequeue, queue.CauseRetry:
		}
	}
	return refs
}
