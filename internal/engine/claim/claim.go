// Package claim decides which objects are a parent's children: owned ones, orphans to adopt, and
// owned ones to release (the rules of Kubernetes' controller references; compatibility: ownership
// of composite controllers).
//
// It is pure: the caller reads the candidates from the cache and carries the decision out. Its
// values are not shared. Table tests cover every rule.
package claim

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// UIDLabel is the label by which children are selected where the controller generates selectors.
const UIDLabel = "controller-uid"

// DecoratorAnnotation names, on each attachment of a decorator, the controller that it belongs to
// (compatibility: ownership).
const DecoratorAnnotation = "metacontroller.k8s.io/decorator-controller"

// Params are what a decision is made from.
type Params struct {
	Parent   *object.Object
	Selector labels.Selector
	// Candidates are objects that the parent owns, and objects without a controller.
	Candidates []*object.Object
}

// Claims are the decision. The three lists are disjoint and in the candidates' order.
type Claims struct {
	Owned, Adopt, Release []*object.Object
}

// Classify decides about each candidate:
//   - owned by the parent and selected, or being deleted: Owned
//   - owned by the parent and no longer selected: Release
//   - without a controller and selected, neither it nor the parent being deleted: Adopt
//   - owned by anybody else: none of the parent's business
//   - an attachment of a decorator, which may have the same parent as owner: none of this
//     controller's business
func Classify(p Params) Claims {
	var c Claims
	for _, o := range p.Candidates {
		owner := o.ControllerRef()
		selected := p.Selector.Matches(labels.Set(o.Labels()))
		_, attached := o.Annotations()[DecoratorAnnotation]
		switch {
		case attached, owner != nil && owner.UID != p.Parent.UID():
		case owner != nil && (selected || o.Deleting() || p.Parent.Deleting()):
			c.Owned = append(c.Owned, o)
		case owner != nil:
			c.Release = append(c.Release, o)
		case selected && !o.Deleting() && !p.Parent.Deleting():
			c.Adopt = append(c.Adopt, o)
		}
	}
	return c
}

// Selector says which objects are the parent's: those with the label controller-uid=<its UID> where
// selectors are generated, else those that its spec.selector matches. The error says what is wrong
// with spec.selector; an empty one would select everything.
func Selector(parent *object.Object, generate bool) (labels.Selector, error) {
	if generate {
		return labels.SelectorFromSet(labels.Set{UIDLabel: string(parent.UID())}), nil
	}
	raw, ok := parent.Field("spec", "selector")
	if !ok || string(raw) == "null" {
		return nil, errors.New("is missing; expected a label selector, or generateSelector in the controller")
	}
	var declared metav1.LabelSelector
	if err := json.Unmarshal(raw, &declared); err != nil {
		return nil, fmt.Errorf("is no label selector: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	if err != nil {
		return nil, fmt.Errorf("is no valid label selector: %w", err)
	}
	if selector.Empty() {
		return nil, errors.New("is empty and would select every object; expected matchLabels or matchExpressions")
	}
	return selector, nil
}
