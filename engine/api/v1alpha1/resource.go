package v1alpha1

import "k8s.io/apimachinery/pkg/runtime/schema"

// ResourceRule names a resource of the API server.
type ResourceRule struct {
	// APIVersion is the group and version, as objects carry it: apps/v1, or v1 for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Resource is the plural name in lower case, as URLs carry it: deployments.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Resource string `json:"resource"`
}

// GVR is the resource that the rule names. Validate refuses an apiVersion that does not parse; here
// it gives an empty group.
func (r ResourceRule) GVR() schema.GroupVersionResource {
	return schema.FromAPIVersionAndKind(r.APIVersion, "").GroupVersion().WithResource(r.Resource)
}

// String is resource.group/version, or resource.version for the core group.
func (r ResourceRule) String() string { return r.Resource + "." + r.APIVersion }

// UpdateMethod is the method of changing a child that differs from its desired state.
// +kubebuilder:validation:Enum="";OnDelete;Recreate;InPlace;RollingRecreate;RollingInPlace
type UpdateMethod string

// The methods. An empty method is OnDelete. On the attachments of a decorator a rolling method acts
// as its plain kind.
const (
	// UpdateOnDelete leaves an existing child alone until something else deletes it.
	UpdateOnDelete UpdateMethod = "OnDelete"
	// UpdateRecreate deletes a child that differs and creates it anew.
	UpdateRecreate UpdateMethod = "Recreate"
	// UpdateInPlace updates a child that differs.
	UpdateInPlace UpdateMethod = "InPlace"
	// UpdateRollingRecreate is Recreate, one child at a time.
	UpdateRollingRecreate UpdateMethod = "RollingRecreate"
	// UpdateRollingInPlace is InPlace, one child at a time.
	UpdateRollingInPlace UpdateMethod = "RollingInPlace"
)

// Rolling reports whether the method goes one child at a time.
func (m UpdateMethod) Rolling() bool { return m == UpdateRollingRecreate || m == UpdateRollingInPlace }
