package decorator

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// selector returns the predicate of objects that match both selectors of a rule.
func selector(rule v1alpha1.DecoratedResourceRule) (func(*object.Object) bool, error) {
	byLabel := labels.Everything()
	if rule.LabelSelector != nil {
		var err error
		byLabel, err = metav1.LabelSelectorAsSelector(rule.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("labelSelector: %w", err)
		}
	}
	byAnnotation, err := annotations(rule.AnnotationSelector)
	if err != nil {
		return nil, fmt.Errorf("annotationSelector: %w", err)
	}
	return func(o *object.Object) bool {
		return byLabel.Matches(labels.Set(o.Labels())) && byAnnotation(o.Annotations())
	}, nil
}

// annotations returns the predicate of a selector by annotations. It has the rules of label
// selectors, but its values are free text, which package labels would reject.
func annotations(s *v1alpha1.AnnotationSelector) (func(map[string]string) bool, error) {
	if s == nil {
		return func(map[string]string) bool { return true }, nil
	}
	for i, r := range s.MatchExpressions {
		switch r.Operator {
		case metav1.LabelSelectorOpIn,
			metav1.LabelSelectorOpNotIn,
			metav1.LabelSelectorOpExists,
			metav1.LabelSelectorOpDoesNotExist:
		default:
			return nil, fmt.Errorf(
				"matchExpressions[%d].operator is %q; expected In, NotIn, Exists or DoesNotExist", i, r.Operator)
		}
	}
	return func(present map[string]string) bool {
		for key, want := range s.MatchAnnotations {
			if value, ok := present[key]; !ok || value != want {
				return false
			}
		}
		return !slices.ContainsFunc(s.MatchExpressions,
			func(r metav1.LabelSelectorRequirement) bool { return !holds(r, present) })
	}, nil
}

// holds reports whether a requirement holds. As with labels, NotIn holds if the key is absent.
func holds(r metav1.LabelSelectorRequirement, present map[string]string) bool {
	value, ok := present[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return ok && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !ok || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return ok
	default:
		return !ok
	}
}
