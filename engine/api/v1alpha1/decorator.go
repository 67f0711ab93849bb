package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DecoratorController declares a controller that adds to objects which something else owns: labels,
// annotations, and attachments, which are children beside those that the object already has.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=decoratorcontrollers,scope=Cluster,shortName=dec;decorators
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Resources",type=string,JSONPath=`.status.parents`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Intercepted",type=string,JSONPath=`.status.conditions[?(@.type=="Intercepted")].status`
// +kubebuilder:printcolumn:name="Answered By",type=string,JSONPath=`.status.conditions[?(@.type=="Fallback")].reason`
// +kubebuilder:printcolumn:name="Attachments",type=string,priority=1,JSONPath=`.status.children`
// +kubebuilder:printcolumn:name="Webhook",type=string,priority=1,JSONPath=`.spec.hooks.sync.webhook.url`
// +kubebuilder:printcolumn:name="gRPC",type=string,priority=1,JSONPath=`.spec.hooks.sync.grpc.target`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DecoratorController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DecoratorControllerSpec `json:"spec"`
	// +optional
	Status ControllerStatus `json:"status,omitempty"`
}

// DecoratorControllerList is a list of DecoratorControllers.
//
// +kubebuilder:object:root=true
type DecoratorControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DecoratorController `json:"items"`
}

// DecoratorControllerSpec declares the decorated resources, the attachments and the hooks.
// +kubebuilder:validation:XValidation:rule="has(self.hooks) && has(self.hooks.sync)",fieldPath=".hooks",message="hooks.sync must be set: without it no object can be synced"
type DecoratorControllerSpec struct {
	// Resources are the resources of the decorated objects.
	Resources []DecoratedResourceRule `json:"resources"`
	// Attachments are all resources that the hook may attach. An answer with any other is refused.
	// +optional
	Attachments []AttachmentRule `json:"attachments,omitempty"`
	// +optional
	Hooks *DecoratorHooks `json:"hooks,omitempty"`
	// EndpointConfigs are TLS and credentials by host, for webhooks that have none of their own.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
	// ResyncPeriodSeconds syncs every object again after that many seconds, even when nothing was
	// seen to change. Values below 1 count as 1; unset, there is no periodic resync.
	// +optional
	ResyncPeriodSeconds *int32 `json:"resyncPeriodSeconds,omitempty"`
	// DeletionLimit is how many children one answer may have deleted: a number, or a percentage of
	// the children that the parent has. Nothing of an answer beyond it is written. Children that
	// are recreated, and those of a parent that leaves, do not count. Unset, the flag
	// deletion-limit decides.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^(100|[1-9]?[0-9])%$') : self >= 0",message="must be a number of 0 or more, or a percentage from 0% to 100%"
	DeletionLimit *intstr.IntOrString `json:"deletionLimit,omitempty"`
}

// DecoratedResourceRule names a resource and which of its objects are decorated. Both selectors
// must match.
type DecoratedResourceRule struct {
	ResourceRule `json:",inline"`
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// +optional
	AnnotationSelector *AnnotationSelector `json:"annotationSelector,omitempty"`
	// IgnoreStatusChanges skips the sync for a change that touches neither generation, labels,
	// annotations, finalizers nor owners. Default: false.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// AnnotationSelector selects by annotations, with the same rules as a label selector.
type AnnotationSelector struct {
	// MatchAnnotations are annotations that an object must have, with their values.
	// +optional
	MatchAnnotations map[string]string `json:"matchAnnotations,omitempty"`
	// MatchExpressions are requirements that an object's annotations must meet, all of them.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// AttachmentRule names a resource of attachments and how they are updated.
type AttachmentRule struct {
	ResourceRule `json:",inline"`
	// +optional
	UpdateStrategy *AttachmentUpdateStrategy `json:"updateStrategy,omitempty"`
}

// AttachmentUpdateStrategy is the update strategy of the attachments of one resource.
type AttachmentUpdateStrategy struct {
	// Method defaults to OnDelete; a rolling method acts as its plain kind.
	// +optional
	Method UpdateMethod `json:"method,omitempty"`
}

// DecoratorHooks are the hooks of a decorator controller.
type DecoratorHooks struct {
	// Sync is asked for the labels, annotations, status and attachments of an object.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// Finalize is asked instead of Sync while an object is being deleted or no longer matches.
	// Declaring it puts a finalizer on every object.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
	// Customize is asked which other objects Sync and Finalize should see.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
}
