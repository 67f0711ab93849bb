package customize

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/protocol/answers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// rule is a checked rule of one parent. It is immutable.
type rule struct {
	Resource object.Resource
	// Namespace is the namespace of the objects; empty for all.
	Namespace string
	// Names are the names of the objects; empty for all.
	Names []string
	// Labels is never nil. Spaces selects namespaces by their labels; nil selects all.
	Labels, Spaces labels.Selector
}

// ruleScope is the scope of a parent's rules.
type ruleScope struct {
	// OwnNamespace restricts a namespaced parent to its own namespace (hook version v1).
	OwnNamespace bool
	// Namespace is the parent's; empty if the parent is cluster-scoped.
	Namespace string
}

// checkRule validates a hook's rule about a resource (compatibility: customize). The error names
// the field and the expected value.
func checkRule(d *hook.RelatedRule, r object.Resource, s ruleScope) (rule, error) {
	out := rule{Resource: r, Namespace: d.Namespace, Names: d.Names, Labels: labels.Everything()}
	confined := s.OwnNamespace && s.Namespace != ""
	err := answers.Rules.CheckExclusive(map[string]bool{
		"names":             len(d.Names) > 0,
		"namespace":         d.Namespace != "",
		"labelSelector":     given(d.LabelSelector),
		"namespaceSelector": given(d.NamespaceSelector),
	})
	switch {
	case err != nil:
		return out, err
	case given(d.NamespaceSelector) && s.OwnNamespace:
		return out, errors.New("namespaceSelector is set; it needs version v2 of the hook")
	case given(d.NamespaceSelector) && !r.Namespaced:
		return out, fmt.Errorf("namespaceSelector is set; expected none, because %s is cluster-scoped", r)
	case d.Namespace != "" && !r.Namespaced:
		return out, fmt.Errorf("namespace is %q; expected none, because %s is cluster-scoped", d.Namespace, r)
	case confined && d.Namespace != "" && d.Namespace != s.Namespace:
		return out, fmt.Errorf("namespace is %q; expected %q, the parent's, or version v2 of the hook",
			d.Namespace, s.Namespace)
	case slices.Contains(d.Names, ""):
		return out, errors.New("names has an empty name; expected names of objects")
	}
	if confined {
		out.Namespace = s.Namespace
	}
	if given(d.LabelSelector) {
		out.Labels, err = labelSelector(d.LabelSelector)
		if err != nil {
			return out, fmt.Errorf("labelSelector: %w", err)
		}
	}
	if given(d.NamespaceSelector) {
		out.Spaces, err = labelSelector(d.NamespaceSelector)
		if err != nil {
			return out, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	return out, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func labelSelector(raw json.RawMessage) (labels.Selector, error) {
	var declared metav1.LabelSelector
	if err := json.Unmarshal(raw, &declared); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&declared)
}

// spaceLabels returns the labels of a namespace; nil if the namespace is not known.
type spaceLabels func(namespace string) map[string]string

// matches reports whether the rule selects an object of its resource.
func (r *rule) matches(o *object.Object, spaces spaceLabels) bool {
	switch {
	case r.Namespace != "" && r.Namespace != o.Namespace():
		return false
	case len(r.Names) > 0 && !slices.Contains(r.Names, o.Name()):
		return false
	case !r.Labels.Matches(labels.Set(o.Labels())):
		return false
	}
	return r.Spaces == nil || r.Spaces.Matches(labels.Set(spaces(o.Namespace())))
}
