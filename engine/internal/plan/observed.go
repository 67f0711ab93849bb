package plan

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Observed holds the objects that one sync has found, and the rules for them. A shape fills it from
// the cache; then planning and acting read it. Do not change it: its objects belong to the cache.
// To go on with a different state, make a copy.
type Observed struct {
	Key    hook.Key
	Parent *object.Object
	// Children are the objects that belong to the parent. They include the objects that Prepare
	// adopts, and exclude those that it releases.
	//
	// Invariant: they are complete for every declared kind (see Check).
	Children view.Set
	// Input is the input of a part of a map controller's parent; nil if it is gone, and for other
	// kinds of controllers.
	Input *object.Object
	// Unmarked are objects of the parent that belong to no part, because their marks were removed.
	// A part that desires one of them marks it again.
	Unmarked object.Set
	// Finalizing reports that the finalize hook answers instead of the sync hook.
	Finalizing bool
	// SkipChildren reports that the children are not reconciled: the parent departs, and no
	// finalize hook is declared, or the garbage collector deletes or orphans the children.
	SkipChildren bool
	// Scope holds the rules for the parent's children.
	Scope Scope
	// Prepare are writes that must succeed before the hook is asked: adopt, release, the parent's
	// finalizer.
	Prepare []Action
	// Revisions are the parent's revisions; nil if no kind of child has a rolling method.
	Revisions *Revisions
}

// Check returns an error unless the children of every declared kind are known. Nothing may be asked
// or planned from a view that may lack objects.
func (o *Observed) Check() error {
	for _, d := range o.Scope.ChildKinds {
		if !o.Children.Complete(d.Resource.GVK) {
			return &UnknownError{Resource: d.Resource}
		}
	}
	return nil
}

// UnknownError reports that a plan was to be made without a complete view of a kind of child. It is
// a fault of the engine.
type UnknownError struct{ Resource object.Resource }

func (e *UnknownError) Error() string {
	return fmt.Sprintf(
		"internal error: the observed children may lack objects of %s; expected a complete view of each declared kind",
		e.Resource)
}

// Method is the method of an update strategy (compatibility:
// childResources[].updateStrategy.method).
type Method string

// The methods. Package rollout decides which revision a child follows; the rolling methods then
// write a child as the methods without Rolling do.
const (
	OnDelete        Method = "OnDelete"
	Recreate        Method = "Recreate"
	InPlace         Method = "InPlace"
	RollingRecreate Method = "RollingRecreate"
	RollingInPlace  Method = "RollingInPlace"
)

// ChildKind is one kind of child that a controller declares.
type ChildKind struct {
	Resource object.Resource
	Method   Method
}

// Scope holds the rules for the children of one parent: the kinds that an answer may desire, and
// the metadata that each child gets.
type Scope struct {
	// Field names an answer's list of children in messages; empty means children.
	Field string
	// ChildKinds are the kinds that may be children, in the declared order.
	ChildKinds []ChildKind
	// Owner becomes the owner reference of every created child (controller=true,
	// blockOwnerDeletion=true).
	Owner Owner
	// ParentNamespace is empty for a cluster-scoped parent.
	ParentNamespace string
	// Labels and Annotations are added to every child. A value that the hook sets for the same key
	// stays.
	Labels, Annotations map[string]string
	// Marks are annotations that distinguish a child from those of another controller with the same
	// owner. A child has each with its value, or lacks it if the value is empty. A hook must not
	// desire other values.
	Marks map[string]string
	// LabelMarks are labels that a hook must not desire with other values.
	LabelMarks map[string]string
	// Selector must match every desired child; nil matches all.
	Selector labels.Selector
}

// Owner is the parent as the owner references of its children name it.
type Owner struct {
	GVK  schema.GroupVersionKind
	Name string
	UID  types.UID
	// Resource is the parent's, for live reads; the zero value if nothing is adopted.
	Resource object.Resource
}
