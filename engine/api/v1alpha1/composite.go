package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CompositeController declares a controller that owns children: for every object of the parent
// resource the sync hook is asked which children should exist, and the engine makes it so.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=compositecontrollers,scope=Cluster,shortName=cc;cctl
// +kubebuilder:metadata:annotations={"api-approved.kubernetes.io=unapproved, request not yet submitted"}
// +kubebuilder:printcolumn:name="Parent",type=string,JSONPath=`.spec.parentResource.resource`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Intercepted",type=string,JSONPath=`.status.conditions[?(@.type=="Intercepted")].status`
// +kubebuilder:printcolumn:name="Answered By",type=string,JSONPath=`.status.conditions[?(@.type=="Fallback")].reason`
// +kubebuilder:printcolumn:name="Children",type=string,priority=1,JSONPath=`.status.children`
// +kubebuilder:printcolumn:name="Webhook",type=string,priority=1,JSONPath=`.spec.hooks.sync.webhook.url`
// +kubebuilder:printcolumn:name="gRPC",type=string,priority=1,JSONPath=`.spec.hooks.sync.grpc.target`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CompositeController struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec CompositeControllerSpec `json:"spec"`
	// +optional
	Status ControllerStatus `json:"status,omitempty"`
}

// CompositeControllerList is a list of CompositeControllers.
//
// +kubebuilder:object:root=true
type CompositeControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CompositeController `json:"items"`
}

// CompositeControllerSpec declares the parents, the children and the hooks.
// +kubebuilder:validation:XValidation:rule="has(self.hooks) && has(self.hooks.sync)",fieldPath=".hooks",message="hooks.sync must be set: without it no parent can be synced"
type CompositeControllerSpec struct {
	// ParentResource is the resource of the parents.
	ParentResource ParentResourceRule `json:"parentResource"`
	// ChildResources are all resources that the hook may ask for. An answer with any other is
	// refused.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	ChildResources []ChildResourceRule `json:"childResources,omitempty"`
	// +optional
	Hooks *CompositeHooks `json:"hooks,omitempty"`
	// EndpointConfigs are TLS and credentials by host, for webhooks that have none of their own.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	EndpointConfigs []EndpointConfig `json:"endpointConfigs,omitempty"`
	// ResyncPeriodSeconds syncs every parent again after that many seconds, even when nothing was
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
	// GenerateSelector ignores the parent's spec.selector and selects children by a label with the
	// parent's UID, which the engine puts on them. Default: false.
	// +optional
	GenerateSelector *bool `json:"generateSelector,omitempty"`
}

// ParentResourceRule names the resource of the parents and which of its objects count.
type ParentResourceRule struct {
	ResourceRule `json:",inline"`
	// LabelSelector narrows the parents; unset, all objects of the resource are parents.
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`
	// RevisionHistory selects the fields of a parent that make a new revision for rolling updates.
	// +optional
	RevisionHistory *RevisionHistory `json:"revisionHistory,omitempty"`
	// IgnoreStatusChanges skips the sync for a change of a parent that touches neither generation,
	// labels, annotations, finalizers nor owners. Default: false.
	// +optional
	IgnoreStatusChanges *bool `json:"ignoreStatusChanges,omitempty"`
}

// RevisionHistory selects the fields of a revision.
type RevisionHistory struct {
	// FieldPaths are dotted paths into the parent; a change of one starts a rolling update.
	// Default: ["spec"].
	// +optional
	FieldPaths []string `json:"fieldPaths,omitempty"`
}

// ChildResourceRule names a resource of children and how they are updated.
type ChildResourceRule struct {
	ResourceRule `json:",inline"`
	// +optional
	UpdateStrategy *ChildUpdateStrategy `json:"updateStrategy,omitempty"`
}

// ChildUpdateStrategy is the update strategy of the children of one resource.
type ChildUpdateStrategy struct {
	// Method defaults to OnDelete.
	// +optional
	Method UpdateMethod `json:"method,omitempty"`
	// StatusChecks are the checks that an updated child must pass before a rolling update
	// continues.
	// +optional
	StatusChecks StatusChecks `json:"statusChecks,omitempty"`
}

// StatusChecks are checks of a child's status.
type StatusChecks struct {
	// Conditions must all hold.
	// +optional
	Conditions []ConditionCheck `json:"conditions,omitempty"`
}

// ConditionCheck is a condition that a child's status.conditions must have.
type ConditionCheck struct {
	// Type is the type of the condition.
	// +kubebuilder:validation:MinLength=1
	Type string `json:"type"`
	// Status is the status wanted; unset, any will do.
	// +optional
	Status *string `json:"status,omitempty"`
	// Reason is the reason wanted; unset, any will do.
	// +optional
	Reason *string `json:"reason,omitempty"`
}

// CompositeHooks are the hooks of a composite controller.
type CompositeHooks struct {
	// Sync is asked for the desired children and status of a parent.
	// +optional
	Sync *Hook `json:"sync,omitempty"`
	// Finalize is asked instead of Sync while a parent is being deleted. Declaring it puts a
	// finalizer on every parent.
	// +optional
	Finalize *Hook `json:"finalize,omitempty"`
	// Customize is asked which other objects Sync and Finalize should see.
	// +optional
	Customize *Hook `json:"customize,omitempty"`
	// PreUpdateChild is accepted for compatibility; Metacontroller's schema has it, and neither
	// engine calls it.
	// +optional
	PreUpdateChild *Hook `json:"preUpdateChild,omitempty"`
	// PostUpdateChild is accepted for compatibility; Metacontroller's schema has it, and neither
	// engine calls it.
	// +optional
	PostUpdateChild *Hook `json:"postUpdateChild,omitempty"`
}
