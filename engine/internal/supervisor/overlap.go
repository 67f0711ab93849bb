package supervisor

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selection is what a controller's rule requires of its parents' labels and annotations.
type selection struct {
	labels, annotations []metav1.LabelSelectorRequirement
}

// selects returns the requirements of a rule's selectors, which may be nil.
func selects(labels *metav1.LabelSelector, annotations *v1alpha1.AnnotationSelector) selection {
	var s selection
	if labels != nil {
		s.labels = requirements(labels.MatchLabels, labels.MatchExpressions)
	}
	if annotations != nil {
		s.annotations = requirements(annotations.MatchAnnotations, annotations.MatchExpressions)
	}
	return s
}

func requirements(values map[string]string, more []metav1.LabelSelectorRequirement) []metav1.LabelSelectorRequirement {
	all := slices.Clone(more)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		all = append(all,
			metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{values[key]}})
	}
	return all
}

// overlaps reports whether an object could be selected by both.
func (s selection) overlaps(other selection) bool {
	return satisfiable(slices.Concat(s.labels, other.labels)) &&
		satisfiable(slices.Concat(s.annotations, other.annotations))
}

// satisfiable reports whether a set of labels could meet all requirements. Those of one key do not
// depend on those of others.
func satisfiable(all []metav1.LabelSelectorRequirement) bool {
	byKey := map[string][]metav1.LabelSelectorRequirement{}
	for _, r := range all {
		byKey[r.Key] = append(byKey[r.Key], r)
	}
	for _, of := range byKey {
		if !absentMeets(of) && !valueMeets(of) {
			return false
		}
	}
	return true
}

// absentMeets reports whether the requirements of one key hold without it.
func absentMeets(of []metav1.LabelSelectorRequirement) bool {
	return !slices.ContainsFunc(of, func(r metav1.LabelSelectorRequirement) bool {
		return r.Operator == metav1.LabelSelectorOpIn || r.Operator == metav1.LabelSelectorOpExists
	})
}

// valueMeets reports whether there is a value of the key with which its requirements hold.
func valueMeets(of []metav1.LabelSelectorRequirement) bool {
	var allowed []string
	limited := false
	for _, r := range of {
		switch {
		case r.Operator == metav1.LabelSelectorOpDoesNotExist:
			return false
		case r.Operator != metav1.LabelSelectorOpIn:
		case limited:
			allowed = slices.DeleteFunc(allowed, func(v string) bool { return !slices.Contains(r.Values, v) })
		default:
			allowed = slices.Clone(r.Values)
			limited = true
		}
	}
	if !limited { // there is always one more value
		return true
	}
	return slices.ContainsFunc(allowed, func(value string) bool {
		return !slices.ContainsFunc(of, func(r metav1.LabelSelectorRequirement) bool {
			return r.Operator == metav1.LabelSelectorOpNotIn && slices.Contains(r.Values, value)
		})
	})
}
