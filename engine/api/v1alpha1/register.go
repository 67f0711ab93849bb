package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of all kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "metacontroller.k8s.io", Version: "v1alpha1"}

// The resources, as URLs and RBAC name them.
var (
	CompositeControllers = GroupVersion.WithResource("compositecontrollers")
	DecoratorControllers = GroupVersion.WithResource("decoratorcontrollers")
	MapControllers       = GroupVersion.WithResource("mapcontrollers")
	ControllerRevisions  = GroupVersion.WithResource("controllerrevisions")
)

// The kinds.
const (
	CompositeControllerKind = "CompositeController"
	DecoratorControllerKind = "DecoratorController"
	MapControllerKind       = "MapController"
	ControllerRevisionKind  = "ControllerRevision"
)

// declaring is a kind of declaring object.
type declaring struct {
	kind  string
	empty func() Controller
	list  runtime.Object
}

// kinds has the Go types of the declaring objects. A new kind of controller is a new row.
var kinds = []declaring{
	{CompositeControllerKind, func() Controller { return &CompositeController{} }, &CompositeControllerList{}},
	{DecoratorControllerKind, func() Controller { return &DecoratorController{} }, &DecoratorControllerList{}},
	{MapControllerKind, func() Controller { return &MapController{} }, &MapControllerList{}},
}

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	for _, k := range kinds {
		s.AddKnownTypes(GroupVersion, k.empty(), k.list)
	}
	s.AddKnownTypes(GroupVersion, &ControllerRevision{}, &ControllerRevisionList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
