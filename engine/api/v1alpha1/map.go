package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MapController declares a controller that makes outputs from inputs: the map hook is called with
// one input at a time and returns the outputs that should exist for it. The parent owns the
// outputs, but not the inputs: its spec.selector selects them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=mapcontrollers,scope=Cluster,shortName=mc;mapctl
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parentResource.resource`
// +kubebuilder:printcolumn:name="Inputs",type=string,JSONPath=`.status.inputs`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Intercepted",type=string,JSONPath=`.status.conditions[?(@.type=="Intercepted")].status`
// +kubebuilder:printcolumn:name="Answered By",type=string,JSONPath=`.status.conditions[?(@.type=="Fallback")].reason`
// +kubebuilder:printcolumn:name="Outputs",type=string,priority=1,JSONPath=`.status.children`
// +kubebuilder:printcolumn:name="Webhook",type=string,priority=1,JSONPath=`.spec.hooks.map.webhook.url`
// +kubebuilder:printcolumn:name="gRPC",type=string,priority=1,JSONPath=`.spec.hooks.map.grpc.target`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MapController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MapControllerSpec `json:"spec"`
	// +optional
	Status ControllerStatus `json:"status,omitempty"`
}

// MapControllerList is a list of MapControllers.
//
// +kubebuilder:object:root=true
type MapControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MapController `json:"items"`
}

// MapControllerSpec declares the parents, the inputs, the outputs and the hooks.
// +kubebuilder:validation:XValidation:rule="has(self.hooks) && has(self.hooks.map)",fieldPath=".hooks",message="hooks.map must be set: without it no input can be mapped"
// +kubebuilder:validation:XValidation:rule="!has(self.inputResources) || !self.inputResources.exists(r, r.resource == self.parentResource.resource && r.apiVersion == self.parentResource.apiVersion)",fieldPath=".inputResources",message="must not contain the parent's resource: every parent would be its own input"
// +kubebuilder:validation:XValidation:rule="!has(self.outputResources) || !self.outputResources.exists(r, r.resource == self.parentResource.resource && r.apiVersion == self.parentResource.apiVersion)",fieldPath=".outputResources",message="must not contain the parent's resource: every output would be a parent with outputs of its own"
type MapControllerSpec struct {
	// ParentResource is the resource of the parents, which own the outputs.
	ParentResource MapParentRule `json:"parentResource"`
	// InputResources are the resources of the inputs. They are independent of each other: the hook
	// is called with one input of one of them. An input resource that the API server does not serve
	// has no inputs until it is served; the others are mapped meanwhile.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	InputResources []InputResourceRule `json:"inputResources"`
	// OutputResources are all resources that the hook may return. An answer with any other is
	// refused.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	OutputResources []OutputResourceRule `json:"outputResources,omitempty"`
	// +optional
	Hooks *MapHooks `json:"hooks,omitempty"`
	// EndpointConfigs are TLS and credentials by host, for webhooks that have none of their own.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
	// ResyncPeriodSeconds maps every input of a parent again after that many seconds, even if
	// nothing changed. Values below 1 count as 1; unset, there is no periodic resync.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
	// DeletionLimit is how many outputs one answer may have deleted: a number, or a percentage of
	// the outputs that the input has. Nothing of an answer beyond it is written. Outputs that are
	// recreated, those of an input that is gone, and those of a parent that leaves, do not count.
	// Unset, the flag deletion-limit decides.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^(100|[1-9]?[0-9])%$') : self >= 0",message="must be a number of 0 or more, or a percentage from 0% to 100%"
	DeletionLimit *intstr.IntOrString `json:"deletionLimit,omitempty"`
}

// MapParentRule names the resource of the parents and which of its objects count.
type MapParentRule struct {
	ResourceRule `json:",inline"`
	// LabelSelector narrows the parents; unset, all objects of the resource are parents.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// IgnoreStatusChanges ignores a change of a parent that touches neither generation, labels,
	// annotations, finalizers nor owners. Default: false.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// InputResourceRule names a resource of inputs.
type InputResourceRule struct {
	ResourceRule `json:",inline"`
}

// OutputResourceRule names a resource of outputs and how they are updated.
type OutputResourceRule struct {
	ResourceRule `json:",inline"`
	// +optional
	UpdateStrategy *OutputUpdateStrategy `json:"updateStrategy,omitempty"`
}

// OutputUpdateStrategy is the update strategy of the outputs of one resource.
// +kubebuilder:validation:XValidation:rule="!has(self.method) || !self.method.startsWith('Rolling')",fieldPath=".method",message="outputs have no rolling updates: must be OnDelete, Recreate or InPlace"
type OutputUpdateStrategy struct {
	// Method is OnDelete, Recreate or InPlace. Default: OnDelete.
	// +optional
	Method UpdateMethod `json:"method,omitempty"`
}

// MapHooks are the hooks of a map controller.
type MapHooks struct {
	// Map is called for one input and returns its outputs.
	// +optional
	Map *Hook `json:"map,omitempty"`
	// Tombstone is called for the outputs of an input that is gone or no longer selected, and
	// returns the ones to keep. Unset, they are deleted.
	// +optional
	Tombstone *Hook `json:"tombstone,omitempty"`
	// Finalize is called instead of Map and Tombstone for each input while a parent is being
	// deleted or no longer matches. Declaring it puts a finalizer on every parent.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
	// Customize is called once for each parent and selects the other objects that the hooks see.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
}
