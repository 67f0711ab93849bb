package pipeline

import (
	"slices"

	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// diff is a difference at one field, before and after a planned write.
type diff struct {
	plan.Difference

	resource object.Resource
	// unknown reports that only the path is known, not the values.
	unknown bool
}

// find sets the values from the difference at the path, or from the first one below it.
func (d *diff) find(before, after map[string]any) {
	if found, ok := plan.FindDifference(before, after, d.Path); ok {
		d.Difference = found
		d.unknown = false
	}
}

// values formats both values for a message. It is empty if they are not known or may be secret.
func (d *diff) values(kind schema.GroupVersionKind) string {
	if d.unknown || kind.Kind == "Secret" {
		return ""
	}
	before := shown(d.Path, d.Before)
	after := shown(d.Path, d.After)
	if before == "" || after == "" {
		return ""
	}
	return "observed " + before + ", desired " + after
}

// actionDiff returns the values at a field that one of the actions rewrites. The parent and the
// children are the observed ones.
func actionDiff(f circuit.Field, actions []plan.Action, parent *object.Object, children view.Set) diff {
	d := diff{Difference: plan.Difference{Path: f.Path}, unknown: true}
	i := slices.IndexFunc(actions, func(a plan.Action) bool { return a.Ref == f.Ref })
	if i < 0 {
		return d
	}
	a := actions[i]
	d.resource = a.Resource
	if a.Verb == plan.PatchMetadata {
		d.Before, d.After, d.unknown = metadataDiff(parent, a, f.Path)
		return d
	}
	present := children.Get(f.Ref)
	if present == nil || a.Body == nil {
		return d
	}
	before, err := present.Map()
	if err != nil {
		return d
	}
	d.find(before, a.Body)
	return d
}

// metadataDiff returns the values of a label or an annotation of the parent.
func metadataDiff(parent *object.Object, a plan.Action, path string) (before, after any, unknown bool) {
	for prefix, set := range map[string]struct {
		present map[string]string
		patch   map[string]*string
	}{
		"metadata.labels.":      {parent.Labels(), a.Labels},
		"metadata.annotations.": {parent.Annotations(), a.Annotations},
	} {
		for key, value := range set.patch {
			if prefix+key != path {
				continue
			}
			if present, ok := set.present[key]; ok {
				before = present
			}
			if value != nil {
				after = *value
			}
			return before, after, false
		}
	}
	return nil, nil, true
}
