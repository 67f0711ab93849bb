package object

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Ref identifies an object by kind, namespace and name. It is comparable, so it can be a map key.
type Ref struct {
	GVK       schema.GroupVersionKind
	Namespace string
	Name      string
}

// String returns the form that messages use: Deployment.apps/v1 "shop/api".
func (r Ref) String() string { return fmt.Sprintf("%s %q", KindString(r.GVK), r.NamespacedName()) }

// NamespacedName returns namespace/name, or only the name for a cluster-scoped object.
func (r Ref) NamespacedName() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// KindString returns "Kind.version" for the core group and "Kind.group/version" for all others.
// Requests to webhooks use this string as the key of a group of children, and messages use it to
// name a kind.
func KindString(gvk schema.GroupVersionKind) string {
	return gvk.Kind + "." + gvk.GroupVersion().String()
}

// Resource describes a resource of the API server, as discovery reports it.
type Resource struct {
	GVK schema.GroupVersionKind
	// Plural is the resource's name in URLs: deployments.
	Plural string
	// Namespaced is true if the objects live in namespaces.
	Namespaced bool
	// HasStatus is true if the resource has a status subresource.
	HasStatus bool
}

// GroupResource returns the plural name with the group and without the version, for example
// deployments.apps. Metrics and spans use this name.
func (r Resource) GroupResource() string { return r.GVR().GroupResource().String() }

// GVR returns the group, version and plural name.
func (r Resource) GVR() schema.GroupVersionResource {
	return r.GVK.GroupVersion().WithResource(r.Plural)
}

// String returns plural.group/version, or plural.version for the core group.
func (r Resource) String() string { return r.Plural + "." + r.GVK.GroupVersion().String() }
