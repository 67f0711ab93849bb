package object

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref names one object. It is comparable, so that it serves as a key.
type Ref struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
}

// String reads as errors want it: Deployment.apps/v1 "shop/api".
func (r Ref) String() string { return fmt.Sprintf("%s %q", KindString(r.GVK), r.NamespacedName()) }

// NamespacedName is namespace/name, or the name alone for a cluster-scoped object.
func (r Ref) NamespacedName() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// KindString is Kind.version for the core group and Kind.group/version for all others: the key of a
// group of children in a hook's JSON, and the way in which messages name a kind.
func KindString(gvk schema.GroupVersionKind) string {
	return gvk.Kind + "." + gvk.GroupVersion().String()
}

// Resource is one resource of the API server as discovery gives it.
type Resource struct {
	GVK schema.GroupVersionKind
	// Plural is the resource's name in URLs: deployments.
	Plural string
	// Namespaced reports whether objects live in namespaces.
	Namespaced bool
	// HasStatus reports whether the resource has the status subresource.
	HasStatus bool
}

// GroupResource is the resource's plural name and group, without the version: deployments.apps.
// Metrics and spans are named so.
func (r Resource) GroupResource() string { return r.GVR().GroupResource().String() }

// GVR is the resource's group, version and plural name.
func (r Resource) GVR() schema.GroupVersionResource {
	return r.GVK.GroupVersion().WithResource(r.Plural)
}

// String is plural.group/version, or plural.version for the core group.
func (r Resource) String() string { return r.Plural + "." + r.GVK.GroupVersion().String() }
