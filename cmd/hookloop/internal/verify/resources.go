package verify

import (
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// resources are the resources that are known without an API server: those of Kubernetes, and those
// of the CustomResourceDefinitions in the files.
type resources struct {
	byGVR map[schema.GroupVersionResource]object.Resource
	// definitions are the CustomResourceDefinitions; schemas are theirs.
	definitions []*apiextensionsv1.CustomResourceDefinition
	schemas     map[schema.GroupVersionKind]map[string]any
}

// clusterScoped are the kinds of Kubernetes without a namespace that a controller may use.
var clusterScoped = map[string]bool{
	"Namespace": true, "Node": true, "PersistentVolume": true, "ClusterRole": true, "ClusterRoleBinding": true,
	"StorageClass": true, "PriorityClass": true, "IngressClass": true, "RuntimeClass": true,
	"CustomResourceDefinition": true, "APIService": true, "CSIDriver": true, "CSINode": true, "VolumeAttachment": true,
	"ValidatingWebhookConfiguration": true, "MutatingWebhookConfiguration": true,
	"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	"FlowSchema": true, "PriorityLevelConfiguration": true, "CertificateSigningRequest": true,
}

// definition is the used part of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Schema struct {
				OpenAPI map[string]any `json:"openAPIV3Schema"`
			} `json:"schema"`
			Subresources struct {
				Status *struct{} `json:"status"`
			} `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`

	// whole is the CustomResourceDefinition; nil if it is not a valid one.
	whole *apiextensionsv1.CustomResourceDefinition
}

func newResources(definitions []definition) *resources {
	r := &resources{
		byGVR:   map[schema.GroupVersionResource]object.Resource{},
		schemas: map[schema.GroupVersionKind]map[string]any{},
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		r.add(r.guess(gvk))
	}
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	r.add(r.guess(crd))
	for _, d := range definitions {
		if d.whole != nil {
			r.definitions = append(r.definitions, d.whole)
		}
		for _, v := range d.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}
			r.schemas[gvk] = v.Schema.OpenAPI
			r.add(object.Resource{
				GVK: gvk, Plural: d.Spec.Names.Plural, Namespaced: d.Spec.Scope == "Namespaced",
				HasStatus: v.Subresources.Status != nil,
			})
		}
	}
	return r
}

func (r *resources) add(resource object.Resource) { r.byGVR[resource.GVR()] = resource }

// custom reports whether a resource is not one of Kubernetes' own.
func (r *resources) custom(resource object.Resource) bool {
	return !scheme.Scheme.Recognizes(resource.GVK) && resource.GVK.Group != apiextensionsv1.GroupName
}

// guess returns the resource of a kind by the rules for names in Kubernetes.
func (r *resources) guess(gvk schema.GroupVersionKind) object.Resource {
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return object.Resource{
		GVK: gvk, Plural: plural.Resource, Namespaced: !clusterScoped[gvk.Kind], HasStatus: true,
	}
}

// find returns the resource that a rule names.
func (r *resources) find(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	resource, found := r.byGVR[rule.GVR()]
	return resource, found
}

// of returns the resource of a kind, guessed if it is not known.
func (r *resources) of(gvk schema.GroupVersionKind) object.Resource {
	for _, resource := range r.byGVR {
		if resource.GVK == gvk {
			return resource
		}
	}
	return r.guess(gvk)
}
