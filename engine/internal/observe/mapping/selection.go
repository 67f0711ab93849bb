package mapping

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// selection is the rule of one parent for its inputs.
type selection struct {
	parent types.UID
	// namespace is the parent's; empty for a cluster-scoped parent, which selects in all
	// namespaces.
	namespace string
	selector  labels.Selector
	// namespaces selects the namespaces of a cluster-scoped parent; nil selects all.
	namespaces labels.Selector
}

// parsed is the selection of a parent, or the fault of its selectors.
type parsed struct {
	parent    *object.Object
	selection selection
	err       error
}

// selectionOf returns the selection of a parent. It is parsed once for each version of the parent
// while parts of one parent follow each other, as in a round. The error is a *shape.ParentError.
func (s *Shape) selectionOf(parent *object.Object) (selection, error) {
	last := s.lastParsed.Load()
	if last == nil || last.parent != parent {
		last = &parsed{parent: parent}
		last.selection, last.err = s.parseSelection(parent)
		s.lastParsed.Store(last)
	}
	return last.selection, last.err
}

// parseSelection returns the selection of a parent. An absent or empty selector selects everything.
// The error is a *shape.ParentError. A departing parent without a valid selector selects nothing:
// its finalizer must not wait for a correction of the selector.
func (s *Shape) parseSelection(parent *object.Object) (selection, error) {
	sel := selection{parent: parent.UID(), namespace: parent.Namespace()}
	var err error
	sel.selector, err = selectorAt(parent, "selector")
	if err == nil && !s.rules.Resource.Namespaced {
		sel.namespaces, err = selectorAt(parent, "namespaceSelector")
	}
	if err != nil && s.rules.Departing(parent) {
		return selection{parent: parent.UID(), namespace: parent.Namespace(), selector: labels.Nothing()}, nil
	}
	if sel.namespaces != nil && sel.namespaces.Empty() {
		sel.namespaces = nil
	}
	return sel, err
}

// selectorAt decodes a label selector of a parent's spec. The error is a *shape.ParentError.
func selectorAt(parent *object.Object, field string) (labels.Selector, error) {
	raw, ok := parent.Field("spec", field)
	if !ok || string(raw) == "null" {
		return labels.Everything(), nil
	}
	at := "spec." + field
	var declared metav1.LabelSelector
	if err := json.Unmarshal(raw, &declared); err != nil {
		problem := fmt.Sprintf("is no label selector: %v", object.Explain(err))
		return nil, &shape.ParentError{Field: at, Problem: problem}
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	if err != nil {
		return nil, &shape.ParentError{Field: at, Problem: fmt.Sprintf("is no valid label selector: %v", err)}
	}
	return selector, nil
}

// matches reports whether an object is an input, except for the labels of its namespace. The parent
// itself and the objects that it controls are none, so that outputs that match the selector do not
// become inputs.
func (sel *selection) matches(o *object.Object) bool {
	if sel.namespace != "" && o.Namespace() != sel.namespace || o.UID() == sel.parent && sel.parent != "" {
		return false
	}
	if owner := o.ControllerRef(); owner != nil && owner.UID == sel.parent {
		return false
	}
	return sel.selector.Matches(labels.Set(o.Labels()))
}

// matchesNamespace reports whether the selection includes a namespace with these labels. Objects
// without a namespace are not subject to the namespaceSelector.
func (sel *selection) matchesNamespace(namespace string, set labels.Set) bool {
	return namespace == "" || sel.namespaces == nil || sel.namespaces.Matches(set)
}

// inNamespace reports whether the selection includes a namespace. The error is a *view.Error if the
// namespaces are not known.
func (s *Shape) inNamespace(r view.Reader, sel *selection, namespace string) (bool, error) {
	if namespace == "" || sel.namespaces == nil {
		return true, nil
	}
	if s.namespaces.Plural == "" {
		return false, errors.New("internal error: the resource of namespaces is not known")
	}
	v, err := r.View(s.namespaces)
	if err != nil {
		return false, err
	}
	o := v.Get("", namespace)
	return o != nil && sel.matchesNamespace(namespace, o.Labels()), nil
}

// input returns the input that a map key names. It is nil if the object does not exist or is not
// selected, or if the controller does not declare its resource. The error is a *view.Error if that
// is not known.
func (s *Shape) input(r view.Reader, parent *object.Object, key string) (*object.Object, error) {
	sel, err := s.selectionOf(parent)
	if err != nil {
		return nil, err
	}
	named, err := ParseMapKey(key)
	if err != nil { // no key of an input, but the mark of outputs
		return nil, nil //nolint:nilerr // the marks come from the cluster
	}
	resource, found := s.inputResource(named)
	if !found {
		return nil, s.undecided(parent, named)
	}
	v, err := r.View(resource)
	if err != nil {
		return nil, err
	}
	o := v.Get(named.Namespace, named.Name)
	if o == nil || !sel.matches(o) {
		return nil, nil
	}
	if selected, err := s.inNamespace(r, &sel, o.Namespace()); err != nil || !selected {
		return nil, err
	}
	return o, nil
}

// inputResource returns the resource of the inputs with the kind of a map key.
func (s *Shape) inputResource(key MapKey) (object.Resource, bool) {
	for _, r := range s.inputs {
		if r.GVK.Group == key.Group && r.GVK.Kind == key.Kind && r.Namespaced == (key.Namespace != "") {
			return r, true
		}
	}
	return object.Resource{}, false
}

// undecided returns an error if the input that a map key names may exist: the API server does not
// serve one of the declared resources of its group. The inputs of a departing parent make no
// difference, because it is asked about its outputs.
func (s *Shape) undecided(parent *object.Object, key MapKey) error {
	if s.rules.Departing(parent) {
		return nil
	}
	for _, r := range s.unserved {
		if r.Group == key.Group {
			unknown := object.Resource{
				GVK: r.GroupVersion().WithKind(key.Kind), Plural: r.Resource, Namespaced: key.Namespace != "",
			}
			return &view.Error{
				Resource: unknown, State: view.Unwatched, Err: errors.New("the API server does not serve it"),
			}
		}
	}
	return nil
}
