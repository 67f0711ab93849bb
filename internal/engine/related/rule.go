// Package related decides which objects are related to a parent: the rules of a customize hook's
// answer, and the index by which an object's event finds the parents whose rules it meets
// (compatibility: customize).
//
// It reads nothing: package customize asks the hook, reads the cache and watches. A Rule is
// immutable; an Index is safe for concurrent use. Table tests cover the rules, a property test has
// the index agree with a scan over all rules.
package related

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Declared is a rule as the customize hook answers it.
type Declared struct {
	APIVersion        string
	Resource          string
	LabelSelector     json.RawMessage
	NamespaceSelector json.RawMessage
	Namespace         string
	Names             []string
	// Name is what the hook calls the rule.
	Name string
}

// Rule is a rule that has been checked, for one parent.
type Rule struct {
	Resource object.Resource
	// Namespace is the one whose objects are meant; empty for all.
	Namespace string
	// Names are those that are meant; empty for all.
	Names []string
	// Labels is never nil. Spaces selects namespaces by their labels; nil for no such condition.
	Labels, Spaces labels.Selector
}

// Scope is what a rule is checked against: the version of the customize hook, and the parent's
// namespace (empty for a cluster-scoped one).
type Scope struct {
	// OwnNamespace has a namespaced parent see its own namespace only (hook version v1).
	OwnNamespace bool
	Namespace    string
}

// Check makes a Rule of what a hook has declared about a resource. The error names the field and
// what was expected.
func (d *Declared) Check(r object.Resource, s Scope) (Rule, error) {
	rule := Rule{Resource: r, Namespace: d.Namespace, Names: d.Names, Labels: labels.Everything()}
	confined := s.OwnNamespace && s.Namespace != ""
	var err error
	switch {
	case len(d.Names) > 0 && given(d.LabelSelector):
		return rule, errors.New("names and labelSelector are both set; expected one of them")
	case len(d.Names) > 0 && given(d.NamespaceSelector):
		return rule, errors.New("names and namespaceSelector are both set; expected one of them")
	case d.Namespace != "" && given(d.NamespaceSelector):
		return rule, errors.New("namespace and namespaceSelector are both set; expected one of them")
	case given(d.NamespaceSelector) && s.OwnNamespace:
		return rule, errors.New("namespaceSelector is set; it needs version v2 of the hook")
	case given(d.NamespaceSelector) && !r.Namespaced:
		return rule, fmt.Errorf("namespaceSelector is set; expected none, because %s is cluster-scoped", r)
	case d.Namespace != "" && !r.Namespaced:
		return rule, fmt.Errorf("namespace is %q; expected none, because %s is cluster-scoped", d.Namespace, r)
	case confined && d.Namespace != "" && d.Namespace != s.Namespace:
		return rule, fmt.Errorf("namespace is %q; expected %q, the parent's, or version v2 of the hook",
			d.Namespace, s.Namespace)
	case slices.Contains(d.Names, ""):
		return rule, errors.New("names has an empty name; expected names of objects")
	}
	if confined {
		rule.Namespace = s.Namespace
	}
	if given(d.LabelSelector) {
		if rule.Labels, err = selector(d.LabelSelector); err != nil {
			return rule, fmt.Errorf("labelSelector: %w", err)
		}
	}
	if given(d.NamespaceSelector) {
		if rule.Spaces, err = selector(d.NamespaceSelector); err != nil {
			return rule, fmt.Errorf("namespaceSelector: %w", err)
		}
	}
	return rule, nil
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func selector(raw json.RawMessage) (labels.Selector, error) {
	var declared metav1.LabelSelector
	if err := json.Unmarshal(raw, &declared); err != nil {
		return nil, err
	}
	return metav1.LabelSelectorAsSelector(&declared)
}

// Spaces are the labels of a namespace; nil for one that is not known.
type Spaces func(namespace string) map[string]string

// Matches says whether an object of the rule's resource is meant.
func (r *Rule) Matches(o *object.Object, spaces Spaces) bool {
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
