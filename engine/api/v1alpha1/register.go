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

// AddToScheme makes the kinds known to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&CompositeController{}, &CompositeControllerList{},
		&DecoratorController{}, &DecoratorControllerList{},
		&MapController{}, &MapControllerList{},
		&ControllerRevision{}, &ControllerRevisionList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
